//! DKIM signing (RFC 6376, Ed25519 by RFC 8463).
//!
//! A signature is made in two halves. [`draft`] needs the message and no key: it hashes the body,
//! canonicalizes the header, and gives the octets to be signed. [`PrivateKey::sign`] needs those octets and
//! the key, and never sees a message. So the keys can live in a separate process, out of reach for an
//! attacker who breaks into the process with network connections.
//!
//! Reading order: [`key`] (a key, its times, its file, its record in the DNS), [`store`] (the directory of
//! all keys), [`waiting`] and [`published`] (keys that wait for their record, and whether the DNS has it), [`draft`] (the octets to sign, and the header field), [`seal`] (sets of ARC for messages that go on, RFC 8617).
//!
//! Canonicalization, hashes and signatures come from mail-auth; the rsa crate only generates RSA keys. Not
//! covered: verification (`vere-auth`), body length limits (`l=`), which allow additions to a message.

mod content;
pub mod draft;
pub mod key;
pub mod published;
pub mod seal;
pub mod store;
pub mod waiting;

#[cfg(test)]
mod tests;

pub use draft::{Draft, NotSignable, drafts};
pub use key::{KeyAlgorithm, KeyError, PrivateKey, StoredKey};
pub use published::Published;
pub use seal::{ARC_SETS_MAX, Chain, MessageDraft, NotSealable, SealDraft, Sealer};
pub use store::KeyStore;
pub use waiting::Waiting;
