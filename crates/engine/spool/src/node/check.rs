//! Checks of a mutation before its execution.

use vere_spoolwire::{Change, CloseReason, Mutation, NodeRefusal, QueueId, RecordId};

use super::queue::{Slot, Trial};
use super::store::Store;

/// Sums over a batch.
#[derive(Debug, Default)]
struct Sum {
    /// Whether the batch adds records, and their octets.
    puts: bool,
    more: u64,
    /// Whether the batch ends or moves records, and the octets of ended records.
    ends: bool,
    less: u64,
}

impl Store {
    /// Checks whether a mutation may be executed. `full`: no space for new records.
    pub(super) fn check(&mut self, mutation: &Mutation<'_>, full: bool) -> Result<(), NodeRefusal> {
        if self.syncing {
            return self.check_incomplete(mutation, full);
        }
        match mutation {
            Mutation::Change(change) => self.check_batch(std::iter::once(*change), full),
            Mutation::Batch(changes) => self.check_batch(changes.map(|(_, change)| change), full),
            Mutation::Create { queue, name, .. } | Mutation::KeptCreate { queue, name, .. } => {
                self.check_create(*queue, name)
            }
            Mutation::Purge {
                queue,
                through,
                drop,
            } => self.check_purge(*queue, *through, *drop),
        }
    }

    /// Like `check`, for a group in rebuild. Missing records and queues are no reason for a
    /// refusal, nor are limits of queues: the full nodes decide about them.
    #[cold]
    fn check_incomplete(&mut self, mutation: &Mutation<'_>, full: bool) -> Result<(), NodeRefusal> {
        match mutation {
            Mutation::Change(change) => self.check_parts(std::iter::once(*change), full),
            Mutation::Batch(changes) => self.check_parts(changes.map(|(_, change)| change), full),
            Mutation::Create { queue, name, .. } | Mutation::KeptCreate { queue, name, .. } => {
                self.check_create(*queue, name)
            }
            Mutation::Purge {
                queue,
                through,
                drop,
            } => match self.check_purge(*queue, *through, *drop) {
                Err(NodeRefusal::NoQueue) => Ok(()),
                result => result,
            },
        }
    }

    fn check_parts<'a>(
        &mut self,
        changes: impl Iterator<Item = Change<'a>>,
        full: bool,
    ) -> Result<(), NodeRefusal> {
        self.batches += 1;
        self.named.clear();
        for change in changes {
            match change {
                Change::Put { queue, id, .. } => {
                    self.try_incomplete(queue, id)?;
                    if full {
                        return Err(NodeRefusal::NodeFull);
                    }
                }
                Change::Delete { queue, id } | Change::Replace { queue, id, .. } => {
                    self.named.push((queue, id));
                }
                Change::Move {
                    queue,
                    id,
                    to,
                    to_id,
                    ..
                } => {
                    self.named.push((queue, id));
                    self.try_incomplete(to, to_id)?;
                }
            }
        }
        self.named_once()
    }

    /// Accepts a record of a missing queue: the rebuild copies the queue later with this record.
    fn try_incomplete(&mut self, id: QueueId, record: RecordId) -> Result<(), NodeRefusal> {
        match self.try_number(id, record) {
            Err(NodeRefusal::NoQueue) => Ok(()),
            result => result,
        }
    }

    fn try_number(&mut self, id: QueueId, record: RecordId) -> Result<(), NodeRefusal> {
        let trial = self.trial(id)?;
        if record.0 < trial.next || record.0 == u64::MAX {
            return Err(NodeRefusal::RecordOrder);
        }
        trial.next = record.0 + 1;
        Ok(())
    }

    /// Whether a copy from another node may be stored here.
    ///
    /// # Errors
    ///
    /// Reason for closing the connection: a copy has no transaction number for a refusal.
    pub(super) fn check_kept(
        &self,
        mutation: &Mutation<'_>,
        full: bool,
    ) -> Result<(), CloseReason> {
        match mutation {
            Mutation::KeptCreate { queue, name, .. } => {
                self.check_create(*queue, name)
                    .map_err(|refusal| match refusal {
                        NodeRefusal::TooManyQueues => CloseReason::NoRoom,
                        _ => CloseReason::Malformed,
                    })
            }
            Mutation::Change(Change::Put { queue, id, .. }) => {
                let possible = self.queue(*queue).is_some() && (1..u64::MAX).contains(&id.0);
                match (possible, full) {
                    (true, false) => Ok(()),
                    (true, true) => Err(CloseReason::NoRoom),
                    (false, _) => Err(CloseReason::Malformed),
                }
            }
            _ => Err(CloseReason::Malformed),
        }
    }

    fn check_purge(&self, id: QueueId, through: RecordId, drop: bool) -> Result<(), NodeRefusal> {
        let queue = self.queue(id).ok_or(NodeRefusal::NoQueue)?;
        let left = queue.iter_from(through.next()).next().is_some();
        if drop && left {
            Err(NodeRefusal::QueueNotEmpty)
        } else {
            Ok(())
        }
    }

    fn known(&self, queue: QueueId, id: RecordId) -> Result<Slot, NodeRefusal> {
        let queue = self.queue(queue).ok_or(NodeRefusal::NoQueue)?;
        queue.slot(id).ok_or(NodeRefusal::NoRecord)
    }

    fn check_create(&self, id: QueueId, name: &str) -> Result<(), NodeRefusal> {
        let (known, named) = (self.queue(id).is_some(), self.by_name.get(name));
        match (known, named) {
            (true, Some(number)) if *number == id => Ok(()),
            (false, None) if self.queue_count() < self.queues_max => Ok(()),
            (false, None) => Err(NodeRefusal::TooManyQueues),
            _ => Err(NodeRefusal::QueueTaken),
        }
    }

    /// Checks the changes against trial figures of each queue, so that a refusal needs no undo.
    fn check_batch<'a>(
        &mut self,
        changes: impl Iterator<Item = Change<'a>>,
        full: bool,
    ) -> Result<(), NodeRefusal> {
        self.batches += 1;
        self.named.clear();
        let tried = self.try_changes(changes, full);
        // The conflict comes first: a record that is named twice was taken from the trial figures twice.
        self.named_once()?;
        self.check_group(&tried?)
    }

    fn try_changes<'a>(
        &mut self,
        changes: impl Iterator<Item = Change<'a>>,
        full: bool,
    ) -> Result<Sum, NodeRefusal> {
        let (mut body_len, mut sum) = (0, Sum::default());
        for change in changes {
            match change {
                Change::Put {
                    queue,
                    id,
                    meta,
                    body,
                } => {
                    body_len = body.map_or(body_len, |body| body.len() as u64);
                    let len = meta.len() as u64 + body_len;
                    self.try_insert(queue, id, len, true)?;
                    if full {
                        return Err(NodeRefusal::NodeFull);
                    }
                    (sum.puts, sum.more) = (true, sum.more + len);
                }
                Change::Delete { queue, id } => {
                    let slot = self.try_remove(queue, id)?;
                    (sum.ends, sum.less) = (true, sum.less + u64::from(slot.len));
                }
                Change::Replace { queue, id, meta } => {
                    let slot = self.try_remove(queue, id)?;
                    let len = u64::from(slot.len - self.meta(slot).len) + meta.len() as u64;
                    let trial = self.trial(queue)?;
                    (trial.length, trial.octets) = (trial.length + 1, trial.octets + len);
                }
                Change::Move {
                    queue,
                    id,
                    to,
                    to_id,
                    meta,
                } => {
                    let slot = self.try_remove(queue, id)?;
                    sum.ends = true;
                    let old = self.meta(slot).len;
                    let new = meta.map_or(old, |meta| meta.len() as u32);
                    let len = u64::from(slot.len - old) + u64::from(new);
                    self.try_insert(to, to_id, len, to != queue)?;
                }
            }
        }
        Ok(sum)
    }

    /// Whether the group's limit permits the batch. A batch that ends or moves records may exceed
    /// the limit by an eighth: a report must find space when its message ends.
    fn check_group(&self, sum: &Sum) -> Result<(), NodeRefusal> {
        let most = self.group_charter.bytes_max;
        let spare = if sum.ends { most / 8 } else { 0 };
        let after = (self.octets + sum.more).saturating_sub(sum.less);
        if sum.puts && sum.more > sum.less && after > most.saturating_add(spare) {
            return Err(NodeRefusal::GroupFull);
        }
        Ok(())
    }

    fn named_once(&mut self) -> Result<(), NodeRefusal> {
        self.named.sort_unstable();
        let twice = self.named.windows(2).any(|pair| pair[0] == pair[1]);
        if twice {
            Err(NodeRefusal::BatchConflict)
        } else {
            Ok(())
        }
    }

    fn trial(&mut self, id: QueueId) -> Result<&mut Trial, NodeRefusal> {
        let batch = self.batches;
        let queue = self.queue_mut(id).ok_or(NodeRefusal::NoQueue)?;
        if queue.trial.batch != batch {
            queue.trial.batch = batch;
            queue.trial.length = queue.length;
            queue.trial.octets = queue.octets;
            queue.trial.next = queue.next;
        }
        Ok(&mut queue.trial)
    }

    fn try_insert(
        &mut self,
        id: QueueId,
        record: RecordId,
        len: u64,
        bounded: bool,
    ) -> Result<(), NodeRefusal> {
        let mut trial = *self.trial(id)?;
        let queue = self.queue(id).ok_or(NodeRefusal::NoQueue)?;
        if record.0 < trial.next || record.0 == u64::MAX {
            return Err(NodeRefusal::RecordOrder);
        }
        if bounded && !queue.has_room(trial.length, trial.octets, len) {
            return Err(NodeRefusal::QueueFull);
        }
        trial.next = record.0 + 1;
        trial.length += 1;
        trial.octets += len;
        *self.trial(id)? = trial;
        Ok(())
    }

    fn try_remove(&mut self, queue: QueueId, id: RecordId) -> Result<Slot, NodeRefusal> {
        let slot = self.known(queue, id)?;
        self.named.push((queue, id));
        let trial = self.trial(queue)?;
        // A record named twice is refused in the end; until then the figures must not underflow.
        trial.length = trial.length.saturating_sub(1);
        trial.octets = trial.octets.saturating_sub(u64::from(slot.len));
        Ok(slot)
    }
}
