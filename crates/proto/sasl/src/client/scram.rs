//! SCRAM-SHA-256, client: RFC 5802 section 5 with the hash of RFC 7677.

use std::fmt;

use vere_units::{Secret, constant_time_eq};

use super::{Credentials, ExchangeError};
use crate::nonce::is_nonce;
use crate::scram::{
    Hash, attribute, client_key, decode_hash, escape_name, hash, salted_password, server_key,
    signature, xor,
};
use crate::{KeyError, Nonce, decode, encode, prepare};

/// After our client-first-message: waits for the server-first-message.
#[derive(Debug)]
pub(super) struct AwaitFirst {
    password: Secret<String>,
    gs2_header: String,
    bare: String,
    nonce: String,
}

/// After our client-final-message: waits for the server-final-message.
pub(super) struct AwaitFinal {
    verifier: Hash,
}

impl fmt::Debug for AwaitFinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitFinal").finish_non_exhaustive()
    }
}

/// Writes the client-first-message; channel binding is never asked for (`n`).
pub(super) fn begin(
    credentials: &Credentials,
    nonce: &Nonce,
) -> Result<(AwaitFirst, String), ExchangeError> {
    let saslname = |name: &str| match prepare(name) {
        Ok(name) if !name.is_empty() => Ok(escape_name(&name)),
        _ => Err(ExchangeError::Credentials),
    };
    let gs2_header = match &credentials.authzid {
        Some(authzid) => format!("n,a={},", saslname(authzid)?),
        None => "n,,".to_owned(),
    };
    let bare = format!(
        "n={},r={}",
        saslname(&credentials.username)?,
        nonce.as_str()
    );
    let message = format!("{gs2_header}{bare}");
    let password = credentials.password.clone();
    Ok((
        AwaitFirst {
            password,
            gs2_header,
            bare,
            nonce: nonce.as_str().to_owned(),
        },
        message,
    ))
}

impl AwaitFirst {
    /// Reads the server-first-message and writes the client-final-message.
    ///
    /// ```text
    /// server-first-message = [reserved-mext ","] nonce "," salt "," iteration-count
    ///                        ["," extensions]
    /// salt                 = "s=" base64
    /// iteration-count      = "i=" posit-number
    /// ```
    pub(super) fn server_first(
        self,
        challenge: &[u8],
    ) -> Result<(AwaitFinal, String), ExchangeError> {
        const WHAT: ExchangeError = ExchangeError::Malformed("server-first-message");
        let first = std::str::from_utf8(challenge).map_err(|_| WHAT)?;
        let mut attributes = first.split(',');
        let nonce = attribute(attributes.next(), 'r').ok_or(WHAT)?;
        let salt = attribute(attributes.next(), 's').ok_or(WHAT)?;
        let salt = decode(salt.as_bytes()).map_err(|_| WHAT)?;
        let iterations = attribute(attributes.next(), 'i').ok_or(WHAT)?;
        if iterations.is_empty() || !iterations.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(WHAT);
        }
        // Digits beyond 32 bits are beyond every bound.
        let iterations = iterations.parse().unwrap_or(u32::MAX);
        let added = nonce
            .strip_prefix(&self.nonce)
            .ok_or(ExchangeError::Nonce)?;
        if added.is_empty() || !is_nonce(added) {
            return Err(ExchangeError::Nonce);
        }
        self.prove(first, nonce, &salt, iterations)
            .map_err(ExchangeError::Keys)
    }

    fn prove(
        &self,
        first: &str,
        nonce: &str,
        salt: &[u8],
        iterations: u32,
    ) -> Result<(AwaitFinal, String), KeyError> {
        let salted = salted_password(self.password.expose(), salt, iterations)?;
        let without_proof = format!("c={},r={nonce}", encode(self.gs2_header.as_bytes()));
        let sign = |key: &Hash| signature(key, &self.bare, first, &without_proof);
        let client_key = client_key(&salted);
        let proof = xor(&client_key, &sign(&hash(&client_key)));
        let waiting = AwaitFinal {
            verifier: sign(&server_key(&salted)),
        };
        Ok((waiting, format!("{without_proof},p={}", encode(&proof))))
    }
}

impl AwaitFinal {
    /// Reads the server-final-message.
    ///
    /// ```text
    /// server-final-message = (server-error / verifier) ["," extensions]
    /// server-error         = "e=" server-error-value
    /// verifier             = "v=" base64
    /// ```
    pub(super) fn server_final(&self, challenge: &[u8]) -> Result<(), ExchangeError> {
        const WHAT: ExchangeError = ExchangeError::Malformed("server-final-message");
        let message = std::str::from_utf8(challenge).map_err(|_| WHAT)?;
        let part = message.split(',').next();
        if let Some(value) = attribute(part, 'e') {
            let value = value.chars().filter(|c| !c.is_control()).take(64).collect();
            return Err(ExchangeError::Server(value));
        }
        let verifier = attribute(part, 'v').and_then(decode_hash).ok_or(WHAT)?;
        if constant_time_eq(&verifier, &self.verifier) {
            Ok(())
        } else {
            Err(ExchangeError::Signature)
        }
    }
}
