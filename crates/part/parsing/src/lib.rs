//! Processes that parse messages, bounded in time and memory, so that no message takes the store down.
//! `docs/internals/parsed.md` describes the fate of messages that break these processes.
//!
//! A few processes wait for messages. A process has one message at a time, so that a failure identifies the message.
//! `process` is such a process as the store sees it; `child` is the process's own code.

pub mod child;
mod decoders;
mod parsers;
mod process;
mod terms;

use std::time::Duration;

pub use decoders::{Decoders, Sought, are_enough};
pub use parsers::{Found, NoParser, Parsers, Turn};
pub use process::Launch;

/// Busy processes for the index.
const INDEXING: usize = 1;

/// The processes of a store by purpose: searches wait neither for incoming mail nor for the index.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Processes that parse delivered messages.
    pub delivering: Parsers,
    /// Processes that search messages.
    pub searching: Decoders,
    /// Processes that extract the texts of messages.
    pub indexing: Decoders,
}

impl Processes {
    /// Processes that run this program.
    pub fn new(patience: Duration) -> Self {
        let searching = Decoders::new(patience);
        Self {
            delivering: Parsers::new(patience),
            indexing: searching.beside(INDEXING),
            searching,
        }
    }
}
