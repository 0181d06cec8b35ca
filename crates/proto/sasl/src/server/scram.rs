//! SCRAM-SHA-256, server: RFC 5802 section 5 with the hash of RFC 7677.

use std::fmt;

use vere_units::constant_time_eq;

use super::{Failure, State, Step};
use crate::nonce::is_nonce;
use crate::scram::{Hash, attribute, decode_hash, hash, signature, unescape_name, xor};
use crate::{FakeKeys, NAME_LENGTH_MAX, Nonce, ScramKeys, decode, encode, prepare};

/// After the client-first-message: waits for the keys of the user.
#[derive(Debug)]
pub(super) struct AwaitKeys {
    gs2_header: String,
    bare: String,
    authcid: String,
    /// The client's nonce followed by the server's nonce.
    nonce: String,
}

/// After the server-first-message: waits for the client-final-message.
pub(super) struct AwaitFinal {
    before: AwaitKeys,
    server_first: String,
    keys: ScramKeys,
    /// False for fake keys: then every proof is wrong, even a matching proof.
    genuine: bool,
}

impl fmt::Debug for AwaitFinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitFinal")
            .field("authcid", &self.before.authcid)
            .finish_non_exhaustive()
    }
}

/// Reads the client-first-message.
///
/// ```text
/// client-first-message      = gs2-header client-first-message-bare
/// gs2-header                = gs2-cbind-flag "," [ authzid ] ","
/// gs2-cbind-flag            = ("p=" cb-name) / "n" / "y"
/// authzid                   = "a=" saslname
/// client-first-message-bare = [reserved-mext ","] username "," nonce ["," extensions]
/// reserved-mext             = "m=" 1*(value-char)
/// username                  = "n=" saslname
/// nonce                     = "r=" c-nonce [s-nonce]
/// ```
pub(super) fn client_first(nonce: Nonce, message: &[u8]) -> Result<(State, Step), Failure> {
    const WHAT: Failure = Failure::Malformed("client-first-message");
    let message = std::str::from_utf8(message).map_err(|_| WHAT)?;
    let mut parts = message.splitn(3, ',');
    let (Some(flag), Some(authzid), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(WHAT);
    };
    match flag {
        // With "y" the client supports channel binding and believes, correctly, that the server
        // does not.
        "n" | "y" => {}
        _ if flag.starts_with("p=") => return Err(Failure::ChannelBinding),
        _ => return Err(WHAT),
    }
    // A mandatory extension ("m=") stands where the name must be, and so is refused here.
    let mut attributes = bare.split(',');
    let name = attribute(attributes.next(), 'n').ok_or(WHAT)?;
    let client_nonce = attribute(attributes.next(), 'r').ok_or(WHAT)?;
    if !is_nonce(client_nonce) {
        return Err(WHAT);
    }
    let authcid = prepared_name(name)?;
    if !authzid.is_empty() {
        let authzid = authzid.strip_prefix("a=").ok_or(WHAT)?;
        if prepared_name(authzid)? != authcid {
            return Err(Failure::Authzid);
        }
    }
    let step = Step::ScramUser(authcid.clone());
    let waiting = AwaitKeys {
        gs2_header: format!("{flag},{authzid},"),
        bare: bare.to_owned(),
        authcid,
        nonce: format!("{client_nonce}{}", nonce.as_str()),
    };
    Ok((State::ScramKeys(Box::new(waiting)), step))
}

fn prepared_name(saslname: &str) -> Result<String, Failure> {
    const WHAT: &str = "user name";
    if saslname.len() > NAME_LENGTH_MAX {
        return Err(Failure::TooLong(WHAT));
    }
    let name = unescape_name(saslname).ok_or(Failure::Malformed(WHAT))?;
    let name = prepare(&name).map_err(|_| Failure::Malformed(WHAT))?;
    if name.is_empty() {
        return Err(Failure::Malformed(WHAT));
    }
    Ok(name.into_owned())
}

impl AwaitKeys {
    /// Writes the server-first-message.
    ///
    /// ```text
    /// server-first-message = [reserved-mext ","] nonce "," salt "," iteration-count
    /// ```
    pub(super) fn keys(self, found: Option<ScramKeys>, fake: &FakeKeys) -> (State, Step) {
        // Fake keys are made for existing users as well, so that the time taken reveals no
        // difference.
        let fake = fake.for_user(&self.authcid);
        let genuine = found.is_some();
        let keys = found.unwrap_or(fake);
        let (salt, iterations) = (encode(&keys.salt), keys.iterations);
        let server_first = format!("r={},s={salt},i={iterations}", self.nonce);
        let step = Step::Challenge(server_first.clone().into_bytes());
        let waiting = AwaitFinal {
            before: self,
            server_first,
            keys,
            genuine,
        };
        (State::ScramFinal(Box::new(waiting)), step)
    }
}

impl AwaitFinal {
    /// Reads the client-final-message, checks the proof, and answers with our own signature.
    ///
    /// ```text
    /// client-final-message-without-proof = channel-binding "," nonce ["," extensions]
    /// client-final-message               = client-final-message-without-proof "," proof
    /// channel-binding                    = "c=" base64 ; of the gs2-header
    /// proof                              = "p=" base64
    /// server-final-message               = (server-error / verifier) ["," extensions]
    /// verifier                           = "v=" base64
    /// ```
    pub(super) fn client_final(self, message: &[u8]) -> Result<(State, Step), Failure> {
        const WHAT: Failure = Failure::Malformed("client-final-message");
        let message = std::str::from_utf8(message).map_err(|_| WHAT)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(WHAT)?;
        let proof = decode_hash(proof).ok_or(WHAT)?;
        let mut attributes = without_proof.split(',');
        let binding = attribute(attributes.next(), 'c').ok_or(WHAT)?;
        let nonce = attribute(attributes.next(), 'r').ok_or(WHAT)?;
        if decode(binding.as_bytes()).map_err(|_| WHAT)? != self.before.gs2_header.as_bytes() {
            return Err(Failure::ChannelBinding);
        }
        let nonce_fits = nonce == self.before.nonce;
        let proof_fits = self.proves(without_proof, &proof);
        if !(nonce_fits && proof_fits && self.genuine) {
            return Err(Failure::Credentials);
        }
        let verifier = self.sign(&self.keys.server_key, without_proof);
        let step = Step::Challenge(format!("v={}", encode(&verifier)).into_bytes());
        Ok((
            State::ScramEnd {
                authcid: self.before.authcid,
            },
            step,
        ))
    }

    /// `ClientKey := ClientProof XOR ClientSignature`, and `H(ClientKey)` must be `StoredKey`.
    fn proves(&self, without_proof: &str, proof: &Hash) -> bool {
        let client_key = xor(proof, &self.sign(&self.keys.stored_key, without_proof));
        constant_time_eq(&hash(&client_key), &self.keys.stored_key)
    }

    fn sign(&self, key: &Hash, without_proof: &str) -> Hash {
        signature(key, &self.before.bare, &self.server_first, without_proof)
    }
}

/// The empty message with which the client acknowledges the server-final-message: SMTP cannot carry
/// the server-final-message in the `235` reply (RFC 4954 section 4).
pub(super) fn end(authcid: String, message: &[u8]) -> Result<(State, Step), Failure> {
    if !message.is_empty() {
        return Err(Failure::Malformed("last message, which must be empty"));
    }
    Ok((State::Over, Step::Authenticated { authcid }))
}
