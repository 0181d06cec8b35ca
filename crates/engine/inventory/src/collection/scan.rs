//! Which packs files need, and how much of each: passes over the rows of all extents, each for a window of pack numbers, so that
//! no volume is too large for the memory. A pass goes in slices, between which programs are served.

use std::collections::HashSet;
use std::ops::ControlFlow;

use vere_ports::files::{Errno, Inode};

use crate::format::PackNumber;
use crate::rows::{Extent, Key, PackRow, RowValue, decode_extents, packs_prefix, tree_prefix};
use crate::tree::Tree;

/// Rows seen in a slice.
const SLICE: usize = 20_000;
/// Frames of a window: 16 octets each in memory.
const FRAMES_MAX: usize = 1 << 20;
/// Octets before the sealed ones of a frame.
pub const FRAME_LENGTH: u32 = 4;
/// Octets of a pack besides its frames, nearly: the head and the index, which grows with the frames.
const PACK_LENGTH: u64 = 256;

/// A frame that a file needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    pack: u64,
    at: u32,
    sealed_len: u32,
}

/// A pack and how much of it files need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// The number of the pack.
    pub number: u64,
    /// The row.
    pub row: PackRow,
    /// Octets of frames that files need.
    pub live: u32,
}

/// A scan of all extents and packs.
#[derive(Debug)]
pub struct Scan {
    /// The first pack of the window, and the first behind.
    from: u64,
    until: u64,
    /// The last row seen in this pass.
    last: Vec<u8>,
    frames: Vec<Frame>,
    /// Whether the extents are seen, and packs are weighed.
    weighs: bool,
    frames_max: usize,
    rows: usize,
}

/// How far a scan is.
#[derive(Debug)]
pub enum Scanned {
    /// Another slice follows.
    More,
    /// Packs that are weighed.
    Packs(Vec<Weighed>),
    /// Every pack was weighed.
    Over,
}

impl Default for Scan {
    fn default() -> Self {
        Self::new()
    }
}

impl Scan {
    /// Begins at the first row.
    pub fn new() -> Self {
        Self::with_frames(FRAMES_MAX)
    }

    fn with_frames(frames_max: usize) -> Self {
        Self {
            from: 0,
            until: u64::MAX,
            last: Vec::new(),
            frames: Vec::new(),
            weighs: false,
            frames_max,
            rows: 0,
        }
    }

    /// Rows seen.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Goes on by a slice. After an error the scan goes on where it was.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn slice(&mut self, tree: &Tree) -> Result<Scanned, Errno> {
        if self.weighs {
            return self.weigh(tree);
        }
        let mut left = SLICE;
        let last = std::mem::take(&mut self.last);
        let behind = (!last.is_empty()).then_some(last.as_slice());
        let mut at = last.clone();
        let (from, until) = (self.from, &mut self.until);
        let (frames, max) = (&mut self.frames, self.frames_max);
        let seen = tree.visit(&tree_prefix(), behind, &mut |key, value| {
            if let Ok(Key::Extents { offset, .. }) = Key::decode(key)
                && let Ok(runs) = decode_extents(offset, value)
            {
                let extents = runs.iter().filter_map(|run| run.extent);
                let inside = |extent: &Extent| (from..*until).contains(&extent.pack.0);
                frames.extend(extents.filter(inside).map(|extent| Frame {
                    pack: extent.pack.0,
                    at: extent.at,
                    sealed_len: extent.sealed_len,
                }));
                if frames.len() > max.saturating_mul(2) {
                    shrink(frames, until, max);
                }
            }
            at.clear();
            at.extend_from_slice(key);
            left = left.saturating_sub(1);
            Ok(if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        });
        self.rows = self.rows.saturating_add(SLICE.saturating_sub(left));
        self.last = at;
        seen?;
        if left > 0 {
            shrink(&mut self.frames, &mut self.until, self.frames_max);
            self.weighs = true;
            self.last = Vec::new();
        }
        Ok(Scanned::More)
    }

    /// Weighs a slice of the window's packs.
    fn weigh(&mut self, tree: &Tree) -> Result<Scanned, Errno> {
        let mut left = SLICE;
        let last = std::mem::take(&mut self.last);
        let first = self
            .from
            .checked_sub(1)
            .map(|before| Key::Pack(before).encode());
        let behind = match last.is_empty() {
            true => first.as_deref(),
            false => Some(last.as_slice()),
        };
        let mut at = last.clone();
        let mut found = Vec::new();
        let (until, frames) = (self.until, &self.frames);
        let mut is_over = true;
        let seen = tree.visit(&packs_prefix(), behind, &mut |key, value| {
            let Ok(Key::Pack(number)) = Key::decode(key) else {
                return Ok(ControlFlow::Continue(()));
            };
            if number >= until {
                return Ok(ControlFlow::Break(()));
            }
            if left == 0 {
                is_over = false;
                return Ok(ControlFlow::Break(()));
            }
            if let Ok(row) = PackRow::decode(value) {
                let live = live(frames, number);
                found.push(Weighed { number, row, live });
            }
            at.clear();
            at.extend_from_slice(key);
            left = left.saturating_sub(1);
            Ok(ControlFlow::Continue(()))
        });
        if let Err(errno) = seen {
            self.last = last;
            return Err(errno);
        }
        self.last = at;
        if !is_over {
            return Ok(Scanned::Packs(found));
        }
        if found.is_empty() && self.until == u64::MAX && self.from == u64::MAX {
            return Ok(Scanned::Over);
        }
        // The next window, or the end.
        self.from = self.until;
        self.until = u64::MAX;
        self.frames = Vec::new();
        self.weighs = self.from == u64::MAX;
        self.last = Vec::new();
        Ok(Scanned::Packs(found))
    }
}

/// Octets of a pack's frames that files need.
fn live(frames: &[Frame], pack: u64) -> u32 {
    let first = frames.partition_point(|frame| frame.pack < pack);
    let of_pack = frames
        .iter()
        .skip(first)
        .take_while(|frame| frame.pack == pack);
    of_pack.fold(0_u32, |sum, frame| {
        sum.saturating_add(frame.sealed_len)
            .saturating_add(FRAME_LENGTH)
    })
}

/// Sorts frames, each once. Too many are cut to packs with lower numbers, and the window ends there.
fn shrink(frames: &mut Vec<Frame>, until: &mut u64, max: usize) {
    frames.sort_unstable();
    frames.dedup_by_key(|frame| (frame.pack, frame.at));
    if frames.len() <= max {
        return;
    }
    let Some(middle) = frames.get(max / 2).map(|frame| frame.pack) else {
        return;
    };
    // A pack has fewer frames than a window has room for.
    *until = middle.saturating_add(1);
    frames.retain(|frame| frame.pack <= middle);
}

/// Whether less than half of a pack's content is needed.
pub fn is_thin(row: &PackRow, live: u32) -> bool {
    live > 0 && {
        let (live, octets) = (u64::from(live), u64::from(row.octets));
        let own = octets / 64;
        live.saturating_mul(2) < octets.saturating_sub(own).saturating_sub(PACK_LENGTH)
    }
}

/// The frames of some packs, each once: the place of the first file that needs the frame.
#[derive(Debug, Default)]
pub struct Gather {
    last: Vec<u8>,
    /// The frames: chunk, inode, offset of the chunk in the file.
    pub frames: Vec<(Extent, Inode, u64)>,
    seen: HashSet<Extent>,
}

impl Gather {
    /// Goes on by a slice. Returns whether all rows are seen.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn slice(&mut self, tree: &Tree, packs: &HashSet<u64>) -> Result<bool, Errno> {
        let (frames, seen) = (&mut self.frames, &mut self.seen);
        visit_slice(tree, &mut self.last, &mut |inode, offset, _, value| {
            let mut at = offset;
            for run in decode_extents(offset, value).unwrap_or_default() {
                if let Some(extent) = run.extent
                    && packs.contains(&extent.pack.0)
                    && seen.insert(extent)
                {
                    frames.push((extent, inode, at.saturating_sub(run.skip.into())));
                }
                at = at.saturating_add(run.length);
            }
        })
    }
}

/// Sees the inode, the offset, the key and the value of a row of extents.
pub type ExtentsVisitor<'a> = dyn FnMut(Inode, u64, &[u8], &[u8]) + 'a;

/// Sees a slice of all rows of extents behind the last one. Returns whether all are seen.
///
/// # Errors
/// Failures to read rows.
pub fn visit_slice(
    tree: &Tree,
    last: &mut Vec<u8>,
    see: &mut ExtentsVisitor<'_>,
) -> Result<bool, Errno> {
    let mut left = SLICE;
    let before = last.clone();
    let behind = (!before.is_empty()).then_some(before.as_slice());
    tree.visit(&tree_prefix(), behind, &mut |key, value| {
        if let Ok(Key::Extents { inode, offset }) = Key::decode(key) {
            see(inode, offset, key, value);
        }
        last.clear();
        last.extend_from_slice(key);
        left = left.saturating_sub(1);
        Ok(if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(left > 0)
}

/// The packs that a row of extents names.
pub fn packs_of(key: &[u8], value: &[u8]) -> Vec<PackNumber> {
    match Key::decode(key) {
        Ok(Key::Extents { offset, .. }) => {
            let runs = decode_extents(offset, value).unwrap_or_default();
            let extents = runs.into_iter().filter_map(|run| run.extent);
            extents.map(|extent| extent.pack).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::MailId;
    use crate::rows::{Run, encode_extents, extents_key};

    /// Files with a chunk in each of some packs, and the rows of the packs.
    fn tree(packs: u64, files: u64) -> Tree {
        let mut tree = Tree::new();
        for pack in 1..=packs {
            let row = PackRow {
                mail: MailId([1; 16]),
                kind: 5,
                group: 1,
                octets: 1_000,
                copies: Vec::new(),
            };
            tree.put(&Key::Pack(pack).encode(), row.encode()).unwrap();
        }
        for file in 0..files {
            let runs: Vec<Run> = (0..3)
                .map(|part| Run {
                    length: 10,
                    skip: 0,
                    extent: Some(Extent {
                        pack: PackNumber((file + part * part) % (packs - 1) + 1),
                        at: 68,
                        sealed_len: 96,
                    }),
                })
                .collect();
            let key = extents_key(Inode(file + 2), 0);
            tree.put(&key, encode_extents(&runs)).unwrap();
        }
        tree
    }

    fn weigh(tree: &Tree, frames_max: usize) -> (Vec<(u64, u32)>, usize, usize) {
        let mut scan = Scan::with_frames(frames_max);
        let (mut found, mut most) = (Vec::new(), 0);
        loop {
            most = most.max(scan.frames.len());
            match scan.slice(tree).unwrap() {
                Scanned::More => {}
                Scanned::Packs(packs) => {
                    found.extend(packs.iter().map(|pack| (pack.number, pack.live)));
                }
                Scanned::Over => return (found, most, scan.rows),
            }
        }
    }

    #[test]
    fn windows_weigh_every_pack_once_within_their_bound() {
        let tree = tree(5_000, 30_000);
        let (whole, _, rows) = weigh(&tree, 1 << 20);
        assert_eq!((whole.len(), rows), (5_000, 30_000));
        assert_eq!(whole[0], (1, 100));
        assert_eq!(whole[4_999], (5_000, 0));
        let (parts, most, rows) = weigh(&tree, 400);
        assert!(parts == whole);
        assert!(most <= 803, "{most}");
        assert!(rows > 30_000 * 10, "{rows}");
    }

    #[test]
    fn a_pack_is_thin_below_a_half() {
        let row = |octets| PackRow {
            mail: MailId([1; 16]),
            kind: 5,
            group: 1,
            octets,
            copies: Vec::new(),
        };
        assert!(!is_thin(&row(64_000), 31_400));
        assert!(is_thin(&row(64_000), 31_300));
        assert!(!is_thin(&row(64_000), 0));
    }
}
