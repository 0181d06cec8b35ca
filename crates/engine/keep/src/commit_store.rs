//! Commits of the chain on the local disk, from a checkpoint on: a mount can begin without an account.
//!
//! ```text
//! segment  commits-<number, 16 hexadecimal digits>: entries
//! entry    0  kind u8: 1 commit, 2 sight | 0 (3) | UIDVALIDITY u32 | UID u32 | octets behind u32
//!         16  crc32c of octets 0..16 and of the octets behind u32
//!         20  the body of the mail, as sealed; of a sight: time i64 (ms), when the log was last found to go on from the commits
//! ```
//!
//! Only decided commits are written: each is in the chain, or has lost. Nothing is synced, and a torn, lost or
//! damaged entry costs a look at the log.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use bytes::Bytes;
use vere_checksum::Crc32c;
use vere_ports::storage::{Storage, StorageFile};

use crate::format::MailId;
use crate::numbered::{name_of, numbers};
use crate::record::Won;

/// The beginning of the names of files.
const PREFIX: &str = "commits-";
/// Octets of a segment, but for the entry that crosses the bound.
const SEGMENT_OCTETS: u64 = 4 << 20;
/// Octets of all segments. A checkpoint comes after 4 MiB of commits; beyond this bound the oldest segment goes first.
const STORE_OCTETS: u64 = 64 << 20;
/// Octets of undecided commits. Beyond, the oldest goes, and the next mount reads the log.
const STAGED_OCTETS: usize = 16 << 20;
/// Octets of an entry's body: a mail of a volume is shorter.
const BODY_MAX: u32 = 16 << 20;
const ENTRY_HEAD: usize = 20;
const COMMIT: u8 = 1;
const SIGHT: u8 = 2;

/// A commit on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCommit {
    /// UIDVALIDITY of the lead's log.
    pub uid_validity: u32,
    /// The UID there.
    pub uid: u32,
    /// The body, as sealed.
    pub body: Bytes,
}

/// An undecided commit.
#[derive(Debug)]
struct Staged {
    id: MailId,
    /// The UID of the commit below the named checkpoint; 0 without a checkpoint.
    covered: u32,
    body: Bytes,
}

#[derive(Debug)]
struct Segment<F> {
    number: u64,
    file: F,
    octets: u64,
    /// The highest UID.
    newest: u32,
}

/// The commits of a folder.
#[derive(Debug)]
pub struct CommitStore<S: Storage> {
    storage: S,
    segments: Vec<Segment<S::File>>,
    next: u64,
    uid_validity: u32,
    uids: BTreeSet<u32>,
    /// Commits below this UID are covered by the checkpoint of a decided commit.
    needed: u32,
    /// When the log was last found to go on from these commits, in milliseconds of the wall clock.
    sight: i64,
    staged: VecDeque<Staged>,
    staged_octets: usize,
    /// Whether a segment was begun since the store was opened.
    has_begun: bool,
    /// Nothing is written any more: the disk has failed, or the store is given up.
    is_broken: bool,
}

impl<S: Storage> CommitStore<S> {
    /// Opens the store of a folder; `found` takes every commit.
    pub fn open(storage: S, found: impl FnMut(KeptCommit)) -> Self {
        let mut store = Self {
            storage,
            segments: Vec::new(),
            next: 0,
            uid_validity: 0,
            uids: BTreeSet::new(),
            needed: 0,
            sight: 0,
            staged: VecDeque::new(),
            staged_octets: 0,
            has_begun: false,
            is_broken: false,
        };
        store.is_broken = store.scan(found).is_err();
        store
    }

    fn scan(&mut self, mut found: impl FnMut(KeptCommit)) -> io::Result<()> {
        for number in numbers(&self.storage, PREFIX)? {
            let file = self.storage.open(&name_of(PREFIX, number))?;
            let octets = file.len()?;
            self.next = number.saturating_add(1);
            let mut segment = Segment {
                number,
                file,
                octets,
                newest: 0,
            };
            self.scan_segment(&mut segment, &mut found)?;
            self.segments.push(segment);
        }
        Ok(())
    }

    /// Reads the entries of a segment up to the first torn one. An entry behind would never be found: the next one goes to a new
    /// segment.
    fn scan_segment(
        &mut self,
        segment: &mut Segment<S::File>,
        found: &mut impl FnMut(KeptCommit),
    ) -> io::Result<()> {
        let mut at = 0_u64;
        loop {
            let behind = at.saturating_add(ENTRY_HEAD as u64);
            if behind > segment.octets {
                return Ok(());
            }
            let mut head = [0; ENTRY_HEAD];
            segment.file.read_at(&mut head, at)?;
            let Some(entry) = Entry::decode(&head) else {
                return Ok(());
            };
            let end = behind.saturating_add(entry.octets.into());
            if end > segment.octets {
                return Ok(());
            }
            let mut body = vec![0; usize::try_from(entry.octets).unwrap_or(0)];
            segment.file.read_at(&mut body, behind)?;
            if entry.sum != entry.sum_with(&body) {
                return Ok(());
            }
            at = end;
            match (entry.kind, body.first_chunk()) {
                (SIGHT, Some(time)) => self.sight = self.sight.max(i64::from_le_bytes(*time)),
                (COMMIT, _) => {
                    self.uid_validity = entry.uid_validity;
                    self.uids.insert(entry.uid);
                    segment.newest = segment.newest.max(entry.uid);
                    found(KeptCommit {
                        uid_validity: entry.uid_validity,
                        uid: entry.uid,
                        body: body.into(),
                    });
                }
                _ => {}
            }
        }
    }

    /// When the log was last found to go on from the commits of the store, in milliseconds of the wall clock; 0 for never.
    #[must_use]
    pub const fn sight(&self) -> i64 {
        self.sight
    }

    /// The log goes on from the commits of the store, as seen at a time of the wall clock in milliseconds.
    pub fn seen(&mut self, now_ms: i64) {
        self.sight = now_ms;
        let entry = Entry::new(SIGHT, (self.uid_validity, 0), 8);
        self.write(entry, &now_ms.to_le_bytes());
    }

    /// A commit before the decision about its place. `covered` is the UID of the commit below the named checkpoint.
    pub fn stage(&mut self, id: MailId, covered: u32, body: Bytes) {
        if self.staged.iter().any(|staged| staged.id == id) {
            return;
        }
        self.staged_octets = self.staged_octets.saturating_add(body.len());
        self.staged.push_back(Staged { id, covered, body });
        while self.staged_octets > STAGED_OCTETS
            && let Some(oldest) = self.staged.pop_front()
        {
            self.staged_octets = self.staged_octets.saturating_sub(oldest.body.len());
        }
    }

    /// A staged commit is in the chain. Without the commit's body the store has a gap, and is given up.
    pub fn decided(&mut self, won: Won) {
        let Some(place) = self.staged.iter().position(|of| of.id == won.commit) else {
            // The opening may have read the commit.
            if self.uid_validity != won.uid_validity || !self.uids.contains(&won.uid) {
                self.forget();
            }
            return;
        };
        let Some(staged) = self.staged.remove(place) else {
            return;
        };
        self.staged_octets = self.staged_octets.saturating_sub(staged.body.len());
        let at = (won.uid_validity, won.uid);
        self.put(at, staged.covered, &staged.body);
    }

    /// Keeps a decided commit.
    pub fn put(&mut self, (uid_validity, uid): (u32, u32), covered: u32, body: &[u8]) {
        if self.uid_validity != uid_validity {
            self.forget();
            self.uid_validity = uid_validity;
        }
        self.needed = self.needed.max(covered);
        let octets = u32::try_from(body.len()).unwrap_or(u32::MAX);
        if octets > BODY_MAX || !self.uids.insert(uid) {
            return;
        }
        let entry = Entry::new(COMMIT, (uid_validity, uid), octets);
        self.write(entry, body);
    }

    /// Nothing of the store counts any more: the next mount reads the log. A file that cannot be removed ends the store.
    pub fn forget(&mut self) {
        for segment in std::mem::take(&mut self.segments) {
            self.is_broken |= self
                .storage
                .remove(&name_of(PREFIX, segment.number))
                .is_err();
        }
        self.uids.clear();
        self.needed = 0;
        self.sight = 0;
    }

    /// Nothing of the store counts, and nothing comes any more.
    pub fn give_up(&mut self) {
        self.forget();
        self.is_broken = true;
    }

    /// The files are another opening's: nothing is written or removed any more.
    pub fn hand_over(&mut self) {
        self.segments.clear();
        self.is_broken = true;
    }

    fn write(&mut self, entry: Entry, body: &[u8]) {
        if !self.is_broken {
            self.is_broken = self.try_write(entry, body).is_err();
        }
    }

    fn try_write(&mut self, mut entry: Entry, body: &[u8]) -> io::Result<()> {
        entry.sum = entry.sum_with(body);
        let is_full = |segment: &Segment<S::File>| segment.octets >= SEGMENT_OCTETS;
        // An earlier mount's segment may end with a torn entry.
        if self.segments.last().is_none_or(is_full) || !self.has_begun {
            self.begin()?;
        }
        let Some(segment) = self.segments.last_mut() else {
            return Ok(());
        };
        segment
            .file
            .write_at([&entry.encode(), body], segment.octets)?;
        let octets = (ENTRY_HEAD as u64).saturating_add(body.len() as u64);
        segment.octets = segment.octets.saturating_add(octets);
        segment.newest = segment.newest.max(entry.uid);
        Ok(())
    }

    /// Begins a segment, and drops needless segments, and the oldest ones beyond the bound.
    fn begin(&mut self) -> io::Result<()> {
        let mut octets: u64 = self.segments.iter().map(|segment| segment.octets).sum();
        let mut kept = Vec::new();
        for segment in std::mem::take(&mut self.segments) {
            if segment.newest < self.needed || octets > STORE_OCTETS {
                octets = octets.saturating_sub(segment.octets);
                self.storage.remove(&name_of(PREFIX, segment.number))?;
            } else {
                kept.push(segment);
            }
        }
        self.segments = kept;
        self.uids = self.uids.split_off(&self.needed);
        let number = self.next;
        self.next = number.saturating_add(1);
        self.has_begun = true;
        self.segments.push(Segment {
            number,
            file: self.storage.create(&name_of(PREFIX, number))?,
            octets: 0,
            newest: 0,
        });
        Ok(())
    }
}

/// The head of an entry.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: u8,
    uid_validity: u32,
    uid: u32,
    octets: u32,
    sum: u32,
}

impl Entry {
    const fn new(kind: u8, (uid_validity, uid): (u32, u32), octets: u32) -> Self {
        Self {
            kind,
            uid_validity,
            uid,
            octets,
            sum: 0,
        }
    }

    fn encode(&self) -> [u8; ENTRY_HEAD] {
        let mut head = [0; ENTRY_HEAD];
        let words = [
            u32::from(self.kind),
            self.uid_validity,
            self.uid,
            self.octets,
            self.sum,
        ];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        head
    }

    /// Absent for a torn or foreign entry.
    fn decode(head: &[u8; ENTRY_HEAD]) -> Option<Self> {
        let mut words = head.chunks_exact(4).filter_map(|word| word.first_chunk());
        let mut next = || words.next().map(|word| u32::from_le_bytes(*word));
        let entry = Self {
            kind: u8::try_from(next()?).ok()?,
            uid_validity: next()?,
            uid: next()?,
            octets: next()?,
            sum: next()?,
        };
        let is_known = matches!(entry.kind, COMMIT | SIGHT);
        (is_known && entry.octets <= BODY_MAX).then_some(entry)
    }

    /// The checksum of the entry with a body.
    fn sum_with(&self, body: &[u8]) -> u32 {
        let head = Self { sum: 0, ..*self }.encode();
        let mut sum = Crc32c::default();
        sum.update(&head);
        sum.update(body);
        sum.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vere_faults::MemoryDisk;

    fn opened(disk: &MemoryDisk) -> (CommitStore<MemoryDisk>, Vec<u32>) {
        let mut uids = Vec::new();
        let store = CommitStore::open(disk.clone(), |kept| {
            assert_eq!(kept.uid_validity, 7);
            assert!(kept.body.iter().all(|octet| *octet == kept.uid as u8));
            uids.push(kept.uid);
        });
        (store, uids)
    }

    fn won(uid: u32) -> Won {
        Won {
            commit: MailId([uid as u8; 16]),
            generation: uid.into(),
            uid_validity: 7,
            uid,
        }
    }

    #[test]
    fn decided_commits_come_back() {
        let disk = MemoryDisk::default();
        let (mut store, _) = opened(&disk);
        for uid in [3, 4] {
            store.stage(won(uid).commit, 0, vec![uid as u8; 100].into());
        }
        store.decided(won(3));
        store.seen(1_000);
        let (mut store, uids) = opened(&disk);
        assert_eq!((uids, store.sight()), (vec![3], 1_000));
        store.put((7, 4), 0, &[4; 50]);
        store.put((7, 4), 0, &[4; 50]);
        assert_eq!(opened(&disk).1, [3, 4]);
        // The mailbox has begun anew.
        store.put((8, 1), 0, &[1; 50]);
        let mut found = Vec::new();
        CommitStore::open(disk, |kept| found.push((kept.uid_validity, kept.uid)));
        assert_eq!(found, [(8, 1)]);
    }

    #[test]
    fn a_commit_without_its_body_gives_the_store_up() {
        let disk = MemoryDisk::default();
        let (mut store, _) = opened(&disk);
        store.put((7, 3), 0, &[3; 50]);
        store.decided(won(4));
        assert_eq!(opened(&disk).1, [0; 0]);
    }

    #[test]
    fn what_a_checkpoint_covers_goes() {
        let disk = MemoryDisk::default();
        let (mut store, _) = opened(&disk);
        let mail = |uid: u32| vec![uid as u8; 1 << 20];
        for uid in 1..=100 {
            store.put((7, uid), uid.saturating_sub(3), &mail(uid));
        }
        let (_, uids) = opened(&disk);
        assert_eq!(uids.last(), Some(&100));
        assert!(uids.contains(&97) && uids.len() <= 12, "{uids:?}");
        // Without a checkpoint the bound counts.
        for uid in 101..=200 {
            store.put((7, uid), 0, &mail(uid));
        }
        assert!(opened(&disk).1.len() <= 72);
    }

    #[test]
    fn a_damaged_entry_ends_its_segment() {
        let disk = MemoryDisk::default();
        let (mut store, _) = opened(&disk);
        for uid in 1..=3 {
            store.put((7, uid), 0, &[uid as u8; 100]);
        }
        let file = disk.open(&name_of(PREFIX, 0)).unwrap();
        file.write_at([b"x", b""], 20 + 100 + 20 + 50).unwrap();
        let (mut store, uids) = opened(&disk);
        assert_eq!(uids, [1]);
        store.put((7, 2), 0, &[2; 100]);
        assert_eq!(opened(&disk).1, [1, 2]);
    }
}
