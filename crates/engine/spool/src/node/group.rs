//! One group: queues, owner's input, log, and acknowledgement.

use std::time::Duration;

use vere_ports::spool_log::{LogError, LogRoom, SpoolLog};
use vere_spoolwire::{
    Answer, CloseReason, Incarnation, Request, Seq, Txn, encode_ack, encode_chartered, encode_owned,
};
use vere_units::Timestamp;

use super::access::Sight;
use super::block::{Done, Event, Terms};
use super::connection::ConnectionId;
use super::group_charter::GroupCharter;
use super::ingest::Tail;
use super::journal::{Duty, Journal, PROMISES_MAX, Urgency};
use super::memory::Memory;
use super::mending::Mending;
use super::output::Output;
use super::place::SegmentKey;
use super::serve;
use super::snapshot;
use super::store::Store;
use super::title::Title;

/// A group of queues with one owner.
#[derive(Debug)]
pub(super) struct Group<L> {
    pub(super) name: Box<str>,
    pub(super) store: Store,
    pub(super) owner: Option<ConnectionId>,
    pub(super) tail: Tail,
    /// Segment into which compaction writes.
    pub(super) keeper: Option<SegmentKey>,
    /// Last result of the search for the segment in the oldest part of the log, with its log
    /// segment.
    pub(super) oldest: Option<(SegmentKey, u64)>,
    pub(super) log: Option<Journal<L>>,
    /// Reason why spilled segments cannot be read back.
    pub(super) lost: Option<LogError>,
    /// The group is damaged: its content does not count, and the group waits for its owner.
    pub(super) given_up: bool,
    /// Damage that is not repaired yet.
    pub(super) mending: Option<Mending>,
    /// The previous log, while reads from it are in flight.
    pub(super) former_log: Option<L>,
    /// The owner's input waits until memory was written out.
    pub(super) held: bool,
    /// Last transaction that is safe at the node's level.
    pub(super) acknowledged: Txn,
    /// Last acknowledgement sent to the owner.
    pub(super) told: Txn,
    /// Results that the owner must receive even without a new acknowledgement.
    pub(super) due: Done,
}

impl<L: SpoolLog> Group<L> {
    pub(super) fn new(name: &str, store: Store, tail: Tail, log: Option<L>) -> Self {
        let processed = store.processed;
        let mut journal = log.map(Journal::new);
        if let Some(journal) = &mut journal {
            // Records from a log need no logging.
            journal.logged = tail.start;
        }
        Self {
            name: name.into(),
            store,
            owner: None,
            tail,
            keeper: None,
            oldest: None,
            log: journal,
            lost: None,
            given_up: false,
            mending: None,
            former_log: None,
            held: false,
            acknowledged: processed,
            told: processed,
            due: Done::default(),
        }
    }

    pub(super) const fn acknowledged(&self) -> Txn {
        self.acknowledged
    }

    /// Returns the failure that stops the group: a failed log or lost spilled segments. A damaged
    /// group can go on once its owner fills it again.
    pub(super) fn failure(&self) -> Option<&LogError> {
        if self.given_up {
            return None;
        }
        // A failure does not matter while no acknowledgement depends on the log.
        let matters = |journal: &&Journal<L>| matches!(journal.duty, Duty::Logs | Duty::Ends(_));
        let journal = self.log.as_ref().filter(matters);
        let log = journal.and_then(|journal| journal.failure.as_ref());
        self.lost.as_ref().or(log)
    }

    /// Returns the log if transactions go into it.
    pub(super) fn journal(&self) -> Option<&Journal<L>> {
        self.log.as_ref().filter(|journal| journal.is_active())
    }

    /// Whether the log holds everything that was acknowledged.
    pub(super) fn is_logged(&self) -> bool {
        self.log.as_ref().is_some_and(Journal::holds_all)
    }

    /// Whether the node may read more from the owner.
    pub(super) fn takes_input(&self) -> bool {
        let blocked = self.log.as_ref().is_some_and(|journal| journal.blocked);
        !blocked && self.failure().is_none()
    }

    /// Whether so many answers wait for the disk that the owner's further input must wait.
    pub(super) fn owes_much(&self) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|journal| journal.promises.len() >= PROMISES_MAX)
    }

    /// Whether reading should wait until memory was written out.
    pub(super) fn should_wait(&self, memory: &Memory) -> bool {
        memory.relief && memory.should_wait(self.tail.wants(&self.store, memory))
    }

    pub(super) fn log_segment(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.log.newest())
    }

    /// Whether an owner can use the group.
    ///
    /// # Errors
    ///
    /// [`CloseReason::LogFull`], [`CloseReason::LogFailed`].
    pub(super) fn check_log(&self) -> Result<(), CloseReason> {
        match (self.takes_input(), self.failure()) {
            (true, _) => Ok(()),
            (false, None) => Err(CloseReason::LogFull),
            (false, Some(_)) => Err(CloseReason::LogFailed),
        }
    }

    /// Returns the log if transactions go into it and it has not failed.
    fn open_log(&mut self) -> Option<&mut Journal<L>> {
        let journal = self.log.as_mut()?;
        (journal.is_active() && journal.failure.is_none()).then_some(journal)
    }

    /// Logs the new owner, so that its transactions are not mistaken for the earlier owner's.
    ///
    /// # Errors
    ///
    /// [`CloseReason::LogFull`] without space for the entry, [`CloseReason::LogFailed`].
    pub(super) fn own(&mut self, title: Title) -> Result<(), CloseReason> {
        self.check_log()?;
        if title == self.store.title {
            return Ok(());
        }
        let processed = self.store.processed;
        if let Some(journal) = self.open_log() {
            let mut entry = Vec::new();
            encode_owned(&mut entry, processed, title.owner, title.epoch);
            if !journal.append(&entry, processed, Urgency::Now) {
                return Err(CloseReason::LogFull);
            }
        }
        self.store.title = title;
        Ok(())
    }

    /// Logs the new charter of the group.
    ///
    /// # Errors
    ///
    /// As [`Group::own`].
    pub(super) fn charter(&mut self, group_charter: GroupCharter) -> Result<(), CloseReason> {
        let txn = self.store.processed;
        if let Some(journal) = self.open_log() {
            let mut entry = Vec::new();
            encode_chartered(
                &mut entry,
                txn,
                &group_charter.account,
                group_charter.charter(),
            );
            if !journal.append(&entry, txn, Urgency::Now) {
                return Err(CloseReason::LogFull);
            }
        }
        self.store.group_charter = group_charter;
        Ok(())
    }

    /// Prepares the group for an owner's connection; the welcome contained the acknowledged
    /// transaction.
    pub(super) fn welcome(&mut self, memory: &mut Memory, owner: ConnectionId) {
        self.owner = Some(owner);
        self.forget_input(memory);
        self.told = self.acknowledged;
        self.due = Done::default();
    }

    /// Detaches the owner's connection.
    pub(super) fn part(&mut self, memory: &mut Memory) {
        self.owner = None;
        self.forget_input(memory);
        if let Some(journal) = &mut self.log {
            journal.promises.clear();
            // The next connection relies on the log if its welcome says that a log exists.
            journal.leaving = false;
        }
    }

    fn forget_input(&mut self, memory: &mut Memory) {
        let log = self.journal();
        let logged = log.is_none_or(|journal| journal.logged == self.tail.start);
        self.tail.reset(&mut self.store, memory, logged);
        if let Some(journal) = &mut self.log
            && self.tail.segment.is_none()
        {
            journal.logged = 0;
        }
    }

    /// Returns the buffer for the owner's next octets.
    pub(super) fn buffer(&mut self, memory: &mut Memory) -> &mut [u8] {
        let log_segment = self.log_segment();
        self.tail.make_room(&mut self.store, memory, log_segment);
        if let Some(journal) = &mut self.log {
            journal.logged = self.tail.start;
        }
        self.tail.buffer(&mut self.store)
    }

    /// Executes the owner's mutations, answers reads, appends to the log, and acknowledges. Returns
    /// an errand that the node must do before processing goes on.
    ///
    /// # Errors
    ///
    /// Reason for closing the owner's connection.
    pub(super) fn process(
        &mut self,
        node: &mut Shared<'_>,
        output: &mut Output,
        waiting: &mut Option<(Seq, Request)>,
    ) -> Result<Option<Errand>, CloseReason> {
        let result = loop {
            if output.is_over() || self.owes_much() {
                break Ok(None);
            }
            if let Some((seq, request)) = *waiting {
                if !self.answer(node, Sight::All, (seq, request), output) {
                    break Ok(None);
                }
                *waiting = None;
            }
            let terms = self.terms(node);
            let (store, memory) = (&mut self.store, &mut *node.memory);
            match self.tail.process(store, memory, &terms, &mut self.due) {
                Ok(Event::Incomplete) => break Ok(None),
                Ok(Event::Reset(through)) if self.lacks_log() => {
                    break Ok(Some(Errand::Renew { through }));
                }
                Ok(Event::Reset(through)) => self.reset(memory, through),
                Ok(Event::Request(seq, Request::Complete)) => self.complete(seq, output),
                Ok(Event::Request(seq, Request::Duty { log })) => {
                    break Ok(Some(Errand::Duty { seq, log }));
                }
                Ok(Event::Request(_, Request::End { records })) => {
                    break Ok(Some(Errand::End { records }));
                }
                Ok(Event::Request(_, Request::Attach { .. })) => {
                    break Err(CloseReason::Malformed);
                }
                Ok(Event::Request(seq, request)) => *waiting = Some((seq, request)),
                Err(reason) => break Err(reason),
            }
        };
        self.flush(node.memory, node.incarnation);
        self.acknowledge(output);
        result
    }

    fn terms(&self, node: &Shared<'_>) -> Terms {
        let log = self.journal();
        Terms {
            frame_max: node.frame_max,
            disk_full: log.is_some_and(|log| log.log.room() == LogRoom::Reserve),
            logged: log.is_some() && !self.lacks_log(),
            completes: log.is_some_and(|log| log.duty == Duty::Logs),
        }
    }

    /// Appends processed transactions to the log. Starts another log segment when it is time.
    pub(super) fn flush(&mut self, memory: &mut Memory, incarnation: Incarnation) {
        let Some(journal) = &mut self.log else {
            self.acknowledged = self.store.processed;
            return;
        };
        match journal.duty {
            Duty::Logs | Duty::Fills => {}
            Duty::Ends(_) => return,
            Duty::Rests => {
                self.acknowledged = self.store.processed;
                return;
            }
        }
        if journal.failure.is_some() {
            return;
        }
        while let Some(&kept) = journal.kept.first() {
            let entry = self.store.segments.octets(kept);
            if !journal.append(entry, self.acknowledged, Urgency::Lazy) {
                return;
            }
            journal.kept.remove(0);
            self.store.segments.unpin(memory, kept.at.segment);
        }
        let Some(key) = self.tail.segment else {
            journal.caught_up();
            return;
        };
        if journal.logged == self.tail.start {
            journal.caught_up();
            return;
        }
        let entry = &self.store.segments.at(key).octets[journal.logged..self.tail.start];
        if !journal.append(entry, self.store.processed, self.tail.urgency) {
            return;
        }
        self.tail.urgency = Urgency::Lazy;
        journal.logged = self.tail.start;
        journal.caught_up();
        if journal.log.wants_roll() {
            let incomplete = self.store.syncing || journal.duty == Duty::Fills;
            let head = snapshot::encode(&self.store, incarnation, incomplete);
            match journal.log.roll(&head) {
                Ok(()) | Err(LogError::Full) => {}
                Err(error) => journal.fail(error),
            }
            self.remove_old_log();
        }
    }

    /// Removes log segments without living records, only from the oldest on: a DELETE must stay in
    /// the log as long as the PUT of the record.
    pub(super) fn remove_old_log(&mut self) {
        let Some(journal) = &mut self.log else { return };
        // A DELETE must be in the log before the log loses the PUT.
        let active = journal.is_active();
        let logged = !active || self.tail.segment.is_none() || journal.logged == self.tail.start;
        if !journal.kept.is_empty() || !logged {
            return;
        }
        let segments = self.store.segments.iter();
        let needed = segments.filter(|(_, segment)| segment.live > 0 && active);
        let oldest = needed.map(|(_, segment)| segment.log_segment).min();
        let oldest = oldest.unwrap_or(u64::MAX).min(journal.log.newest());
        if let Err(error) = journal.log.remove_before(oldest) {
            journal.fail(error);
        }
    }

    /// Starts a sync of appended entries if one is due.
    pub(super) fn start_sync(&mut self, now: Timestamp, delay: Duration) {
        if let Some(journal) = &mut self.log {
            journal.start_sync(now, delay, self.acknowledged);
        }
    }

    /// Records the progress of syncs. Returns true if the owner must get an acknowledgement or an
    /// answer.
    pub(super) fn settle(&mut self, now: Timestamp) -> bool {
        let Some(journal) = &mut self.log else {
            return false;
        };
        if let Some(txn) = journal.settle(now) {
            self.acknowledged = self.acknowledged.max(txn);
        }
        if let Duty::Ends(at) = journal.duty
            && at <= journal.synced
        {
            journal.duty = Duty::Rests;
            self.acknowledged = self.store.processed;
        }
        self.acknowledged > self.told || journal.keeps_any()
    }

    /// Answers requests that waited for the disk, as far as the owner reads its answers. Returns
    /// true if the number of waiting requests had stopped the owner's input and no longer does.
    pub(super) fn fulfil(&mut self, output: &mut Output) -> bool {
        let owed_much = self.owes_much();
        while !output.is_over()
            && let Some(seq) = self.log.as_mut().and_then(Journal::next_kept)
        {
            self.alive(seq, output);
        }
        owed_much && !self.owes_much()
    }

    /// Writes a cumulative acknowledgement if the owner lacks a result.
    pub(super) fn acknowledge(&mut self, output: &mut Output) {
        let through = self.acknowledged;
        if through == self.told && !self.due.repeated {
            return;
        }
        let mut refused = self.store.refused(self.told, through);
        if std::mem::take(&mut self.due.repeated) {
            // Refusals of later transactions are listed with their acknowledgement.
            refused.extend(self.due.again.drain(..).filter(|(txn, _)| *txn <= through));
            refused.sort_unstable();
            refused.dedup();
        }
        output.write(|out| encode_ack(out, through, &refused));
        self.told = through;
    }

    /// Answers a read request; the caller has checked the right to the queue. Returns false if the
    /// answer has to wait because its segments are not in memory.
    pub(super) fn answer(
        &mut self,
        node: &mut Shared<'_>,
        sight: Sight<'_>,
        (seq, request): (Seq, Request),
        output: &mut Output,
    ) -> bool {
        match request {
            Request::Fetch {
                queue,
                from,
                records,
                octets,
            } => {
                let limit = octets.min(node.block_max);
                return serve::block(
                    &mut self.store,
                    node.memory,
                    seq,
                    (queue, from),
                    (records, limit),
                    output,
                );
            }
            Request::Stat => {
                let stat = self.stat(node.memory, node.incarnation);
                let stat = self.store.seen(sight, stat);
                output.write(|out| Answer::Stats { seq, stat }.encode(out));
            }
            Request::Queues { from, count } => {
                serve::queues(&self.store, sight, seq, (from, count), output);
            }
            Request::Heartbeat => self.alive(seq, output),
            // Handled elsewhere, or refused.
            Request::Attach { .. }
            | Request::Complete
            | Request::Duty { .. }
            | Request::End { .. } => {}
        }
        true
    }
}

/// Task of the node for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// A DUTY: whether to keep a log.
    Duty { seq: Seq, log: bool },
    /// A RESET of a group whose log is damaged.
    Renew { through: Txn },
    /// An END.
    End { records: bool },
}

/// Parts of the node that groups use.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) incarnation: Incarnation,
    pub(super) frame_max: usize,
    pub(super) block_max: u32,
}
