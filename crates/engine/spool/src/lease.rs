//! The delivery lease: two owners of one group never deliver at the same time.
//!
//! Under the key `lease/GROUP` the register holds a [`LeaseRecord`]. Its holder replaces it again and
//! again ([`LeaseHolder`]); each replacement lets it deliver for [`LeaseTerms::lease`] from the moment
//! the request was *sent*. Whoever wants to follow watches the record ([`LeaseWatcher`]) until it was
//! the same for lease + skew from the moment the answer *arrived*, by its own clock, and then replaces
//! exactly that version: a renewal in between makes that fail. So clocks need not agree on the time,
//! only on how long a lease lasts, within the skew; a request of the old holder that arrives late
//! finds another version.
//!
//! While the register cannot be reached, the holder may deliver on if *every* full member answers it
//! under its own epoch ([`LeaseHolder::confirmed_by_members`]). Therefore a successor waits also
//! until lease + skew after a full member was fenced ([`LeaseWatcher::fenced`]), and never takes the
//! lease of a later epoch than its own, which its fence did not reach.
//!
//! A holder that is known to be dead need not be waited for ([`LeaseWatcher::knowing`]).
//! [`LeaseKeeper`] is both sides as one owner of a group goes through them.
//!
//! Times are those of a clock that only goes forward, since any moment that stays the same. It should
//! count the time in which the machine is suspended (`CLOCK_BOOTTIME`).

use std::time::Duration;

use LeaseAnswer as Answer;

mod keeper;

#[cfg(test)]
mod tests;

pub use keeper::{LeaseKeeper, LeaseOptions, LeaseState};

const FORMAT: u32 = 1;
/// Octets of an encoded record.
const RECORD_LEN: usize = 32;
/// The holder of a lease that was given back.
const NOBODY: u64 = 0;

/// How long a lease lasts; the same for all owners of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// From the sending of a renewal to its end.
    pub lease: Duration,
    /// What a successor waits beyond it: by so much two clocks may differ over a lease.
    pub skew: Duration,
}

impl LeaseTerms {
    /// A third: two renewals may fail before the lease ends.
    fn renewal(self) -> Duration {
        self.lease / 3
    }

    /// The pause after a register that did not answer.
    fn retry(self) -> Duration {
        self.lease / 20
    }
}

/// What the register holds under `lease/GROUP`:
/// `format version u32 = 1 | adopted u32 | epoch u64 | holder u64 | counter u64`, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Whether the holder is not the gateway that the group is named for.
    pub adopted: bool,
    /// The epoch under which the holder owns the group.
    pub epoch: u64,
    /// The life of the owner that holds the lease; 0: it was given back.
    pub holder: u64,
    /// Grows with every renewal, so that each is another value.
    pub counter: u64,
}

impl LeaseRecord {
    /// Writes it.
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

    /// Reads it; `None` if it is something else.
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

/// What the register is to be asked about `lease/GROUP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Its newest value.
    Read,
    /// To replace the value of this version; `None`: if there is none.
    Swap {
        /// The version it must have.
        expected: Option<u64>,
        /// The new value.
        value: Vec<u8>,
    },
}

/// What the register answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The value there is and its version: to a read, and to a swap that changed nothing.
    There(Option<(u64, Vec<u8>)>),
    /// The swap was done; the version now.
    Done(u64),
    /// There is no answer; what was asked for may have happened, or may yet.
    Failed,
}

/// The side that delivers, or is about to.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    life: u64,
    epoch: u64,
    adopted: bool,
    terms: LeaseTerms,
    /// What the next swap expects; `None` while that must be read.
    expected: Option<Option<u64>>,
    /// What the last swap expected.
    based_on: Option<u64>,
    counter: u64,
    /// When the request was sent that is not answered yet.
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
    /// Takes a lease that a [`LeaseWatcher`] of the same epoch found free under this version. `life`
    /// is not 0 and belongs to no other owner, past or present.
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

    /// Says in its records whether the group is named for another gateway.
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

    /// For how long deliveries may begin if nothing prolongs it.
    #[must_use]
    pub fn left(&self, now: Duration) -> Duration {
        self.until.unwrap_or_default().saturating_sub(now)
    }

    /// Whether it will never be held again: another owner has it, or it was given back. Whoever still
    /// owns the group watches on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether it is over and nothing is asked of the register any more.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_over() && self.asked.is_none()
    }

    /// What the register is to be asked now; one request at a time.
    pub fn poll(&mut self, now: Duration) -> Option<LeaseRequest> {
        if self.asked.is_some() || now < self.ask_at || self.is_over() {
            return None;
        }
        let Some(expected) = self.expected else {
            if self.phase == Phase::GivingBack {
                // Not worth another question: whoever waits for it waits for its end.
                self.phase = Phase::Ended;
                return None;
            }
            self.asked = Some(now);
            return Some(LeaseRequest::Read);
        };
        let holder = if self.phase == Phase::Holding {
            self.life
        } else {
            // Whatever becomes of it: nothing is done after it.
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

    /// Takes the answer to what was asked last.
    pub fn answered(&mut self, answer: LeaseAnswer, now: Duration) {
        let Some(sent) = self.asked.take() else {
            return;
        };
        match (self.phase, &answer) {
            (Phase::Holding, _) => {}
            // A renewal that was on its way: what is given back is that version.
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
            // The first swap did not happen, or not yet.
            Answer::There(None) if self.based_on.is_none() => {
                self.expected = Some(None);
                self.ask_at = now + self.terms.retry();
            }
            // What there was has vanished: a register to be repaired, not one to begin anew in.
            Answer::There(None) | Answer::Failed => {
                self.expected = None;
                self.ask_at = now + self.terms.retry();
            }
        }
    }

    /// Every full member has answered, under this owner's epoch, to something sent at `sent` or
    /// later. Prolongs a lease that the register gave before.
    pub fn confirmed_by_members(&mut self, sent: Duration) {
        if self.until.is_some() && self.phase == Phase::Holding {
            self.prolong(sent);
        }
    }

    fn prolong(&mut self, sent: Duration) {
        let until = sent + self.terms.lease;
        self.until = Some(self.until.map_or(until, |before| before.max(until)));
    }

    /// Ends deliveries now; a successor need not wait if the register hears of it.
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

    /// When [`LeaseHolder::poll`] or [`LeaseHolder::is_held`] says something else by time alone.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let ask = (self.asked.is_none() && !self.is_over()).then_some(self.ask_at);
        ask.into_iter().chain(self.until).min()
    }
}

/// What a watcher knows of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Somebody may deliver under it, or nobody was asked yet.
    Held,
    /// It may be taken by replacing exactly this version ([`LeaseHolder::new`]).
    Free {
        /// The version that must still be there; `None`: no value.
        expected: Option<u64>,
    },
    /// A later epoch has it, or what is there cannot be read: to watch on is of no use.
    Lost,
}

/// The side that wants to follow; one for each takeover.
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
    /// The version, when it was seen first, and whether its holder is known to be dead.
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

    /// Owners' lives that are known to be over: their lease is free at once.
    #[must_use]
    pub fn knowing(mut self, dead: &[u64]) -> Self {
        self.dead = dead.to_vec();
        self
    }

    /// What the register is to be asked now; one request at a time.
    pub fn poll(&mut self, now: Duration) -> Option<LeaseRequest> {
        if self.asked || now < self.ask_at {
            return None;
        }
        self.asked = true;
        Some(LeaseRequest::Read)
    }

    /// Takes the answer to the last [`LeaseRequest::Read`].
    pub fn answered(&mut self, answer: LeaseAnswer, now: Duration) {
        self.asked = false;
        self.ask_at = now + self.terms.retry();
        let there = match answer {
            Answer::There(there) => there,
            Answer::Done(_) | Answer::Failed => return,
        };
        self.ask_at = now + self.terms.renewal();
        self.seen = Some(match (there, self.seen) {
            // What was there cannot vanish: a register to be repaired. Nothing new is known.
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

    /// A full member of the group has answered that it is fenced from all epochs before this one.
    /// Until then a lease is never found run out.
    pub fn fenced(&mut self, now: Duration) {
        self.fenced.get_or_insert(now);
    }

    /// Whether the lease may be taken.
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

    /// When [`LeaseWatcher::poll`] or [`LeaseWatcher::watched`] says something else by time alone.
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
