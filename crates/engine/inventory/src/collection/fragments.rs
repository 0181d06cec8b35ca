//! Files in many small pieces, the trace of random writes: every read of such a file takes many requests.

use vere_ports::files::{Errno, Inode};

use super::scan::visit_slice;
use crate::rows::decode_extents;
use crate::tree::Tree;

/// Pieces above which a file is written anew.
pub const PIECES_MIN: u64 = 1_024;
/// Pieces of a file, at most: the rows of the file change in a single commit.
const PIECES_MAX: u64 = 64 << 10;
/// Pieces to be lost by a file for the work to be worth while.
const GAIN_MIN: u64 = PIECES_MIN / 2;
/// The shortest chunk of a sequence, but for the last one.
const PIECE_OCTETS: u64 = 128 << 10;
/// Files that a run writes anew.
const FILES_MAX: usize = 64;

/// A walk over all rows of extents.
#[derive(Debug, Default)]
pub struct Fragments {
    last: Vec<u8>,
    file: Option<Count>,
    /// Files in many pieces, and their octets.
    pub found: Vec<(Inode, u64)>,
}

/// The pieces of the file under way.
#[derive(Debug)]
struct Count {
    inode: Inode,
    pieces: u64,
    octets: u64,
    /// Pieces of the file after a rewrite, at most. The octets between two holes have chunks of their own, so a sparse file of
    /// short parts has as many pieces afterwards: without this count a collection would write the file anew every day.
    needed: u64,
    /// Octets without a gap up to the end of the last piece, and that end.
    stretch: (u64, u64),
}

impl Count {
    const fn of(inode: Inode) -> Self {
        Self {
            inode,
            pieces: 0,
            octets: 0,
            needed: 0,
            stretch: (0, 0),
        }
    }

    fn add(&mut self, offset: u64, length: u64) {
        let (octets, end) = self.stretch;
        if offset != end {
            self.end_stretch();
        }
        let before = if offset == end { octets } else { 0 };
        self.stretch = (before.saturating_add(length), offset.saturating_add(length));
        self.pieces = self.pieces.saturating_add(1);
        self.octets = self.octets.saturating_add(length);
    }

    fn end_stretch(&mut self) {
        let needed = self.stretch.0.div_ceil(PIECE_OCTETS);
        self.needed = self.needed.saturating_add(needed);
        self.stretch.0 = 0;
    }
}

impl Fragments {
    /// Goes on by a slice. Returns whether all rows are seen.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn slice(&mut self, tree: &Tree) -> Result<bool, Errno> {
        let (file, found) = (&mut self.file, &mut self.found);
        let is_over = visit_slice(tree, &mut self.last, &mut |inode, offset, _, value| {
            if file.as_ref().is_none_or(|count| count.inode != inode) {
                end(file.replace(Count::of(inode)), found);
            }
            let mut at = offset;
            for run in decode_extents(offset, value).unwrap_or_default() {
                if let Some(count) = file.as_mut().filter(|_| run.extent.is_some()) {
                    count.add(at, run.length);
                }
                at = at.saturating_add(run.length);
            }
        })?;
        if is_over {
            end(self.file.take(), &mut self.found);
        }
        Ok(is_over)
    }
}

fn end(file: Option<Count>, found: &mut Vec<(Inode, u64)>) {
    let Some(mut count) = file else {
        return;
    };
    count.end_stretch();
    if count.pieces > PIECES_MIN
        && count.pieces <= PIECES_MAX
        && count.pieces.saturating_sub(count.needed) >= GAIN_MIN
        && found.len() < FILES_MAX
    {
        found.push((count.inode, count.octets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PackNumber;
    use crate::rows::{Extent, Run, encode_extents, extents_key};

    /// A file of so many pieces of a length.
    fn add(tree: &mut Tree, inode: Inode, pieces: u64, length: u64) {
        add_apart(tree, inode, pieces, (length, 0));
    }

    /// The same, with a hole behind each piece.
    fn add_apart(tree: &mut Tree, inode: Inode, pieces: u64, (length, hole): (u64, u64)) {
        let in_row = if hole == 0 { 64 } else { 32 };
        for row in 0..pieces.div_ceil(in_row) {
            let of_row = in_row.min(pieces - row * in_row);
            let piece = |piece| Run {
                length,
                skip: 0,
                extent: Some(Extent {
                    pack: PackNumber(1 + piece),
                    at: 68,
                    sealed_len: 96,
                }),
            };
            let gap = (hole > 0).then_some(Run {
                length: hole,
                skip: 0,
                extent: None,
            });
            let runs: Vec<Run> = (0..of_row)
                .flat_map(|number| [Some(piece(number)), gap])
                .flatten()
                .collect();
            let key = extents_key(inode, row * in_row * (length + hole));
            tree.put(&key, encode_extents(&runs)).unwrap();
        }
    }

    #[test]
    fn files_of_many_small_pieces_are_found() {
        let mut tree = Tree::new();
        add(&mut tree, Inode(10), PIECES_MIN, 4_096);
        add(&mut tree, Inode(11), PIECES_MIN + 1, 4_096);
        // A long file in chunks of a sequence.
        add(&mut tree, Inode(12), 3_000, 512 << 10);
        add(&mut tree, Inode(13), PIECES_MAX + 1, 64);
        add(&mut tree, Inode(14), 2_000, 100);
        let mut fragments = Fragments::default();
        while !fragments.slice(&tree).unwrap() {}
        let expected = [(Inode(11), 1_025 * 4_096), (Inode(14), 200_000)];
        assert_eq!(fragments.found, expected);
    }

    /// Such files once were written anew by every collection, and had as many pieces as before.
    #[test]
    fn pieces_between_holes_are_no_reason() {
        let mut tree = Tree::new();
        add_apart(&mut tree, Inode(10), 3_000, (4_096, 4_096));
        // Two chunks each, one of them short.
        add_apart(&mut tree, Inode(11), 3_000, (130 << 10, 1 << 20));
        add(&mut tree, Inode(12), 2_000, 4_096);
        let mut fragments = Fragments::default();
        while !fragments.slice(&tree).unwrap() {}
        assert_eq!(fragments.found, [(Inode(12), 2_000 * 4_096)]);
    }
}
