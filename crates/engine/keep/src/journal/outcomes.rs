//! The outcome of a merge may be longer than a record: several records then, the last with the end mark. A kill before the end
//! leaves records without effect, and the merge is done once more.

use std::mem;

use crate::record::{Part, room_of};

/// Octets of the parts of a record about a merge, but for a last longer part: well below the bound of a record.
const PIECE_MAX: usize = 1 << 20;

/// The parts of a merge as records. The last part of all is the end mark. A short outcome fits a single record, without a number.
#[must_use]
pub fn pieces(parts: Vec<Part>) -> Vec<Vec<Part>> {
    pieces_of(parts, PIECE_MAX)
}

fn pieces_of(parts: Vec<Part>, octets_max: usize) -> Vec<Vec<Part>> {
    let mut pieces = Vec::new();
    let (mut piece, mut octets) = (Vec::new(), 0_usize);
    for part in parts {
        let more = room_of(&part);
        if octets.saturating_add(more) > octets_max && !piece.is_empty() {
            pieces.push(mem::take(&mut piece));
            octets = 0;
        }
        octets = octets.saturating_add(more);
        piece.push(part);
    }
    pieces.push(piece);
    if pieces.len() > 1 {
        for (number, piece) in (0..).zip(&mut pieces) {
            piece.insert(0, Part::Piece(number));
        }
    }
    pieces
}

/// Holds the records of a merge back until the last record is there.
#[derive(Default)]
pub(super) struct Outcomes {
    held: Vec<(u64, Vec<Part>)>,
}

impl Outcomes {
    /// Hands a record to `see`, behind earlier records of the merge.
    pub(super) fn take(
        &mut self,
        position: u64,
        parts: Vec<Part>,
        see: &mut impl FnMut(u64, Vec<Part>),
    ) {
        let Some(Part::Piece(number)) = parts.first() else {
            self.held.clear();
            see(position, parts);
            return;
        };
        if *number == 0 {
            // The merge before has come to no end.
            self.held.clear();
        }
        if usize::try_from(*number) != Ok(self.held.len()) {
            self.held.clear();
            return;
        }
        let is_last = parts.iter().any(|part| matches!(part, Part::Brought(_)));
        self.held.push((position, parts));
        if is_last {
            for (position, parts) in self.held.drain(..) {
                see(position, parts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::MailId;
    use crate::record::{Brought, Won};

    fn end() -> Part {
        Part::Brought(Brought {
            won: Won {
                commit: MailId([1; 16]),
                generation: 2,
                uid_validity: 3,
                uid: 4,
            },
            through: 5,
            exceptions: Vec::new(),
        })
    }

    fn drops(count: u8, octets: usize) -> Vec<Part> {
        (0..count).map(|of| Part::Drop(vec![of; octets])).collect()
    }

    #[test]
    fn a_short_outcome_is_one_record_without_a_number() {
        let mut parts = drops(3, 10);
        parts.push(end());
        assert_eq!(pieces(parts.clone()), [parts]);
    }

    #[test]
    fn a_long_outcome_has_numbered_records_in_order() {
        let mut parts = drops(10, 100);
        parts.push(end());
        let room = room_of(&parts[0]);
        for max in [0, room, 3 * room - 1, 3 * room, 10 * room] {
            let pieces = pieces_of(parts.clone(), max);
            let most = (max / room).max(1);
            for (number, piece) in pieces.iter().enumerate() {
                assert_eq!(piece[0], Part::Piece(u32::try_from(number).unwrap()));
                let octets: usize = piece[1..].iter().map(room_of).sum();
                assert!(octets <= max || piece.len() == 2, "{max}: {number}");
            }
            let joined: Vec<Part> = pieces.iter().flat_map(|of| of[1..].to_vec()).collect();
            assert_eq!(joined, parts, "{max}");
            assert_eq!(pieces[0].len(), most + 1, "{max}");
        }
    }

    /// The records that a reader sees, by their positions.
    fn seen(records: &[(u64, Vec<Part>)]) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut outcomes = Outcomes::default();
        for (position, parts) in records {
            outcomes.take(*position, parts.clone(), &mut |position, parts| {
                assert!(!parts.is_empty());
                seen.push(position);
            });
        }
        seen
    }

    fn of_merge(first: u64) -> Vec<(u64, Vec<Part>)> {
        let mut parts = drops(7, 100);
        parts.push(end());
        let pieces = pieces_of(parts, 330);
        assert_eq!(pieces.len(), 4);
        (first..).zip(pieces).collect()
    }

    #[test]
    fn records_of_a_merge_count_with_the_last_one() {
        let plain = |position| (position, drops(1, 1));
        for end in 0..4 {
            let cut = |first| of_merge(first).into_iter().take(end).collect::<Vec<_>>();
            // The journal ends there.
            let records = [vec![plain(1)], cut(2)].concat();
            assert_eq!(seen(&records), [1], "{end}");
            // The volume has gone on without the merge.
            let records = [vec![plain(1)], cut(2), vec![plain(10)]].concat();
            assert_eq!(seen(&records), [1, 10], "{end}");
            // The merge was done once more.
            let records = [cut(2), of_merge(20), vec![plain(30)]].concat();
            assert_eq!(seen(&records), [20, 21, 22, 23, 30], "{end}");
            // The same, after another kill.
            let records = [cut(2), cut(10), of_merge(20), vec![plain(30)]].concat();
            assert_eq!(seen(&records), [20, 21, 22, 23, 30], "{end}");
        }
    }

    #[test]
    fn a_merge_that_lacks_a_record_does_not_count() {
        for absent in 0..4 {
            let mut records = of_merge(1);
            records.remove(absent);
            records.push((9, drops(1, 1)));
            assert_eq!(seen(&records), [9], "{absent}");
        }
    }
}
