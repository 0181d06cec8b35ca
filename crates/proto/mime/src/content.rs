//! Content-Type, Content-Disposition and their parameters (RFC 2045 section 5.1, RFC 2183), as octets.

use crate::{COMMENT_DEPTH_MAX, PARAMETERS_MAX};

/// A value with parameters: names as written, values without quoting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameterized {
    /// The text before the first semicolon.
    pub value: Vec<u8>,
    /// The parameters, in order.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Parameterized {
    /// The first parameter of a name, in any case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(each, _)| each.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| value.as_slice())
    }

    /// Parses a value in one line.
    #[must_use]
    pub fn read(line: &[u8]) -> Self {
        let mut pieces = Pieces(line);
        let value = pieces.next().unwrap_or_default();
        let parameters = pieces.filter_map(|piece| {
            let equals = memchr::memchr(b'=', &piece.text).filter(|at| *at <= piece.plain)?;
            let (name, value) = piece.text.split_at_checked(equals)?;
            let name = name.trim_ascii();
            let value = value.get(1..).unwrap_or_default();
            let value = if piece.quoted {
                value
            } else {
                value.trim_ascii()
            };
            (!name.is_empty()).then(|| (name.to_vec(), value.to_vec()))
        });
        Self {
            parameters: parameters.take(PARAMETERS_MAX).collect(),
            value: value.text.trim_ascii().to_vec(),
        }
    }
}

/// The text between two semicolons.
#[derive(Debug, Default)]
struct Piece {
    /// Without comments and quoting.
    text: Vec<u8>,
    /// Octets of the text before the first quote.
    plain: usize,
    quoted: bool,
}

struct Pieces<'a>(&'a [u8]);

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.0.is_empty() {
            return None;
        }
        let mut piece = Piece::default();
        let mut octets = self.0.iter();
        let (mut depth, mut inside) = (0_usize, false);
        while let Some(&octet) = octets.next() {
            match octet {
                b'\\' if inside || depth > 0 => {
                    let escaped = octets.next().copied();
                    piece.text.extend(escaped.filter(|_| depth == 0));
                }
                b'"' if depth == 0 => {
                    if !piece.quoted {
                        // Blanks between the equals sign and the quote belong to neither.
                        piece.text.truncate(piece.text.trim_ascii_end().len());
                        (piece.quoted, piece.plain) = (true, piece.text.len());
                    }
                    inside = !inside;
                }
                b'(' if !inside && depth < COMMENT_DEPTH_MAX => depth = depth.saturating_add(1),
                b')' if !inside && depth > 0 => depth = depth.saturating_sub(1),
                b';' if !inside && depth == 0 => break,
                _ if depth > 0 => {}
                // Blanks behind the quote.
                b' ' | b'\t' if piece.quoted && !inside => {}
                _ => piece.text.push(octet),
            }
        }
        if !piece.quoted {
            piece.plain = piece.text.len();
        }
        self.0 = octets.as_slice();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, value: &str, parameters: &[(&str, &str)]) {
        let read = Parameterized::read(line.as_bytes());
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let found: Vec<_> = read
            .parameters
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            (text(&read.value).as_str(), found.as_slice()),
            (value, parameters),
            "{line}"
        );
    }

    #[test]
    fn parameters_are_read() {
        check(
            "text/plain; charset=us-ascii (Plain text)",
            "text/plain",
            &[("charset", "us-ascii")],
        );
        check(
            r#"text/plain; charset="us-ascii""#,
            "text/plain",
            &[("charset", "us-ascii")],
        );
        check(
            r#"multipart/mixed; boundary="a;b = \"c\""; x=y"#,
            "multipart/mixed",
            &[("boundary", r#"a;b = "c""#), ("x", "y")],
        );
        check(
            r#"attachment; filename = "a b.txt" ; size=1"#,
            "attachment",
            &[("filename", "a b.txt"), ("size", "1")],
        );
        check("(c) text/html;;charset=", "text/html", &[("charset", "")]);
        check("", "", &[]);
        check(r#"x; "a=b""#, "x", &[]);
    }
}
