//! The octets by which a machine becomes a spool node: the token that an operator carries, and the messages inside TLS.
//!
//! Reading order: [`token`], [`message`], [`wire`] (messages over a stream). Connections and certificates are those of
//! `vere-enrolment`.

pub mod message;
pub mod token;
pub mod wire;

pub use token::{Token, TokenError};

#[cfg(test)]
mod tests;
