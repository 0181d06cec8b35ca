//! The log of a group, and what waits for it.

use std::collections::VecDeque;
use std::time::Duration;

use vere_ports::spool_log::{LogError, LogPosition, SpoolLog};
use vere_spoolwire::{Change, Mutation, Seq, Txn};
use vere_units::Timestamp;

use super::memory::Memory;
use super::place::Piece;
use super::segment::Segments;

/// So much that nobody waits for is synced at once, so that it does not fill its owner's window.
const LAZY_OCTETS_MAX: usize = 64 << 10;

/// With nothing urgent about, what nobody waits for is synced when nothing more has come for as long as this, and
/// for as long as some syncs take: who ends records step by step, and waits for each step, need not wait long, and
/// no more than a third of a disk's time goes into what nobody waits for.
const LULL_MIN: Duration = Duration::from_millis(2);
const LULL_SYNCS: u32 = 2;

/// So few transactions, the end of one record and the beginning of another, are synced alone: more would wait
/// for the thread that syncs them.
const ALONE_MAX: u64 = 2;

/// So many answers of one owner may wait for the disk: it asks for two or three at a time, and each DUTY
/// among them may begin a segment of the log.
pub(super) const PROMISES_MAX: usize = 16;

/// Whether somebody waits for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Urgency {
    /// It is synced along with what comes after it, or [`super::NodeConfig::sync_delay`] later.
    #[default]
    Lazy,
    /// It is synced at once.
    Now,
}

impl Urgency {
    /// Nobody waits for what only ends records.
    #[inline]
    pub(super) fn of(mutation: &Mutation<'_>) -> Self {
        let ends = match *mutation {
            Mutation::Change(change) => matches!(change, Change::Delete { .. }),
            Mutation::Batch(mut changes) => {
                changes.all(|(_, change)| matches!(change, Change::Delete { .. }))
            }
            _ => false,
        };
        if ends { Self::Lazy } else { Self::Now }
    }
}

/// What was appended since the last sync began.
#[derive(Debug, Default)]
struct Unsynced {
    octets: usize,
    urgent: bool,
    /// Whether some of it came since that was looked at last.
    fresh: bool,
    /// When the first and the last of it came.
    came: Option<(Timestamp, Timestamp)>,
    /// When it is synced at the latest.
    due: Option<Timestamp>,
}

/// What a log is to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Everything goes into it.
    Logs,
    /// The same; it was begun when records were there already, and does not hold all of them yet.
    Fills,
    /// Nothing goes into it any more. That has to be on stable storage, here, before anything is
    /// acknowledged by memory alone: a log must not pass for a group that has gone on without it.
    Ends(LogPosition),
    /// Nothing goes into it: all it says is that the group is incomplete once memory is lost.
    Rests,
}

/// When a request is answered that waits for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Everything before it is synced.
    Synced,
    /// The same, and the log holds everything.
    Filled,
}

/// A request that is answered when something is on stable storage.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) seq: Seq,
    pub(super) until: Until,
    /// Where that is; `None`: it is not appended yet.
    pub(super) at: Option<LogPosition>,
}

/// A group's log and how far it is.
#[derive(Debug)]
pub(super) struct Journal<L> {
    pub(super) log: L,
    /// What is appended and not known to be synced, with the last transaction in it.
    pub(super) awaiting: VecDeque<(LogPosition, Txn)>,
    /// Octets of the tail segment that were appended.
    pub(super) logged: usize,
    /// What compaction wrote and there was no room for. Its segments are pinned: what lives there may end
    /// while it waits.
    pub(super) kept: Vec<Piece>,
    /// There was no room for what was processed: nothing more is taken until there is.
    pub(super) blocked: bool,
    /// The log is lost, and why.
    pub(super) failure: Option<LogError>,
    unsynced: Unsynced,
    /// When something was synced last that somebody waited for.
    urgent: Option<Timestamp>,
    /// Up to where a sync under way goes, and when it began.
    under_way: Option<(LogPosition, Timestamp)>,
    /// How long the last one took.
    took: Duration,
    /// At most [`PROMISES_MAX`], since nothing more is done of what the owner sent until one is kept.
    pub(super) promises: Vec<Promise>,
    pub(super) duty: Duty,
    /// It is to be given up, once nothing is left to it that is nowhere else.
    pub(super) leaving: bool,
    /// Synced up to here it holds everything.
    pub(super) whole_at: LogPosition,
    /// Where the last entry ends.
    pub(super) end: LogPosition,
    /// Up to where it is synced.
    pub(super) synced: LogPosition,
}

impl<L: SpoolLog> Journal<L> {
    pub(super) fn new(log: L) -> Self {
        Self {
            log,
            awaiting: VecDeque::new(),
            logged: 0,
            kept: Vec::new(),
            blocked: false,
            failure: None,
            unsynced: Unsynced::default(),
            urgent: None,
            under_way: None,
            took: Duration::ZERO,
            promises: Vec::new(),
            duty: Duty::Logs,
            leaving: false,
            whole_at: LogPosition(0),
            end: LogPosition(0),
            synced: LogPosition(0),
        }
    }

    /// Whether what the group does goes into it.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.duty, Duty::Logs | Duty::Fills)
    }

    /// Whether it holds everything that was acknowledged, also when it takes nothing any more.
    pub(super) fn holds_all(&self) -> bool {
        self.duty == Duty::Logs && self.synced >= self.whole_at
    }

    /// Appends an entry after which everything up to `txn` is in the log.
    pub(super) fn append(&mut self, entry: &[u8], txn: Txn, urgency: Urgency) -> bool {
        match self.log.append(entry) {
            Ok(position) => {
                self.awaiting.push_back((position, txn));
                self.end = position;
                self.blocked = false;
                self.unsynced.octets += entry.len();
                self.unsynced.fresh = true;
                self.unsynced.urgent |= urgency == Urgency::Now;
                true
            }
            Err(LogError::Full) => {
                self.blocked = true;
                false
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// It is lost: nothing waits for room in it any more, and what its owner sends to fill the next one is taken.
    pub(super) fn fail(&mut self, error: LogError) {
        self.failure = Some(error);
        self.blocked = false;
    }

    /// Starts a sync of what was appended, when somebody waits for it or it has waited long enough. Everything
    /// up to `acknowledged` is synced.
    pub(super) fn start_sync(&mut self, now: Timestamp, delay: Duration, acknowledged: Txn) {
        let Unsynced { octets, urgent, .. } = self.unsynced;
        if octets == 0 {
            return;
        }
        let due = self.due(now, delay);
        let many = octets >= LAZY_OCTETS_MAX;
        if urgent || many || now >= due || !self.promises.is_empty() {
            self.unsynced = Unsynced::default();
            self.under_way.get_or_insert((self.end, now));
            if urgent {
                self.urgent = Some(now);
            }
            let last = self.awaiting.back().map_or(acknowledged, |(_, txn)| *txn);
            // What takes its time is no work for the thread that answers everybody.
            if urgent && !many && last.0.saturating_sub(acknowledged.0) <= ALONE_MAX {
                self.log.sync_alone();
            } else {
                self.log.start_sync();
            }
        } else {
            self.unsynced.due = Some(due);
        }
    }

    /// When what nobody waits for is to be synced.
    fn due(&mut self, now: Timestamp, delay: Duration) -> Timestamp {
        let fresh = std::mem::take(&mut self.unsynced.fresh);
        let (first, last) = self.unsynced.came.get_or_insert((now, now));
        if fresh {
            *last = now;
        }
        let latest = *first + delay;
        // A sync for others comes soon, by all appearances.
        let lively = |at: Timestamp| now.saturating_since(at) < delay;
        if self.urgent.is_some_and(lively) {
            return latest;
        }
        let lull = LULL_MIN.max(self.took.saturating_mul(LULL_SYNCS));
        latest.min(*last + lull)
    }

    /// When a sync is due that was not started yet.
    pub(super) const fn sync_due(&self) -> Option<Timestamp> {
        self.unsynced.due
    }

    /// The last transaction that became safe since, if any.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<Txn> {
        if self.duty == Duty::Rests {
            return None;
        }
        let synced = match self.log.synced() {
            Ok(synced) => synced,
            Err(error) => {
                self.fail(error);
                return None;
            }
        };
        self.synced = synced;
        if let Some((_, began)) = self.under_way.take_if(|(end, _)| *end <= synced) {
            self.took = now.saturating_since(began);
        }
        let mut settled = None;
        while let Some((position, txn)) = self.awaiting.front().copied()
            && position <= synced
        {
            settled = settled.max(Some(txn));
            self.awaiting.pop_front();
        }
        settled
    }

    /// Everything processed is appended.
    pub(super) fn caught_up(&mut self) {
        self.blocked = false;
        let filled = self.duty != Duty::Fills && !self.leaving;
        for promise in &mut self.promises {
            if filled || promise.until == Until::Synced {
                promise.at.get_or_insert(self.end);
            }
        }
    }

    /// The oldest promise that can be kept now.
    pub(super) fn next_kept(&mut self) -> Option<Seq> {
        let index = self.promises.iter().position(|one| self.keeps(one))?;
        Some(self.promises.remove(index).seq)
    }

    /// Whether a promise can be kept now.
    fn keeps(&self, promise: &Promise) -> bool {
        promise.at.is_some_and(|at| at <= self.synced)
    }

    /// Whether [`Journal::next_kept`] has one.
    pub(super) fn keeps_any(&self) -> bool {
        self.promises.iter().any(|one| self.keeps(one))
    }

    /// Nothing of what waited to be logged or synced matters any more.
    pub(super) fn forget(&mut self, segments: &mut Segments, memory: &mut Memory) {
        self.awaiting.clear();
        for piece in self.kept.drain(..) {
            segments.unpin(memory, piece.at.segment);
        }
    }
}
