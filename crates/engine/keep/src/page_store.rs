//! Pages on the local disk, so that a mount fetches what it has never seen.
//!
//! ```text
//! segment  pages-<number, 16 hexadecimal digits>: entries
//! entry    0  mail id (16) | at u32 | octets behind u32 | crc32c of octets 0..24 u32
//!         28  head of the mail (68) | frame, as sealed
//! ```
//!
//! Entries are as accounts keep them: the seal tells a wrong entry, which is then fetched again. So nothing is synced, and no
//! failure of the disk is one of the volume.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use vere_checksum::crc32c;
use vere_ports::storage::{Storage, StorageFile};

use crate::format::{FormatError, HEAD_OCTETS, Keys, Locator, MailId, open_frame};
use crate::numbered::{name_of, numbers};
use crate::pages::{LocalPages, PageTree};

/// The beginning of the names of files.
const PREFIX: &str = "pages-";

/// Octets of a segment, but for the entry that crosses the bound.
const SEGMENT_OCTETS: u64 = 16 << 20;
/// Octets of all segments.
const STORE_OCTETS: u64 = 1 << 30;
const ENTRY_HEAD: usize = 28;
/// Octets of an entry behind its head: a page is shorter.
const ENTRY_MAX: u32 = 1 << 20;

/// Octets of decoded pages in memory between two events; the least recently used go first.
pub const PAGES_OCTETS: usize = 64 << 20;
/// Octets of decoded pages in memory beyond which a walk over many rows forgets pages on the way.
const WALK_OCTETS: usize = PAGES_OCTETS * 2;
/// The file that tells the next mount to inspect the whole checkpoint.
const DISTRUST: &str = "pages-distrusted";

/// A store with the keys of its pages.
#[derive(Debug)]
struct Opened<S: Storage> {
    store: PageStore<S>,
    keys: Arc<Keys>,
}

/// A tree without rows over the pages of a folder.
#[must_use]
pub fn pages_of<S: Storage>(storage: S, keys: Arc<Keys>) -> PageTree {
    let store = PageStore::open(storage, STORE_OCTETS);
    PageTree::with_local(Box::new(Opened { store, keys }), WALK_OCTETS)
}

/// Whether the last mount has met a page that no account has. The question is asked once.
pub fn is_distrusted<S: Storage>(storage: &S) -> bool {
    let names = storage.list().unwrap_or_default();
    // A mark that stays costs one more inspection.
    names.iter().any(|name| name == DISTRUST) && storage.remove(DISTRUST).is_ok()
}

impl<S: Storage> LocalPages for Opened<S> {
    fn get(&mut self, at: &Locator) -> Option<Bytes> {
        self.store.get(&self.keys, at)
    }

    fn has(&mut self, at: &Locator) -> bool {
        self.store.places.contains_key(&(at.mail, at.at))
    }

    fn put(&mut self, at: &Locator, head: &[u8], frame: &[u8]) {
        self.store.put(at.mail, at.at, head, frame);
    }

    fn put_mail(&mut self, mail: MailId, body: &[u8]) {
        // The body is the mount's own: a failure costs a fetch.
        let _ = self.store.put_body(mail, body);
    }

    fn distrust(&mut self) {
        // A mark that exists already is as good.
        let _ = self.store.storage.create(DISTRUST);
    }
}

/// The pages of a folder.
#[derive(Debug)]
struct PageStore<S: Storage> {
    storage: S,
    segments: Vec<Segment<S::File>>,
    places: HashMap<(MailId, u32), Stored>,
    next: u64,
    /// Counts uses: the segment that was used least recently goes first.
    clock: u64,
    octets_max: u64,
    segment_max: u64,
    /// The disk has failed: nothing is written any more.
    is_broken: bool,
}

#[derive(Debug)]
struct Segment<F> {
    number: u64,
    file: F,
    octets: u64,
    used: u64,
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    segment: u64,
    offset: u64,
    octets: u32,
}

impl<S: Storage> PageStore<S> {
    /// Opens the store of a folder.
    fn open(storage: S, octets_max: u64) -> Self {
        let mut store = Self {
            storage,
            segments: Vec::new(),
            places: HashMap::new(),
            next: 0,
            clock: 0,
            octets_max,
            segment_max: SEGMENT_OCTETS.min(octets_max / 4),
            is_broken: false,
        };
        store.is_broken = store.scan().is_err();
        store
    }

    fn scan(&mut self) -> io::Result<()> {
        for number in numbers(&self.storage, PREFIX)? {
            let file = self.storage.open(&name_of(PREFIX, number))?;
            let octets = file.len()?;
            self.scan_segment(number, &file, octets)?;
            self.next = number.saturating_add(1);
            self.clock = self.clock.saturating_add(1);
            self.segments.push(Segment {
                number,
                file,
                octets,
                used: self.clock,
            });
        }
        // An entry behind a torn one would never be found.
        self.begin()
    }

    /// Finds the entries of a segment up to the first torn one.
    fn scan_segment(&mut self, number: u64, file: &S::File, octets: u64) -> io::Result<()> {
        let mut at = 0_u64;
        loop {
            let behind = at.saturating_add(ENTRY_HEAD as u64);
            if behind > octets {
                return Ok(());
            }
            let mut head = [0; ENTRY_HEAD];
            file.read_at(&mut head, at)?;
            let Some((key, length)) = read_head(&head) else {
                return Ok(());
            };
            let stored = Stored {
                segment: number,
                offset: behind,
                octets: length,
            };
            at = behind.saturating_add(length.into());
            if at <= octets {
                self.places.insert(key, stored);
            }
        }
    }

    /// A page, verified.
    fn get(&mut self, keys: &Keys, at: &Locator) -> Option<Bytes> {
        let stored = *self.places.get(&(at.mail, at.at))?;
        let segments = &mut self.segments;
        let segment = segments
            .iter_mut()
            .find(|segment| segment.number == stored.segment)?;
        self.clock = self.clock.saturating_add(1);
        segment.used = self.clock;
        let mut octets = vec![0; usize::try_from(stored.octets).ok()?];
        let read = segment.file.read_at(&mut octets, stored.offset);
        let page = read.ok().and_then(|()| {
            let (head, frame) = octets.split_at_checked(HEAD_OCTETS)?;
            open_frame(head, frame, at.at, keys, at.mail).ok()
        });
        if page.is_none() {
            self.places.remove(&(at.mail, at.at));
        }
        page
    }

    /// Keeps a page: the head of its mail, and the sealed frame at this offset.
    fn put(&mut self, mail: MailId, at: u32, head: &[u8], frame: &[u8]) {
        if self.is_broken || self.places.contains_key(&(mail, at)) {
            return;
        }
        self.is_broken = self.try_put(mail, at, head, frame).is_err();
    }

    fn try_put(&mut self, mail: MailId, at: u32, head: &[u8], frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(head.len().saturating_add(frame.len())).unwrap_or(u32::MAX);
        if length > ENTRY_MAX {
            return Ok(());
        }
        let is_full = |segment: &Segment<S::File>| segment.octets >= self.segment_max;
        if self.segments.last().is_none_or(is_full) {
            self.begin()?;
        }
        let Some(segment) = self.segments.last_mut() else {
            return Ok(());
        };
        let mut entry = Vec::with_capacity(ENTRY_HEAD.saturating_add(head.len()));
        entry.extend_from_slice(&mail.0);
        entry.extend_from_slice(&at.to_le_bytes());
        entry.extend_from_slice(&length.to_le_bytes());
        let sum = crc32c(&entry);
        entry.extend_from_slice(&sum.to_le_bytes());
        entry.extend_from_slice(head);
        segment.file.write_at([&entry, frame], segment.octets)?;
        let stored = Stored {
            segment: segment.number,
            offset: segment.octets.saturating_add(ENTRY_HEAD as u64),
            octets: length,
        };
        segment.octets = stored.offset.saturating_add(length.into());
        self.places.insert((mail, at), stored);
        Ok(())
    }

    /// Begins a segment, and drops the one that was used least recently while there is no room for another.
    fn begin(&mut self) -> io::Result<()> {
        let room = self.octets_max.saturating_sub(self.segment_max);
        while self.octets() > room
            && let Some(oldest) = self.segments.iter().min_by_key(|segment| segment.used)
        {
            let number = oldest.number;
            self.storage.remove(&name_of(PREFIX, number))?;
            self.segments.retain(|segment| segment.number != number);
            self.places.retain(|_, stored| stored.segment != number);
        }
        // The last segment may have no entry.
        if self.segments.last().is_some_and(|last| last.octets == 0) {
            return Ok(());
        }
        self.clock = self.clock.saturating_add(1);
        let number = self.next;
        self.next = number.saturating_add(1);
        self.segments.push(Segment {
            number,
            file: self.storage.create(&name_of(PREFIX, number))?,
            octets: 0,
            used: self.clock,
        });
        Ok(())
    }

    fn octets(&self) -> u64 {
        let each = self.segments.iter().map(|segment| segment.octets);
        each.fold(0, u64::saturating_add)
    }

    /// Keeps every page of a mail's body.
    ///
    /// # Errors
    ///
    /// If the body ends early; the pages before are kept.
    fn put_body(&mut self, mail: MailId, body: &[u8]) -> Result<(), FormatError> {
        let short = |at: usize| FormatError::Short {
            what: "pages of a mail",
            expected: at,
            found: body.len(),
        };
        let head = body.get(..HEAD_OCTETS).ok_or(short(HEAD_OCTETS))?;
        let mut at = HEAD_OCTETS;
        while at < body.len() {
            let rest = body.get(at..).unwrap_or_default();
            let length = rest.first_chunk().ok_or(short(at))?;
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let length = length.saturating_add(4);
            let frame = rest.get(..length).ok_or(short(at))?;
            let end = at.saturating_add(length);
            // The last frame is the index.
            if end < body.len() {
                self.put(mail, u32::try_from(at).unwrap_or(u32::MAX), head, frame);
            }
            at = end;
        }
        Ok(())
    }
}

fn read_head(head: &[u8; ENTRY_HEAD]) -> Option<((MailId, u32), u32)> {
    let (covered, sum) = head.split_at_checked(ENTRY_HEAD.saturating_sub(4))?;
    if sum != crc32c(covered).to_le_bytes() {
        return None;
    }
    let (mail, rest) = covered.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*rest.first_chunk()?);
    let key = (MailId(*mail), u32::from_le_bytes(*at));
    (length <= ENTRY_MAX).then_some((key, length))
}

#[cfg(test)]
mod tests {
    use vere_faults::MemoryDisk;

    use super::*;
    use crate::format::{Builder, Codec, Kind, PackNumber, VolumeId, VolumeKey};

    /// A mail with so many pages, and their places.
    fn mail(keys: &Keys, number: u64, pages: usize) -> (Vec<u8>, Vec<Locator>) {
        let pack = PackNumber::new(1, number).unwrap();
        let mut builder = Builder::new(Kind::Pages, VolumeId([3; 16]), 1, 0, pack);
        let page = |page: usize| Bytes::from(vec![page as u8; 1_000]);
        for number in 0..pages {
            builder.push(Codec::Plain, page(number)).unwrap();
        }
        let sealed = builder.finish(Bytes::from_static(b"index"), keys).unwrap();
        let locator = |place: &crate::format::Place| Locator {
            mail: sealed.head.mail,
            at: place.at,
            sealed_len: place.sealed_len,
            ..Locator::default()
        };
        let places = sealed.places.iter().take(pages).map(locator).collect();
        (sealed.body, places)
    }

    fn keys() -> Keys {
        Keys::derive(&VolumeKey([7; 32]))
    }

    #[test]
    fn pages_come_back_after_a_restart() {
        let (keys, disk) = (keys(), MemoryDisk::default());
        let (body, places) = mail(&keys, 1, 3);
        let mut store = PageStore::open(disk.clone(), STORE_OCTETS);
        store.put_body(places[0].mail, &body).unwrap();
        for _ in 0..3 {
            for (number, at) in places.iter().enumerate() {
                let page = store.get(&keys, at).unwrap();
                assert_eq!(page, vec![number as u8; 1_000]);
            }
            store = PageStore::open(disk.clone(), STORE_OCTETS);
        }
        // A segment without an entry is used again.
        assert_eq!(disk.list().unwrap().len(), 2);
        assert!(store.put_body(places[0].mail, &body[..900]).is_err());
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let (keys, disk) = (keys(), MemoryDisk::default());
        let mut store = PageStore::open(disk.clone(), 100_000);
        let (first, kept) = mail(&keys, 1, 20);
        store.put_body(kept[0].mail, &first).unwrap();
        let mut last = Vec::new();
        for number in 2..30 {
            let (body, places) = mail(&keys, number, 20);
            store.put_body(places[0].mail, &body).unwrap();
            assert!(store.octets() <= 100_000 + 25_000, "{}", store.octets());
            assert!(store.get(&keys, &kept[0]).is_some());
            last = places;
        }
        assert!(store.get(&keys, &last[19]).is_some());
        assert!(disk.list().unwrap().len() <= 6);
    }

    #[test]
    fn a_damaged_entry_is_no_page() {
        let (keys, disk) = (keys(), MemoryDisk::default());
        let (body, places) = mail(&keys, 1, 3);
        let mut store = PageStore::open(disk.clone(), STORE_OCTETS);
        store.put_body(places[0].mail, &body).unwrap();
        let file = disk.open(&name_of(PREFIX, 0)).unwrap();
        // The second page.
        file.write_at([b"x", b""], 28 + 68 + 1_021 + 28 + 500)
            .unwrap();
        let mut store = PageStore::open(disk.clone(), STORE_OCTETS);
        let found = [0, 1, 2].map(|number| store.get(&keys, &places[number]).is_some());
        assert_eq!(found, [true, false, true]);
        // The head of the second entry: the third is not found either, and all come again.
        file.write_at([b"x", b""], 28 + 68 + 1_021 + 5).unwrap();
        let mut store = PageStore::open(disk, STORE_OCTETS);
        let found = [0, 1, 2].map(|number| store.get(&keys, &places[number]).is_some());
        assert_eq!(found, [true, false, false]);
        store.put_body(places[0].mail, &body).unwrap();
        assert!(store.get(&keys, &places[2]).is_some());
    }

    /// A disk that has failed is not written again, and no page is written twice.
    #[test]
    fn pages_are_written_once() {
        let (keys, disk) = (keys(), MemoryDisk::default());
        let (body, places) = mail(&keys, 1, 3);
        let mut store = PageStore::open(disk.clone(), STORE_OCTETS);
        for _ in 0..2 {
            store.put_body(places[0].mail, &body).unwrap();
            assert_eq!(store.octets(), 3 * (28 + 68 + 1_021));
        }
        let (longer, others) = mail(&keys, 2, 3);
        disk.stop_at(disk.steps());
        store.put_body(others[0].mail, &longer).unwrap();
        disk.stop_at(u64::MAX);
        let steps = disk.steps();
        store.put_body(others[0].mail, &longer).unwrap();
        assert_eq!(disk.steps(), steps);
        assert!(store.get(&keys, &places[2]).is_some(), "reads go on");
    }

    #[test]
    fn an_entry_has_a_bound() {
        let disk = MemoryDisk::default();
        let mut store = PageStore::open(disk, STORE_OCTETS);
        let frame = vec![0; ENTRY_MAX as usize - HEAD_OCTETS + 1];
        let mail = MailId([1; 16]);
        store.put(mail, 68, &[0; HEAD_OCTETS], &frame);
        assert_eq!(store.octets(), 0);
        store.put(mail, 68, &[0; HEAD_OCTETS], &frame[1..]);
        assert_eq!(store.octets(), u64::from(ENTRY_MAX) + 28);
    }

    /// Pages of a mail, one by one or whole, without its index; and the mark for the next mount.
    #[test]
    fn a_tree_finds_what_it_has_put() {
        let (keys, disk) = (Arc::new(keys()), MemoryDisk::default());
        let (body, places) = mail(&keys, 1, 3);
        let mut local = Opened {
            store: PageStore::open(disk.clone(), STORE_OCTETS),
            keys,
        };
        assert!(!local.has(&places[1]) && local.get(&places[1]).is_none());
        let from = places[1].at as usize;
        let frame = &body[from..from + places[1].sealed_len as usize + 4];
        local.put(&places[1], &body[..HEAD_OCTETS], frame);
        assert!(local.has(&places[1]) && !local.has(&places[0]));
        assert_eq!(local.get(&places[1]).unwrap(), vec![1; 1_000]);
        local.put_mail(places[0].mail, &body);
        assert!(local.has(&places[0]) && local.has(&places[2]));
        assert_eq!(local.store.places.len(), 3, "the index is no page");
        assert!(!is_distrusted(&disk));
        local.distrust();
        assert!(is_distrusted(&disk));
        assert!(!is_distrusted(&disk), "the question is asked once");
    }
}
