//! The outline of a message that comes in pieces.

use vere_judge::{Facts, OUTLINE_OCTETS_MAX, Outline};
use vere_mime::Parsed;

pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x07From: a@b.example\r\nContent-Type: multipart/mixed; boundary=\"c\"\r\n\r\n--c\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\
      Content-Type: multipart/digest; boundary=d\r\n\r\n--d\r\n\r\nFrom: e\r\n\r\ntext\r\n--d--\r\n--c--\r\nend\r\n",
    b"\x01Content-Type: multipart/x; boundary=\"a--\"\n\n--a--\nContent-Disposition: attachment; filename=x.exe\n\n--a----\n",
];

/// Whatever the pieces, the outline has the authors and the structure of the message.
pub(crate) fn pieces(octets: &[u8]) {
    let Some((piece, message)) = octets.split_first() else {
        return;
    };
    let mut outline = Outline::default();
    for piece in message.chunks(usize::from(*piece).max(1)) {
        outline.take(piece);
    }
    let (mut outlined, mut whole) = (Facts::default(), Facts::default());
    outline.read(&mut outlined);
    whole.read(message, &Parsed::of(message));
    assert!(outlined == whole || message.len() > OUTLINE_OCTETS_MAX);
}
