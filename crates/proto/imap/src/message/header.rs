//! Header fields (RFC 5322 section 2.2), as they lie in a message, broken ones among them.

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, without space around it.
    pub name: &'a [u8],
    /// What stands behind the colon, folded, with its line ends.
    pub value: &'a [u8],
    /// The whole field with its line end.
    pub raw: &'a [u8],
}

/// The fields of a header; lines that are none are passed over.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// Goes through the fields of a header, or of what begins with one.
#[must_use]
pub const fn fields(header: &[u8]) -> Fields<'_> {
    Fields { rest: header }
}

/// Finds the first field of this name, in any case.
#[must_use]
pub fn field<'a>(header: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(header)
        .find(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
        .map(|field| field.value)
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            let raw = take_field(&mut self.rest)?;
            let Some(colon) = memchr::memchr(b':', raw) else {
                continue;
            };
            let (name, value) = raw.split_at(colon);
            let name = name.trim_ascii_end();
            // A name is printable (RFC 5322 section 2.2); an mbox line or a stray continuation is none.
            if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
                continue;
            }
            return Some(Field {
                name,
                value: value.get(1..).unwrap_or_default(),
                raw,
            });
        }
    }
}

/// Takes a line with those that continue it; `None` at the end of the header.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut end = line_length(rest);
    if end == 0 || is_blank(rest.get(..end).unwrap_or_default()) {
        return None;
    }
    while matches!(rest.get(end), Some(b' ' | b'\t')) {
        let more = line_length(rest.get(end..).unwrap_or_default());
        // A line of nothing but space ends no header, and continues nothing worth keeping apart.
        end = end.saturating_add(more);
    }
    let (field, behind) = rest.split_at_checked(end).unwrap_or((rest, &[]));
    *rest = behind;
    Some(field)
}

/// Octets of the first line with its line end.
pub(super) fn line_length(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |end| end.saturating_add(1))
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line, b"\r\n" | b"\n")
}

/// Octets of the header with the empty line that ends it.
#[must_use]
pub fn header_length(message: &[u8]) -> usize {
    let mut length = 0_usize;
    let mut rest = message;
    loop {
        let line = line_length(rest);
        length = length.saturating_add(line);
        if line == 0 || is_blank(rest.get(..line).unwrap_or_default()) {
            return length;
        }
        rest = rest.get(line..).unwrap_or_default();
    }
}

/// Unfolds a value (RFC 5322 section 2.2.3): line ends go, space stays; none at either end.
#[must_use]
pub fn unfold(value: &[u8]) -> Vec<u8> {
    value
        .trim_ascii()
        .iter()
        .copied()
        .filter(|octet| !matches!(octet, b'\r' | b'\n'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_passed_over() {
        let header = b"From a@b Thu Jan  1\r\nFrom: a\r\n b\r\nno colon here\r\nTo : c\r\n: d\r\n\r\nSubject: body\r\n";
        let found: Vec<_> = fields(header)
            .map(|field| (field.name, unfold(field.value)))
            .collect();
        let wanted: Vec<(&[u8], Vec<u8>)> =
            vec![(b"From", b"a b".to_vec()), (b"To", b"c".to_vec())];
        assert_eq!(found, wanted);
        assert_eq!(
            header_length(header),
            header.len() - "Subject: body\r\n".len()
        );
        assert_eq!(field(header, "from").map(unfold), Some(b"a b".to_vec()));
        assert_eq!(field(header, "subject"), None);
    }

    #[test]
    fn a_message_may_be_header_only_or_empty() {
        assert_eq!(header_length(b"A: b"), 4);
        assert_eq!(header_length(b""), 0);
        assert_eq!(header_length(b"\n body"), 1);
        assert_eq!(fields(b"A: b").count(), 1);
    }
}
