//! The workers of port 25.
//!
//! Two roles: `workers` starts workers and replaces those that end (`keeper`); a `worker` gets sessions from the front, receives their
//! messages and gives these to the gateway (`worker`). A worker opens nothing itself: it finds its connections in a packet at its standard input
//! (`links`) and enters a sandbox before it reads anything else. `host` answers the questions of a session, `front`, `gateway` and
//! `broker` are the other ends of the connections. `peak` notices memory without use.

mod ahead;
mod broker;
mod client;
mod error;
mod front;
mod gateway;
mod host;
mod judging;
mod keeper;
mod links;
mod parts;
mod peak;
#[cfg(test)]
mod tests;
mod worker;

pub use error::{KeeperError, WorkerError};
pub use keeper::run as run_keeper;
pub use worker::run as run_worker;
