//! Contents beside plain octets.

use std::collections::HashMap;

use bytes::Bytes;
use proptest::prelude::*;
use vere_ports::files::Inode;

use super::{Content, Piece, Source, Unsent, allocated, load, save};
use crate::format::PackNumber;
use crate::rows::{Extent, Run, encode_extents, extents_key, extents_prefix};
use crate::tree::Tree;

const SIZE: usize = 4000;
const FILE: Inode = Inode(9);

#[derive(Default)]
struct Pair {
    content: Content,
    unsent: Unsent,
    chunks: HashMap<u64, Vec<u8>>,
    /// None in holes.
    octets: Vec<Option<u8>>,
    late: Vec<(u64, Vec<Piece>, Extent)>,
}

impl Pair {
    fn octets_of(&self, piece: Piece) -> Vec<Option<u8>> {
        let length = piece.length as usize;
        let octets = match piece.source {
            Source::Zero => return vec![None; length],
            Source::Chunk { extent, skip } => {
                self.chunks[&extent.pack.0][skip as usize..][..length].to_vec()
            }
            Source::Unsent { id, skip } => {
                self.unsent.get(id, skip, piece.length).unwrap().to_vec()
            }
        };
        octets.into_iter().map(Some).collect()
    }

    fn step(&mut self, (what, from, length, salt): (u8, u16, u16, u8)) {
        let from = usize::from(from) % SIZE;
        let to = (from + usize::from(length) % 600 + 1).min(SIZE);
        let range = (from as u64, to as u64);
        match what % 8 {
            0..=2 => {
                let octets = (from..to).map(|at| (at as u8).wrapping_mul(salt));
                let data: Bytes = octets.collect::<Vec<_>>().into();
                self.content.write(range.0, &data, &mut self.unsent);
                for (at, octet) in (from..to).zip(data) {
                    self.octets[at] = Some(octet);
                }
            }
            3 => {
                self.content.cut(range.0, range.1, &mut self.unsent);
                self.octets[from..to].fill(None);
            }
            4 => {
                let to_offset = usize::from(salt) * 13 % (SIZE - (to - from));
                let pieces = self.content.pieces_in(range.0, range.1);
                if to_offset.abs_diff(from) < to - from {
                    return;
                }
                let end = (to_offset + to - from) as u64;
                self.content.cut(to_offset as u64, end, &mut self.unsent);
                for (at, piece) in pieces {
                    let at = at - range.0 + to_offset as u64;
                    self.content.put(at, piece, &mut self.unsent);
                }
                self.octets.copy_within(from..to, to_offset);
            }
            5 | 6 => {
                let runs = self.content.unsent_runs();
                if let Some((offset, pieces)) = runs.into_iter().nth(usize::from(salt) % 4) {
                    let pack = self.chunks.len() as u64 + 1;
                    let octets = pieces.iter().flat_map(|piece| self.octets_of(*piece));
                    let octets = octets.map(Option::unwrap).collect();
                    self.chunks.insert(pack, octets);
                    let extent = Extent {
                        pack: PackNumber(pack),
                        at: 1,
                        sealed_len: 2,
                    };
                    self.late.push((offset, pieces, extent));
                }
            }
            _ => {
                if let Some((offset, pieces, extent)) = self.late.pop() {
                    self.content
                        .stored(offset, &pieces, extent, &mut self.unsent);
                }
            }
        }
    }

    fn check(&self) {
        let plan = self.content.plan(0, SIZE as u64);
        let octets: Vec<_> = plan
            .iter()
            .flat_map(|piece| self.octets_of(*piece))
            .collect();
        assert_eq!(octets, self.octets);
        let data = self.octets.iter().flatten().count() as u64;
        assert_eq!(self.content.data_octets(), data);
        let is_unsent = |piece: &&Piece| matches!(piece.source, Source::Unsent { .. });
        let unsent = plan
            .iter()
            .filter(is_unsent)
            .map(|piece| u64::from(piece.length));
        assert_eq!(self.content.unsent_octets(), unsent.sum::<u64>());
        for at in (0..SIZE).step_by(37) {
            let rest = &self.octets[at..];
            let position = |found: Option<usize>| found.map(|found| (at + found) as u64);
            let data = position(rest.iter().position(Option::is_some));
            assert_eq!(self.content.next_data(at as u64), data);
            let hole = position(rest.iter().position(Option::is_none));
            assert_eq!(
                self.content.next_hole(at as u64),
                hole.unwrap_or(SIZE as u64)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_content_has_the_octets_that_were_written(
        ops in prop::collection::vec(any::<(u8, u16, u16, u8)>(), 1..120)
    ) {
        let mut pair = Pair { octets: vec![None; SIZE], ..Pair::default() };
        for op in ops {
            pair.step(op);
            pair.check();
        }
        while pair.content.unsent_octets() > 0 {
            pair.step((5, 0, 0, 0));
            pair.step((7, 0, 0, 0));
        }
        pair.check();
        prop_assert_eq!(pair.unsent.octets(), 0);
        let mut tree = Tree::new();
        prop_assert_eq!(save(&pair.content, &mut tree, FILE), Ok(pair.content.data_octets() > 0));
        prop_assert_eq!(save(&pair.content, &mut tree, FILE), Ok(false));
        prop_assert_eq!(allocated(&tree, FILE), Ok(pair.content.data_octets()));
        pair.content = load(&tree, FILE, SIZE as u64).unwrap();
        pair.check();
    }

    #[test]
    fn any_rows_are_read_or_refused(
        rows in prop::collection::vec((0u64..400, 1u64..200, 0u32..9, 0u64..3), 1..20),
        size in 0u64..500,
    ) {
        let mut tree = Tree::new();
        for (offset, length, skip, pack) in rows {
            let extent = Extent { pack: PackNumber(pack), at: 1, sealed_len: 2 };
            let run = match pack {
                0 => Run { length, skip: 0, extent: None },
                _ => Run { length, skip, extent: Some(extent) },
            };
            tree.put(&extents_key(FILE, offset), encode_extents(&[run])).unwrap();
        }
        if let Ok(content) = load(&tree, FILE, size) {
            let end = content.pieces().map(|(at, piece)| at + u64::from(piece.length)).max();
            prop_assert!(end.unwrap_or(0) <= size);
        }
    }
}

#[test]
fn a_row_has_64_runs_at_most() {
    let mut content = Content::new();
    let mut unsent = Unsent::default();
    for at in 0..100u64 {
        let extent = Extent {
            pack: PackNumber(at + 1),
            at: 1,
            sealed_len: 2,
        };
        let source = Source::Chunk { extent, skip: 0 };
        content.put(at * 20, Piece { length: 10, source }, &mut unsent);
    }
    let mut tree = Tree::new();
    save(&content, &mut tree, FILE).unwrap();
    let keys = tree.keys(&extents_prefix(FILE)).unwrap();
    // A hole lies between two pieces: 32 pieces and 31 holes a row.
    let offsets = [0, 640, 1280, 1920].map(|offset| extents_key(FILE, offset).to_vec());
    assert_eq!(keys, offsets);
    tree.take_changes();
    content.cut(1300, 1310, &mut unsent);
    save(&content, &mut tree, FILE).unwrap();
    assert_eq!(tree.take_changes().len(), 3, "rows before the hole stay");
}
