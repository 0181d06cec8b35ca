//! A part of the cache: entries in the order of last use.

use std::collections::hash_map::RandomState;
use std::fmt;

use lru::LruCache;
use vere_units::Timestamp;

use super::question::{Question, Reply};

/// A kept answer.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) reply: Reply,
    /// The end of the answer's life.
    pub(super) until: Timestamp,
    pub(super) octets: usize,
}

/// Entries in the order of last use, and the sum of the octets.
pub(super) struct Segment {
    /// Strangers choose the addresses, so that the hash has a secret key; no order depends on it.
    entries: LruCache<Question, Kept, RandomState>,
    octets: usize,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            entries: LruCache::unbounded_with_hasher(RandomState::new()),
            octets: 0,
        }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("entries", &self.entries.len())
            .field("octets", &self.octets)
            .finish()
    }
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    pub(super) fn peek(&self, question: &Question) -> Option<&Kept> {
        self.entries.peek(question)
    }

    /// Finds an entry and makes the entry the newest.
    pub(super) fn use_of(&mut self, question: &Question) -> Option<&Kept> {
        self.entries.get(question)
    }

    /// Adds an entry as the newest; an entry of the same question ends.
    pub(super) fn put(&mut self, question: Question, kept: Kept) {
        self.octets += kept.octets;
        if let Some(before) = self.entries.put(question, kept) {
            self.octets -= before.octets;
        }
    }

    pub(super) fn remove(&mut self, question: &Question) -> Option<Kept> {
        let kept = self.entries.pop(question)?;
        self.octets -= kept.octets;
        Some(kept)
    }

    /// Removes the entries of a zone.
    pub(super) fn forget(&mut self, zone: u32) {
        let of_zone = self.entries.iter().map(|(question, _)| *question);
        let of_zone: Vec<_> = of_zone.filter(|question| question.zone == zone).collect();
        for question in of_zone {
            self.remove(&question);
        }
    }

    /// Removes the least recently used entry.
    pub(super) fn pop_oldest(&mut self) -> Option<(Question, Kept)> {
        let (question, kept) = self.entries.pop_lru()?;
        self.octets -= kept.octets;
        Some((question, kept))
    }
}
