//! One group: its queues, its owner's octets, its log, and what is acknowledged.

use std::time::Duration;

use vere_ports::spool_log::{LogError, LogRoom, SpoolLog};
use vere_spoolwire::{
    Answer, CloseReason, Incarnation, Request, Seq, Txn, encode_ack, encode_chartered, encode_owned,
};
use vere_units::Timestamp;

use super::access::Sight;
use super::block::{Done, Event, Terms};
use super::connection::ConnectionId;
use super::deed::Deed;
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
    /// Where compaction writes.
    pub(super) keeper: Option<SegmentKey>,
    /// Which segment lies in the oldest part of the log, and in which one there, when that was looked for last.
    pub(super) oldest: Option<(SegmentKey, u64)>,
    pub(super) log: Option<Journal<L>>,
    /// Why what was spilled does not come back.
    pub(super) lost: Option<LogError>,
    /// It was found damaged: nothing of it counts, and its owner is waited for.
    pub(super) given_up: bool,
    /// It was found damaged, and is not whole again yet.
    pub(super) mending: Option<Mending>,
    /// The log before this one, as long as something of it is being read.
    pub(super) former_log: Option<L>,
    /// Its owner waits for memory to be written out.
    pub(super) held: bool,
    /// Everything up to here is safe at the node's level.
    pub(super) acknowledged: Txn,
    /// What the owner was told.
    pub(super) told: Txn,
    /// What the owner is to hear even if it is nothing new.
    pub(super) due: Done,
}

impl<L: SpoolLog> Group<L> {
    pub(super) fn new(name: &str, store: Store, tail: Tail, log: Option<L>) -> Self {
        let processed = store.processed;
        let mut journal = log.map(Journal::new);
        if let Some(journal) = &mut journal {
            // What a log gave back is in it.
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

    /// Why it cannot go on: its log failed, or what was spilled is lost. What was given up goes on once its
    /// owner fills it again.
    pub(super) fn failure(&self) -> Option<&LogError> {
        if self.given_up {
            return None;
        }
        // A log that nothing depends on yet, or any more, takes nothing with it.
        let matters = |journal: &&Journal<L>| matches!(journal.duty, Duty::Logs | Duty::Ends(_));
        let journal = self.log.as_ref().filter(matters);
        let log = journal.and_then(|journal| journal.failure.as_ref());
        self.lost.as_ref().or(log)
    }

    /// The log, if what is done goes into it.
    pub(super) fn journal(&self) -> Option<&Journal<L>> {
        self.log.as_ref().filter(|journal| journal.is_active())
    }

    /// Whether the log, or nothing, holds everything that was acknowledged.
    pub(super) fn is_logged(&self) -> bool {
        self.log.as_ref().is_some_and(Journal::holds_all)
    }

    /// Whether more may be read from the owner.
    pub(super) fn takes_input(&self) -> bool {
        let blocked = self.log.as_ref().is_some_and(|journal| journal.blocked);
        !blocked && self.failure().is_none()
    }

    /// Whether so many answers wait for the disk that nothing more is done of what the owner sent.
    pub(super) fn owes_much(&self) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|journal| journal.promises.len() >= PROMISES_MAX)
    }

    /// Whether reading on should wait until memory was written out.
    pub(super) fn should_wait(&self, memory: &Memory) -> bool {
        memory.relief && memory.should_wait(self.tail.wants(&self.store, memory))
    }

    pub(super) fn log_segment(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.log.newest())
    }

    /// Whether an owner can go on here.
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

    /// The log, if what is done goes into it and it takes that.
    fn open_log(&mut self) -> Option<&mut Journal<L>> {
        let journal = self.log.as_mut()?;
        (journal.is_active() && journal.failure.is_none()).then_some(journal)
    }

    /// Notes whose transactions follow, so that another owner's are not taken for its own.
    ///
    /// # Errors
    ///
    /// [`CloseReason::LogFull`] when there is no room for it, [`CloseReason::LogFailed`].
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

    /// Notes what holds for the group from here on.
    ///
    /// # Errors
    ///
    /// As [`Group::own`].
    pub(super) fn charter(&mut self, deed: Deed) -> Result<(), CloseReason> {
        let txn = self.store.processed;
        if let Some(journal) = self.open_log() {
            let mut entry = Vec::new();
            encode_chartered(&mut entry, txn, &deed.account, deed.charter());
            if !journal.append(&entry, txn, Urgency::Now) {
                return Err(CloseReason::LogFull);
            }
        }
        self.store.deed = deed;
        Ok(())
    }

    /// An owner was welcomed who knows what was acknowledged.
    pub(super) fn welcome(&mut self, memory: &mut Memory, owner: ConnectionId) {
        self.owner = Some(owner);
        self.forget_input(memory);
        self.told = self.acknowledged;
        self.due = Done::default();
    }

    /// The owner's connection is gone.
    pub(super) fn part(&mut self, memory: &mut Memory) {
        self.owner = None;
        self.forget_input(memory);
        if let Some(journal) = &mut self.log {
            journal.promises.clear();
            // The next one counts on it when it is told that there is a log.
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

    /// Where the owner's next octets go.
    pub(super) fn buffer(&mut self, memory: &mut Memory) -> &mut [u8] {
        let log_segment = self.log_segment();
        self.tail.make_room(&mut self.store, memory, log_segment);
        if let Some(journal) = &mut self.log {
            journal.logged = self.tail.start;
        }
        self.tail.buffer(&mut self.store)
    }

    /// Does what the owner sent, answers its reads, appends to the log, and acknowledges. Gives what the
    /// node is to do before that goes on.
    ///
    /// # Errors
    ///
    /// Why the owner's connection must be closed.
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

    /// Appends what was processed to the log. Begins another log segment when it is time.
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

    /// Lets the log remove segments that no living record lies in. Only from the oldest on: a DELETE
    /// must last as long as the record it ended.
    pub(super) fn remove_old_log(&mut self) {
        let Some(journal) = &mut self.log else { return };
        // What ended a record must be in the log before the record goes from it.
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

    /// Starts a sync of what was appended, if it is time.
    pub(super) fn start_sync(&mut self, now: Timestamp, delay: Duration) {
        if let Some(journal) = &mut self.log {
            journal.start_sync(now, delay, self.acknowledged);
        }
    }

    /// Takes note of what the log has synced. True when there is something to tell the owner.
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

    /// Answers requests whose answer waited for the disk, as far as the owner reads them. True when there had
    /// been so many that what it sent after them was put off.
    pub(super) fn fulfil(&mut self, output: &mut Output) -> bool {
        let owed_much = self.owes_much();
        while !output.is_over()
            && let Some(seq) = self.log.as_mut().and_then(Journal::next_kept)
        {
            self.alive(seq, output);
        }
        owed_much && !self.owes_much()
    }

    /// One cumulative acknowledgement, if there is anything to say.
    pub(super) fn acknowledge(&mut self, output: &mut Output) {
        let through = self.acknowledged;
        if through == self.told && !self.due.repeated {
            return;
        }
        let mut refused = self.store.refused(self.told, through);
        if std::mem::take(&mut self.due.repeated) {
            // What is not acknowledged yet is listed when it is.
            refused.extend(self.due.again.drain(..).filter(|(txn, _)| *txn <= through));
            refused.sort_unstable();
            refused.dedup();
        }
        output.write(|out| encode_ack(out, through, &refused));
        self.told = through;
    }

    /// Answers a request that reads, and is not about a queue that is hidden from who asks. False when that
    /// has to wait: what it wants is not in memory.
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
            // Not for reading: done before, or refused.
            Request::Attach { .. }
            | Request::Complete
            | Request::Duty { .. }
            | Request::End { .. } => {}
        }
        true
    }
}

/// What the node has to do for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// A DUTY: whether to keep a log.
    Duty { seq: Seq, log: bool },
    /// A RESET of a group whose log is damaged.
    Renew { through: Txn },
    /// An END.
    End { records: bool },
}

/// What groups need of the node.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) incarnation: Incarnation,
    pub(super) frame_max: usize,
    pub(super) block_max: u32,
}
