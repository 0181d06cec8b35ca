//! A spill store in memory that finishes its jobs when it is told to, in any order.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use vere_ports::spill::{SpillDone, SpillFull, SpillSlot, SpillStore};

#[derive(Debug)]
enum Job {
    Write(SpillSlot, Vec<u8>, usize),
    Read(SpillSlot, Vec<u8>),
}

impl Job {
    fn slot(&self) -> SpillSlot {
        match self {
            Self::Write(slot, ..) | Self::Read(slot, _) => *slot,
        }
    }
}

#[derive(Debug)]
pub(crate) struct SpillState {
    slots: BTreeMap<SpillSlot, Vec<u8>>,
    pending: Vec<Job>,
    done: VecDeque<SpillDone>,
    last: u64,
    dice: u64,
    /// Capacity in octets.
    pub(crate) capacity: u64,
    /// Writes fail.
    pub(crate) failing: bool,
    /// Reads return octets that differ from the written ones.
    pub(crate) damaged: bool,
    /// Reads return octets of other segments, as after a lost write.
    pub(crate) stale: bool,
    /// Number of finished reads.
    pub(crate) reads: u64,
    /// Number of finished writes.
    pub(crate) writes: u64,
}

impl SpillState {
    fn below(&mut self, bound: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % bound as u64) as usize
    }

    /// Finishes a random job. Returns false without jobs.
    fn finish_one(&mut self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let at = self.below(self.pending.len());
        let done = match self.pending.remove(at) {
            Job::Write(slot, octets, _) if self.failing => SpillDone {
                slot,
                octets,
                result: Err("test".to_owned()),
            },
            Job::Write(slot, octets, len) => {
                self.slots.insert(slot, octets[..len].to_vec());
                self.writes += 1;
                SpillDone {
                    slot,
                    octets,
                    result: Ok(()),
                }
            }
            Job::Read(slot, mut octets) => {
                let mut found = &self.slots[&slot];
                if self.stale {
                    let of_same_len =
                        |other: &&Vec<u8>| other.len() == found.len() && *other != found;
                    found = self.slots.values().find(of_same_len).unwrap_or(found);
                }
                // Old content of the buffer must not matter.
                octets.fill(0xAA);
                octets[..found.len()].copy_from_slice(found);
                if self.damaged {
                    octets[found.len() / 2] ^= 1;
                }
                self.reads += 1;
                SpillDone {
                    slot,
                    octets,
                    result: Ok(()),
                }
            }
        };
        self.done.push_back(done);
        true
    }

    fn is_busy(&self, slot: SpillSlot) -> bool {
        let pending = self.pending.iter().any(|job| job.slot() == slot);
        pending || self.done.iter().any(|done| done.slot == slot)
    }
}

/// The store; clones share their content.
#[derive(Debug, Clone)]
pub(crate) struct MemorySpill(pub(crate) Rc<RefCell<SpillState>>);

impl MemorySpill {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(SpillState {
            slots: BTreeMap::new(),
            pending: Vec::new(),
            done: VecDeque::new(),
            last: 0,
            dice: seed | 1 << 40,
            capacity: u64::MAX,
            failing: false,
            damaged: false,
            stale: false,
            reads: 0,
            writes: 0,
        })))
    }

    /// Drops the content, which does not survive a crash.
    pub(crate) fn restart(&self) {
        let mut state = self.0.borrow_mut();
        state.slots.clear();
        state.pending.clear();
        state.done.clear();
    }

    /// Finishes some of the jobs, or none.
    pub(crate) fn finish_some(&self) {
        let mut state = self.0.borrow_mut();
        for _ in 0..state.below(3) {
            state.finish_one();
        }
    }

    /// Finishes all jobs. Returns false without jobs.
    pub(crate) fn finish_all(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let any = !state.pending.is_empty() || !state.done.is_empty();
        while state.finish_one() {}
        any
    }

    /// Number of used slots, including those of jobs.
    pub(crate) fn slots(&self) -> usize {
        let state = self.0.borrow();
        state.slots.len() + state.pending.len()
    }
}

impl SpillStore for MemorySpill {
    fn write(&mut self, octets: Vec<u8>, len: usize) -> Result<SpillSlot, SpillFull> {
        let used = self.used();
        let mut state = self.0.borrow_mut();
        if used + len as u64 > state.capacity {
            return Err(SpillFull { octets });
        }
        state.last += 1;
        let slot = SpillSlot(state.last);
        state.pending.push(Job::Write(slot, octets, len));
        Ok(slot)
    }

    fn read(&mut self, slot: SpillSlot, into: Vec<u8>) {
        let mut state = self.0.borrow_mut();
        assert!(!state.is_busy(slot), "one job at a time");
        assert!(into.len() >= state.slots[&slot].len());
        state.pending.push(Job::Read(slot, into));
    }

    fn free(&mut self, slot: SpillSlot) {
        let mut state = self.0.borrow_mut();
        assert!(!state.is_busy(slot), "freed while in use");
        assert!(state.slots.remove(&slot).is_some(), "freed twice");
    }

    fn poll(&mut self) -> Option<SpillDone> {
        self.0.borrow_mut().done.pop_front()
    }

    fn wait(&mut self) -> Option<SpillDone> {
        let mut state = self.0.borrow_mut();
        if state.done.is_empty() {
            state.finish_one();
        }
        state.done.pop_front()
    }

    fn used(&self) -> u64 {
        let state = self.0.borrow();
        state.slots.values().map(|octets| octets.len() as u64).sum()
    }

    fn room(&self) -> u64 {
        let used = self.used();
        self.0.borrow().capacity.saturating_sub(used)
    }
}
