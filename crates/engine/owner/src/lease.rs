//! The delivery lease: two owners of one group never deliver at the same time.
//!
//! Under the key `lease/GROUP` the register holds a [`LeaseRecord`]. The holder replaces the record
//! again and again ([`LeaseHolder`]). Each replacement permits deliveries for [`LeaseTerms::lease`]
//! from the moment the request was *sent*. A successor watches the record ([`LeaseWatcher`]) until
//! the version has not changed for lease + skew by the successor's clock, counted from the moment
//! the answer *arrived*. Then the successor replaces exactly that version; a renewal in between
//! makes the swap fail. So clocks need not agree on the time, only on the length of a lease, within
//! the skew. A late request of the old holder finds another version.
//!
//! While the register is unreachable, the holder may go on delivering if *every* full member
//! answers under the holder's epoch ([`LeaseHolder::confirmed_by_members`]). Therefore a successor
//! waits also until lease + skew after a full member was fenced ([`LeaseWatcher::fenced`]). A
//! successor never takes the lease of a later epoch than its own, because the fence did not reach
//! that epoch.
//!
//! A successor need not wait for a holder that is known to be dead ([`LeaseWatcher::knowing`]).
//! [`LeaseKeeper`] combines both sides for one owner of a group.
//!
//! Times come from a monotonic clock with a fixed origin. The clock should count the time in which
//! the machine is suspended (`CLOCK_BOOTTIME`).

use std::time::Duration;

use LeaseAnswer as Answer;

mod keeper;

#[cfg(test)]
mod tests;

pub use keeper::{LeaseKeeper, LeaseOptions, LeaseState};

const FORMAT: u32 = 1;
/// Length of an encoded record, in octets.
const RECORD_LEN: usize = 32;
/// The holder of a lease that was given back.
const NOBODY: u64 = 0;

/// Duration of a lease; equal for all owners of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// Duration of the lease from the sending of a renewal.
    pub lease: Duration,
    /// Extra time a successor waits: the most by which two clocks may differ over a lease.
    pub skew: Duration,
}

impl LeaseTerms {
    /// A third of the lease: two renewals may fail before the lease ends.
    fn renewal(self) -> Duration {
        self.lease / 3
    }

    /// Pause after a request that the register did not answer.
    fn retry(self) -> Duration {
        self.lease / 20
    }
}

/// Value in the register under `lease/GROUP`: `format version u32 = 1 | adopted u32 | epoch u64 |
/// holder u64 | counter u64`, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Whether the holder is not the gateway that the group is named for.
    pub adopted: bool,
    /// The epoch under which the holder owns the group.
    pub epoch: u64,
    /// The life of the owner that holds the lease; 0 means that the lease was given back.
    pub holder: u64,
    /// Grows with every renewal, so that each renewal writes a different value.
    pub counter: u64,
}

impl LeaseRecord {
    /// Encodes the record.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(RECORD_LEN);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&u32::from(self.adopted).to_le_bytes());
        for number in [self.epoch, self.holder, self.counter] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Decodes a record. Returns `None` for another length, format version or flag.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; RECORD_LEN] = octets.try_into().ok()?;
        let (numbers, _) = octets.as_chunks::<8>();
        let [head, epoch, holder, counter] = *<&[[u8; 8]; 4]>::try_from(numbers).ok()?;
        let head = u64::from_le_bytes(head);
        let known = head & u64::from(u32::MAX) == u64::from(FORMAT) && head >> 32 <= 1;
        known.then_some(Self {
            adopted: head >> 32 == 1,
            epoch: u64::from_le_bytes(epoch),
            holder: u64::from_le_bytes(holder),
            counter: u64::from_le_bytes(counter),
        })
    }
}

/// Request to the register about `lease/GROUP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Reads the newest value.
    Read,
    /// Replaces the value of version `expected`; `None` expects an empty register.
    Swap {
        /// Version that the current value must have.
        expected: Option<u64>,
        /// The new value.
        value: Vec<u8>,
    },
}

/// Answer of the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The current value and its version: the answer to a read, and to a swap that changed nothing.
    There(Option<(u64, Vec<u8>)>),
    /// The register swapped the value, which now has this version.
    Done(u64),
    /// The register did not answer; the request may have been executed, or may still be.
    Failed,
}

/// The side that delivers or is about to deliver.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    life: u64,
    epoch: u64,
    adopted: bool,
    terms: LeaseTerms,
    /// Version that the next swap expects; `None` until a read answers.
    expected: Option<Option<u64>>,
    /// Version that the last swap expected.
    based_on: Option<u64>,
    counter: u64,
    /// Send time of the unanswered request.
    asked: Option<Duration>,
    ask_at: Duration,
    until: Option<Duration>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Holding,
    GivingBack,
    Ended,
}

impl LeaseHolder {
    /// Takes a lease that a [`LeaseWatcher`] of this epoch found free under version `expected`.
    /// `life` is not 0 and belongs to no other owner, past or present.
    #[must_use]
    pub const fn new(
        life: u64,
        epoch: u64,
        terms: LeaseTerms,
        expected: Option<u64>,
        now: Duration,
    ) -> Self {
        Self {
            life,
            epoch,
            adopted: false,
            terms,
            expected: Some(expected),
            based_on: expected,
            counter: 0,
            asked: None,
            ask_at: now,
            until: None,
            phase: Phase::Holding,
        }
    }

    /// Marks the records of this holder: `adopted` if the group is named for another gateway.
    #[must_use]
    pub const fn adopting(mut self, adopted: bool) -> Self {
        self.adopted = adopted;
        self
    }

    /// Whether deliveries may begin at this moment.
    #[must_use]
    pub fn is_held(&self, now: Duration) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Time for which deliveries may still begin without another renewal.
    #[must_use]
    pub fn left(&self, now: Duration) -> Duration {
        self.until.unwrap_or_default().saturating_sub(now)
    }

    /// Whether the holder has ended for good: another owner has the lease, or the lease was given
    /// back. An owner that still owns the group starts a watcher.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether the holder has ended and no request is outstanding.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_over() && self.asked.is_none()
    }

    /// Returns the next request to the register; at most one request is outstanding.
    pub fn poll(&mut self, now: Duration) -> Option<LeaseRequest> {
        if self.asked.is_some() || now < self.ask_at || self.is_over() {
            return None;
        }
        let Some(expected) = self.expected else {
            if self.phase == Phase::GivingBack {
                // Not worth another read: a successor can wait for the end of the lease.
                self.phase = Phase::Ended;
                return None;
            }
            self.asked = Some(now);
            return Some(LeaseRequest::Read);
        };
        let holder = if self.phase == Phase::Holding {
            self.life
        } else {
            // Last request of this holder, whatever the register answers.
            self.phase = Phase::Ended;
            NOBODY
        };
        self.asked = Some(now);
        self.based_on = expected;
        self.counter += 1;
        let record = LeaseRecord {
            adopted: self.adopted,
            epoch: self.epoch,
            holder,
            counter: self.counter,
        };
        let value = record.encode();
        Some(LeaseRequest::Swap { expected, value })
    }

    /// Processes the answer to the last request.
    pub fn answered(&mut self, answer: LeaseAnswer, now: Duration) {
        let Some(sent) = self.asked.take() else {
            return;
        };
        match (self.phase, &answer) {
            (Phase::Holding, _) => {}
            // A renewal was outstanding: the lease to give back now has this version.
            (Phase::GivingBack, Answer::Done(version)) => {
                self.expected = Some(Some(*version));
                return;
            }
            (Phase::GivingBack | Phase::Ended, _) => return self.end(),
        }
        match answer {
            Answer::Done(version) => {
                self.expected = Some(Some(version));
                self.ask_at = sent + self.terms.renewal();
                self.prolong(sent);
            }
            Answer::There(Some((version, value))) => {
                let record = LeaseRecord::decode(&value);
                let own = record.is_some_and(|record| record.holder == self.life);
                if own || Some(version) == self.based_on {
                    self.expected = Some(Some(version));
                    self.ask_at = now;
                } else {
                    self.end();
                }
            }
            // The first swap did not happen, or has not happened yet.
            Answer::There(None) if self.based_on.is_none() => {
                self.expected = Some(None);
                self.ask_at = now + self.terms.retry();
            }
            // The value has vanished: the register needs repair, so the holder does not write a
            // first record.
            Answer::There(None) | Answer::Failed => {
                self.expected = None;
                self.ask_at = now + self.terms.retry();
            }
        }
    }

    /// Prolongs a lease that the register granted: every full member has answered, under this
    /// owner's epoch, a request sent at `sent` or later.
    pub fn confirmed_by_members(&mut self, sent: Duration) {
        if self.until.is_some() && self.phase == Phase::Holding {
            self.prolong(sent);
        }
    }

    fn prolong(&mut self, sent: Duration) {
        let until = sent + self.terms.lease;
        self.until = Some(self.until.map_or(until, |before| before.max(until)));
    }

    /// Ends deliveries now. A successor need not wait if the register receives this.
    pub fn give_back(&mut self, now: Duration) {
        self.until = None;
        if self.phase == Phase::Holding {
            self.phase = Phase::GivingBack;
            self.ask_at = now;
        }
    }

    fn end(&mut self) {
        self.until = None;
        self.phase = Phase::Ended;
    }

    /// Time at which [`LeaseHolder::poll`] or [`LeaseHolder::is_held`] changes without an event.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let ask = (self.asked.is_none() && !self.is_over()).then_some(self.ask_at);
        ask.into_iter().chain(self.until).min()
    }
}

/// A watcher's knowledge of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Another owner may deliver under the lease, or the register has not answered yet.
    Held,
    /// A swap of exactly this version may take the lease ([`LeaseHolder::new`]).
    Free {
        /// Version that the register must still have; `None`: no value.
        expected: Option<u64>,
    },
    /// A later epoch has the lease, or the value is unreadable: the watcher cannot succeed.
    Lost,
}

/// The side that wants to succeed the holder; one watcher for each takeover.
#[derive(Debug, Clone)]
pub struct LeaseWatcher {
    epoch: u64,
    terms: LeaseTerms,
    seen: Option<Seen>,
    fenced: Option<Duration>,
    dead: Vec<u64>,
    asked: bool,
    ask_at: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Nothing,
    GivenBack(u64),
    Lost(u64),
    /// Version, time of the first sight, and whether the holder is known to be dead.
    Held(u64, Duration, bool),
}

impl LeaseWatcher {
    /// Begins to watch for an owner that owns the group under `epoch`.
    #[must_use]
    pub const fn new(epoch: u64, terms: LeaseTerms, now: Duration) -> Self {
        Self {
            epoch,
            terms,
            seen: None,
            fenced: None,
            dead: Vec::new(),
            asked: false,
            ask_at: now,
        }
    }

    /// Adds lives of owners that are known to be over: their lease is free at once.
    #[must_use]
    pub fn knowing(mut self, dead: &[u64]) -> Self {
        self.dead = dead.to_vec();
        self
    }

    /// Returns the next request to the register; at most one request is outstanding.
    pub fn poll(&mut self, now: Duration) -> Option<LeaseRequest> {
        if self.asked || now < self.ask_at {
            return None;
        }
        self.asked = true;
        Some(LeaseRequest::Read)
    }

    /// Processes the answer to the last [`LeaseRequest::Read`].
    pub fn answered(&mut self, answer: LeaseAnswer, now: Duration) {
        self.asked = false;
        self.ask_at = now + self.terms.retry();
        let there = match answer {
            Answer::There(there) => there,
            Answer::Done(_) | Answer::Failed => return,
        };
        self.ask_at = now + self.terms.renewal();
        self.seen = Some(match (there, self.seen) {
            // A value cannot vanish: the register needs repair. The watcher keeps the last value
            // seen.
            (None, Some(seen)) => seen,
            (None, None) => Seen::Nothing,
            (Some((version, _)), Some(seen)) if seen.version() == Some(version) => seen,
            (Some((version, value)), _) => match LeaseRecord::decode(&value) {
                Some(record) if record.epoch > self.epoch => Seen::Lost(version),
                Some(record) if record.holder == NOBODY => Seen::GivenBack(version),
                Some(record) => Seen::Held(version, now, self.dead.contains(&record.holder)),
                None => Seen::Lost(version),
            },
        });
    }

    /// Records that a full member of the group is fenced from all earlier epochs. Without this
    /// fence the watcher never treats a lease as expired.
    pub fn fenced(&mut self, now: Duration) {
        self.fenced.get_or_insert(now);
    }

    /// Whether the lease may be taken now.
    #[must_use]
    pub fn watched(&self, now: Duration) -> Watched {
        match self.seen {
            Some(Seen::Nothing) => Watched::Free { expected: None },
            Some(Seen::GivenBack(version) | Seen::Held(version, _, true)) => Watched::Free {
                expected: Some(version),
            },
            Some(Seen::Held(version, ..)) if self.end().is_some_and(|end| now >= end) => {
                Watched::Free {
                    expected: Some(version),
                }
            }
            Some(Seen::Held(..)) | None => Watched::Held,
            Some(Seen::Lost(_)) => Watched::Lost,
        }
    }

    fn end(&self) -> Option<Duration> {
        match (self.seen, self.fenced) {
            (Some(Seen::Held(_, at, _)), Some(fenced)) => {
                Some(at.max(fenced) + self.terms.lease + self.terms.skew)
            }
            _ => None,
        }
    }

    /// Time at which [`LeaseWatcher::poll`] or [`LeaseWatcher::watched`] changes without an event.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let ask = (!self.asked).then_some(self.ask_at);
        ask.into_iter().chain(self.end()).min()
    }
}

impl Seen {
    const fn version(self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::GivenBack(version) | Self::Lost(version) | Self::Held(version, ..) => {
                Some(version)
            }
        }
    }
}
