//! Canonical bodies and their hashes (RFC 6376 section 3.4), of a text that comes in pieces.
//!
//! A line ends with CRLF; a CR or an LF alone is part of the line. The canonical form ends with one CRLF: empty lines at the end are
//! left out and a missing last line end is added. A body without content has the form CRLF (simple) or no octets (relaxed).

use ring::digest::{Context, SHA256};

use crate::canonical::Canonicalization;

/// The SHA-256 of a canonical body, under construction.
#[derive(Clone)]
pub(crate) struct Body {
    canonicalization: Canonicalization,
    /// Octets of the canonical form that are hashed; `None` for all of them.
    length: Option<u64>,
    hash: Context,
    /// Octets of the canonical form so far.
    octets: u64,
    /// Line ends that belong to the form once content follows.
    line_ends: u64,
    /// A CR that an LF may follow.
    has_cr: bool,
    /// Blanks that belong to the form once content follows in their line.
    has_blank: bool,
}

/// The hash of a whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyHash {
    pub(crate) canonicalization: Canonicalization,
    pub(crate) length: Option<u64>,
    pub(crate) hash: Vec<u8>,
    /// Octets of the canonical form, hashed or not.
    pub(crate) octets: u64,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("canonicalization", &self.canonicalization)
            .field("length", &self.length)
            .field("octets", &self.octets)
            .finish_non_exhaustive()
    }
}

impl Body {
    pub(crate) fn new(canonicalization: Canonicalization, length: Option<u64>) -> Self {
        Self {
            canonicalization,
            length,
            hash: Context::new(&SHA256),
            octets: 0,
            line_ends: 0,
            has_cr: false,
            has_blank: false,
        }
    }

    /// Takes the next octets of the body.
    pub(crate) fn take(&mut self, mut octets: &[u8]) {
        while let Some(first) = octets.first() {
            let run = match self.canonicalization {
                Canonicalization::Simple => memchr::memchr2(b'\r', b'\n', octets),
                Canonicalization::Relaxed => octets
                    .iter()
                    .position(|octet| matches!(octet, b'\r' | b'\n' | b' ' | b'\t')),
            };
            let run = run.unwrap_or(octets.len());
            if run == 0 {
                self.special(*first);
            }
            let (content, rest) = octets.split_at_checked(run).unwrap_or((octets, &[]));
            if !content.is_empty() {
                self.content(content);
            }
            octets = rest.get(usize::from(run == 0)..).unwrap_or_default();
        }
    }

    fn special(&mut self, octet: u8) {
        match octet {
            b'\n' if std::mem::take(&mut self.has_cr) => {
                self.has_blank = false;
                self.line_ends = self.line_ends.saturating_add(1);
            }
            b'\r' => {
                self.lone_cr();
                self.has_cr = true;
            }
            b' ' | b'\t' => {
                self.lone_cr();
                self.has_blank = true;
            }
            other => self.content(&[other]),
        }
    }

    /// A CR that no LF follows is content.
    fn lone_cr(&mut self) {
        if std::mem::take(&mut self.has_cr) {
            self.content(b"\r");
        }
    }

    fn content(&mut self, octets: &[u8]) {
        while self.line_ends > 0 {
            self.write(b"\r\n");
            self.line_ends = self.line_ends.saturating_sub(1);
        }
        if std::mem::take(&mut self.has_blank) {
            self.write(b" ");
        }
        if std::mem::take(&mut self.has_cr) {
            self.write(b"\r");
        }
        self.write(octets);
    }

    fn write(&mut self, octets: &[u8]) {
        let left = self
            .length
            .map_or(u64::MAX, |length| length.saturating_sub(self.octets));
        let hashed = usize::try_from(left).map_or(octets.len(), |left| left.min(octets.len()));
        self.hash.update(octets.get(..hashed).unwrap_or_default());
        self.octets = self
            .octets
            .saturating_add(u64::try_from(octets.len()).unwrap_or(u64::MAX));
    }

    /// Ends the body.
    pub(crate) fn finish(mut self) -> BodyHash {
        self.lone_cr();
        if self.octets > 0 || self.canonicalization == Canonicalization::Simple {
            self.write(b"\r\n");
        }
        BodyHash {
            canonicalization: self.canonicalization,
            length: self.length,
            hash: self.hash.finish().as_ref().to_vec(),
            octets: self.octets,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ring::digest::digest;

    use super::*;

    /// The canonical form by the text of sections 3.4.3 and 3.4.4, step by step.
    fn form(body: &[u8], canonicalization: Canonicalization) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
        let mut rest = body;
        while let Some((octet, behind)) = rest.split_first() {
            rest = match rest {
                [b'\r', b'\n', behind @ ..] => {
                    lines.push(Vec::new());
                    behind
                }
                _ => {
                    lines.last_mut().unwrap().push(*octet);
                    behind
                }
            };
        }
        if canonicalization == Canonicalization::Relaxed {
            for line in &mut lines {
                let mut reduced = Vec::new();
                for octet in line.iter() {
                    match octet {
                        b' ' | b'\t' if reduced.last() == Some(&b' ') => {}
                        b' ' | b'\t' => reduced.push(b' '),
                        other => reduced.push(*other),
                    }
                }
                if reduced.last() == Some(&b' ') {
                    reduced.pop();
                }
                *line = reduced;
            }
        }
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        if lines.is_empty() && canonicalization == Canonicalization::Simple {
            lines.push(Vec::new());
        }
        lines
            .iter()
            .flat_map(|line| [line, &b"\r\n"[..]].concat())
            .collect()
    }

    fn check(body: &[u8], canonicalization: Canonicalization, expected: &[u8]) {
        let mut hashed = Body::new(canonicalization, None);
        hashed.take(body);
        let hash = hashed.finish();
        assert_eq!(hash.hash, digest(&SHA256, expected).as_ref(), "{body:?}");
        assert_eq!(hash.octets, expected.len() as u64, "{body:?}");
    }

    /// The example of RFC 6376 section 3.4.5, and the bodies without content of sections 3.4.3 and 3.4.4.
    #[test]
    fn bodies_have_the_forms_of_the_standard() {
        let body = b" C \r\nD \t E\r\n\r\n\r\n";
        check(body, Canonicalization::Relaxed, b" C\r\nD E\r\n");
        check(body, Canonicalization::Simple, b" C \r\nD \t E\r\n");
        for empty in [&b""[..], b"\r\n", b"\r\n\r\n"] {
            check(empty, Canonicalization::Simple, b"\r\n");
            check(empty, Canonicalization::Relaxed, b"");
        }
        check(b"a", Canonicalization::Simple, b"a\r\n");
        check(b"a \t", Canonicalization::Relaxed, b"a\r\n");
        check(b"a\r", Canonicalization::Relaxed, b"a\r\r\n");
        check(
            b"a \rb\nc \n\r\r\n",
            Canonicalization::Relaxed,
            b"a \rb\nc \n\r\r\n",
        );
    }

    #[test]
    fn a_length_cuts_the_canonical_form() {
        let mut body = Body::new(Canonicalization::Relaxed, Some(4));
        body.take(b"a  b\r\nc");
        let hash = body.finish();
        assert_eq!(hash.hash, digest(&SHA256, b"a b\r").as_ref());
        assert_eq!(hash.octets, 8);
    }

    proptest! {
        #[test]
        fn pieces_have_the_hash_of_the_form(
            body in proptest::collection::vec(
                prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), Just(b'\t'), Just(b'a')], 0..40),
            cuts in proptest::collection::vec(0_usize..40, 0..4),
            length in proptest::option::of(0_u64..20),
        ) {
            for canonicalization in [Canonicalization::Simple, Canonicalization::Relaxed] {
                let mut pieces = Body::new(canonicalization, length);
                let mut rest = &body[..];
                for cut in &cuts {
                    let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                    pieces.take(piece);
                    rest = behind;
                }
                pieces.take(rest);
                let form = form(&body, canonicalization);
                let hashed = length.map_or(form.len(), |length| form.len().min(length as usize));
                let hash = pieces.finish();
                let expected = digest(&SHA256, &form[..hashed]);
                prop_assert_eq!(hash.hash, expected.as_ref());
                prop_assert_eq!(hash.octets, form.len() as u64);
            }
        }
    }
}
