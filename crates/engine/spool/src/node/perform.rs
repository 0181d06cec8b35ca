//! Checks a mutation and does it: the way of everything an owner sends.

use vere_spoolwire::{Change, Changes, Mutation, Refusal};

use super::queue::{Detail, Slot};
use super::segment::{Memory, Place};
use super::store::{Name, RECORD_OVERHEAD, Store};

impl Store {
    /// Does a mutation whose frame lies at `home`, if it may be done. `full`: no room for new records.
    /// PUT and DELETE, which come all the time, are checked and done in one go.
    #[inline]
    pub(super) fn perform(
        &mut self,
        memory: &mut Memory,
        mutation: &Mutation<'_>,
        home: Place,
        full: bool,
    ) -> Result<(), Refusal> {
        match *mutation {
            Mutation::Change(Change::Put {
                queue,
                id,
                meta,
                body,
            }) if !self.syncing => {
                let len = meta.len() + body.map_or(0, <[u8]>::len);
                let slot = Slot::new(home, len as u32, Detail::Plain(meta.len() as u32));
                self.put(memory, (queue, id), slot, full)
            }
            Mutation::Change(Change::Delete { queue, id }) if !self.syncing => {
                let queue = self.queue_mut(queue).ok_or(Refusal::NoQueue)?;
                let slot = queue.remove(id).ok_or(Refusal::NoRecord)?;
                self.forget(memory, slot);
                Ok(())
            }
            _ => {
                self.check(mutation, full)?;
                self.execute(memory, mutation, home, false);
                Ok(())
            }
        }
    }

    /// Takes in a record whose PUT lies as it came.
    fn put(
        &mut self,
        memory: &mut Memory,
        name: Name,
        slot: Slot,
        full: bool,
    ) -> Result<(), Refusal> {
        let queue = self.queue_mut(name.0).ok_or(Refusal::NoQueue)?;
        if name.1.0 < queue.next || name.1.0 == u64::MAX {
            return Err(Refusal::RecordOrder);
        }
        let len = u64::from(slot.len);
        if !queue.has_room(queue.length, queue.octets, len) {
            return Err(Refusal::QueueFull);
        }
        if full {
            return Err(Refusal::NodeFull);
        }
        queue.insert(name.1, slot);
        self.records += 1;
        memory.records += 1;
        self.octets += len;
        self.segments
            .retain(slot.home.segment, len + RECORD_OVERHEAD);
        Ok(())
    }
}

/// How many records share the body of a PUT that `rest` follows.
pub(super) fn sharers(rest: Changes<'_>) -> u32 {
    let mut count = 1;
    for (_, change) in rest {
        match change {
            Change::Put { body: None, .. } => count += 1,
            Change::Put { body: Some(_), .. } => break,
            _ => {}
        }
    }
    count
}
