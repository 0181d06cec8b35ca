//! Frames between gateway and courier: a decoded frame encodes to an equal frame, and a cut one never means the same.

use vere_handoff::delivery::{Answer, Request};

/// A frame of each kind, without its length.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\x01\x01\x07\0\0\0\0\0\0\0example.org",
    b"\x01\x02\x07\0\0\0\0\0\0\0",
    b"\x01\x03\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x03\0\0\0envtext",
    b"\x01\x04\x07\0\0\0\0\0\0\0",
    b"\x01\x05\x07\0\0\0\0\0\0\0",
    b"\x01\x81\x07\0\0\0\0\0\0\0mx:25",
    b"\x01\x82\x07\0\0\0\0\0\0\0\x02\x01no",
    b"\x01\x83\x07\0\0\0\0\0\0\0\x02\0\0\0mxclear off",
    b"\x01\x84\x07\0\0\0\0\0\0\0\x03\x01\0\0\0\x01\x01\x05\0\0\x004.2.1\x02\0\0\0no",
    b"\x01\x85\x07\0\0\0\0\0\0\0\x01",
    b"\x01\x86\x07\0\0\0\0\0\0\0",
    b"\x01\x87\x07\0\0\0\0\0\0\0",
    b"\x01\x88\x01\0\0\0\x07\x02\0\0\0",
    b"\x01\x89",
];

/// Takes a frame as both sides do.
pub(super) fn frame(octets: &[u8]) {
    let cut = octets.split_last().map(|(_, before)| before);
    let mut again = Vec::new();
    if let Ok(request) = Request::decode(octets) {
        request.encode(&mut again);
        assert_eq!(again.get(4..), Some(octets));
        assert_ne!(cut.map(Request::decode), Some(Ok(request)));
    } else if let Ok(answer) = Answer::decode(octets) {
        answer.encode(&mut again);
        assert_eq!(again.get(4..), Some(octets));
        assert_ne!(cut.map(Answer::decode), Some(Ok(answer)));
    }
}
