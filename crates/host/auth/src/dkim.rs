//! The verification of signatures (RFC 6376 section 6.1).

use crate::body::BodyHash;
use crate::canonical::{self, Canonicalization, Header};
use crate::dns::Dns;
use crate::fault::{DkimResult, Fault};
use crate::key::Key;
use crate::message::Message;
use crate::questions::Questions;
use crate::signature::{Algorithm, Found, Signature};

/// How far the time of a signature may lie in the future (RFC 6376 section 3.5, tag `t`): clocks of signers are wrong by hours, not by days.
const FUTURE_SECONDS_MAX: u64 = 24 * 60 * 60;

/// A signature of DKIM, with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The domain, in lower case and with A-labels; `None` where the signature has no valid one.
    pub domain: Option<String>,
    /// The selector, likewise.
    pub selector: Option<String>,
    /// The identity as written, up to 320 octets.
    pub identity: Option<String>,
    /// The algorithm.
    pub algorithm: Option<Algorithm>,
    /// The first 8 characters of the value.
    pub value: String,
    /// The reason why the signature does not pass; `None` for one that passes.
    pub fault: Option<Fault>,
    /// The domain says that it tests DKIM.
    pub is_testing: bool,
}

impl Signed {
    /// Returns the result. The failure of a domain that tests DKIM counts no more than a missing signature (RFC 6376 section 3.6.1).
    #[must_use]
    pub fn result(&self) -> DkimResult {
        match self.fault.map_or(DkimResult::Pass, Fault::result) {
            DkimResult::Fail if self.is_testing => DkimResult::Neutral,
            result => result,
        }
    }
}

/// Verifies all signatures of a message.
pub(crate) async fn verify(
    questions: &Questions<'_, impl Dns>,
    message: &Message,
    now: u64,
) -> Vec<Signed> {
    let header = Header::of(&message.header);
    let mut signed = Vec::new();
    for found in &message.signatures {
        let result = match found.signature.as_ref() {
            Ok(signature) => match in_time(signature, now) {
                Ok(()) => questions.key(&signature.key_name()).await,
                Err(fault) => Err(fault),
            },
            Err(fault) => Err(*fault),
        };
        let is_testing = result.as_ref().is_ok_and(|key| key.is_testing);
        let result = result.and_then(|key| covers(found, &header, &message.bodies, &key));
        let claim = found.claim.clone();
        signed.push(Signed {
            domain: claim.domain,
            selector: claim.selector,
            identity: claim.identity,
            algorithm: claim.algorithm,
            value: claim.value,
            fault: result.err(),
            is_testing,
        });
    }
    signed
}

/// Whether a signature counts now, and is of a kind that counts at all.
///
/// # Errors
/// The [`Fault`].
pub(crate) fn in_time(signature: &Signature, now: u64) -> Result<(), Fault> {
    if signature.algorithm == Algorithm::RsaSha1 {
        return Err(Fault::Sha1);
    }
    let expires = signature.expires.unwrap_or(u64::MAX);
    if expires <= now || signature.signed_at.is_some_and(|signed| expires <= signed) {
        return Err(Fault::Expired);
    }
    let latest = now.saturating_add(FUTURE_SECONDS_MAX);
    match signature.signed_at {
        Some(signed) if signed > latest => Err(Fault::Future),
        _ => Ok(()),
    }
}

/// Whether a signature covers this message.
///
/// # Errors
/// The [`Fault`].
pub(crate) fn covers(
    found: &Found,
    header: &Header<'_>,
    bodies: &[BodyHash],
    key: &Key,
) -> Result<(), Fault> {
    let signature = found.signature.as_ref().map_err(|fault| *fault)?;
    let content = signature.content.as_ref().ok_or(Fault::Syntax)?;
    let is = |body: &&BodyHash| {
        body.canonicalization == content.body_form && body.length == content.length
    };
    let body = bodies.iter().find(is).ok_or(Fault::TooManyLengths)?;
    let length = content.length.unwrap_or(body.octets);
    if length > body.octets {
        return Err(Fault::LengthBeyond);
    }
    if body.hash != content.body_hash {
        return Err(Fault::BodyHash);
    }
    let mut octets = Vec::new();
    header.named(&content.names, content.header_form, &mut octets);
    value(
        found.index,
        signature,
        header,
        content.header_form,
        key,
        octets,
    )?;
    match length < body.octets {
        true => Err(Fault::PartialBody),
        false => Ok(()),
    }
}

/// Whether the value of a signature is right for octets and the signature's own field behind them.
///
/// # Errors
/// The [`Fault`].
pub(crate) fn value(
    index: usize,
    signature: &Signature,
    header: &Header<'_>,
    form: Canonicalization,
    key: &Key,
    mut octets: Vec<u8>,
) -> Result<(), Fault> {
    let own = header.field(index).ok_or(Fault::Syntax)?;
    canonical::own_field(own, &signature.place, form, &mut octets);
    let is_below = signature.identity_domain.is_some();
    key.verify(signature.algorithm, is_below, &octets, &signature.value)
}
