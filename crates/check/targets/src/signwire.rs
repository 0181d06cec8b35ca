//! The signer's protocol: a decoded frame encodes to an equal frame, and a cut frame is incomplete.

use vere_signwire::{Answer, FRAME_OCTETS_MAX, Frame, Request};

/// A request of each kind.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\x0e\0\0\0\x01\x01\x07\0\0\0\0\0\0\0\x03a.b",
    b"\x14\0\0\0\x01\x02\x02\x01\0\0\0\0\0\0\x02\x03a.b\x01sxyz",
    b"\x13\0\0\0\x01\x81\x03\0\0\0\0\0\0\0\x09\0\0\0\x01\x01\x02r1",
    b"\x0c\0\0\0\x01\x03\x04\0\0\0\0\0\0\0\x02\x01",
    b"\x2e\0\0\0\x01\x04\x05\0\0\0\0\0\0\0\x04\x08\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09xy",
    b"\x14\0\0\0\x01\x83\x06\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x02\0",
    b"\x0a\0\0\0\x01\x05\x04\0\0\0\0\0\0\0",
    b"\x10\0\0\0\x01\x06\x05\0\0\0\0\0\0\0\x03a.b\x01s",
    b"\x20\0\0\0\x01\x84\x06\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03a.b\x01s\x02\0\0\0p=AA",
    b"\x0a\0\0\0\x01\x85\x07\0\0\0\0\0\0\0",
    b"\x0b\0\0\0\x01\xff\x03\0\0\0\0\0\0\0\x01",
];

/// Takes frames as both sides do.
pub(super) fn frames(octets: &[u8]) {
    let mut rest = octets;
    while let Ok(Some(frame)) = Frame::read(rest) {
        assert!(frame.octets <= FRAME_OCTETS_MAX + 4 && frame.octets <= rest.len());
        let (whole, behind) = rest.split_at(frame.octets);
        assert_eq!(
            Frame::read(&whole[..whole.len() - 1]),
            Ok(None),
            "a cut frame"
        );
        let mut again = Vec::new();
        if let Ok(request) = Request::decode(&frame) {
            request.encode(frame.number, &mut again);
            assert_eq!(again, whole);
        } else if let Ok(answer) = Answer::decode(&frame) {
            answer.encode(frame.number, &mut again);
            assert_eq!(again, whole);
        }
        rest = behind;
    }
}
