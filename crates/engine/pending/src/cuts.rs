//! Written octets, neither sent nor on the way, become chunks.

use crate::content::{CHUNK_MAX, Piece, Source, UnsentId, range_lengths, sequence_lengths};
use crate::packs::{Fate, Fates};
use crate::uploads::Cut;
use bytes::Bytes;
use hashbrown::HashSet;
use vere_files::posix::Files;
use vere_ports::files::Inode;
use vere_sealing::job::Unpacked;

/// Written octets, and the fate of each range.
#[derive(Debug, Clone, Copy)]
pub struct Buffers<'a> {
    /// The files with written octets.
    pub files: &'a Files,
    /// The fates.
    pub fates: &'a Fates,
}

/// Octets of a file without a gap: the ranges of buffers as chunks have them.
struct Stretch {
    offset: u64,
    octets: u64,
    ranges: Vec<(u64, u32, u32)>,
}

impl Buffers<'_> {
    /// Chunks of all written octets of a file of this size, neither sent nor on the way; `whole_only` leaves an end out.
    pub fn cut(&self, (inode, size): (Inode, u64), whole_only: bool) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for stretch in self.stretches(inode) {
            let end = stretch.offset.saturating_add(stretch.octets);
            // Programs write to the end of files in sequence, and long ranges as well.
            let lengths = if end >= size || stretch.octets >= CHUNK_MAX as u64 {
                let parts = stretch.ranges.iter().map(|range| self.range(range));
                sequence_lengths(parts, whole_only)
            } else {
                range_lengths(stretch.octets, whole_only)
            };
            split(inode, stretch, lengths, &mut cuts);
        }
        cuts
    }

    /// Written octets of a file, neither sent nor on the way.
    pub fn uncut(&self, inode: Inode) -> u64 {
        let stretches = self.stretches(inode).into_iter();
        stretches.fold(0, |sum, stretch| sum.saturating_add(stretch.octets))
    }

    fn stretches(&self, inode: Inode) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for run in self.files.unsent_of(inode) {
            let mut at = run.offset;
            let mut continues = false;
            for piece in run.pieces {
                let Source::Unsent { id, skip } = piece.source else {
                    continue;
                };
                for (skip, length, fate) in self.fates.of(id.0, skip, piece.length) {
                    if fate.is_none() {
                        add(&mut stretches, continues, at, (id.0, skip, length));
                    }
                    continues = fate.is_none();
                    at = at.saturating_add(length.into());
                }
            }
        }
        stretches
    }

    /// The packs with written octets of a file, on the way.
    pub fn sending(&self, inode: Inode) -> HashSet<u64> {
        let mut packs = HashSet::new();
        let runs = self.files.unsent_of(inode).into_iter();
        for piece in runs.flat_map(|run| run.pieces) {
            if let Source::Unsent { id, skip } = piece.source {
                for (_, _, fate) in self.fates.of(id.0, skip, piece.length) {
                    if let Some(Fate::Sending(pack)) = fate {
                        packs.insert(pack);
                    }
                }
            }
        }
        packs
    }

    /// The octets of a chunk.
    pub fn gather(&self, cut: &Cut) -> Unpacked {
        Unpacked {
            inode: cut.inode.0,
            offset: cut.offset,
            pieces: cut.ranges.iter().map(|range| self.range(range)).collect(),
        }
    }

    /// The pieces with chunks in place of buffers; `None` if a range has no place yet.
    pub fn resolve(&self, pieces: &[(u64, Piece)]) -> Option<Vec<(u64, Piece)>> {
        let mut out = Vec::with_capacity(pieces.len());
        for (offset, piece) in pieces {
            let Source::Unsent { id, skip } = piece.source else {
                out.push((*offset, *piece));
                continue;
            };
            let mut at = *offset;
            for (_, length, fate) in self.fates.of(id.0, skip, piece.length) {
                let Some(Fate::Placed { extent, skip }) = fate else {
                    return None;
                };
                let source = Source::Chunk { extent, skip };
                out.push((at, Piece { length, source }));
                at = at.saturating_add(length.into());
            }
        }
        Some(out)
    }

    /// Written octets of a file that have their places, as pieces with chunks.
    pub fn placed(&self, inode: Inode) -> Vec<(u64, Piece)> {
        let mut placed = Vec::new();
        for run in self.files.unsent_of(inode) {
            let mut at = run.offset;
            for piece in run.pieces {
                let Source::Unsent { id, skip } = piece.source else {
                    continue;
                };
                for (_, length, fate) in self.fates.of(id.0, skip, piece.length) {
                    if let Some(Fate::Placed { extent, skip }) = fate {
                        let source = Source::Chunk { extent, skip };
                        placed.push((at, Piece { length, source }));
                    }
                    at = at.saturating_add(length.into());
                }
            }
        }
        placed
    }

    fn range(&self, (id, skip, length): &(u64, u32, u32)) -> Bytes {
        let octets = self.files.unsent().get(UnsentId(*id), *skip, *length);
        octets.unwrap_or_default()
    }
}

fn add(stretches: &mut Vec<Stretch>, continues: bool, offset: u64, range: (u64, u32, u32)) {
    let octets = u64::from(range.2);
    match stretches.last_mut() {
        Some(last) if continues => {
            last.octets = last.octets.saturating_add(octets);
            last.ranges.push(range);
        }
        _ => stretches.push(Stretch {
            offset,
            octets,
            ranges: vec![range],
        }),
    }
}

/// Adds chunks of these lengths; octets of the stretch behind the last one stay.
fn split(inode: Inode, stretch: Stretch, lengths: Vec<usize>, cuts: &mut Vec<Cut>) {
    let mut ranges = stretch.ranges.into_iter();
    let mut rest = ranges.next();
    let mut offset = stretch.offset;
    for length in lengths {
        let mut left = u32::try_from(length).unwrap_or(u32::MAX);
        let mut cut = Cut {
            inode,
            offset,
            ranges: Vec::new(),
        };
        while left > 0
            && let Some((id, skip, octets)) = rest
        {
            let taken = octets.min(left);
            cut.ranges.push((id, skip, taken));
            left = left.saturating_sub(taken);
            rest = if taken < octets {
                let behind = skip.saturating_add(taken);
                Some((id, behind, octets.saturating_sub(taken)))
            } else {
                ranges.next()
            };
        }
        offset = offset.saturating_add(cut.octets() as u64);
        cuts.push(cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_split_within_and_between_buffers() {
        let stretch = Stretch {
            offset: 100,
            octets: 60,
            ranges: vec![(1, 5, 20), (2, 0, 40)],
        };
        let mut cuts = Vec::new();
        split(Inode(9), stretch, vec![10, 30, 15], &mut cuts);
        let found: Vec<_> = cuts
            .into_iter()
            .map(|cut| (cut.offset, cut.ranges))
            .collect();
        assert_eq!(
            found,
            [
                (100, vec![(1, 5, 10)]),
                (110, vec![(1, 15, 10), (2, 0, 20)]),
                (140, vec![(2, 20, 15)]),
            ]
        );
    }
}
