//! A node's spill store for records beyond its memory. Jobs are completed by the next turn.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use vere_ports::spill::{SpillDone, SpillFull, SpillSlot, SpillStore};

/// The capacity in octets.
const ROOM: u64 = 64 << 20;

#[derive(Debug, Default)]
struct State {
    slots: BTreeMap<SpillSlot, Vec<u8>>,
    done: VecDeque<SpillDone>,
    last: u64,
    used: u64,
}

/// The spill store of one life of a process; clones share the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spill(Rc<RefCell<State>>);

impl Spill {
    /// Whether the process has yet to hear of something.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.borrow().done.is_empty()
    }
}

impl SpillStore for Spill {
    fn write(&mut self, octets: Vec<u8>, len: usize) -> Result<SpillSlot, SpillFull> {
        let mut state = self.0.borrow_mut();
        let Some(content) = octets.get(..len).filter(|_| state.used < ROOM) else {
            return Err(SpillFull { octets });
        };
        let content = content.to_vec();
        state.last += 1;
        state.used += len as u64;
        let slot = SpillSlot(state.last);
        state.slots.insert(slot, content);
        let result = Ok(());
        state.done.push_back(SpillDone {
            slot,
            octets,
            result,
        });
        Ok(slot)
    }

    fn read(&mut self, slot: SpillSlot, mut into: Vec<u8>) {
        let mut state = self.0.borrow_mut();
        let found = state.slots.get(&slot);
        let content = found.and_then(|content| Some((into.get_mut(..content.len())?, content)));
        let result = match content {
            Some((into, content)) => {
                into.copy_from_slice(content);
                Ok(())
            }
            None => Err("nothing is there".to_owned()),
        };
        state.done.push_back(SpillDone {
            slot,
            octets: into,
            result,
        });
    }

    fn free(&mut self, slot: SpillSlot) {
        let mut state = self.0.borrow_mut();
        let freed = state.slots.remove(&slot).map_or(0, |octets| octets.len());
        state.used -= freed as u64;
    }

    fn poll(&mut self) -> Option<SpillDone> {
        self.0.borrow_mut().done.pop_front()
    }

    fn wait(&mut self) -> Option<SpillDone> {
        self.poll()
    }

    fn used(&self) -> u64 {
        self.0.borrow().used
    }

    fn room(&self) -> u64 {
        ROOM.saturating_sub(self.used())
    }
}
