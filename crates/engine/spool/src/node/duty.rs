//! A group that gets a log while it is in use, or loses it.
//!
//! A log begun late says that it is incomplete, until everything that was there before is written to it
//! again, a segment at a time and by the same hand as in compaction. A crash before that leaves an
//! incomplete group.

use vere_ports::spool_log::{LogError, SpoolLog, SpoolLogStore};
use vere_spoolwire::{CloseReason, Request, Seq};

use super::group::Group;
use super::journal::{Journal, Urgency};
use super::output::Output;
use super::segment::Memory;
use super::{ConnectionId, Node, snapshot};

impl<S: SpoolLogStore> Node<S> {
    /// Begins or ends the log of a group, as its owner says, who is told when that is done.
    ///
    /// # Errors
    ///
    /// [`CloseReason::NoLog`], and those of the log.
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
        match (log, group.log.is_some()) {
            (true, false) => {
                let logs = self.store.as_mut().ok_or(CloseReason::NoLog)?;
                let head = snapshot::encode(&group.store, self.incarnation, true);
                let log = logs.create(&group.name, &head);
                let log = log.map_err(|error| match error {
                    LogError::Full => CloseReason::LogFull,
                    LogError::Failed(_) => CloseReason::LogFailed,
                })?;
                group.begin_log(&mut self.memory, log);
            }
            (false, true) => {
                let logs = self.store.as_mut();
                let removed = logs.map_or(Ok(()), |logs| logs.remove(&group.name));
                group.end_log(removed, &mut connection.output)?;
            }
            _ => {}
        }
        group.promise(seq, &mut connection.output);
        Ok(())
    }
}

impl<L: SpoolLog> Group<L> {
    /// Everything from here on goes into the log at once, what is there already by and by.
    fn begin_log(&mut self, memory: &mut Memory, log: L) {
        if let Some(keeper) = self.keeper.take() {
            self.store.segments.close(memory, keeper);
        }
        let mut journal = Journal::new(log);
        journal.filling = true;
        let newest = journal.log.newest();
        self.log = Some(journal);
        self.tail.begin_segment(&mut self.store, memory, newest);
    }

    /// What waited for the log is safe as it is.
    fn end_log(
        &mut self,
        removed: Result<(), LogError>,
        output: &mut Output,
    ) -> Result<(), CloseReason> {
        if let (Some(journal), Err(error)) = (&mut self.log, removed) {
            journal.failure = Some(error);
            return Err(CloseReason::LogFailed);
        }
        let promises = self.log.take().map(|journal| journal.promises);
        self.store.segments.forget_log();
        for (seq, _) in promises.unwrap_or_default() {
            self.promise(seq, output);
        }
        Ok(())
    }

    /// Writes some of what the log does not hold yet. True when there is more to do at once.
    pub(super) fn fill(&mut self, memory: &mut Memory) -> bool {
        let filling = self.log.as_ref().is_some_and(|journal| journal.filling);
        if !filling || !self.takes_input() {
            return false;
        }
        let segments = self.store.segments.iter();
        let missing = segments.filter(|(_, segment)| segment.live > 0 && segment.log_segment == 0);
        // What is in memory first.
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

    /// The log holds everything, and says so.
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
        journal.filling = false;
        journal.caught_up();
        true
    }
}
