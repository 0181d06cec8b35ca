//! Start and end of a group's log while the group is in use.
//!
//! A started log first says that the group is incomplete, until all older records are written to
//! the log again, one segment at a time, by the code of compaction. An ended log stays as a message
//! to the next life of the process: the group is incomplete. So a log never claims less than was
//! acknowledged, and a group kept in memory never returns empty.

use vere_ports::spool_log::{LogError, SpoolLog, SpoolLogStore};
use vere_spoolwire::{CloseReason, Incarnation, Request, Seq, encode_reset};

use super::connection::ConnectionId;
use super::group::Group;
use super::journal::{Duty, Journal, Until, Urgency};
use super::memory::Memory;
use super::{Node, snapshot};

/// Maximum number of segments brought back at once from a log that is about to end.
const LEAVING_AT_ONCE: usize = 4;

impl<S: SpoolLogStore> Node<S> {
    /// Starts or ends the log of a group by its owner's order, and promises the owner an answer.
    ///
    /// # Errors
    ///
    /// [`CloseReason::NoLog`], and errors of the log.
    pub(super) fn duty(
        &mut self,
        id: ConnectionId,
        index: usize,
        seq: Seq,
        log: bool,
    ) -> Result<(), CloseReason> {
        let Some(connection) = &mut self.connections[id.0] else {
            return Ok(());
        };
        let group = &mut self.groups[index];
        if group.lacks_log() {
            group.put_off_duty(seq, log);
            return Ok(());
        }
        match (log, &group.log) {
            (true, None) => return Err(CloseReason::NoLog),
            (true, Some(journal)) if !journal.is_active() => {
                group.begin_log(&mut self.memory, self.incarnation)?;
            }
            (false, Some(journal)) if journal.is_active() => {
                group.leave_log(&mut self.memory, self.incarnation)?;
            }
            _ => {}
        }
        if let Some(journal) = group.log.as_mut().filter(|_| log) {
            journal.leaving = false;
        }
        group.promise(seq, Until::Filled, &mut connection.output);
        Ok(())
    }
}

impl<L: SpoolLog> Group<L> {
    /// Starts the log: new transactions are logged at once, older records step by step.
    fn begin_log(
        &mut self,
        memory: &mut Memory,
        incarnation: Incarnation,
    ) -> Result<(), CloseReason> {
        let Some(journal) = self.log.as_mut().filter(|log| log.failure.is_none()) else {
            return Err(CloseReason::NoLog);
        };
        // RESET voids the log's earlier content; the following head describes the group.
        let head = snapshot::encode(&self.store, incarnation, true);
        let begun = reset(journal, &self.store).and_then(|()| roll(journal, &head));
        begun.map_err(|reason| match reason {
            // The group has no log then, but its memory is intact.
            CloseReason::LogFailed => CloseReason::NoLog,
            reason => reason,
        })?;
        journal.duty = Duty::Fills;
        journal.logged = 0;
        if let Some(keeper) = self.keeper.take() {
            self.store.segments.close(memory, keeper);
        }
        let newest = journal.log.newest();
        self.tail.begin_segment(&mut self.store, memory, newest);
        Ok(())
    }

    /// Ends the log after its records are back in memory: they were left in the log at the start of
    /// the node, and may go to the spill store later.
    pub(super) fn leave_log(
        &mut self,
        memory: &mut Memory,
        incarnation: Incarnation,
    ) -> Result<(), CloseReason> {
        let mut left = Vec::new();
        for (key, segment) in self.store.segments.iter() {
            if segment.live > 0 && segment.is_in_log() {
                left.push((key, segment.is_resident()));
            }
        }
        left.retain(|&(key, resident)| {
            if resident {
                self.store.segments.take_from_log(key);
            }
            !resident
        });
        if left.is_empty() {
            return self.end_log(memory, incarnation);
        }
        if memory.has_room(2 * memory.segment_len as u64) {
            for (key, _) in left.into_iter().take(LEAVING_AT_ONCE) {
                self.store.segments.want(key, false);
            }
        }
        if let Some(journal) = &mut self.log {
            journal.leaving = true;
        }
        Ok(())
    }

    /// Ends the log: no further transactions are logged.
    fn end_log(
        &mut self,
        memory: &mut Memory,
        incarnation: Incarnation,
    ) -> Result<(), CloseReason> {
        let Some(journal) = &mut self.log else {
            return Ok(());
        };
        // A log segment for the RESET alone allows the removal of all earlier segments.
        let incomplete = self.store.syncing || journal.duty == Duty::Fills;
        roll(
            journal,
            &snapshot::encode(&self.store, incarnation, incomplete),
        )?;
        reset(journal, &self.store)?;
        journal.forget(&mut self.store.segments, memory);
        journal.leaving = false;
        let at = journal.end;
        journal.duty = Duty::Ends(at);
        for promise in &mut journal.promises {
            promise.at = Some(at);
        }
        self.store.segments.forget_log();
        Ok(())
    }

    /// Writes some older records to the log. Returns true if more can be written at once.
    pub(super) fn fill(&mut self, memory: &mut Memory) -> bool {
        let filling = |journal: &Journal<L>| journal.duty == Duty::Fills;
        let may = !self.given_up && self.takes_input();
        if !may || !self.log.as_ref().is_some_and(filling) {
            return false;
        }
        let segments = self.store.segments.iter();
        let missing = segments.filter(|(_, segment)| segment.live > 0 && segment.log_segment == 0);
        // Segments in memory first.
        let next = missing.min_by_key(|(_, segment)| !segment.is_resident());
        match next.map(|(key, segment)| (key, segment.is_resident())) {
            Some((key, true)) => self.rewrite(memory, key),
            Some((key, false)) => {
                if memory.has_room(2 * memory.segment_len as u64) {
                    self.store.segments.want(key, false);
                }
                false
            }
            None => self.end_filling(),
        }
    }

    /// Records in the log that the log is complete.
    fn end_filling(&mut self) -> bool {
        let Some(journal) = &mut self.log else {
            return false;
        };
        if !journal.kept.is_empty() || journal.logged != self.tail.start {
            return false;
        }
        if !self.store.syncing {
            let mut entry = Vec::new();
            Request::Complete.encode(&mut entry, Seq(self.store.processed.0));
            if !journal.append(&entry, self.store.processed, Urgency::Now) {
                return false;
            }
        }
        journal.duty = Duty::Logs;
        journal.whole_at = journal.end;
        journal.caught_up();
        true
    }

    /// Drops a log that failed before any acknowledgement depended on it: the group goes on in
    /// memory. Returns true if the log had failed.
    pub(super) fn give_up_filling(&mut self, memory: &mut Memory) -> bool {
        let failed = |log: &&mut Journal<L>| log.duty == Duty::Fills && log.failure.is_some();
        let Some(journal) = self.log.as_mut().filter(failed) else {
            return false;
        };
        journal.forget(&mut self.store.segments, memory);
        journal.promises.clear();
        (journal.duty, journal.blocked) = (Duty::Rests, false);
        self.acknowledged = self.store.processed;
        self.store.segments.forget_log();
        true
    }
}

/// Appends a RESET: the log's content is not the group any more.
fn reset<L: SpoolLog>(
    journal: &mut Journal<L>,
    store: &super::store::Store,
) -> Result<(), CloseReason> {
    let mut entry = Vec::new();
    encode_reset(&mut entry, store.processed);
    if journal.append(&entry, store.processed, Urgency::Now) {
        return Ok(());
    }
    Err(if std::mem::take(&mut journal.blocked) {
        CloseReason::LogFull
    } else {
        CloseReason::LogFailed
    })
}

fn roll<L: SpoolLog>(journal: &mut Journal<L>, head: &[u8]) -> Result<(), CloseReason> {
    journal.log.roll(head).map_err(|error| match error {
        LogError::Full => CloseReason::LogFull,
        error => {
            journal.fail(error);
            CloseReason::LogFailed
        }
    })
}
