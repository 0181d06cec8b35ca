//! Compaction: what files need of a thin pack goes into new packs, and the rows of extents say so in a commit. The old pack is
//! needless then, and gets its tombstone like any other. Content of old commits moves in the same way.
//!
//! A file that a program has changed meanwhile keeps what the program wrote: its rows differ from those that were read.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use vere_pending::uploads::{CHUNKS_MAX, PACK_MAX};
use vere_ports::files::{Errno, Inode};
use vere_sealing::job::Unpacked;
use vere_units::Timestamp;

use crate::collection::rows::RowChange;
use crate::collection::scan::{Gather, visit_slice};
use crate::format::{PackNumber, Place};
use crate::rows::{Extent, decode_extents, encode_extents};
use crate::tree::Tree;

/// The longest time of the moves of a run: an account that rests for longer ends them.
const TIME_MAX: Duration = Duration::from_secs(1_800);

/// Content on the way into new packs.
#[derive(Debug)]
pub struct Moving {
    /// The packs whose content moves.
    pub packs: HashSet<u64>,
    /// The frames that files need.
    pub gather: Gather,
    /// Whether all frames are found.
    pub is_gathered: bool,
    /// Frames to be read, with a file and its offset.
    pub left: VecDeque<(Extent, Inode, u64)>,
    /// Frames on the way from accounts.
    pub reading: HashMap<usize, (Extent, Inode, u64)>,
    /// The number of the last request.
    pub next: usize,
    /// Frames for the next new pack.
    pub read: Vec<(Extent, Unpacked)>,
    /// Their octets.
    pub read_octets: usize,
    /// New packs on the way, with the frames that their chunks had before.
    pub sending: HashMap<u64, Vec<Extent>>,
    /// New places of frames.
    pub moved: HashMap<Extent, Extent>,
    /// Octets moved.
    pub octets: u64,
    /// The last row seen for new places.
    pub last: Vec<u8>,
    /// Rows with new places.
    pub changes: Vec<RowChange>,
    /// The rows as read.
    pub expected: BTreeMap<Vec<u8>, Vec<u8>>,
    /// When the moves are given up.
    pub until: Timestamp,
}

impl Moving {
    /// Content of these packs is to move.
    pub fn new(packs: HashSet<u64>, now: Timestamp) -> Self {
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

    /// The number of packs.
    pub fn packs(&self) -> usize {
        self.packs.len()
    }

    /// Frames moved, and all.
    pub fn progress(&self) -> (usize, usize) {
        let under_way = self.left.len().saturating_add(self.reading.len());
        let under_way = under_way.saturating_add(self.read.len());
        let sending: usize = self.sending.values().map(Vec::len).sum();
        let done = self.moved.len();
        (done, done.saturating_add(under_way).saturating_add(sending))
    }

    /// When the moves are given up.
    pub const fn until(&self) -> Timestamp {
        self.until
    }

    /// A new pack is stored.
    pub fn stored(&mut self, number: PackNumber, places: &[Place]) {
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
    pub fn renumber(&mut self, before: PackNumber, after: PackNumber) {
        if let Some(frames) = self.sending.remove(&before.0) {
            self.sending.insert(after.0, frames);
        }
    }

    /// Whether further octets go into another pack.
    pub fn is_full(&self, more: usize) -> bool {
        let octets = self.read_octets.saturating_add(more);
        octets > PACK_MAX || self.read.len() >= CHUNKS_MAX
    }

    /// Looks for rows that name moved frames, a slice of all rows. Returns whether all are seen.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn look(&mut self, tree: &Tree, is_changed: &dyn Fn(Inode) -> bool) -> Result<bool, Errno> {
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
