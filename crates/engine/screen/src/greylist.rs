//! The greylist (RFC 6647): triplets of client network, sender and recipient that have tried or passed.
//!
//! Triplets are kept as keyed hashes. When the table is full, the triplet that waits longest makes room as long as more
//! than a quarter of the entries wait, else the entry whose last pass is longest ago: a flood of new triplets cannot
//! drive out the clients that are known.

pub(crate) mod snapshot;

use hashbrown::HashTable;
use vere_units::Timestamp;

use crate::chain::{Chain, Link};
use crate::secret::Mark;
use crate::terms::Greylisting;

/// Of so many entries, one may wait without being driven out before entries that passed.
const WAITING_SHARE: usize = 4;

/// A triplet, or a client that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mark: Mark,
    /// The first attempt of a triplet that waits; else the last pass.
    pub(crate) since: Timestamp,
    /// Passes of a triplet, triplets of a client; 0 for a triplet that waits.
    pub(crate) passes: u32,
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greylisted {
    /// The triplet is new, or comes too early.
    New,
    /// The triplet came again after the delay, now or before.
    Passed,
    /// The client has passed with so many triplets that it no longer waits.
    Known,
    /// A rule of access or a list excuses the client.
    Exempt,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Greylist {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    links: Vec<Link>,
    /// Triplets that wait, the oldest first attempt first.
    waiting: Chain,
    /// Length of `waiting`.
    waiting_count: usize,
    /// Triplets and clients that passed, the oldest pass first.
    passed: Chain,
}

impl Greylist {
    pub(crate) const fn new() -> Self {
        Self {
            index: HashTable::new(),
            entries: Vec::new(),
            links: Vec::new(),
            waiting: Chain::EMPTY,
            waiting_count: 0,
            passed: Chain::EMPTY,
        }
    }

    /// Notes an attempt, and returns its state.
    pub(crate) fn note(
        &mut self,
        now: Timestamp,
        client: &Mark,
        triplet: &Mark,
        terms: &Greylisting,
    ) -> Greylisted {
        if self.is_known(now, client, terms) {
            return Greylisted::Known;
        }
        let Some(at) = self.find(triplet) else {
            self.add(waiting(*triplet, now), terms.entries);
            return Greylisted::New;
        };
        let entry = self.entries[at as usize];
        let age = now.saturating_since(entry.since);
        if entry.passes > 0 && age <= terms.lifetime {
            let passes = entry.passes.saturating_add(1);
            self.change(at, passed(*triplet, now, passes));
            return Greylisted::Passed;
        }
        if entry.passes == 0 && age >= terms.delay && age <= terms.window {
            self.change(at, passed(*triplet, now, 1));
            self.count_client(now, client, terms);
            return Greylisted::Passed;
        }
        // A first attempt after the present time was noted before the clock was set back.
        if entry.passes > 0 || age > terms.window || entry.since > now {
            self.change(at, waiting(*triplet, now));
        }
        Greylisted::New
    }

    fn is_known(&mut self, now: Timestamp, client: &Mark, terms: &Greylisting) -> bool {
        let Some(at) = self.find(client) else {
            return false;
        };
        let entry = self.entries[at as usize];
        let known = terms.known_after > 0
            && entry.passes >= terms.known_after
            && now.saturating_since(entry.since) <= terms.lifetime;
        if known {
            self.change(at, passed(*client, now, entry.passes));
        }
        known
    }

    /// Counts a triplet that a client has passed.
    fn count_client(&mut self, now: Timestamp, client: &Mark, terms: &Greylisting) {
        if terms.known_after == 0 {
            return;
        }
        match self.find(client) {
            Some(at) => {
                let entry = self.entries[at as usize];
                let remembered = now.saturating_since(entry.since) <= terms.lifetime;
                let before = if remembered { entry.passes } else { 0 };
                self.change(at, passed(*client, now, before.saturating_add(1)));
            }
            None => self.add(passed(*client, now, 1), terms.entries),
        }
    }

    fn find(&self, mark: &Mark) -> Option<u32> {
        self.index
            .find(hash(mark), |at| self.entries[*at as usize].mark == *mark)
            .copied()
    }

    /// Adds an entry whose mark is new. A table of `entries_max` makes room.
    fn add(&mut self, entry: Entry, entries_max: u32) {
        let at = if self.entries.len() < entries_max.max(1) as usize {
            self.entries.push(entry);
            self.links.push(Link::LOOSE);
            self.entries.len() as u32 - 1
        } else {
            let Some(at) = self.oldest() else {
                return;
            };
            self.unlink(at);
            let old = std::mem::replace(&mut self.entries[at as usize], entry);
            if let Ok(found) = self.index.find_entry(hash(&old.mark), |one| *one == at) {
                found.remove();
            }
            at
        };
        self.link(at);
        let entries = &self.entries;
        self.index.insert_unique(hash(&entry.mark), at, |at| {
            hash(&entries[*at as usize].mark)
        });
    }

    /// The entry that makes room.
    const fn oldest(&self) -> Option<u32> {
        if self.waiting_count * WAITING_SHARE > self.entries.len() {
            return self.waiting.first();
        }
        match self.passed.first() {
            Some(at) => Some(at),
            None => self.waiting.first(),
        }
    }

    /// Replaces an entry by one of the same mark, the newest of its list.
    fn change(&mut self, at: u32, entry: Entry) {
        self.unlink(at);
        self.entries[at as usize] = entry;
        self.link(at);
    }

    fn link(&mut self, at: u32) {
        if self.entries[at as usize].passes > 0 {
            self.passed.push(&mut self.links, at);
        } else {
            self.waiting.push(&mut self.links, at);
            self.waiting_count += 1;
        }
    }

    fn unlink(&mut self, at: u32) {
        if self.entries[at as usize].passes > 0 {
            self.passed.remove(&mut self.links, at);
        } else {
            self.waiting.remove(&mut self.links, at);
            self.waiting_count -= 1;
        }
    }

    /// Number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries: those that wait, then those that passed, each list in the order of time.
    fn iter(&self) -> impl Iterator<Item = &Entry> {
        let slots = self.waiting.iter(&self.links);
        slots
            .chain(self.passed.iter(&self.links))
            .map(|at| &self.entries[at as usize])
    }
}

const fn waiting(mark: Mark, now: Timestamp) -> Entry {
    passed(mark, now, 0)
}

const fn passed(mark: Mark, now: Timestamp, passes: u32) -> Entry {
    Entry {
        mark,
        since: now,
        passes,
    }
}

/// The hash of a mark, from the octets behind the hash of the network: by the first octets a client with many senders would have
/// all entries in a single place of the index.
fn hash(mark: &Mark) -> u64 {
    let mut octets = [0; 8];
    octets.copy_from_slice(&mark[8..]);
    u64::from_le_bytes(octets)
}

#[cfg(test)]
impl Greylist {
    /// Octets that the table has allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.links.capacity() * size_of::<Link>()
            + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests;
