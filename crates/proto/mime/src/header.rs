//! Header fields (RFC 5322 section 2.2).

/// A field as it stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What is before the colon, trailing blanks removed; empty for a line without one.
    pub name: &'a [u8],
    /// What is behind the colon, folds and all, without the last line end.
    pub value: &'a [u8],
    /// All of it as it stands there, the last line end included.
    pub raw: &'a [u8],
}

impl Field<'_> {
    /// Whether the field has this name, in any case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Whether what stands before the colon can be a name (RFC 5322 section 2.2): that of an mbox line or
    /// of a continuation gone astray cannot.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.name.is_empty() && self.name.iter().all(u8::is_ascii_graphic)
    }
}

/// The fields of a header, in order; lines end with LF, with or without CR before it.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

/// Walks over the fields of a header.
#[must_use]
pub fn fields(header: &[u8]) -> Fields<'_> {
    Fields(header)
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let mut end = 0;
        loop {
            let rest = self.0.get(end..).unwrap_or_default();
            if end == 0 && matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..]) {
                // What is behind the empty line folds nothing.
                return None;
            }
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
        let field = without_line_end(raw);
        self.0 = rest;
        if field.is_empty() {
            return None;
        }
        Some(match memchr::memchr(b':', field) {
            Some(colon) => Field {
                name: field.get(..colon).unwrap_or_default().trim_ascii_end(),
                value: field.get(colon.saturating_add(1)..).unwrap_or_default(),
                raw,
            },
            None => Field {
                name: &[],
                value: field,
                raw,
            },
        })
    }
}

/// A line without what ends it.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A value in one line: line ends removed, what folds begin with kept, blanks around it removed (RFC
/// 5322 section 2.2.3).
#[must_use]
pub fn unfold(value: &[u8]) -> Vec<u8> {
    let octets = value
        .iter()
        .copied()
        .filter(|octet| !matches!(octet, b'\r' | b'\n'));
    octets.collect::<Vec<_>>().trim_ascii().to_vec()
}

/// Octets of the header of `message`, the empty line after it included; all of it without one.
#[must_use]
pub fn header_len(message: &[u8]) -> usize {
    let mut at = 0;
    for newline in memchr::memchr_iter(b'\n', message) {
        let line = message.get(at..newline).unwrap_or_default();
        at = newline.saturating_add(1);
        if matches!(line, [] | [b'\r']) {
            return at;
        }
    }
    message.len()
}
