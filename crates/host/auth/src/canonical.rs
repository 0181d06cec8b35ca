//! Canonical header fields (RFC 6376 sections 3.4.1 and 3.4.2).

use std::collections::HashMap;
use std::ops::Range;

use vere_mime::Field;

/// The form in which a header or a body is hashed (RFC 6376 section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Canonicalization {
    Simple,
    Relaxed,
}

/// Appends the canonical form of a field, with its line end.
pub(crate) fn field(field: &Field<'_>, form: Canonicalization, to: &mut Vec<u8>) {
    match form {
        // The last line of a header without an end has none.
        Canonicalization::Simple => to.extend_from_slice(without_line_end(field.raw)),
        Canonicalization::Relaxed => {
            to.extend(field.name.iter().map(u8::to_ascii_lowercase));
            to.push(b':');
            relaxed(field.value, to);
        }
    }
    to.extend_from_slice(b"\r\n");
}

/// Appends the canonical form of a signature's own field: without the value of its tag `b`, which has the place in the
/// field's value, and without a line end (section 3.7).
pub(crate) fn own_field(
    own: &Field<'_>,
    b: &Range<usize>,
    form: Canonicalization,
    to: &mut Vec<u8>,
) {
    let before = own.raw.len().saturating_sub(
        own.raw
            .splitn(2, |octet| *octet == b':')
            .nth(1)
            .map_or(0, <[u8]>::len),
    );
    let start = before.saturating_add(b.start);
    let end = before.saturating_add(b.end);
    let kept = [own.raw.get(..start), own.raw.get(end..)];
    let without = kept.map(Option::unwrap_or_default).concat();
    field(&Field::of(&without), form, to);
    to.truncate(to.len().saturating_sub(2));
}

fn relaxed(value: &[u8], to: &mut Vec<u8>) {
    let mut blank = false;
    let begin = to.len();
    for (at, octet) in value.iter().enumerate() {
        let next = value.get(at.saturating_add(1));
        match octet {
            b' ' | b'\t' => blank = true,
            b'\n' => {}
            // A CR without an LF is content: without it, a signed field could be changed.
            b'\r' if next == Some(&b'\n') => {}
            _ => {
                if blank && to.len() > begin {
                    to.push(b' ');
                }
                blank = false;
                to.push(*octet);
            }
        }
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The fields of a header by name.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    fields: Vec<Field<'a>>,
    /// Indexes into `fields` in order, by name in lower case.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl<'a> Header<'a> {
    /// Sorts the fields of a header.
    pub(crate) fn of(header: &'a [u8]) -> Self {
        let fields: Vec<_> = vere_mime::fields(header).collect();
        let mut by_name = HashMap::<_, Vec<usize>>::new();
        for (index, field) in fields.iter().enumerate() {
            let name = field.name.to_ascii_lowercase();
            by_name.entry(name).or_default().push(index);
        }
        Self { fields, by_name }
    }

    /// Returns the field with this number.
    pub(crate) fn field(&self, index: usize) -> Option<&Field<'a>> {
        self.fields.get(index)
    }

    /// Appends the canonical form of the fields named by a signature. Each mention of a name stands for one field, from the bottom up;
    /// a mention without a field stands for nothing (section 5.4.2).
    pub(crate) fn named(&self, names: &[String], form: Canonicalization, to: &mut Vec<u8>) {
        let mut used = HashMap::<&str, usize>::new();
        for name in names {
            let count = used.entry(name).or_default();
            *count = count.saturating_add(1);
            let indexes = self.by_name.get(name.as_bytes());
            let index = indexes.and_then(|all| all.get(all.len().checked_sub(*count)?));
            if let Some(found) = index.and_then(|index| self.fields.get(*index)) {
                field(found, form, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(header: &[u8], names: &[&str], form: Canonicalization) -> String {
        let mut octets = Vec::new();
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Header::of(header).named(&names, form, &mut octets);
        String::from_utf8(octets).unwrap()
    }

    /// The example of RFC 6376 section 3.4.5.
    #[test]
    fn fields_have_the_forms_of_the_standard() {
        let header = b"A: X\r\nB : Y\t\r\n\tZ  \r\n";
        let form = shown(header, &["a", "b"], Canonicalization::Relaxed);
        assert_eq!(form, "a:X\r\nb:Y Z\r\n");
        let form = shown(header, &["a", "b"], Canonicalization::Simple);
        assert_eq!(form, "A: X\r\nB : Y\t\r\n\tZ  \r\n");
    }

    #[test]
    fn fields_of_one_name_count_from_the_bottom() {
        let header = b"A: 1\r\nB: 2\r\na: 3\r\n";
        let form = shown(
            header,
            &["a", "c", "a", "a", "b"],
            Canonicalization::Relaxed,
        );
        assert_eq!(form, "a:3\r\na:1\r\nb:2\r\n");
    }

    #[test]
    fn a_cr_in_a_line_stays() {
        let form = shown(b"A: x\ry\r\n z\n w\r\n", &["a"], Canonicalization::Relaxed);
        assert_eq!(form, "a:x\ry z w\r\n");
    }

    #[test]
    fn a_signature_does_not_cover_its_own_value() {
        let raw = b"DKIM-Signature: a=1; b=xy\r\n z; c=2\r\n";
        let mut octets = Vec::new();
        own_field(
            &Field::of(raw),
            &(8..14),
            Canonicalization::Relaxed,
            &mut octets,
        );
        assert_eq!(octets, b"dkim-signature:a=1; b=; c=2");
    }
}
