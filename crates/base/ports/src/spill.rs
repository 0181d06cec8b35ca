//! Room outside memory for what a spool node does not need at hand. Nothing in it lasts: whoever
//! starts again begins with an empty one.
//!
//! Jobs are started and reported later, in any order; buffers are given by value, so that memory is
//! accounted for by whoever holds it. The store gives back what was written, or says that it cannot;
//! the engine keeps a checksum all the same.

use std::fmt;

/// What was written, until it is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpillSlot(pub u64);

/// A job that is done. Either kind gives the buffer back.
#[derive(Debug, PartialEq, Eq)]
pub struct SpillDone {
    /// What was written or read.
    pub slot: SpillSlot,
    /// The buffer of the job; of a read that failed its content means nothing.
    pub octets: Vec<u8>,
    /// What the system says. A slot whose writing failed is freed already.
    pub result: Result<(), String>,
}

/// A write that was not begun.
#[derive(Debug, PartialEq, Eq)]
pub struct SpillFull {
    /// The buffer.
    pub octets: Vec<u8>,
}

/// Room for segments. No method but [`SpillStore::wait`] may block.
pub trait SpillStore: fmt::Debug {
    /// Starts writing the first `len` octets of a buffer, and names the slot they will be in.
    ///
    /// # Errors
    ///
    /// [`SpillFull`] when the room is used up or too many jobs are waiting.
    fn write(&mut self, octets: Vec<u8>, len: usize) -> Result<SpillSlot, SpillFull>;

    /// Starts reading what lies in a slot into a buffer that is at least as long. No other job of
    /// this slot is under way.
    fn read(&mut self, slot: SpillSlot, into: Vec<u8>);

    /// What lies in a slot is not needed any more; no job of it is under way.
    fn free(&mut self, slot: SpillSlot);

    /// A job that is done, if there is one.
    fn poll(&mut self) -> Option<SpillDone>;

    /// Waits for a job to be done; `None` when none is under way.
    fn wait(&mut self) -> Option<SpillDone>;

    /// Octets that lie in slots.
    fn used(&self) -> u64;

    /// Octets that there is room for beside them.
    fn room(&self) -> u64;
}
