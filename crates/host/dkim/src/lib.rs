//! DKIM signing (RFC 6376, Ed25519 by RFC 8463).
//!
//! A signature is made in two halves. [`draft`] needs the message and no key: it hashes the body,
//! canonicalizes the header, and gives the octets to be signed. [`PrivateKey::sign`] needs those octets and
//! the key, and never sees a message. So the keys can live in a process of their own, and whoever breaks
//! into the one that talks to the world cannot take them away.
//!
//! Reading order: [`key`] (a key, its times, its file, its record in the DNS), [`store`] (the folder of all
//! keys), [`draft`] (what is signed, and the header field).
//!
//! Canonicalization, hashes and signatures are mail-auth's; RSA keys are made by the rsa crate, which signs
//! nothing here. Not covered: verification, ARC, body length limits (`l=`), which let anybody add to a
//! message.

pub mod draft;
pub mod key;
pub mod store;

#[cfg(test)]
mod tests;

pub use draft::{Draft, NotSignable, drafts};
pub use key::{KeyAlgorithm, KeyError, PrivateKey, StoredKey};
pub use store::KeyStore;
