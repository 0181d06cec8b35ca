//! Questions to the broker: a decoded frame encodes to an equal frame, a cut frame is incomplete, and a reader yields the
//! same frames in pieces as whole.

use vere_handoff::question::{Answer, FRAME_OCTETS_MAX, Frame, Question, Reader};

/// A frame of each kind.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\x15\0\0\0\x02\x01\x07\0\0\0\0\0\0\0\0\x04\xc0\0\x02\x01\x03\0a@b",
    b"\x28\0\0\0\x02\x01\x07\0\0\0\0\0\0\0\x01\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x0a\0postmaster",
    b"\x0a\0\0\0\x02\x04\x07\0\0\0\0\0\0\0",
    b"\x0a\0\0\0\x02\x81\x03\0\0\0\0\0\0\0",
    b"\x0b\0\0\0\x02\x82\x03\0\0\0\0\0\0\0\x01",
    b"\x0a\0\0\0\x02\x83\x03\0\0\0\0\0\0\0",
    b"\x19\0\0\0\x02\x02\x07\0\0\0\0\0\0\0\x04\xc0\0\x02\x01\x04mx.a\x03\0a@b",
    b"\x1e\0\0\0\x02\x02\x07\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0",
    b"\x13\0\0\0\x02\x03\x07\0\0\0\0\0\0\0\x01\x072.a.org",
    b"\x0b\0\0\0\x02\x84\x03\0\0\0\0\0\0\0\x06",
    b"\x15\0\0\0\x02\x85\x03\0\0\0\0\0\0\0\0\x02\x01\x7f\0\0\x02\x10\x01\0x",
    b"\x17\0\0\0\x02\x85\x03\0\0\0\0\0\0\0\x01\x02\x0f\x05\0\x03m.a\x0c\x02a.",
    b"\x0b\0\0\0\x02\x86\x03\0\0\0\0\0\0\0\x02",
    b"\x4a\0\0\0\x02\x87\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0",
    b"\x0f\0\0\0\x02\x05\x07\0\0\0\0\0\0\0\x04\xc0\0\x02\x01",
    b"\x0b\0\0\0\x02\x06\x07\0\0\0\0\0\0\0\x03",
    b"\x14\0\0\0\x02\x07\x07\0\0\0\0\0\0\0\x04\xc0\0\x02\x01\x04bl.a",
    b"\x16\0\0\0\x02\x88\x03\0\0\0\0\0\0\0\x01\x01\x02\xfe\xff\x04bl.a\x01t",
    b"\xa4\0\0\0\x02\x89\x03\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x0b\0\0\0\x02\x8a\x03\0\0\0\0\0\0\0\x03",
];

/// Takes frames as both sides do.
pub(super) fn frames(octets: &[u8]) {
    let mut rest = octets;
    let mut whole_frames = Vec::new();
    while let Ok(Some(frame)) = Frame::read(rest) {
        assert!(frame.octets <= FRAME_OCTETS_MAX + 4 && frame.octets <= rest.len());
        let (whole, behind) = rest.split_at(frame.octets);
        assert_eq!(
            Frame::read(&whole[..whole.len() - 1]),
            Ok(None),
            "a cut frame"
        );
        let mut again = Vec::new();
        if let Ok(question) = Question::decode(&frame) {
            question.encode(frame.id, &mut again);
            assert_eq!(again, whole);
        } else if let Ok(answer) = Answer::decode(&frame) {
            answer.encode(frame.id, &mut again);
            assert_eq!(again, whole);
        }
        whole_frames.push((frame.id, frame.octets));
        rest = behind;
    }
    assert_eq!(in_pieces(octets), whole_frames);
}

/// The frames of octets that arrive in small pieces, up to an error.
fn in_pieces(octets: &[u8]) -> Vec<(u64, usize)> {
    let mut reader = Reader::default();
    let mut frames = Vec::new();
    for piece in octets.chunks(7) {
        let space = reader.space();
        assert!(space.len() >= piece.len(), "a reader without space");
        space[..piece.len()].copy_from_slice(piece);
        reader.filled(piece.len());
        loop {
            match reader.frame() {
                Ok(Some(frame)) => frames.push((frame.id, frame.octets)),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}
