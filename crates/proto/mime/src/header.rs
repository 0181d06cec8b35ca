//! Header fields (RFC 5322 section 2.2).

/// A field as written in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The text before the colon, without trailing blanks; empty for a line without a colon.
    pub name: &'a [u8],
    /// What is behind the colon, folds and all, without the last line end.
    pub value: &'a [u8],
    /// The whole field as written, with the last line end.
    pub raw: &'a [u8],
}

impl<'a> Field<'a> {
    /// Parses a field from its first line and the continuation lines.
    #[must_use]
    pub fn of(raw: &'a [u8]) -> Self {
        let field = without_line_end(raw);
        match memchr::memchr(b':', field) {
            Some(colon) => Self {
                name: field.get(..colon).unwrap_or_default().trim_ascii_end(),
                value: field.get(colon.saturating_add(1)..).unwrap_or_default(),
                raw,
            },
            None => Self {
                name: &[],
                value: field,
                raw,
            },
        }
    }

    /// Whether the field has the name, in any case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether the text before the colon is a valid field name (RFC 5322 section 2.2); an mbox line or a stray
    /// continuation line has no valid name.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.name.is_empty() && self.name.iter().all(u8::is_ascii_graphic)
    }
}

/// The fields of a header, in order; lines end with LF, with or without CR before it. The first empty line ends the
/// header: [`Field::raw`] of all fields, concatenated, is [`header`].
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

/// Walks over the fields of a header, or of a message.
#[must_use]
pub fn fields(header: &[u8]) -> Fields<'_> {
    Fields(header)
}

impl<'a> Fields<'a> {
    /// The unread octets. After the last field: the empty line and the body.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if empty_line(self.0) > 0 {
            return None;
        }
        let mut end = 0;
        loop {
            let rest = self.0.get(end..).unwrap_or_default();
            match memchr::memchr(b'\n', rest) {
                Some(at) => end = end.saturating_add(at).saturating_add(1),
                None => end = self.0.len(),
            }
            let folded = matches!(self.0.get(end), Some(b' ' | b'\t'));
            if !folded {
                break;
            }
        }
        let (raw, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        (!raw.is_empty()).then(|| Field::of(raw))
    }
}

/// Octets of the empty line at the beginning of the text; 0 without an empty line.
const fn empty_line(octets: &[u8]) -> usize {
    match octets {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    }
}

/// A line without its line end.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A value in one line: line ends are removed, blanks of continuation lines kept, blanks around the value removed
/// (RFC 5322 section 2.2.3).
#[must_use]
pub fn unfold(value: &[u8]) -> Vec<u8> {
    let octets = value
        .iter()
        .copied()
        .filter(|octet| !matches!(octet, b'\r' | b'\n'));
    octets.collect::<Vec<_>>().trim_ascii().to_vec()
}

/// Octets of the header of `message`, with the empty line; the whole message if there is no empty line.
#[must_use]
pub fn header_len(message: &[u8]) -> usize {
    let fields = header(message).len();
    let rest = message.get(fields..).unwrap_or_default();
    fields.saturating_add(empty_line(rest))
}

/// The header of `message`, the last line end included, without the empty line after it.
#[must_use]
pub fn header(message: &[u8]) -> &[u8] {
    let begins = memchr::memchr_iter(b'\n', message).map(|newline| newline.saturating_add(1));
    let mut begins = std::iter::once(0).chain(begins);
    let end = begins.find(|at| empty_line(message.get(*at..).unwrap_or_default()) > 0);
    message
        .get(..end.unwrap_or(message.len()))
        .unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Where the lines of a header begin and end, octet by octet, as the rule is written down.
    fn lines_of(message: &[u8]) -> (Vec<std::ops::Range<usize>>, usize) {
        let (mut lines, mut start) = (Vec::new(), 0);
        while start < message.len() {
            let mut end = start;
            while end < message.len() && message[end] != b'\n' {
                end += 1;
            }
            let line = start..(end + 1).min(message.len());
            if [&b"\n"[..], b"\r\n"].contains(&&message[line.clone()]) {
                return (lines, line.end);
            }
            start = line.end;
            lines.push(line);
        }
        (lines, message.len())
    }

    /// The fields of a message by the rule of lines.
    fn fields_of(message: &[u8]) -> Vec<std::ops::Range<usize>> {
        let mut fields: Vec<std::ops::Range<usize>> = Vec::new();
        for line in lines_of(message).0 {
            match (message[line.start], fields.last_mut()) {
                (b' ' | b'\t', Some(field)) => field.end = line.end,
                _ => fields.push(line),
            }
        }
        fields
    }

    #[test]
    fn the_first_empty_line_ends_a_header_whatever_ends_lines() {
        let check = |message: &[u8], octets: usize, with_empty_line: usize| {
            assert_eq!(header(message).len(), octets, "{message:?}");
            assert_eq!(header_len(message), with_empty_line, "{message:?}");
        };
        check(b"A: b\r\n\r\nbody", 6, 8);
        check(b"A: b\n\nbody\r\n\r\n", 5, 6);
        check(b"A: b\r\n\nbody", 6, 7);
        check(b"A: b\n\r\nbody", 5, 7);
        check(b"A: b\r\n", 6, 6);
        check(b"A: b", 4, 4);
        check(b"\r\nbody", 0, 2);
        check(b"\nbody", 0, 1);
        check(b"", 0, 0);
        // No line here is an empty line.
        check(b"A: b\n \n\r\r\n\r", 11, 11);
        check(b"A: b\r\rc\0\n\n", 9, 10);
    }

    #[test]
    fn a_field_has_a_name_and_a_value() {
        let shown = |field: Field<'_>| {
            let text = |octets| String::from_utf8_lossy(octets).into_owned();
            (text(field.name), text(field.value), field.is_named())
        };
        let check = |header: &[u8], expected: &[(&str, &str, bool)]| {
            let found: Vec<_> = fields(header).map(shown).collect();
            let found: Vec<_> = found
                .iter()
                .map(|(name, value, named)| (name.as_str(), value.as_str(), *named))
                .collect();
            assert_eq!(found, expected, "{header:?}");
        };
        check(
            b"A : b:c\r\n d\r\nB:\nno field\r\n",
            &[
                ("A", " b:c\r\n d", true),
                ("B", "", true),
                ("", "no field", false),
            ],
        );
        // A continuation line in first place continues no field; text behind the empty line is no field either.
        check(
            b" a: b\nA\n : c\n\n d\n",
            &[(" a", " b", false), ("A", " c", true)],
        );
        check(b"a b: c\r\n: d", &[("a b", " c", false), ("", " d", false)]);
    }

    /// Frequent and rare pieces of headers.
    const PIECES: [&[u8]; 10] = [
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b"a",
        b"Subject: x\r\n",
        b"\xff",
    ];

    proptest! {
        /// The search by octets and the search by lines find the same header, and every octet of the header lies in
        /// exactly one field.
        #[test]
        fn fields_lie_one_behind_the_other_up_to_the_empty_line(
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24)
        ) {
            let message = pieces.concat();
            let (lines, len) = lines_of(&message);
            let header_end = lines.last().map_or(0, |line| line.end);
            prop_assert_eq!(header_len(&message), len);
            prop_assert_eq!(header(&message), &message[..header_end]);
            let mut walk = fields(&message);
            let mut at = 0;
            for expected in fields_of(&message) {
                let field = walk.next();
                prop_assert!(field.is_some());
                let field = field.unwrap_or(Field::of(b""));
                prop_assert_eq!(at, expected.start);
                at = expected.end;
                prop_assert_eq!(field.raw, &message[expected]);
                let colon = field.raw.iter().position(|octet| *octet == b':');
                let end = without_line_end(field.raw).len();
                prop_assert_eq!(field.value, &field.raw[colon.map_or(0, |colon| colon + 1)..end]);
                prop_assert_eq!(field.name, field.raw[..colon.unwrap_or(0)].trim_ascii_end());
            }
            prop_assert_eq!(walk.next(), None);
            prop_assert_eq!(walk.rest(), &message[header_end..]);
            // The fields of a header are the fields of its message.
            prop_assert!(fields(header(&message)).eq(fields(&message)));
        }
    }
}
