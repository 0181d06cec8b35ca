//! Outlines of log entries.

use vere_spoolwire::{
    Change, Frame, HEADER_LEN, Mutation, Txn, encode_batch, encode_change, encode_create,
    encode_owned, encode_purge, encode_refused,
};

use super::super::outline::{OUTLINER, Shape, Sketch, Sketches};
use super::*;

fn change() -> impl Strategy<Value = (u8, u32, u64, Vec<u8>, Vec<u8>)> {
    let octets = || proptest::collection::vec(any::<u8>(), 0..40);
    (0..5_u8, 0..4_u32, 1..9_u64, octets(), octets())
}

fn shaped<'a>((kind, queue, id, meta, body): &'a (u8, u32, u64, Vec<u8>, Vec<u8>)) -> Change<'a> {
    let (queue, id) = (QueueId(*queue), RecordId(*id));
    match kind {
        0 | 1 => Change::Put {
            queue,
            id,
            meta,
            body: Some(body),
        },
        2 => Change::Delete { queue, id },
        3 => Change::Replace { queue, id, meta },
        _ => Change::Move {
            queue,
            id,
            to: queue,
            to_id: RecordId(id.0 + 1),
            meta: (id.0 % 2 == 0).then_some(meta),
        },
    }
}

/// The shapes of all frames, as whole frames have them and as an outline has them.
fn shapes(entry: &[u8], outline: &[u8]) -> [Vec<Shape>; 2] {
    let (mut whole, mut rest) = (Vec::new(), entry);
    while let Some(frame) = Frame::read(rest, rest.len()).unwrap() {
        match Mutation::decode_logged(&frame) {
            Ok(Mutation::Change(change)) => whole.push(change.into()),
            Ok(Mutation::Batch(changes)) => whole.extend(changes.map(|(_, c)| Shape::from(c))),
            _ => {}
        }
        rest = &rest[frame.header.len..];
    }
    let mut sketched = Vec::new();
    for next in Sketches(outline) {
        match next.unwrap().1 {
            Sketch::Change(shape) => sketched.push(shape),
            Sketch::Batch(shapes) => sketched.extend(shapes.map(|(_, shape)| shape)),
            Sketch::Whole(_) => {}
        }
    }
    [whole, sketched]
}

proptest! {
    #[test]
    fn an_outline_says_what_its_frames_say(
        changes in proptest::collection::vec(change(), 1..12), batched in any::<bool>(),
        at in any::<prop::sample::Index>(), flip in any::<u8>(),
    ) {
        let mut entry = Vec::new();
        encode_create(&mut entry, Txn(1), QueueId(1), "queue", QueueLimits::UNLIMITED);
        encode_owned(&mut entry, Txn(1), 7, 8);
        let shaped: Vec<_> = changes.iter().map(shaped).collect();
        if batched {
            encode_batch(&mut entry, Txn(2), shaped.iter().copied(), 0);
        } else {
            shaped.iter().for_each(|change| encode_change(&mut entry, Txn(2), change, 0));
        }
        encode_refused(&mut entry, Txn(3), NodeRefusal::NodeFull);
        encode_purge(&mut entry, Txn(4), QueueId(1), RecordId(5), true);
        let mut outline = Vec::new();
        (OUTLINER.outline)(&entry, &mut outline).unwrap();
        prop_assert!(outline.len() < entry.len());
        prop_assert!((OUTLINER.check)(&outline, entry.len() as u32));
        prop_assert!(!(OUTLINER.check)(&outline, entry.len() as u32 + 1));
        let [whole, sketched] = shapes(&entry, &outline);
        prop_assert_eq!(whole, sketched);

        // Anything else is refused or means something else, and never more than it may.
        let at = at.index(outline.len());
        let cut = &outline[..at];
        prop_assert!(!(OUTLINER.check)(cut, entry.len() as u32));
        outline[at] ^= flip;
        let lengths = Sketches(&outline).map_while(Result::ok).map(|(header, _)| header.len);
        let all: usize = lengths.sum();
        let accepted = (OUTLINER.check)(&outline, entry.len() as u32);
        prop_assert!(!accepted || all == entry.len());
    }

    #[test]
    fn any_octets_are_looked_at(octets in proptest::collection::vec(any::<u8>(), 0..80), len in 0..200_u32) {
        let mut octets = octets;
        if octets.len() > HEADER_LEN {
            // A header that may be one.
            octets[1..4].fill(0);
            octets[6..8].fill(0);
            octets[4] = 0x10 + octets[4] % 0x18;
        }
        let accepted = (OUTLINER.check)(&octets, len);
        let frames = Sketches(&octets).take_while(Result::is_ok).count();
        prop_assert!(!accepted || frames > 0 || octets.is_empty());
    }
}
