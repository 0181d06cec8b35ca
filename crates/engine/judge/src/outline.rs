//! The outline of a message that passes in pieces: all headers and the lines between parts, without the texts of the parts.
//!
//! The text of a long message goes ahead in parts, and no gatherer of facts has the whole text. Names and types of attachments stand in
//! headers, and a line between parts begins with two hyphens and a boundary from an earlier header. The outline keeps headers and lines between parts, at
//! most [`OUTLINE_OCTETS_MAX`] octets, and drops the rest; the parser of messages finds the same parts in the outline as in the
//! message.

use std::collections::HashSet;

use vere_mime::{Field, Parameterized, Parsed, VALUE_OCTETS_MAX, fields, unfold};

use crate::facts::{Facts, Structure, UNCOUNTED};

/// Most octets kept of a message. A message beyond the bound counts as a message with too many attachments.
pub const OUTLINE_OCTETS_MAX: usize = 512 * 1024;

/// Octets that stay of an outline beyond the bound.
const CUT_OCTETS: usize = 64 * 1024;

/// Where the next line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// In the header of the message or of a part, with the first octet of the header in the outline.
    Header(usize),
    /// In a text, at the beginning of a line.
    #[default]
    Text,
    /// In a line of a text, dropped up to the line end.
    Dropped,
}

/// Delimiters amid one header whose rests are read as headers of their own.
const RESTARTS_MAX: usize = 16;

/// The outline so far.
#[derive(Debug)]
pub struct Outline {
    kept: Vec<u8>,
    place: Place,
    /// Where the unfinished line begins in `kept`.
    line: usize,
    boundaries: HashSet<Vec<u8>>,
    /// Octets of the longest boundary.
    longest: usize,
    /// Whether a header names a digest; the parts of a digest are messages by default.
    has_digest: bool,
    is_cut: bool,
    /// The places behind delimiters amid the header that is being read.
    restarts: Vec<usize>,
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            place: Place::Header(0),
            line: 0,
            boundaries: HashSet::new(),
            longest: 0,
            has_digest: false,
            is_cut: false,
            restarts: Vec::new(),
        }
    }
}

impl Outline {
    /// Takes the next octets of the message.
    pub fn take(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() && !self.is_cut {
            let end = memchr::memchr(b'\n', octets).map(|at| at.saturating_add(1));
            let (piece, rest) = octets.split_at(end.unwrap_or(octets.len()));
            self.piece(piece, end.is_some());
            octets = rest;
        }
    }

    /// Takes a piece of a line, with the line end or without.
    fn piece(&mut self, piece: &[u8], is_end: bool) {
        if self.place != Place::Dropped {
            self.keep(piece);
        }
        if !is_end {
            self.give_up_text();
            return;
        }
        match self.place {
            Place::Header(start) => self.header_line(start),
            Place::Text => self.text_line(),
            Place::Dropped => self.place = Place::Text,
        }
        self.line = self.kept.len();
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = OUTLINE_OCTETS_MAX.saturating_sub(self.kept.len());
        match piece.get(..room.min(piece.len())) {
            Some(fits) if fits.len() == piece.len() => self.kept.extend_from_slice(fits),
            // A line of a text is dropped below, whatever its length.
            _ if self.place == Place::Text && !self.may_delimit(piece) => {
                self.kept.truncate(self.line);
                self.place = Place::Dropped;
            }
            _ => self.cut(),
        }
    }

    /// Keeps no more of the message, and the beginning alone of the outline: authors usually stand there.
    fn cut(&mut self) {
        self.is_cut = true;
        self.kept.truncate(CUT_OCTETS);
        self.kept.shrink_to_fit();
        self.boundaries = HashSet::new();
    }

    /// Octets in memory.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.kept.capacity()
    }

    /// Drops an unfinished line of a text, unless the line may still become a delimiter.
    fn give_up_text(&mut self) {
        let line = self.kept.get(self.line..).unwrap_or_default();
        if self.place == Place::Text && !self.may_delimit(line) {
            self.kept.truncate(self.line);
            self.place = Place::Dropped;
        }
    }

    /// Whether an unfinished line can be a delimiter: blanks may follow a boundary.
    fn may_delimit(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        let most = self.longest.saturating_add(4);
        line.len() <= most && (line.starts_with(b"--") || b"--".starts_with(line))
    }

    /// Ends a line of a text. Behind a delimiter the header of a part begins; behind a closing delimiter, an unread text.
    fn text_line(&mut self) {
        let line = self.kept.get(self.line..).unwrap_or_default();
        let rest = line.strip_prefix(b"--").map(<[u8]>::trim_ascii_end);
        let is = |rest: Option<&[u8]>| rest.is_some_and(|rest| self.boundaries.contains(rest));
        if is(rest) {
            self.place = Place::Header(self.kept.len());
        } else if !is(rest.and_then(|rest| rest.strip_suffix(b"--"))) {
            self.kept.truncate(self.line);
        }
    }

    /// Ends a line of a header. A delimiter amid a header begins a new header, or, behind the end of the multipart, has no meaning: the
    /// outline keeps both.
    fn header_line(&mut self, start: usize) {
        let line = self.kept.get(self.line..).unwrap_or_default();
        let delimiter = line.strip_prefix(b"--").map(<[u8]>::trim_ascii_end);
        if delimiter.is_some_and(|boundary| self.boundaries.contains(boundary)) {
            // One beyond the bound tells that there are more.
            if self.restarts.len() <= RESTARTS_MAX {
                self.restarts.push(self.kept.len());
            }
        } else if matches!(line, b"\n" | b"\r\n") {
            let restarts = std::mem::take(&mut self.restarts);
            // Of very many the first ones are read, and the header of a message may follow in any case.
            let mut is_message = restarts.len() > RESTARTS_MAX;
            for place in std::iter::once(start).chain(restarts.into_iter().take(RESTARTS_MAX)) {
                is_message |= self.end_header(place);
            }
            self.place = match is_message {
                true => Place::Header(self.kept.len()),
                false => Place::Text,
            };
        }
    }

    /// Takes note of the type of a part, and returns whether the header of a message may follow.
    fn end_header(&mut self, start: usize) -> bool {
        let header = self.kept.get(start..).unwrap_or_default();
        let read = |field: &Field<'_>| {
            let value = field.value.get(..VALUE_OCTETS_MAX);
            Parameterized::read(&unfold(value.unwrap_or(field.value)))
        };
        let (mut types, mut encodings, mut is_encoded) = (0, 0, false);
        let mut may_be_message = false;
        for field in fields(header) {
            if field.is("Content-Transfer-Encoding") {
                encodings += 1;
                let encoding = read(&field).value;
                is_encoded |= encoding.eq_ignore_ascii_case(b"base64")
                    || encoding.eq_ignore_ascii_case(b"quoted-printable");
            }
            if !field.is("Content-Type") {
                continue;
            }
            types += 1;
            let given = read(&field);
            let kind = given.value.to_ascii_lowercase();
            may_be_message |=
                kind.starts_with(b"message") || !kind.contains(&b'/') && self.has_digest;
            if !kind.starts_with(b"multipart") {
                continue;
            }
            self.has_digest |= kind.ends_with(b"digest");
            let boundary = given.parameter("boundary").map(<[u8]>::trim_ascii_end);
            if let Some(boundary) = boundary.filter(|boundary| !boundary.is_empty()) {
                self.longest = self.longest.max(boundary.len());
                self.boundaries.insert(boundary.to_vec());
            }
        }
        may_be_message |= types == 0 && self.has_digest;
        // The text of an encoded part is no message. Of several fields readers take one or another.
        may_be_message && !(is_encoded && types <= 1 && encodings == 1)
    }

    /// Ends the message, and reads its authors and structure.
    pub fn read(mut self, facts: &mut Facts) {
        if !self.is_cut && matches!(self.place, Place::Text) {
            self.text_line();
        }
        facts.read(&self.kept, &Parsed::of(&self.kept));
        if self.is_cut {
            facts.cut = true;
            let structure = facts.structure.get_or_insert_with(Structure::default);
            structure.total = UNCOUNTED;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outlined(message: &[u8], piece: usize) -> Facts {
        let mut outline = Outline::default();
        for piece in message.chunks(piece) {
            outline.take(piece);
        }
        let mut facts = Facts::default();
        outline.read(&mut facts);
        facts
    }

    fn whole(message: &[u8]) -> Facts {
        let mut facts = Facts::default();
        facts.read(message, &Parsed::of(message));
        facts
    }

    /// The reader of the whole message begins the header anew at the second delimiter, and passes over that of a closed multipart.
    #[test]
    fn delimiters_amid_a_header_hide_nothing() {
        let lines = [
            "Content-Type: multipart/mixed; boundary=b",
            "",
            "--b",
            "Content-Type: multipart/mixed; boundary=a",
            "",
            "--a--",
            "--b",
            "Content-Transfer-Encoding: base64",
            "--b",
            "Content-Type: message/rfc822",
            "--a",
            "X: y",
            "",
            "Content-Type: application/x; name=f.exe",
            "Content-Disposition: attachment; filename=f.exe",
            "",
            "text",
        ];
        let message = lines.join("\r\n");
        let whole = whole(message.as_bytes());
        assert_eq!(outlined(message.as_bytes(), 7), whole);
        let structure = whole.structure.expect("a structure");
        let mut names = structure.attachments.iter().map(|one| one.name.as_str());
        assert!(names.any(|name| name == "f.exe"), "{structure:?}");
    }

    #[test]
    fn the_text_of_a_message_is_dropped_and_all_headers_are_kept() {
        let text = "-- \r\nnot kept\r\n--c\r\n".repeat(1_000);
        let message = format!(
            "From: a@b.example\r\nContent-Type: multipart/mixed; boundary=\"c d\"\r\n\r\n{text}\
             --c d \r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\nContent-Type: multipart/x; boundary=e\r\n\r\n\
             --e\r\nContent-Disposition: attachment; filename=a.exe\r\n\r\n{text}\r\n--e--\r\n--c d--\r\n{text}"
        );
        for piece in [1, 7, 4_096, usize::MAX] {
            assert_eq!(
                outlined(message.as_bytes(), piece),
                whole(message.as_bytes())
            );
        }
        let mut outline = Outline::default();
        outline.take(message.as_bytes());
        assert!(outline.kept.len() < 400, "{}", outline.kept.len());
    }

    #[test]
    fn a_message_without_end_is_cut_and_counts_as_beyond_the_bounds() {
        let header = "X: y\r\n".repeat(OUTLINE_OCTETS_MAX / 6 + 1);
        let facts = outlined(header.as_bytes(), 1_000);
        assert!(facts.cut);
        assert_eq!(facts.structure.unwrap().total, UNCOUNTED);
        // The text of an encoded message is no header, though no empty line ends it.
        let encoded = "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            .to_owned()
            + &"TWVzc2FnZQ==TWVzc2FnZQ==\r\n".repeat(OUTLINE_OCTETS_MAX / 20);
        assert_eq!(
            outlined(encoded.as_bytes(), 9_999),
            whole(encoded.as_bytes())
        );
        // A text of any length, in one line or in many, is no part of the outline.
        for line in ["x", "-", "--", "--b", "\r\n", "--b\r\n", "-- \n"] {
            let text = line.repeat(4 * OUTLINE_OCTETS_MAX / line.len());
            let message = format!("From: a@b.example\r\n\r\n{text}");
            assert_eq!(
                outlined(message.as_bytes(), 10_000),
                whole(message.as_bytes())
            );
        }
    }

    /// A type without a slash and a part of a digest with an own type are texts of any length.
    #[test]
    fn texts_of_odd_types_are_dropped() {
        let text = "text: text\r\n".repeat(OUTLINE_OCTETS_MAX / 10);
        for header in [
            "Content-Type: odd\r\n\r\n",
            "Content-Type: multipart/digest; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain\r\n\r\n",
        ] {
            let message = format!("From: a@b.example\r\n{header}{text}");
            let facts = outlined(message.as_bytes(), 10_000);
            assert!(!facts.cut, "{header}");
            assert_eq!(facts, whole(message.as_bytes()));
        }
    }

    proptest! {
        /// The outline has the parts of the message, in whatever pieces the message came.
        #[test]
        fn an_outline_has_the_structure_of_the_message(
            lines in prop::collection::vec(prop::sample::select(vec![
                "", "text", "--a", "--a--", "--b", "--b--", "--a \t", "---a", "--", "-", " folded",
                "Content-Type: multipart/mixed; boundary=a", "Content-Type: multipart/digest; boundary=\"b\"",
                "Content-Type: multipart/mixed; boundary=\"b--\"", "Content-Type: message/rfc822", "Content-Type: message/global; x=y",
                "Content-Type: multipart/x;", "Content-Type:", "Content-Type: application/x; name=n.exe", " ; boundary=a",
                "Content-Transfer-Encoding: base64", "Content-Disposition: attachment; filename=f.exe", "From: a@b.example",
            ]), 0..60),
            ending in prop::sample::select(vec!["\r\n", "\n"]),
            piece in 1_usize..40,
        ) {
            let message = lines.join(ending);
            prop_assert_eq!(outlined(message.as_bytes(), piece), whole(message.as_bytes()));
        }
    }
}
