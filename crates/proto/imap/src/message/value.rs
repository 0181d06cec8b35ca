//! Structured header fields of MIME (RFC 2045 section 5.1): a value and its parameters.

/// Parameters of one field that are read.
const PARAMETERS_MAX: usize = 64;

/// A value with parameters, such as `text/plain; charset=utf-8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// What stands before the first semicolon.
    pub text: Vec<u8>,
    /// The parameters, in order; names as written, values without their quotes.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Value {
    /// Finds a parameter by its name, in any case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        self.parameters
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value.as_slice())
    }
}

/// Reads a value as well as it can be read; comments are passed over.
#[must_use]
pub fn parse(field: &[u8]) -> Value {
    let mut rest = field;
    let text = segment(&mut rest, b";", false);
    let mut value = Value {
        text,
        parameters: Vec::new(),
    };
    while !rest.is_empty() && value.parameters.len() < PARAMETERS_MAX {
        let name = segment(&mut rest, b"=;", false);
        let behind = rest;
        let parameter = match first_behind(field, behind) {
            Some(b'=') => segment(&mut rest, b";", true),
            _ => continue,
        };
        if !name.is_empty() {
            value.parameters.push((name, parameter));
        }
    }
    value
}

/// The octet before `behind` in `whole`, of which it is the end.
fn first_behind(whole: &[u8], behind: &[u8]) -> Option<u8> {
    let index = whole.len().checked_sub(behind.len())?.checked_sub(1)?;
    whole.get(index).copied()
}

/// Takes text up to one of these octets, and that octet; comments and quotes do not end it. Space is
/// kept only within quotes, and in the middle where `spaces` says so: file names are often written
/// without quotes.
fn segment(rest: &mut &[u8], ends: &[u8], spaces: bool) -> Vec<u8> {
    let mut text = Vec::new();
    let mut quoted_to = 0;
    while let Some((&octet, behind)) = rest.split_first() {
        *rest = behind;
        match octet {
            _ if ends.contains(&octet) => break,
            b'"' => {
                quoted(rest, &mut text);
                quoted_to = text.len();
            }
            b'(' => skip_comment(rest),
            b'\r' | b'\n' => {}
            b' ' | b'\t' if spaces && !text.is_empty() => text.push(b' '),
            b' ' | b'\t' => {}
            _ => text.push(octet),
        }
    }
    while text.len() > quoted_to && text.last() == Some(&b' ') {
        text.pop();
    }
    text
}

/// Takes the rest of a quoted string.
pub(super) fn quoted(rest: &mut &[u8], text: &mut Vec<u8>) {
    while let Some((&octet, behind)) = rest.split_first() {
        *rest = behind;
        match octet {
            b'"' => return,
            b'\\' => {
                if let Some((&escaped, behind)) = rest.split_first() {
                    text.push(escaped);
                    *rest = behind;
                }
            }
            b'\r' | b'\n' => {}
            _ => text.push(octet),
        }
    }
}

/// Takes the rest of a comment, which may hold others (RFC 5322 section 3.2.2).
pub(super) fn skip_comment(rest: &mut &[u8]) {
    let mut depth = 1_usize;
    while let Some((&octet, behind)) = rest.split_first() {
        *rest = behind;
        match octet {
            b'(' => depth = depth.saturating_add(1),
            b')' => depth = depth.saturating_sub(1),
            b'\\' => *rest = rest.get(1..).unwrap_or_default(),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(field: &str) -> String {
        let value = parse(field.as_bytes());
        let mut out = String::from_utf8(value.text).unwrap();
        for (name, text) in value.parameters {
            out.push_str(&format!(
                "|{}={}",
                String::from_utf8(name).unwrap(),
                String::from_utf8(text).unwrap()
            ));
        }
        out
    }

    #[test]
    fn reads_parameters() {
        for (field, wanted) in [
            (
                " text/plain; charset=us-ascii (Plain text)",
                "text/plain|charset=us-ascii",
            ),
            (
                " Text / Plain ;\r\n charset=\"a;\\\"b\" ; x",
                "Text/Plain|charset=a;\"b",
            ),
            (
                "attachment; filename=my file.txt ; size=3",
                "attachment|filename=my file.txt|size=3",
            ),
            ("a; filename*0=\" x \"; =y;;b=", "a|filename*0= x |b="),
            ("", ""),
            ("(a(b)c\\)) x", "x"),
        ] {
            assert_eq!(shown(field), wanted, "{field}");
        }
    }

    #[test]
    fn parameters_are_bounded() {
        let field = format!("x{}", ";a=b".repeat(10_000));
        assert_eq!(parse(field.as_bytes()).parameters.len(), PARAMETERS_MAX);
    }
}
