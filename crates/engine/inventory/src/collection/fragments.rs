//! Files in many small pieces, the trace of random writes: every read of such a file takes many requests.

use vere_ports::files::{Errno, Inode};

use super::scan::visit_slice;
use crate::rows::decode_extents;
use crate::tree::Tree;

/// Pieces above which a file is written anew.
pub const PIECES_MIN: u64 = 1_024;
/// Pieces of a file, at most: the rows of the file change in a single commit.
const PIECES_MAX: u64 = 64 << 10;
/// Octets of a piece, on average, from which on a file is no better in other chunks: the shortest chunk of a sequence.
const PIECE_OCTETS: u64 = 128 << 10;
/// Files that a run writes anew.
const FILES_MAX: usize = 64;

/// A walk over all rows of extents.
#[derive(Debug, Default)]
pub struct Fragments {
    last: Vec<u8>,
    /// The file under way: inode, pieces, octets.
    file: Option<(Inode, u64, u64)>,
    /// Files in many pieces, and their octets.
    pub found: Vec<(Inode, u64)>,
}

impl Fragments {
    /// Goes on by a slice. Returns whether all rows are seen.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn slice(&mut self, tree: &Tree) -> Result<bool, Errno> {
        let (file, found) = (&mut self.file, &mut self.found);
        let is_over = visit_slice(tree, &mut self.last, &mut |inode, offset, _, value| {
            let runs = decode_extents(offset, value).unwrap_or_default();
            let runs = runs.iter().filter(|run| run.extent.is_some());
            let (pieces, octets) = runs.fold((0_u64, 0_u64), |(pieces, octets), run| {
                (pieces.saturating_add(1), octets.saturating_add(run.length))
            });
            match file {
                Some((of, all, sum)) if *of == inode => {
                    *all = all.saturating_add(pieces);
                    *sum = sum.saturating_add(octets);
                }
                _ => end(file.replace((inode, pieces, octets)), found),
            }
        })?;
        if is_over {
            end(self.file.take(), &mut self.found);
        }
        Ok(is_over)
    }
}

fn end(file: Option<(Inode, u64, u64)>, found: &mut Vec<(Inode, u64)>) {
    if let Some((inode, pieces, octets)) = file
        && pieces > PIECES_MIN
        && pieces <= PIECES_MAX
        && octets / pieces < PIECE_OCTETS
        && found.len() < FILES_MAX
    {
        found.push((inode, octets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PackNumber;
    use crate::rows::{Extent, Run, encode_extents, extents_key};

    /// A file of so many pieces of a length.
    fn add(tree: &mut Tree, inode: Inode, pieces: u64, length: u64) {
        for row in 0..pieces.div_ceil(64) {
            let of_row = 64.min(pieces - row * 64);
            let runs: Vec<Run> = (0..of_row)
                .map(|piece| Run {
                    length,
                    skip: 0,
                    extent: Some(Extent {
                        pack: PackNumber(1 + piece),
                        at: 68,
                        sealed_len: 96,
                    }),
                })
                .collect();
            let key = extents_key(inode, row * 64 * length);
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
}
