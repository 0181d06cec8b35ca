//! A file in many small pieces is written anew: the content is read, cut as a sequence, and sent in new packs; then all rows of
//! extents change in one commit. The size, the times and the version of the content stay, so other mounts see no change.
//!
//! A file with a change meanwhile keeps the old pieces, and so does a file with an unreadable frame. Until the rows change the
//! new packs are needless, so a kill at any step costs room until a later collection.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use vere_files::content::{CHUNK_MAX, Content, Piece, Source, Unsent, save, sequence_lengths};
use vere_ports::files::{Errno, Inode};
use vere_sealing::job::Unpacked;
use vere_units::Timestamp;

use super::fragments::Fragments;
use super::rows::RowChange;
use crate::format::{PackNumber, Place};
use crate::rows::{Extent, Key, Run, decode_extents, extents_prefix};
use crate::tree::Tree;

/// The longest time of a run for files to be written anew.
const TIME_MAX: Duration = Duration::from_secs(1_800);
/// Octets of opened frames in memory, before needless ones go.
const FRAMES_OCTETS: usize = 8 << 20;
/// Pieces whose frames are read ahead.
const AHEAD: usize = 64;

/// Files on the way into new packs, in turn.
#[derive(Debug)]
pub struct Anew {
    /// The walk that finds files.
    pub fragments: Fragments,
    /// Whether the walk is over.
    pub is_found: bool,
    /// Octets left to be sent by the run.
    pub octets_left: u64,
    /// The file under way.
    pub file: Option<Box<File>>,
    /// The number of the last read.
    pub next: usize,
    /// When the run ends at the latest.
    pub until: Timestamp,
    /// Files whose rows have changed.
    pub files: usize,
    /// Octets of these files.
    pub octets: u64,
}

/// A file on the way.
#[derive(Debug)]
pub struct File {
    /// The file.
    pub inode: Inode,
    /// The size and the version of the content, as read.
    pub version: (u64, u64),
    /// Octets of all pieces.
    pub octets: u64,
    /// The rows of extents, as read.
    before: BTreeMap<Vec<u8>, Vec<u8>>,
    left: VecDeque<(u64, Run)>,
    /// Frames on the way, by the numbers of their reads.
    pub reading: HashMap<usize, Extent>,
    frames: HashMap<Extent, Bytes>,
    frames_octets: usize,
    /// Uncut octets without a gap, and the offset of the first.
    stretch: Vec<Bytes>,
    stretch_octets: usize,
    begin: u64,
    /// Octets with which a pack is full, and chunks of a pack at most.
    bounds: (usize, usize),
    /// Chunks for the next pack.
    pack: Vec<Unpacked>,
    pack_octets: usize,
    /// Packs on the way, with the places of chunks in the file.
    pub sending: HashMap<u64, Vec<(u64, u32)>>,
    content: Content,
    /// Whether a frame cannot be read.
    pub is_lost: bool,
}

impl Anew {
    /// A run that sends so many octets at most.
    pub fn new(octets_max: u64, now: Timestamp) -> Self {
        Self {
            fragments: Fragments::default(),
            is_found: false,
            octets_left: octets_max,
            file: None,
            next: 0,
            until: now + TIME_MAX,
            files: 0,
            octets: 0,
        }
    }

    /// A new pack is stored.
    pub fn stored(&mut self, number: PackNumber, places: &[Place]) {
        let Some(file) = &mut self.file else {
            return;
        };
        let mut none = Unsent::default();
        let chunks = file.sending.remove(&number.0).unwrap_or_default();
        for ((offset, length), place) in chunks.into_iter().zip(places) {
            let extent = Extent {
                pack: number,
                at: place.at,
                sealed_len: place.sealed_len,
            };
            let source = Source::Chunk { extent, skip: 0 };
            file.content
                .put(offset, Piece { length, source }, &mut none);
        }
    }

    /// A new pack is sent under another number.
    pub fn renumber(&mut self, before: PackNumber, after: PackNumber) {
        if let Some(file) = &mut self.file
            && let Some(chunks) = file.sending.remove(&before.0)
        {
            file.sending.insert(after.0, chunks);
        }
    }
}

impl File {
    /// Begins with a file; absent for an unreadable row. A pack is full with the first bound's octets, and has as many chunks as
    /// the second one says.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn of(
        tree: &Tree,
        inode: Inode,
        version: (u64, u64),
        bounds: (usize, usize),
    ) -> Result<Option<Self>, Errno> {
        let before = rows_of(tree, inode)?;
        let mut left = VecDeque::new();
        let mut octets = 0_u64;
        for (key, value) in &before {
            let Ok(Key::Extents { offset, .. }) = Key::decode(key) else {
                continue;
            };
            let Ok(runs) = decode_extents(offset, value) else {
                return Ok(None);
            };
            let mut at = offset;
            for run in runs {
                if run.extent.is_some() {
                    left.push_back((at, run));
                    octets = octets.saturating_add(run.length);
                }
                at = at.saturating_add(run.length);
            }
        }
        Ok(Some(Self {
            inode,
            version,
            octets,
            before,
            left,
            reading: HashMap::new(),
            frames: HashMap::new(),
            frames_octets: 0,
            stretch: Vec::new(),
            stretch_octets: 0,
            begin: 0,
            bounds,
            pack: Vec::new(),
            pack_octets: 0,
            sending: HashMap::new(),
            content: Content::new(),
            is_lost: false,
        }))
    }

    /// The rows with the new chunks, and the rows without a successor; absent if any row has changed since the read.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn changes(&self, tree: &Tree) -> Result<Option<Vec<RowChange>>, Errno> {
        if rows_of(tree, self.inode)? != self.before {
            return Ok(None);
        }
        let mut scratch = Tree::new();
        save(&self.content, &mut scratch, self.inode)?;
        let after = rows_of(&scratch, self.inode)?;
        let gone = self.before.keys().filter(|key| !after.contains_key(*key));
        let mut changes: Vec<RowChange> = gone.map(|key| (key.clone(), None)).collect();
        changes.extend(after.into_iter().map(|(key, row)| (key, Some(row))));
        Ok(Some(changes))
    }

    /// The next needed frame without a request.
    pub fn missing(&self) -> Option<Extent> {
        let ahead = self.left.iter().take(AHEAD);
        let mut extents = ahead.filter_map(|(_, run)| run.extent);
        extents.find(|extent| {
            let is_asked = self.reading.values().any(|asked| asked == extent);
            !is_asked && !self.frames.contains_key(extent)
        })
    }

    /// A frame is opened.
    pub fn opened(&mut self, extent: Extent, octets: Bytes) {
        self.frames_octets = self.frames_octets.saturating_add(octets.len());
        self.frames.insert(extent, octets);
    }

    /// Takes pieces as far as frames are there, and cuts chunks.
    pub fn take_pieces(&mut self) {
        while !self.is_pack_full()
            && let Some((offset, run)) = self.left.front().copied()
        {
            let end = self.begin.saturating_add(self.stretch_octets as u64);
            if offset != end {
                self.cut(true);
                self.begin = offset;
            }
            if let Some(extent) = run.extent {
                let Some(frame) = self.frames.get(&extent) else {
                    break;
                };
                let skip = usize::try_from(run.skip).unwrap_or(usize::MAX);
                let length = usize::try_from(run.length).unwrap_or(usize::MAX);
                let part = skip.checked_add(length).filter(|end| *end <= frame.len());
                let Some(until) = part else {
                    self.is_lost = true;
                    return;
                };
                self.stretch.push(frame.slice(skip..until));
                self.stretch_octets = self.stretch_octets.saturating_add(length);
            }
            self.left.pop_front();
            if self.stretch_octets >= CHUNK_MAX.saturating_mul(2) {
                self.cut(false);
            }
        }
        if self.left.is_empty() {
            self.cut(true);
        }
        self.forget_frames();
    }

    fn forget_frames(&mut self) {
        if self.frames_octets <= FRAMES_OCTETS {
            return;
        }
        let ahead = self.left.iter().take(AHEAD);
        let needed: Vec<Extent> = ahead.filter_map(|(_, run)| run.extent).collect();
        self.frames.retain(|extent, _| needed.contains(extent));
        self.frames_octets = self.frames.values().map(Bytes::len).sum();
    }

    /// Cuts the octets without a gap; the last cut of an unfinished stretch is left to later.
    fn cut(&mut self, is_end: bool) {
        let lengths = sequence_lengths(self.stretch.iter().cloned(), !is_end);
        let mut parts = VecDeque::from(std::mem::take(&mut self.stretch));
        for length in lengths {
            let pieces = split_off(&mut parts, length);
            self.pack.push(Unpacked {
                inode: self.inode.0,
                offset: self.begin,
                pieces,
            });
            self.pack_octets = self.pack_octets.saturating_add(length);
            self.stretch_octets = self.stretch_octets.saturating_sub(length);
            self.begin = self.begin.saturating_add(length as u64);
        }
        self.stretch = parts.into();
    }

    fn is_pack_full(&self) -> bool {
        self.pack_octets >= self.bounds.0 || self.pack.len() >= self.bounds.1
    }

    /// Chunks for a pack, if there are enough or no more come.
    pub fn take_pack(&mut self) -> Option<Vec<Unpacked>> {
        let is_last = self.left.is_empty();
        if self.pack.is_empty() || !(is_last || self.is_pack_full()) {
            return None;
        }
        let (full, chunks_max) = self.bounds;
        let mut octets = 0_usize;
        let fits = self.pack.iter().take_while(|chunk| {
            let is_first = octets == 0;
            octets = octets.saturating_add(chunk.octets());
            is_first || octets <= full.saturating_add(CHUNK_MAX)
        });
        let count = fits.take(chunks_max).count();
        let rest = self.pack.split_off(count.min(self.pack.len()));
        let chunks = std::mem::replace(&mut self.pack, rest);
        self.pack_octets = self.pack.iter().map(Unpacked::octets).sum();
        Some(chunks)
    }

    /// Whether every octet is in a stored pack.
    pub fn is_sent(&self) -> bool {
        self.left.is_empty()
            && self.stretch.is_empty()
            && self.pack.is_empty()
            && self.sending.is_empty()
    }
}

/// Takes so many octets from the front.
fn split_off(parts: &mut VecDeque<Bytes>, length: usize) -> Vec<Bytes> {
    let mut left = length;
    let mut taken = Vec::new();
    while left > 0
        && let Some(mut part) = parts.pop_front()
    {
        if part.len() > left {
            let rest = part.split_off(left);
            parts.push_front(rest);
        }
        left = left.saturating_sub(part.len());
        taken.push(part);
    }
    taken
}

/// The rows of a file's extents.
fn rows_of(tree: &Tree, inode: Inode) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Errno> {
    let mut rows = BTreeMap::new();
    tree.visit(&extents_prefix(inode), None, &mut |key, value| {
        rows.insert(key.to_vec(), value.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_within_and_between() {
        let part = |octets: &'static [u8]| Bytes::from_static(octets);
        let mut parts = VecDeque::from([part(b"abc"), part(b"defg")]);
        assert_eq!(split_off(&mut parts, 2), [part(b"ab")]);
        assert_eq!(split_off(&mut parts, 3), [part(b"c"), part(b"de")]);
        assert_eq!(split_off(&mut parts, 9), [part(b"fg")]);
    }
}
