//! Listeners, TLS, ACME and name resolution: the sockets of every role.
//!
//! In reading order:
//!
//! - [`listen`]: listening sockets, bound here or inherited from systemd or the supervisor;
//! - [`datagrams`]: UDP sockets that share an address, read and written many datagrams at a time;
//! - [`connect`]: a connection to the first answering address of a list;
//! - [`resolver`]: MX, address and TXT records, from name servers or from a zone file for tests;
//! - [`tls`]: certificates with reload and server names, handshakes on both sides;
//! - [`packets`]: sockets between processes, with descriptors beside the octets;
//! - [`quiet`]: sockets between processes that wake their owner for octets alone;
//! - [`last`]: the last octets of a connection, together with its end;
//! - [`unsent`]: a limit on the kernel's send buffer for slow readers;
//! - [`sts`]: the requirements of domains for connections to their mail exchangers (MTA-STS);
//! - [`web`]: requests to web servers of other systems, by the names that the systems publish;
//! - [`acme`]: certificates from a CA, kept and renewed.
//!
//! Asynchronous functions run on a tokio runtime of any flavour; this crate starts no runtime. The
//! crate speaks no protocol except the answers to ACME's challenges.

pub mod acme;
pub mod aside;
pub mod connect;
pub mod datagrams;
pub mod last;
pub mod listen;
pub mod packets;
pub mod quiet;
pub mod resolver;
pub mod sts;
pub mod tls;
pub mod unsent;
pub mod web;
