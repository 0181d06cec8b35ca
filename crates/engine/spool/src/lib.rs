//! The spool: queues kept physically in order on a node.
//!
//! [`node::Node`] keeps groups of queues in memory and, with a log, on disk. It is a machine without sockets, clock or
//! files; the frames between a node and the owner of a group (`vere-owner`) are those of `vere-spoolwire`, the log is behind
//! [`vere_ports::spool_log::SpoolLog`].

pub mod node;

#[cfg(test)]
use vere_owner as owner;

#[cfg(test)]
mod testing;
