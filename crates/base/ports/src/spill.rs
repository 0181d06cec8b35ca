//! Storage outside memory for segments that a spool node seldom needs. Spilled segments do not survive a restart:
//! every start begins with an empty store.
//!
//! Jobs run in the background and are reported later, in any order. Buffers are passed by value, so that memory is
//! accounted to the holder. The store returns the written octets or an error; the engine keeps a checksum all the
//! same.

use std::fmt;

/// Names written octets until the slot is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpillSlot(pub u64);

/// A finished job. Reads and writes both return the buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct SpillDone {
    /// The slot of the job.
    pub slot: SpillSlot,
    /// The buffer of the job; after a failed read the content is undefined.
    pub octets: Vec<u8>,
    /// The error of the system. After a failed write the slot is freed already.
    pub result: Result<(), String>,
}

/// A write that was not started.
#[derive(Debug, PartialEq, Eq)]
pub struct SpillFull {
    /// The buffer.
    pub octets: Vec<u8>,
}

/// Storage for segments. No method but [`SpillStore::wait`] may block.
pub trait SpillStore: fmt::Debug {
    /// Starts writing the first `len` octets of a buffer, and returns their slot.
    ///
    /// # Errors
    ///
    /// [`SpillFull`] if the space is used up or too many jobs wait.
    fn write(&mut self, octets: Vec<u8>, len: usize) -> Result<SpillSlot, SpillFull>;

    /// Starts reading a slot into a buffer of at least its length. The slot must have no other running job.
    fn read(&mut self, slot: SpillSlot, into: Vec<u8>);

    /// Frees a slot. No job of the slot may run.
    fn free(&mut self, slot: SpillSlot);

    /// Returns the next finished job, if any.
    fn poll(&mut self) -> Option<SpillDone>;

    /// Waits for a job to finish; `None` if no job runs.
    fn wait(&mut self) -> Option<SpillDone>;

    /// Octets in slots.
    fn used(&self) -> u64;

    /// Octets still free.
    fn room(&self) -> u64;
}
