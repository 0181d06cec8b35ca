//! The log of a group, and the transactions and answers that wait for it.

use std::collections::VecDeque;
use std::time::Duration;

use vere_ports::spool_log::{LogError, LogPosition, SpoolLog};
use vere_spoolwire::{Change, Mutation, Seq, Txn};
use vere_units::Timestamp;

use super::memory::Memory;
use super::place::Piece;
use super::segment::Segments;

/// Unsynced octets of lazy changes that trigger a sync at once, so that they do not fill the
/// owner's window.
const LAZY_OCTETS_MAX: usize = 64 << 10;

/// Lull after which lazy changes are synced while no urgent change was synced lately: `LULL_MIN`,
/// and at least `LULL_SYNCS` times the duration of a sync. So a client that ends records in turn
/// and waits for each acknowledgement does not wait long. Lazy syncs take at most a third of a
/// disk's time.
const LULL_MIN: Duration = Duration::from_millis(2);
const LULL_SYNCS: u32 = 2;

/// Maximum number of transactions for [`SpoolLog::sync_alone`], on the node's own thread: the end of
/// one record and the start of another. More transactions would wait for this thread.
const ALONE_MAX: u64 = 2;

/// Maximum number of answers of one owner that wait for the disk. An owner asks for two or three at
/// a time, and each DUTY may start a log segment.
pub(super) const PROMISES_MAX: usize = 16;

/// Whether a client waits for the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Urgency {
    /// Synced along with later changes, or after [`super::NodeConfig::sync_delay`].
    #[default]
    Lazy,
    /// Synced at once.
    Now,
}

impl Urgency {
    /// Returns `Lazy` for a mutation that only ends records: no client waits for its sync.
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

/// Entries appended since the start of the last sync.
#[derive(Debug, Default)]
struct Unsynced {
    octets: usize,
    urgent: bool,
    /// Whether entries were appended since the last call of `due`.
    fresh: bool,
    /// Times of the first and the last entry.
    came: Option<(Timestamp, Timestamp)>,
    /// Latest time of the sync.
    due: Option<Timestamp>,
}

/// Role of a log for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Every transaction goes into the log.
    Logs,
    /// Like `Logs`, but the log was started after the first records and does not hold all of them
    /// yet.
    Fills,
    /// The log has ended, and this end must be synced up to the position before memory alone
    /// suffices for an acknowledgement: an outdated log must not pass for the group.
    Ends(LogPosition),
    /// No transaction goes into the log, which only says that the group is incomplete once memory
    /// is lost.
    Rests,
}

/// Condition for answering a request that waits for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// All earlier entries are synced.
    Synced,
    /// All earlier entries are synced, and the log is complete.
    Filled,
}

/// A request that is answered after a sync.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) seq: Seq,
    pub(super) until: Until,
    /// Position of the last entry to be synced; `None` before that entry is appended.
    pub(super) at: Option<LogPosition>,
}

/// A group's log and its progress.
#[derive(Debug)]
pub(super) struct Journal<L> {
    pub(super) log: L,
    /// Positions of appended entries without a known sync, each with a last transaction.
    pub(super) awaiting: VecDeque<(LogPosition, Txn)>,
    /// End of the logged octets in the tail segment.
    pub(super) logged: usize,
    /// Compaction's frames that the log had no space for. Their segments are pinned, because the
    /// records may end while the frames wait.
    pub(super) kept: Vec<Piece>,
    /// The log has no space for processed transactions: the owner's input waits for space.
    pub(super) blocked: bool,
    /// Reason why the log was lost.
    pub(super) failure: Option<LogError>,
    unsynced: Unsynced,
    /// Start of the last sync that contained urgent changes.
    urgent: Option<Timestamp>,
    /// Target position and start of the running sync.
    under_way: Option<(LogPosition, Timestamp)>,
    /// Duration of the last sync.
    took: Duration,
    /// At most [`PROMISES_MAX`], because the owner's further input waits at this number.
    pub(super) promises: Vec<Promise>,
    pub(super) duty: Duty,
    /// The log is to end, once memory holds all records that only the log has.
    pub(super) leaving: bool,
    /// The log is complete once synced up to this position.
    pub(super) whole_at: LogPosition,
    /// End of the last entry.
    pub(super) end: LogPosition,
    /// Last synced position.
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

    /// Whether the group's transactions go into the log.
    pub(super) const fn is_active(&self) -> bool {
        matches!(self.duty, Duty::Logs | Duty::Fills)
    }

    /// Whether the log holds all acknowledged transactions.
    pub(super) fn holds_all(&self) -> bool {
        self.duty == Duty::Logs && self.synced >= self.whole_at
    }

    /// Appends an entry; afterwards the log holds all transactions up to `txn`.
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

    /// Marks the log as lost: no input waits for space in it, and the owner can send the content of
    /// the next log.
    pub(super) fn fail(&mut self, error: LogError) {
        self.failure = Some(error);
        self.blocked = false;
    }

    /// Starts a sync if an urgent change needs it or a lazy one has waited long enough.
    /// Transactions up to `acknowledged` are already synced.
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
            // Long syncs would hold up the thread that serves all connections.
            if urgent && !many && last.0.saturating_sub(acknowledged.0) <= ALONE_MAX {
                self.log.sync_alone();
            } else {
                self.log.start_sync();
            }
        } else {
            self.unsynced.due = Some(due);
        }
    }

    /// Returns the time for syncing lazy changes.
    fn due(&mut self, now: Timestamp, delay: Duration) -> Timestamp {
        let fresh = std::mem::take(&mut self.unsynced.fresh);
        let (first, last) = self.unsynced.came.get_or_insert((now, now));
        if fresh {
            *last = now;
        }
        let latest = *first + delay;
        // Urgent changes have been frequent, so a sync for one of them probably comes soon.
        let lively = |at: Timestamp| now.saturating_since(at) < delay;
        if self.urgent.is_some_and(lively) {
            return latest;
        }
        let lull = LULL_MIN.max(self.took.saturating_mul(LULL_SYNCS));
        latest.min(*last + lull)
    }

    /// Returns the time at which a sync that has not started is due.
    pub(super) const fn sync_due(&self) -> Option<Timestamp> {
        self.unsynced.due
    }

    /// Returns the last transaction that became safe since the last call.
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

    /// Records that every processed transaction is appended.
    pub(super) fn caught_up(&mut self) {
        self.blocked = false;
        let filled = self.duty != Duty::Fills && !self.leaving;
        for promise in &mut self.promises {
            if filled || promise.until == Until::Synced {
                promise.at.get_or_insert(self.end);
            }
        }
    }

    /// Removes and returns the oldest promise that can be kept now.
    pub(super) fn next_kept(&mut self) -> Option<Seq> {
        let index = self.promises.iter().position(|one| self.keeps(one))?;
        Some(self.promises.remove(index).seq)
    }

    /// Whether a promise can be kept now.
    fn keeps(&self, promise: &Promise) -> bool {
        promise.at.is_some_and(|at| at <= self.synced)
    }

    /// Whether [`Journal::next_kept`] would return a promise.
    pub(super) fn keeps_any(&self) -> bool {
        self.promises.iter().any(|one| self.keeps(one))
    }

    /// Drops all entries and frames that wait for the log or a sync.
    pub(super) fn forget(&mut self, segments: &mut Segments, memory: &mut Memory) {
        self.awaiting.clear();
        for piece in self.kept.drain(..) {
            segments.unpin(memory, piece.at.segment);
        }
    }
}
