//! Lines about messages for other systems: stored in two queues of the group, in the same batch as the change that
//! they tell of ([`ledger`](vere_queue::ledger)).

use std::cell::Cell;

use bytes::Bytes;
use vere_queue::ledger::{FINISHED_QUEUE, NOTICES_QUEUE};
use vere_queue::order::ORDERS_QUEUE;
use vere_spoolwire::{Batch, QueueId, QueueStat};

/// Lines with their queues.
pub type Lines = Vec<(QueueId, Bytes)>;

/// The lines of one group.
#[derive(Debug)]
pub struct EventLines {
    on: bool,
    /// The queue of lines about ends of messages, once known.
    pub(crate) finished: Cell<Option<QueueId>>,
    /// The queue of notices, once known.
    pub(crate) notices: Cell<Option<QueueId>>,
    waiting: Cell<u64>,
}

impl EventLines {
    /// Returns the lines of a group whose queues are not known yet.
    pub(crate) const fn new(on: bool) -> Self {
        Self {
            on,
            finished: Cell::new(None),
            notices: Cell::new(None),
            waiting: Cell::new(0),
        }
    }

    /// Octets of waiting lines.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Whether lines are kept.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// The queues of lines, as far as known.
    #[must_use]
    pub const fn queues(&self) -> [Option<QueueId>; 2] {
        [self.finished.get(), self.notices.get()]
    }

    /// Whether a queue of the spool is none whose records leave from here: orders of operators, and lines where lines
    /// are off.
    #[must_use]
    pub fn is_other(&self, queue: &str) -> bool {
        queue == ORDERS_QUEUE || is_lines(queue) && !self.is_on()
    }

    /// Adds to the octets of waiting lines.
    pub(crate) fn stored(&self, octets: u64) {
        self.waiting.set(self.waiting.get() + octets);
    }

    /// Sets the octets of waiting lines.
    pub(crate) fn found(&self, octets: u64) {
        self.waiting.set(octets);
    }

    /// Lines have left the spool.
    pub fn gone(&self, octets: u64) {
        self.waiting.set(self.waiting.get().saturating_sub(octets));
    }

    /// Takes note of a queue of lines that was found in the spool.
    pub(crate) fn found_queue(&self, stat: &QueueStat) {
        let place = match stat.name.as_str() {
            FINISHED_QUEUE => &self.finished,
            _ => &self.notices,
        };
        if self.is_on() {
            place.set(Some(stat.id));
        } else if stat.length > 0 {
            tracing::warn!(
                queue = %stat.name,
                lines = stat.length,
                "event lines kept in the spool: the settings have no [records]"
            );
        }
    }

    /// Addresses lines to a queue of lines; absent where that queue is not known.
    pub(crate) fn told(queue: &Cell<Option<QueueId>>, lines: Vec<String>) -> Lines {
        let Some(queue) = queue.get() else {
            return Vec::new();
        };
        let lines = lines.into_iter();
        lines.map(|line| (queue, Bytes::from(line))).collect()
    }
}

/// Adds lines to a batch, behind all changes whose new records count.
pub(crate) fn put(lines: &Lines, batch: &mut Batch) {
    for (queue, line) in lines {
        batch.put(*queue, line.clone(), Bytes::new());
    }
}

/// Returns the octets of lines.
pub(crate) fn octets(lines: &Lines) -> u64 {
    lines.iter().map(|(_, line)| line.len() as u64).sum()
}

/// Whether this is the name of a queue of lines.
#[must_use]
pub fn is_lines(name: &str) -> bool {
    [FINISHED_QUEUE, NOTICES_QUEUE].contains(&name)
}
