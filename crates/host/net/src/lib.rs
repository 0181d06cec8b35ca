//! Listeners, TLS, ACME and name resolution: the sockets of every role.
//!
//! In reading order:
//!
//! - [`listen`]: listening sockets, bound here or inherited from systemd or the supervisor;
//! - [`connect`]: a connection to the first of several addresses that answers;
//! - [`resolver`]: MX, address and TXT records, from name servers or from a zone file for tests;
//! - [`tls`]: certificates with reload and server names, handshakes on both sides;
//! - [`unsent`]: how much the kernel takes of what the other side does not read;
//! - [`sts`]: what domains demand of connections to their mail exchangers (MTA-STS);
//! - [`acme`]: certificates from an authority, kept and renewed.
//!
//! Everything asynchronous runs on a tokio runtime of any flavour; nothing here starts one.
//! Protocols are not spoken here, save those of ACME's challenges.

pub mod acme;
pub mod aside;
pub mod connect;
pub mod listen;
pub mod resolver;
pub mod sts;
pub mod tls;
pub mod unsent;
