//! Check and execution of a mutation: the path of all mutations of an owner.

use vere_spoolwire::{Mutation, NodeRefusal, Plain, PlainPut, RecordId};

use super::memory::Memory;
use super::place::RecordPlace;
use super::queue::{Detail, Slot};
use super::store::{RECORD_OVERHEAD, Store};

impl Store {
    /// Executes a mutation with its frame at `home`, after a check. `full`: no space for new
    /// records.
    pub(super) fn perform(
        &mut self,
        memory: &mut Memory,
        mutation: &Mutation<'_>,
        home: RecordPlace,
        full: bool,
    ) -> Result<(), NodeRefusal> {
        self.check(mutation, full)?;
        self.execute(memory, mutation, home, false);
        Ok(())
    }

    /// Checks and executes a PUT or DELETE in one step, for a complete group.
    #[inline]
    pub(super) fn perform_plain(
        &mut self,
        memory: &mut Memory,
        plain: Plain,
        home: RecordPlace,
        full: bool,
    ) -> Result<(), NodeRefusal> {
        let Plain { queue, id, put } = plain;
        let room = self.group_charter.bytes_max.saturating_sub(self.octets);
        let known = self.queue_mut(queue).ok_or(NodeRefusal::NoQueue)?;
        let Some(PlainPut { meta_len, len }) = put else {
            let slot = known.remove(id).ok_or(NodeRefusal::NoRecord)?;
            known.count(memory);
            self.forget(memory, slot);
            return Ok(());
        };
        if id.0 < known.next || id == RecordId(u64::MAX) {
            return Err(NodeRefusal::RecordOrder);
        }
        if !known.has_room(known.length, known.octets, u64::from(len)) {
            return Err(NodeRefusal::QueueFull);
        }
        if u64::from(len) > room {
            return Err(NodeRefusal::GroupFull);
        }
        if full {
            return Err(NodeRefusal::NodeFull);
        }
        known.insert(id, Slot::new(home, len, Detail::Plain(meta_len)));
        known.count(memory);
        self.records += 1;
        memory.records += 1;
        let len = u64::from(len);
        self.octets += len;
        self.segments.retain(home.segment, len + RECORD_OVERHEAD);
        Ok(())
    }
}
