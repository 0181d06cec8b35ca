//! Macros: names in policies with places for values of the session (RFC 7208 section 7).

use std::borrow::Cow;
use std::fmt::Write as _;

/// Octets of an expanded name that are kept at least; a name in the DNS has 253.
const NAME_OCTETS_KEPT: usize = 1_024;

/// A name with macros (`domain-spec`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DomainSpec(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Place),
}

/// `%{...}`: a value and its transformation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    letter: Letter,
    /// An upper-case letter: the value is escaped as in a URI.
    is_escaped: bool,
    /// The number of parts that are kept, from the right.
    kept: usize,
    is_reversed: bool,
    /// Where the value is split.
    delimiters: String,
}

/// The values of a session (RFC 7208 section 7.2). `c`, `r` and `t` are for explanations alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letter {
    /// `s`: the identity.
    Sender,
    /// `l`: the local part of the identity.
    LocalPart,
    /// `o`: the domain of the identity.
    SenderDomain,
    /// `d`: the domain of the policy.
    Domain,
    /// `i`: the client's address, with dots.
    Address,
    /// `p`: the client's name.
    ClientName,
    /// `v`: `in-addr` or `ip6`.
    Family,
    /// `h`: the HELO name.
    Helo,
}

impl Letter {
    const fn of(octet: u8) -> Option<Self> {
        match octet.to_ascii_lowercase() {
            b's' => Some(Self::Sender),
            b'l' => Some(Self::LocalPart),
            b'o' => Some(Self::SenderDomain),
            b'd' => Some(Self::Domain),
            b'i' => Some(Self::Address),
            b'p' => Some(Self::ClientName),
            b'v' => Some(Self::Family),
            b'h' => Some(Self::Helo),
            _ => None,
        }
    }
}

/// The most octets and macros of a name before expansion: four times a name of the DNS, and more macros than a name has labels of
/// use. An evaluation in which every name is longer would take the processor for itself.
const SPEC_OCTETS_MAX: usize = 1_024;
const MACROS_MAX: usize = 32;

impl DomainSpec {
    /// Parses a name: macros and visible characters, and at the end a macro or a dot and a label that is no number.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (parts, ends_with_macro) = parts(text)?;
        let macros = parts.iter().filter(|part| matches!(part, Part::Value(_)));
        if text.len() > SPEC_OCTETS_MAX || macros.count() > MACROS_MAX {
            return None;
        }
        let has_end = ends_with_macro
            || matches!(parts.last(), Some(Part::Text(text)) if ends_with_label(text));
        has_end.then_some(Self(parts))
    }

    /// Returns whether a value is used.
    pub(super) fn uses(&self, letter: Letter) -> bool {
        let is_used = |part: &Part| matches!(part, Part::Value(place) if place.letter == letter);
        self.0.iter().any(is_used)
    }

    /// Puts the values in.
    pub(super) fn expanded<'a>(&self, value: impl Fn(Letter) -> Cow<'a, str>) -> String {
        let mut name = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Value(place) => place.put(&value(place.letter), &mut name),
            }
            cut(&mut name);
        }
        name
    }
}

impl Place {
    /// Parses what stands between the braces.
    fn parse(text: &str) -> Option<Self> {
        let letter = text.bytes().next()?;
        let rest = text.get(1..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = rest.split_at_checked(digits)?;
        let kept = match number {
            "" => usize::MAX,
            // A number beyond any number of parts keeps all of them.
            number => number.parse().unwrap_or(usize::MAX),
        };
        let without_r = rest.strip_prefix(['r', 'R']);
        let delimiters = without_r.unwrap_or(rest);
        let are_allowed = delimiters.bytes().all(|octet| b".-+,/_=".contains(&octet));
        (kept > 0 && are_allowed).then_some(())?;
        Some(Self {
            letter: Letter::of(letter)?,
            is_escaped: letter.is_ascii_uppercase(),
            kept,
            is_reversed: without_r.is_some(),
            delimiters: match delimiters {
                "" => ".".to_owned(),
                delimiters => delimiters.to_owned(),
            },
        })
    }

    fn put(&self, value: &str, name: &mut String) {
        let mut parts: Vec<&str> = value.split(|c| self.delimiters.contains(c)).collect();
        if self.is_reversed {
            parts.reverse();
        }
        let kept = parts.split_off(parts.len().saturating_sub(self.kept));
        let joined = kept.join(".");
        match self.is_escaped {
            true => put_escaped(&joined, name),
            false => name.push_str(&joined),
        }
    }
}

/// Returns whether a text is a `macro-string`.
pub(super) fn is_macro_string(text: &str) -> bool {
    parts(text).is_some()
}

/// Takes a text apart, and says whether the text ends with a macro.
fn parts(text: &str) -> Option<(Vec<Part>, bool)> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    let mut ends_with_macro = false;
    while let Some(octet) = rest.bytes().next() {
        ends_with_macro = octet == b'%';
        if !ends_with_macro {
            (0x21..=0x7e).contains(&octet).then_some(())?;
            plain.push(char::from(octet));
            rest = rest.get(1..)?;
            continue;
        }
        let literal = match rest.as_bytes().get(1)? {
            b'%' => "%",
            b'_' => " ",
            b'-' => "%20",
            b'{' => {
                let (inside, behind) = rest.get(2..)?.split_once('}')?;
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Value(Place::parse(inside)?));
                rest = behind;
                continue;
            }
            _ => return None,
        };
        plain.push_str(literal);
        rest = rest.get(2..)?;
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Some((parts, ends_with_macro))
}

/// `"." toplabel ["."]`
fn ends_with_label(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.rsplit_once('.').is_some_and(|(_, label)| {
        let is_part = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
        label.bytes().all(is_part)
            && label.bytes().any(|octet| !octet.is_ascii_digit())
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Cuts the beginning of a name that is far longer than names are: labels on the left are removed anyway (section 7.3), and
/// a policy of 64 KiB makes a name of some megabytes otherwise.
fn cut(name: &mut String) {
    let excess = name.len().saturating_sub(NAME_OCTETS_KEPT);
    if name.len() > 2 * NAME_OCTETS_KEPT {
        let start = name.ceil_char_boundary(excess);
        name.drain(..start);
    }
}

/// Writes a value with all but the unreserved characters escaped (RFC 3986 section 2.3).
fn put_escaped(value: &str, name: &mut String) {
    for octet in value.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            name.push(char::from(octet));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{octet:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7208 section 7.4, and further ones.
    #[test]
    fn the_examples_of_the_rfc_expand() {
        let value = |letter| match letter {
            Letter::Sender => "strong-bad@email.example.com".into(),
            Letter::LocalPart => "strong-bad".into(),
            Letter::SenderDomain | Letter::Domain => "email.example.com".into(),
            Letter::Address => "192.0.2.3".into(),
            Letter::ClientName => "mx.example.org".into(),
            Letter::Family => "in-addr".into(),
            Letter::Helo => "....".into(),
        };
        for (spec, expected) in [
            ("%{s}", "strong-bad@email.example.com"),
            ("%{o}", "email.example.com"),
            ("%{d4}", "email.example.com"),
            ("%{d2}", "example.com"),
            ("%{d1}", "com"),
            ("%{d99999999999999999999}", "email.example.com"),
            ("%{dr}", "com.example.email"),
            ("%{d2r}", "example.email"),
            ("%{l-}", "strong.bad"),
            ("%{lr-}", "bad.strong"),
            ("%{l1r-}", "strong"),
            ("%{h3r}", ".."),
            (
                "%{ir}.%{v}._spf.%{d2}",
                "3.2.0.192.in-addr._spf.example.com",
            ),
            ("%{p}", "mx.example.org"),
            ("%{S}", "strong-bad%40email.example.com"),
            ("%%%_%-", "% %20"),
            ("%{d}.example.", "email.example.com.example."),
        ] {
            let spec = DomainSpec::parse(spec).unwrap_or_else(|| panic!("{spec}"));
            assert_eq!(spec.expanded(value), expected, "{spec:?}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let spec = DomainSpec::parse(&format!("{}.example", "%{s}.".repeat(32))).unwrap();
        let name = spec.expanded(|_| "\u{e9}".repeat(5_000).into());
        assert!(name.len() < 4 * NAME_OCTETS_KEPT, "{}", name.len());
        assert!(name.ends_with("\u{e9}..example"), "{name}");
    }

    #[test]
    fn names_that_break_the_grammar_are_refused() {
        for text in [
            "",
            "example",
            "example.1",
            "example.-a",
            "example.a-",
            "example.",
            "a..",
            "%",
            "%a.example",
            "%{d",
            "%{}",
            "%{d0}",
            "%{d2x}",
            "%{t}.example",
            "%{d}example",
            "é.example",
            "%é",
            "%{é}",
            "a b.example",
        ] {
            assert_eq!(DomainSpec::parse(text), None, "{text}");
        }
    }
}
