//! The text of an outgoing message: dot-stuffed behind DATA, unchanged behind BDAT.

use bytes::Bytes;
use memchr::memmem;

use super::wire::{BUFFER_HIGH, Wire};
use crate::text::is_paired;

/// A part of this length without a line to stuff is sent from the message itself; shorter parts are
/// copied, so that many parts leave in one write.
const DIRECT_MIN: usize = BUFFER_HIGH;

/// How far to look for the next line to stuff at a time.
const WINDOW: usize = 64 * 1024;

/// Says whether octets are lines of text that DATA can carry: every CR and LF is part of a CRLF, and
/// there is no NUL.
pub(super) fn is_text(octets: &[u8]) -> bool {
    is_paired(octets) && memchr::memchr(0, octets).is_none()
}

/// A message of which a part has been handed to the wire.
#[derive(Debug)]
pub(super) struct Body {
    octets: Bytes,
    at: usize,
    /// Behind DATA: lines that begin with a dot get a second dot, and a lone dot ends the text.
    stuffed: bool,
    ended: bool,
}

impl Body {
    /// A message behind DATA; must be text, see [`is_text`].
    pub(super) fn stuffed(octets: Bytes) -> Self {
        Self {
            octets,
            at: 0,
            stuffed: true,
            ended: false,
        }
    }

    /// A message behind BDAT.
    pub(super) fn plain(octets: Bytes) -> Self {
        Self {
            octets,
            at: 0,
            stuffed: false,
            ended: false,
        }
    }

    /// Whether everything has been handed to the wire.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Passes parts to the wire while the wire has space.
    pub(super) fn fill(&mut self, wire: &mut Wire) {
        while wire.has_room() && !self.ended {
            if self.at >= self.octets.len() {
                self.end(wire);
                return;
            }
            if self.stuffed && self.at_line_start() && self.octets.get(self.at) == Some(&b'.') {
                wire.put(|out| out.push(b'.'));
            }
            let end = self.part_end();
            let part = self.at..end;
            if part.len() >= DIRECT_MIN {
                wire.put_direct(self.octets.slice(part));
            } else {
                let part = self.octets.get(part).unwrap_or_default();
                wire.put(|out| out.extend_from_slice(part));
            }
            self.at = end;
        }
    }

    fn at_line_start(&self) -> bool {
        self.at == 0 || self.before().ends_with(b"\r\n")
    }

    fn before(&self) -> &[u8] {
        self.octets.get(..self.at).unwrap_or_default()
    }

    /// The end of the part that begins at `at`: before the next line to stuff, if such a line is in
    /// sight.
    fn part_end(&self) -> usize {
        let limit = self.at.saturating_add(WINDOW).min(self.octets.len());
        let window = self.octets.get(self.at..limit).unwrap_or_default();
        if !self.stuffed {
            return limit;
        }
        match memmem::find(window, b"\r\n.") {
            Some(found) => self.at.saturating_add(found).saturating_add(2),
            // A CRLF must not be split, or the next line would not be recognized as a line.
            None if window.ends_with(b"\r") => limit.saturating_add(1).min(self.octets.len()),
            None => limit,
        }
    }

    /// RFC 5321 section 4.1.1.4: the end is CRLF.CRLF, of which the first CRLF is the message's own.
    fn end(&mut self, wire: &mut Wire) {
        if self.stuffed {
            let end: &[u8] = if self.at_line_start() {
                b".\r\n"
            } else {
                b"\r\n.\r\n"
            };
            wire.put(|out| out.extend_from_slice(end));
        }
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

    use super::*;

    fn sent(mut body: Body, piece: usize) -> Vec<u8> {
        let (mut wire, mut all) = (Wire::default(), Vec::new());
        loop {
            body.fill(&mut wire);
            let output = wire.output();
            if output.is_empty() {
                assert!(body.has_ended());
                return all;
            }
            let octets = output.len().min(piece);
            all.extend_from_slice(&output[..octets]);
            wire.sent(octets);
        }
    }

    fn stuffed(text: &[u8]) -> Vec<u8> {
        sent(Body::stuffed(Bytes::copy_from_slice(text)), usize::MAX)
    }

    #[test]
    fn stuffs_dots_and_ends() {
        for (text, is) in [
            (&b""[..], &b".\r\n"[..]),
            (b"a\r\n", b"a\r\n.\r\n"),
            (b"a", b"a\r\n.\r\n"),
            (b".", b"..\r\n.\r\n"),
            (b".\r\n", b"..\r\n.\r\n"),
            (b"..\r\n.\r\n", b"...\r\n..\r\n.\r\n"),
            (b"a\r\n.b\r\n\r\n.\r\n", b"a\r\n..b\r\n\r\n..\r\n.\r\n"),
            (b"a.b\r\n", b"a.b\r\n.\r\n"),
        ] {
            assert_eq!(stuffed(text), is);
        }
    }

    #[test]
    fn stuffs_across_windows() {
        for shift in 0..6 {
            let mut text = vec![b'x'; WINDOW - shift];
            text.extend_from_slice(b"\r\n.\r\n.y");
            text.extend(vec![b'z'; WINDOW * 2 + 5]);
            text.extend_from_slice(b"\r\n");
            let all = stuffed(&text);
            let naive = String::from_utf8(text).unwrap().replace("\r\n.", "\r\n..") + ".\r\n";
            assert!(all == naive.as_bytes(), "{shift}");
        }
    }

    #[test]
    fn long_parts_are_not_copied() {
        let text = Bytes::from(vec![b'x'; 1 << 20]);
        let (mut wire, mut body) = (Wire::default(), Body::stuffed(text.clone()));
        body.fill(&mut wire);
        assert_eq!(wire.output().as_ptr(), text.as_ptr());
    }

    #[test]
    fn plain_is_as_it_is() {
        let octets = Bytes::from_static(b".\n\0\r.\r\n");
        assert_eq!(sent(Body::plain(octets.clone()), 1), octets);
    }

    #[test]
    fn tells_text() {
        for text in [&b""[..], b"a", b"a\r\nb\r\n", b"\r\n\r\n", b"\xff\r\n"] {
            assert!(is_text(text), "{text:?}");
        }
        for other in [
            &b"\n"[..],
            b"\r",
            b"a\nb",
            b"a\r\n\n",
            b"\r\r\n",
            b"a\rb\r\n",
            b"\0",
            b"\n\r",
        ] {
            assert!(!is_text(other), "{other:?}");
        }
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b".".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r\n.".to_vec()),
            (1..40_000_usize).prop_map(|length| vec![b'x'; length]),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// The server's unstuffing restores the original text, and the end mark occurs only at the
        /// end.
        #[test]
        fn unstuffs_to_itself(text in text(), piece in 1..50_000_usize) {
            let all = sent(Body::stuffed(Bytes::from(text.clone())), piece);
            let framed = [b"\r\n", &all[..]].concat();
            assert_eq!(memmem::find(&framed, b"\r\n.\r\n"), Some(framed.len() - 5));
            let inner = framed[2..framed.len() - 3].to_vec();
            let mut expected = text;
            if !expected.is_empty() && !expected.ends_with(b"\r\n") {
                expected.extend_from_slice(b"\r\n");
            }
            let mut plain = Vec::new();
            for line in inner.split_inclusive(|octet| *octet == b'\n') {
                plain.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
            }
            assert!(plain == expected);
        }

        #[test]
        fn tells_text_as_the_naive_way(octets in prop::collection::vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a'), any::<u8>()], 0..20)
        ) {
            let rest: Vec<u8> = String::from_utf8_lossy(&octets).replace("\r\n", "").into_bytes();
            let naive = !rest.iter().any(|octet| matches!(octet, b'\r' | b'\n' | 0));
            assert_eq!(is_text(&octets), naive);
        }
    }
}
