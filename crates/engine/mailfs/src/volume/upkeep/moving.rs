//! Compaction: what files need of a thin pack goes into new packs, and the rows of extents say so in a commit. The old pack is
//! needless then, and gets its tombstone like any other. Content of old commits moves in the same way.
//!
//! A file that a program has changed meanwhile keeps what the program wrote: its rows differ from those that were read.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use vere_ports::files::{Errno, Inode};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::super::accounts::mailbox_name;
use super::super::job::{Job, OpenJob, Task, Unpacked};
use super::super::state::uploads::{CHUNKS_MAX, Cut, PACK_MAX};
use super::super::state::{Asked, Volume, Working};
use super::rows::{RowChange, Writing};
use super::scan::{Gather, visit_slice};
use super::state::Ticket;
use crate::format::{FormatError, PackNumber, Place};
use crate::rows::{Extent, decode_extents, encode_extents};
use crate::tree::Tree;

/// Frames moved by a run: some 100 octets each in memory.
const FRAMES_MAX: usize = 50_000;
/// Frames read at once.
const READS_MAX: usize = 8;
/// New packs on their way at once.
const PACKS_MAX: usize = 2;
/// The longest time of the moves of a run: an account that rests for longer ends them.
const TIME_MAX: Duration = Duration::from_secs(1_800);

/// Content on its way into new packs.
#[derive(Debug)]
pub(super) struct Moving {
    packs: HashSet<u64>,
    gather: Gather,
    is_gathered: bool,
    left: VecDeque<(Extent, Inode, u64)>,
    reading: HashMap<usize, (Extent, Inode, u64)>,
    next: usize,
    read: Vec<(Extent, Unpacked)>,
    read_octets: usize,
    /// New packs on their way, with the frames that their chunks had before.
    sending: HashMap<u64, Vec<Extent>>,
    moved: HashMap<Extent, Extent>,
    pub(super) octets: u64,
    /// The last row seen for new places.
    last: Vec<u8>,
    changes: Vec<RowChange>,
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
    until: Timestamp,
}

impl Moving {
    pub(super) fn new(packs: HashSet<u64>, now: Timestamp) -> Self {
        Self {
            packs,
            gather: Gather::default(),
            is_gathered: false,
            left: VecDeque::new(),
            reading: HashMap::new(),
            next: 0,
            read: Vec::new(),
            read_octets: 0,
            sending: HashMap::new(),
            moved: HashMap::new(),
            octets: 0,
            last: Vec::new(),
            changes: Vec::new(),
            expected: BTreeMap::new(),
            until: now + TIME_MAX,
        }
    }

    pub(super) fn packs(&self) -> usize {
        self.packs.len()
    }

    /// Frames moved, and all.
    pub(super) fn progress(&self) -> (usize, usize) {
        let under_way = self.left.len().saturating_add(self.reading.len());
        let under_way = under_way.saturating_add(self.read.len());
        let sending: usize = self.sending.values().map(Vec::len).sum();
        let done = self.moved.len();
        (done, done.saturating_add(under_way).saturating_add(sending))
    }

    /// When the moves are given up.
    pub(super) const fn until(&self) -> Timestamp {
        self.until
    }

    /// A new pack is stored.
    pub(super) fn stored(&mut self, number: PackNumber, places: &[Place]) {
        let frames = self.sending.remove(&number.0).unwrap_or_default();
        for (before, place) in frames.into_iter().zip(places) {
            let extent = Extent {
                pack: number,
                at: place.at,
                sealed_len: place.sealed_len,
            };
            self.octets = self.octets.saturating_add(before.sealed_len.into());
            self.moved.insert(before, extent);
        }
    }

    /// A new pack is sent under another number.
    pub(super) fn renumber(&mut self, before: PackNumber, after: PackNumber) {
        if let Some(frames) = self.sending.remove(&before.0) {
            self.sending.insert(after.0, frames);
        }
    }

    fn is_full(&self, more: usize) -> bool {
        let octets = self.read_octets.saturating_add(more);
        octets > PACK_MAX || self.read.len() >= CHUNKS_MAX
    }

    /// Looks for rows that name moved frames, a slice of all rows. Returns whether all are seen.
    fn look(&mut self, tree: &Tree, is_changed: &dyn Fn(Inode) -> bool) -> Result<bool, Errno> {
        let (moved, changes, expected) = (&self.moved, &mut self.changes, &mut self.expected);
        visit_slice(tree, &mut self.last, &mut |inode, offset, key, value| {
            let Ok(mut runs) = decode_extents(offset, value) else {
                return;
            };
            let mut is_moved = false;
            for run in &mut runs {
                if let Some(after) = run.extent.and_then(|extent| moved.get(&extent)) {
                    run.extent = Some(*after);
                    is_moved = true;
                }
            }
            if is_moved && !is_changed(inode) {
                changes.push((key.to_vec(), Some(encode_extents(&runs))));
                expected.insert(key.to_vec(), value.to_vec());
            }
        })
    }
}

/// How far moves are.
pub(super) enum Moved {
    /// An account, a job or another slice is waited for.
    Waits,
    /// Another slice follows.
    More,
    /// The rows with the new places.
    Rows(Writing),
}

impl<S: Storage> Volume<S> {
    /// Goes on with moves.
    pub(super) fn move_on(&mut self, moving: &mut Moving) -> Result<Moved, Errno> {
        if !moving.is_gathered {
            let is_all = moving.gather.slice(self.files.tree(), &moving.packs)?;
            if !is_all && moving.gather.frames.len() < FRAMES_MAX {
                return Ok(Moved::More);
            }
            moving.is_gathered = true;
            let mut frames = std::mem::take(&mut moving.gather).frames;
            frames.truncate(FRAMES_MAX);
            // Chunks that were neighbours stay neighbours.
            frames.sort_unstable_by_key(|(_, inode, offset)| (*inode, *offset));
            moving.left = frames.into();
        }
        let is_late = self.now.steady >= moving.until;
        if is_late {
            moving.left.clear();
            moving.reading.clear();
            moving.sending.clear();
            moving.read.clear();
        }
        self.read_frames(moving);
        if !moving.left.is_empty()
            || !moving.reading.is_empty()
            || !moving.read.is_empty()
            || !moving.sending.is_empty()
        {
            return Ok(Moved::Waits);
        }
        let changed = |inode: Inode| self.is_changed(inode);
        if !moving.moved.is_empty() && !moving.look(self.files.tree(), &changed)? {
            return Ok(Moved::More);
        }
        let mut writing = Writing::new(std::mem::take(&mut moving.changes));
        writing.expected = std::mem::take(&mut moving.expected);
        Ok(Moved::Rows(writing))
    }

    /// Whether a file has changes that no commit has: its rows are about to change.
    pub(super) fn is_changed(&self, inode: Inode) -> bool {
        self.commits.changed.contains_key(&inode) || self.files.unsent_octets_of(inode) > 0
    }

    fn read_frames(&mut self, moving: &mut Moving) {
        while moving.reading.len() < READS_MAX
            && moving.sending.len() < PACKS_MAX
            && let Some((extent, inode, offset)) = moving.left.pop_front()
        {
            if let Some((account, request)) = self.frame_request(&extent) {
                moving.next = moving.next.wrapping_add(1);
                let number = moving.next;
                moving.reading.insert(number, (extent, inode, offset));
                let asked = Asked::Upkeep(Ticket::Frame(number, account));
                self.ask(AccountId(account), Urgency::Idle, request, asked);
            }
        }
        let is_last = moving.left.is_empty() && moving.reading.is_empty();
        if is_last && !moving.read.is_empty() {
            self.send_moved(moving);
        }
    }

    fn frame_request(&self, extent: &Extent) -> Option<(u16, Request)> {
        let located = self.located(extent.pack.0)?;
        let accounts = &self.accounts;
        let tried = located.copies.iter();
        let tried = tried.filter(|copy| accounts.may_try(copy.account));
        let copy = tried.min_by_key(|copy| accounts.cost(copy.account))?;
        let encoding = accounts.encoding(copy.account)?;
        let place = Place {
            at: extent.at,
            sealed_len: extent.sealed_len,
        };
        let request = Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity: accounts.uid_validity(copy.account, copy.mailbox)?,
            uid: copy.uid,
            parts: OpenJob::parts_of(encoding, place).ok()?,
        };
        Some((copy.account, request))
    }

    /// An account has given a frame, or not: a frame that cannot be read stays where it is.
    pub(super) fn frame_answered(
        &mut self,
        moving: &mut Moving,
        (number, account): (usize, u16),
        answer: Result<Answer, Fault>,
    ) {
        let Some((extent, ..)) = moving.reading.get(&number) else {
            return;
        };
        let encoding = self.accounts.encoding(account);
        let located = self.located(extent.pack.0);
        let parts = match answer {
            Ok(Answer::Read(parts)) => <[Bytes; 2]>::try_from(parts).ok(),
            _ => None,
        };
        let (Some(parts), Some(encoding), Some(located)) = (parts, encoding, located) else {
            moving.reading.remove(&number);
            return;
        };
        let job = OpenJob {
            keys: self.seals.keys.clone(),
            encoding,
            id: located.id,
            place: Place {
                at: extent.at,
                sealed_len: extent.sealed_len,
            },
            parts,
        };
        self.work(Job(Task::Open(job)), Working::Upkeep(number));
    }

    /// A frame is opened, or damaged: its replica is a matter of `check`.
    pub(super) fn moved_frame_opened(
        &mut self,
        moving: &mut Moving,
        number: usize,
        opened: Result<Bytes, FormatError>,
    ) {
        let Some((extent, inode, offset)) = moving.reading.remove(&number) else {
            return;
        };
        let Ok(octets) = opened else {
            return;
        };
        if moving.is_full(octets.len()) && !moving.read.is_empty() {
            self.send_moved(moving);
        }
        moving.read_octets = moving.read_octets.saturating_add(octets.len());
        let unpacked = Unpacked {
            inode: inode.0,
            offset,
            pieces: vec![octets],
        };
        moving.read.push((extent, unpacked));
    }

    fn send_moved(&mut self, moving: &mut Moving) {
        let (frames, chunks): (Vec<Extent>, Vec<Unpacked>) =
            std::mem::take(&mut moving.read).into_iter().unzip();
        moving.read_octets = 0;
        // No buffer of a file waits for these chunks.
        let cut = |chunk: &Unpacked| Cut {
            inode: Inode(0),
            offset: chunk.offset,
            ranges: Vec::new(),
        };
        let cuts = chunks.iter().map(cut).collect();
        let number = self.begin_pack(cuts, chunks, Urgency::Idle);
        moving.sending.insert(number.0, frames);
        self.name_pack(number);
    }
}
