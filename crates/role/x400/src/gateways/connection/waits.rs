//! The bounds of a connection's waits.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Until `attach`.
const ATTACH: Duration = Duration::from_secs(10);
/// Without progress within a frame, or with octets that the client does not read.
const STALL: Duration = Duration::from_secs(60);
/// Until the answer to a delivery.
const ANSWER: Duration = Duration::from_secs(600);

/// A wait that is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The client reads nothing, not even a reason.
    Deaf,
    /// The reason for the client.
    Because(String),
}

/// What a connection waits for, and until when.
#[derive(Debug)]
pub(super) struct Waits {
    attach: Option<Instant>,
    read: Option<Instant>,
    write: Option<Instant>,
    /// Deliveries by id.
    deliveries: BTreeMap<String, Instant>,
    /// Since when the client is held, whose answers are not read meanwhile.
    held: Option<Instant>,
    /// The end of the farewell.
    end: Option<Instant>,
}

impl Waits {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            attach: Some(now + ATTACH),
            read: None,
            write: None,
            deliveries: BTreeMap::new(),
            held: None,
            end: None,
        }
    }

    /// The connection ends: the client has a single span for the remaining output, and owes no more.
    pub(super) fn ended(&mut self, now: Instant) {
        self.end.get_or_insert(now + STALL);
        (self.attach, self.read, self.write) = (None, None, None);
        self.deliveries.clear();
    }

    /// The client attached.
    pub(super) fn attached(&mut self) {
        self.attach = None;
    }

    /// Octets came.
    pub(super) fn read(&mut self, now: Instant) {
        self.read = Some(now + STALL).filter(|_| self.end.is_none());
    }

    /// Whether the client owes the rest of a frame now.
    pub(super) fn reads(&mut self, now: Instant, owes: bool) {
        let until = || self.read.unwrap_or(now + STALL);
        self.read = owes.then(until).filter(|_| self.end.is_none());
    }

    /// Octets were written, and whether some are left.
    pub(super) fn wrote(&mut self, now: Instant, left: bool) {
        self.write = left.then(|| now + STALL).filter(|_| self.end.is_none());
    }

    /// A delivery was given to the client.
    pub(super) fn delivered(&mut self, now: Instant, id: &str) {
        self.deliveries.insert(id.to_owned(), now + ANSWER);
    }

    /// A delivery was answered.
    pub(super) fn done(&mut self, id: &str) {
        self.deliveries.remove(id);
    }

    /// Whether the client is held, which does not count for its answers.
    pub(super) fn holds(&mut self, now: Instant, holds: bool) {
        if holds {
            self.held.get_or_insert(now);
        } else if let Some(since) = self.held.take() {
            let late = now.saturating_duration_since(since);
            self.deliveries
                .values_mut()
                .for_each(|until| *until += late);
        }
    }

    /// The end of the next wait.
    pub(super) fn next(&self) -> Option<Instant> {
        let single = [self.attach, self.read, self.write, self.end];
        let all = single.into_iter().flatten();
        all.chain(self.owed().map(|(_, until)| *until)).min()
    }

    /// The answers to deliveries that the client owes now.
    fn owed(&self) -> impl Iterator<Item = (&String, &Instant)> {
        let all = self.deliveries.iter();
        all.filter(|_| self.held.is_none())
    }

    /// The wait that is over.
    pub(super) fn late(&self, now: Instant) -> Option<Late> {
        let over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let because = |reason: String| Some(Late::Because(reason));
        if over(self.write) || over(self.end) {
            return Some(Late::Deaf);
        }
        if over(self.attach) {
            return because(format!("expected attach within {} s", ATTACH.as_secs()));
        }
        if over(self.read) {
            let seconds = STALL.as_secs();
            return because(format!(
                "expected the rest of a frame; found nothing for {seconds} s"
            ));
        }
        let (id, _) = self.owed().find(|(_, until)| **until <= now)?;
        because(format!(
            "expected done for delivery {id} within {} s",
            ANSWER.as_secs()
        ))
    }
}
