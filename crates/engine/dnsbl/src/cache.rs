//! Kept answers of lists, and questions under way.
//!
//! Entries lie in two segments, each in the order of last use. A new entry begins in *probation*; a second
//! question moves an entry to the *protected* segment, with four fifths of the memory at most; the oldest entries there go back
//! to probation. The oldest entry of probation makes room. A client that connects once, such as each of an attacker's many
//! addresses, drives out other entries of probation alone: an entry of a returning client is
//! driven out by other returning clients alone.
//!
//! Times are arguments. Equal questions share one query: the first is told to [`Look::Ask`], the others wait.

mod question;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::Duration;

use vere_units::Timestamp;

pub use self::question::{Question, Reply, Subject};
use self::segment::{Kept, Segment};

/// Parts of the memory; the protected segment has all but one.
const PARTS: usize = 5;

/// Bounds of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets of all entries.
    pub octets_max: usize,
    /// Questions under way.
    pub pending_max: usize,
    /// The least time for which an answer is kept.
    pub ttl_min: Duration,
    /// The longest time for which an answer is kept.
    pub ttl_max: Duration,
    /// How long a failure is kept: 1 second at least, 5 minutes at most (RFC 9520 section 3.2).
    pub failure_life: Duration,
}

/// What the cache says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The answer is known.
    Known(Reply),
    /// The same question is under way; the answer comes with [`Cache::answered`].
    Wait,
    /// The caller has to ask the list, and to end the question by [`Cache::answered`] or [`Cache::abandoned`].
    Ask,
    /// Too many questions are under way.
    Full,
}

/// Counts since the start, and the present size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Questions whose answers were known.
    pub hits: u64,
    /// Questions for which the list has to be asked.
    pub misses: u64,
    /// Questions that waited for an equal one.
    pub shared: u64,
    /// Questions without a place.
    pub full: u64,
    /// Entries that made room before their end.
    pub evicted: u64,
    /// Entries.
    pub entries: u64,
    /// Octets of the entries.
    pub octets: u64,
}

/// Answers kept for the time to live, in bounded memory.
#[derive(Debug)]
pub struct Cache {
    limits: Limits,
    probation: Segment,
    protected: Segment,
    pending: HashSet<Question>,
    counts: Counts,
}

impl Cache {
    /// An empty cache.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            probation: Segment::default(),
            protected: Segment::default(),
            pending: HashSet::new(),
            counts: Counts::default(),
        }
    }

    /// Applies other bounds; entries beyond them end at once. Times of entries stay as they are.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.balance();
        self.make_room();
    }

    /// Looks for the answer to a question, and takes the question as under way where the list has to be asked.
    pub fn look(&mut self, now: Timestamp, question: Question) -> Look {
        if let Some(reply) = self.find(now, &question) {
            self.counts.hits += 1;
            return Look::Known(reply);
        }
        if self.pending.contains(&question) {
            self.counts.shared += 1;
            return Look::Wait;
        }
        if self.pending.len() >= self.limits.pending_max {
            self.counts.full += 1;
            return Look::Full;
        }
        self.pending.insert(question);
        self.counts.misses += 1;
        Look::Ask
    }

    /// Returns the answer and the time left, and changes nothing.
    #[must_use]
    pub fn peek(&self, now: Timestamp, question: &Question) -> Option<(&Reply, Duration)> {
        let kept = self.protected.peek(question);
        let kept = kept.or_else(|| self.probation.peek(question))?;
        let left = kept.until.saturating_since(now);
        (!left.is_zero()).then_some((&kept.reply, left))
    }

    /// Ends a question with the answer: kept for `ttl` within the bounds, a failure for a fixed time. An answer
    /// without records has the time of RFC 2308 section 5: the lower of the SOA record's TTL and its MINIMUM.
    pub fn answered(&mut self, now: Timestamp, question: Question, reply: Reply, ttl: Duration) {
        self.pending.remove(&question);
        self.remove(&question);
        let life = match reply {
            Reply::Failed => self.limits.failure_life,
            _ => ttl.max(self.limits.ttl_min).min(self.limits.ttl_max),
        };
        let octets = reply.octets();
        if life.is_zero() || octets > self.limits.octets_max / PARTS {
            return;
        }
        let kept = Kept {
            reply,
            until: now + life,
            octets,
        };
        self.probation.put(question, kept);
        self.make_room();
    }

    /// Ends a question without an answer: the list was not asked.
    pub fn abandoned(&mut self, question: &Question) {
        self.pending.remove(question);
    }

    /// Forgets the kept answers of a zone. Questions under way go on.
    pub fn forget(&mut self, zone: u32) {
        self.probation.forget(zone);
        self.protected.forget(zone);
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Counts {
            entries: number(self.probation.len() + self.protected.len()),
            octets: number(self.octets()),
            ..self.counts
        }
    }

    fn octets(&self) -> usize {
        self.probation.octets() + self.protected.octets()
    }

    /// Finds a living entry and notes its use; an entry past its end is removed.
    fn find(&mut self, now: Timestamp, question: &Question) -> Option<Reply> {
        let lives = |kept: &Kept| kept.until > now;
        if let Some(kept) = self.protected.use_of(question) {
            if lives(kept) {
                return Some(kept.reply.clone());
            }
            self.protected.remove(question);
            return None;
        }
        let kept = self.probation.remove(question)?;
        if !lives(&kept) {
            return None;
        }
        let reply = kept.reply.clone();
        self.protected.put(*question, kept);
        self.balance();
        Some(reply)
    }

    /// Gives the oldest protected entries back to probation.
    fn balance(&mut self) {
        let share = self.limits.octets_max / PARTS * (PARTS - 1);
        while self.protected.octets() > share
            && let Some((question, kept)) = self.protected.pop_oldest()
        {
            self.probation.put(question, kept);
        }
    }

    fn remove(&mut self, question: &Question) {
        self.protected.remove(question);
        self.probation.remove(question);
    }

    fn make_room(&mut self) {
        while self.octets() > self.limits.octets_max {
            let oldest = self.probation.pop_oldest();
            if oldest.or_else(|| self.protected.pop_oldest()).is_none() {
                return;
            }
            self.counts.evicted += 1;
        }
    }
}
