//! Counts of addresses and of networks, in a fixed number of entries.
//!
//! Entries without open connections are a list; the entry that was used least recently makes room for a new one. An
//! entry with open connections stays. Entries with connections that wait for trust are in a list for each number of
//! such connections, so that the fullest entry is found without a search.

use hashbrown::HashTable;

use crate::chain::{Chain, Link};
use crate::clock::Moment;
use crate::place::Place;
use crate::rate::Meter;
use crate::secret::Secret;

/// Counts of one address or network.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    hash: u64,
    /// Connections that came.
    pub(crate) arrivals: Meter,
    /// Recipients that were refused.
    pub(crate) refusals: Meter,
    /// Last hand-over of a trusted connection.
    trusted: Moment,
    /// Connections that wait for trust, the oldest first; the links lie beside the connections.
    pub(crate) waiting: Chain,
    /// Number of open connections, trusted ones included.
    pub(crate) open: u32,
    /// Number of connections in `waiting`.
    ranked: u32,
}

impl Entry {
    const fn new(place: Place, hash: u64) -> Self {
        Self {
            place,
            hash,
            arrivals: Meter::NONE,
            refusals: Meter::NONE,
            trusted: Moment::NEVER,
            waiting: Chain::EMPTY,
            open: 0,
            ranked: 0,
        }
    }

    /// Remembers that a connection was trusted.
    pub(crate) const fn trust(&mut self, now: Moment) {
        self.trusted = now;
    }

    /// The moment of the last trusted connection that is still remembered.
    pub(crate) fn trusted(&self) -> Option<Moment> {
        (self.trusted != Moment::NEVER).then_some(self.trusted)
    }
}

/// The entries of all addresses, or of all networks.
#[derive(Debug)]
pub(crate) struct Table {
    secret: Secret,
    /// Number of entries that the table may have.
    size: usize,
    index: HashTable<u32>,
    entries: Vec<Entry>,
    links: Vec<Link>,
    /// List 0: entries without open connections, the least recently used first. List n: entries with n connections
    /// that wait for trust.
    ranks: Vec<Chain>,
    /// Number of the last list that is not empty, 0 for none.
    fullest: u32,
}

impl Table {
    /// Makes a table of `size` entries. Memory is reserved now and touched as entries come.
    pub(crate) fn new(secret: Secret, size: u32) -> Self {
        let size = size.max(1) as usize;
        Self {
            secret,
            size,
            index: HashTable::with_capacity(size),
            entries: Vec::with_capacity(size),
            links: Vec::with_capacity(size),
            ranks: vec![Chain::EMPTY],
            fullest: 0,
        }
    }

    pub(crate) fn at(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    pub(crate) fn at_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.entries[at as usize]
    }

    /// The entry of a place, made if there is none; `None` if every entry has open connections.
    pub(crate) fn entry(&mut self, place: Place) -> Option<u32> {
        let hash = self.secret.place(place);
        let known = self
            .index
            .find(hash, |at| self.entries[*at as usize].place == place)
            .copied();
        if let Some(at) = known {
            if self.at(at).open == 0 {
                self.ranks[0].remove(&mut self.links, at);
                self.ranks[0].push(&mut self.links, at);
            }
            return Some(at);
        }
        let at = self.room(Entry::new(place, hash))?;
        self.ranks[0].push(&mut self.links, at);
        let entries = &self.entries;
        self.index
            .insert_unique(hash, at, |at| entries[*at as usize].hash);
        Some(at)
    }

    /// Puts an entry into a new slot, or into that of the entry that was used least recently.
    fn room(&mut self, entry: Entry) -> Option<u32> {
        if self.entries.len() < self.size {
            self.entries.push(entry);
            self.links.push(Link::LOOSE);
            return Some(self.entries.len() as u32 - 1);
        }
        let oldest = self.ranks[0].first()?;
        self.ranks[0].remove(&mut self.links, oldest);
        let old = std::mem::replace(&mut self.entries[oldest as usize], entry);
        if let Ok(found) = self.index.find_entry(old.hash, |at| *at == oldest) {
            found.remove();
        }
        Some(oldest)
    }

    /// Counts an open connection of an entry.
    pub(crate) fn open(&mut self, at: u32) {
        if self.at(at).open == 0 {
            self.ranks[0].remove(&mut self.links, at);
        }
        self.at_mut(at).open += 1;
    }

    /// Counts off an open connection, which waits for trust no more.
    pub(crate) fn close(&mut self, at: u32) {
        self.at_mut(at).open -= 1;
        if self.at(at).open == 0 {
            self.ranks[0].push(&mut self.links, at);
        }
    }

    /// Appends a connection to those that wait for trust.
    pub(crate) fn wait(&mut self, at: u32, places: &mut [Link], slot: u32) {
        self.at_mut(at).waiting.push(places, slot);
        self.rank(at, self.at(at).ranked + 1);
        self.fullest = self.fullest.max(self.at(at).ranked);
    }

    /// Takes a connection out of those that wait for trust.
    pub(crate) fn settle(&mut self, at: u32, places: &mut [Link], slot: u32) {
        self.at_mut(at).waiting.remove(places, slot);
        self.rank(at, self.at(at).ranked - 1);
        // The entry itself is in the list below, or in none.
        if self.ranks[self.fullest as usize].first().is_none() {
            self.fullest -= 1;
        }
    }

    /// Moves an entry with open connections to the list of another number.
    fn rank(&mut self, at: u32, rank: u32) {
        let before = std::mem::replace(&mut self.at_mut(at).ranked, rank);
        if before > 0 {
            self.ranks[before as usize].remove(&mut self.links, at);
        }
        if rank > 0 {
            if self.ranks.len() <= rank as usize {
                self.ranks.push(Chain::EMPTY);
            }
            self.ranks[rank as usize].push(&mut self.links, at);
        }
    }

    /// An entry with most connections that wait for trust.
    pub(crate) fn fullest(&self) -> Option<&Entry> {
        let list = *self.ranks.get(self.fullest as usize)?;
        (self.fullest > 0)
            .then(|| list.first())
            .flatten()
            .map(|at| self.at(at))
    }

    /// Number of entries in use.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
impl Table {
    /// Sum of open connections.
    pub(crate) fn open_sum(&self) -> u32 {
        self.entries.iter().map(|entry| entry.open).sum()
    }

    /// Octets that the table has allocated.
    pub(crate) fn allocated(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.links.capacity() * size_of::<Link>()
            + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(size: u32) -> Table {
        Table::new(Secret::new([3; 32]), size)
    }

    const fn place(number: u8) -> Place {
        Place([number; 16])
    }

    #[test]
    fn an_entry_fills_one_cache_line() {
        assert_eq!(size_of::<Entry>(), 64);
    }

    #[test]
    fn the_entry_used_least_recently_makes_room() {
        let mut table = table(3);
        let slots: Vec<u32> = (1..=3).map(|n| table.entry(place(n)).unwrap()).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(table.entry(place(1)), Some(0));
        assert_eq!(table.entry(place(4)), Some(1), "2 was the oldest");
        assert_eq!(table.entry(place(1)), Some(0));
        assert_eq!(table.entry(place(3)), Some(2));
        assert_eq!(table.entry(place(2)), Some(1), "4 was the oldest");
        assert_eq!(table.at(1).place, place(2));
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn an_entry_with_open_connections_stays() {
        let mut table = table(2);
        for number in 1..=2 {
            let at = table.entry(place(number)).unwrap();
            table.open(at);
            table.open(at);
            table.close(at);
        }
        assert_eq!(table.entry(place(3)), None);
        assert_eq!(table.entry(place(1)), Some(0));
        table.close(1);
        assert_eq!(table.entry(place(3)), Some(1));
        assert_eq!(table.open_sum(), 1);
    }

    #[test]
    fn a_new_entry_has_no_counts_of_the_old_one() {
        let mut table = table(1);
        let at = table.entry(place(1)).unwrap();
        table.at_mut(at).trust(Moment::default());
        assert_eq!(table.at(at).trusted(), Some(Moment::default()));
        let at = table.entry(place(2)).unwrap();
        assert_eq!(table.at(at).trusted(), None);
    }

    #[test]
    fn the_fullest_entry_is_known() {
        let mut table = table(3);
        let mut places = vec![Link::LOOSE; 8];
        let fullest = |table: &Table| table.fullest().map(|entry| entry.place);
        assert_eq!(fullest(&table), None);
        for (slot, number) in [1, 2, 2, 3, 3].into_iter().enumerate() {
            let at = table.entry(place(number)).unwrap();
            table.open(at);
            table.wait(at, &mut places, slot as u32);
        }
        assert_eq!(fullest(&table), Some(place(2)), "first of equals");
        table.settle(1, &mut places, 1);
        assert_eq!(fullest(&table), Some(place(3)));
        table.settle(2, &mut places, 3);
        assert_eq!(fullest(&table), Some(place(1)));
        table.settle(2, &mut places, 4);
        table.settle(1, &mut places, 2);
        table.settle(0, &mut places, 0);
        assert_eq!(fullest(&table), None);
        table.wait(0, &mut places, 0);
        assert_eq!(fullest(&table), Some(place(1)));
    }
}
