//! The text of a line: escapes, variables, repetition, base64, and in server lines wild cards.

use std::collections::BTreeMap;

/// Values of variables, by name.
pub(crate) type Variables = BTreeMap<String, Vec<u8>>;

/// Octets that a repetition may produce.
const REPEAT_MAX: usize = 128 << 20;

/// A parsed text.
///
/// ```text
/// text     = *( octet / escape / variable / repeat / base64 / "*" )
/// escape   = "\" ( "r" / "n" / "t" / "0" / "\" / "$" / "*" / "x" 2HEXDIG )
/// variable = "$" name / "${" name "}"
/// repeat   = "$(" text "*" 1*DIGIT ")"       ; text without ")" and variables
/// base64   = "$b64(" text ")"                ; of text without ")"
/// name     = ALPHA *( ALPHA / DIGIT / "_" )
/// ```
///
/// `*` is a wild card in server lines, and itself in client lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Octets(Vec<u8>),
    Variable(String),
    Base64(Template),
    Wild,
}

/// The error in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A backslash is followed by an unknown escape.
    #[error("unknown escape")]
    Escape,
    /// A `$` is followed by no name, or a bracket is not closed.
    #[error("malformed variable")]
    Variable,
    /// A repetition has no number, or makes too much.
    #[error("malformed repetition")]
    Repeat,
    /// The variable has no value yet.
    #[error("variable ${0} has no value")]
    Unbound(String),
}

impl Template {
    /// Parses the text of a client line.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] except unbound variables.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse(text, false)
    }

    /// Parses the text of a server line, in which `*` is a wild card.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] except unbound variables.
    pub fn parse_pattern(text: &str) -> Result<Self, TemplateError> {
        parse(text, true)
    }

    /// Makes the octets of a client line.
    pub(crate) fn expand(&self, variables: &Variables) -> Result<Vec<u8>, TemplateError> {
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Octets(octets) => out.extend_from_slice(octets),
                Piece::Wild => out.push(b'*'),
                Piece::Base64(inner) => {
                    let encoded = vere_sasl::encode(&inner.expand(variables)?);
                    out.extend_from_slice(encoded.as_bytes());
                }
                Piece::Variable(name) => match variables.get(name) {
                    Some(value) => out.extend_from_slice(value),
                    None => return Err(TemplateError::Unbound(name.clone())),
                },
            }
        }
        Ok(out)
    }

    /// Whether a line of the server matches; variables without a value then get a value, a run of
    /// characters other than spaces.
    pub(crate) fn matches(&self, line: &[u8], variables: &mut Variables) -> bool {
        let mut found = variables.clone();
        let fits = fits(&self.0, line, &mut found);
        if fits {
            *variables = found;
        }
        fits
    }
}

fn fits(pieces: &[Piece], line: &[u8], variables: &mut Variables) -> bool {
    let Some((piece, pieces)) = pieces.split_first() else {
        return line.is_empty();
    };
    match piece {
        Piece::Octets(octets) => begins(octets, pieces, line, variables),
        Piece::Base64(inner) => match inner.expand(variables) {
            Ok(plain) => {
                let encoded = vere_sasl::encode(&plain);
                begins(encoded.as_bytes(), pieces, line, variables)
            }
            Err(_) => false,
        },
        Piece::Wild => (0..=line.len()).any(|length| fits(pieces, &line[length..], variables)),
        Piece::Variable(name) => {
            if let Some(value) = variables.get(name).cloned() {
                return begins(&value, pieces, line, variables);
            }
            let word = line.iter().take_while(|octet| **octet != b' ').count();
            (1..=word).rev().any(|length| {
                variables.insert(name.clone(), line[..length].to_vec());
                let fits = fits(pieces, &line[length..], variables);
                if !fits {
                    variables.remove(name);
                }
                fits
            })
        }
    }
}

fn begins(octets: &[u8], pieces: &[Piece], line: &[u8], variables: &mut Variables) -> bool {
    line.strip_prefix(octets)
        .is_some_and(|rest| fits(pieces, rest, variables))
}

fn parse(text: &str, pattern: bool) -> Result<Template, TemplateError> {
    let mut pieces = Vec::new();
    let mut octets = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let piece = match c {
            '\\' => {
                octets.push(escape(&mut rest)?);
                continue;
            }
            '$' => match variable(&mut rest)? {
                Piece::Octets(repeated) => {
                    octets.extend_from_slice(&repeated);
                    continue;
                }
                piece => piece,
            },
            '*' if pattern => Piece::Wild,
            c => {
                octets.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        if !octets.is_empty() {
            pieces.push(Piece::Octets(std::mem::take(&mut octets)));
        }
        pieces.push(piece);
    }
    if !octets.is_empty() {
        pieces.push(Piece::Octets(octets));
    }
    Ok(Template(pieces))
}

/// Reads an escape behind the backslash.
fn escape(rest: &mut &str) -> Result<u8, TemplateError> {
    let c = rest.chars().next().ok_or(TemplateError::Escape)?;
    *rest = &rest[c.len_utf8()..];
    match c {
        'r' => Ok(b'\r'),
        'n' => Ok(b'\n'),
        't' => Ok(b'\t'),
        '0' => Ok(0),
        '\\' | '$' | '*' => Ok(c as u8),
        'x' => {
            let digits = rest.get(..2).ok_or(TemplateError::Escape)?;
            *rest = &rest[2..];
            u8::from_str_radix(digits, 16).map_err(|_| TemplateError::Escape)
        }
        _ => Err(TemplateError::Escape),
    }
}

/// Reads a variable behind the `$`.
fn variable(rest: &mut &str) -> Result<Piece, TemplateError> {
    if let Some(inner) = bracket(rest, "b64(", ')')? {
        return parse(inner, false).map(Piece::Base64);
    }
    if let Some(inner) = bracket(rest, "(", ')')? {
        return repeat(inner).map(Piece::Octets);
    }
    let name = match bracket(rest, "{", '}')? {
        Some(name) => name,
        None => {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            *rest = after;
            name
        }
    };
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Ok(Piece::Variable(name.to_owned()))
    } else {
        Err(TemplateError::Variable)
    }
}

/// Reads the text between brackets, if the opening bracket is next.
fn bracket<'a>(
    rest: &mut &'a str,
    open: &str,
    close: char,
) -> Result<Option<&'a str>, TemplateError> {
    let Some(inner) = rest.strip_prefix(open) else {
        return Ok(None);
    };
    let (inner, after) = inner.split_once(close).ok_or(TemplateError::Variable)?;
    *rest = after;
    Ok(Some(inner))
}

fn repeat(inner: &str) -> Result<Vec<u8>, TemplateError> {
    let (text, count) = inner.rsplit_once('*').ok_or(TemplateError::Repeat)?;
    let count: usize = count.parse().map_err(|_| TemplateError::Repeat)?;
    let once = parse(text, false)?.expand(&Variables::new())?;
    if once.len().saturating_mul(count) > REPEAT_MAX {
        return Err(TemplateError::Repeat);
    }
    Ok(once.repeat(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Vec<u8> {
        let variables = Variables::from([("a".to_owned(), b"1".to_vec())]);
        Template::parse(text).unwrap().expand(&variables).unwrap()
    }

    #[test]
    fn expands() {
        assert_eq!(expand(r"\r\n\t\0\\\$\*\xfF"), b"\r\n\t\0\\$*\xff");
        assert_eq!(
            expand("$a ${a}b * $(xy*3)$b64(\\0a$a)"),
            b"1 1b * xyxyxyAGEx"
        );
        assert_eq!(expand("$(\\r\\n*2)"), b"\r\n\r\n");
        let unbound = Template::parse("$b").unwrap().expand(&Variables::new());
        assert_eq!(unbound, Err(TemplateError::Unbound("b".to_owned())));
    }

    #[test]
    fn refuses_malformed() {
        for (text, is) in [
            ("\\q", TemplateError::Escape),
            ("\\x1", TemplateError::Escape),
            ("\\", TemplateError::Escape),
            ("$", TemplateError::Variable),
            ("$1", TemplateError::Variable),
            ("${a", TemplateError::Variable),
            ("$(a)", TemplateError::Repeat),
            ("$(a*999999999999)", TemplateError::Repeat),
        ] {
            assert_eq!(Template::parse(text), Err(is), "{text}");
        }
    }

    #[test]
    fn matches_and_captures() {
        let matches = |pattern: &str, line: &str, variables: &mut Variables| {
            Template::parse_pattern(pattern)
                .unwrap()
                .matches(line.as_bytes(), variables)
        };
        let mut variables = Variables::new();
        assert!(matches(
            "220 $host *",
            "220 mx.test ESMTP x",
            &mut variables
        ));
        assert_eq!(variables["host"], b"mx.test");
        assert!(matches("250-$host", "250-mx.test", &mut variables));
        assert!(!matches("250-$host", "250-mx.tesz", &mut variables));
        assert!(!matches("250 $id;", "250 a b;", &mut variables));
        assert!(!variables.contains_key("id"));
        assert!(matches("250 <$id> *", "250 <a> b", &mut variables));
        assert_eq!(variables["id"], b"a");
        assert!(matches("*", "", &mut variables));
        assert!(matches("a*c*", "abcbc", &mut variables));
        assert!(!matches("a\\*", "ab", &mut variables));
        assert!(matches("334 $b64(x)", "334 eA==", &mut variables));
    }
}
