//! The spool: queues kept physically in order on a node, and the owner's side in the gateway.
//!
//! [`node::Node`] keeps groups of queues in memory and, with a log, on disk; [`owner::Owner`] is the
//! library with which a gateway changes its group. Both are machines without sockets, clock or files;
//! the frames between them are those of `vere-spoolwire`, the log is behind
//! [`vere_ports::spool_log::SpoolLog`]. [`lease`] says which of two owners of a group may deliver.

pub mod lease;
pub mod node;
pub mod owner;

#[cfg(test)]
mod testing;
