//! Patterns of the addresses by which lists of clients answer.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Octets of a pattern: four fields of all single numbers would be longer, and nobody writes them.
const PATTERN_OCTETS_MAX: usize = 255;

/// The counted answers of a list, in the notation of Postfix (postscreen(8), `postscreen_dnsbl_sites`): an IPv4 address,
/// each of whose four fields is a number or, in brackets, numbers and ranges: `127.0.0.[2..11]`, `127.0.[0;1].[4..7;10]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPattern {
    text: String,
    fields: [Field; 4],
}

/// The values of an octet, a bit each.
type Field = [u128; 2];

impl AnswerPattern {
    /// Whether the pattern has the answer.
    #[must_use]
    pub fn matches(&self, answer: Ipv4Addr) -> bool {
        let pairs = self.fields.iter().zip(answer.octets());
        pairs.into_iter().all(|(field, octet)| {
            let half = field[usize::from(octet >> 7)];
            half >> (octet & 0x7f) & 1 == 1
        })
    }
}

impl fmt::Display for AnswerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for AnswerPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WANTED: &str = "expected an address such as 127.0.0.2 or 127.0.0.[2..11]";
        if text.len() > PATTERN_OCTETS_MAX {
            return Err(format!("expected at most {PATTERN_OCTETS_MAX} bytes"));
        }
        let mut fields = [Field::default(); 4];
        let mut rest = text;
        for (place, field) in fields.iter_mut().enumerate() {
            if place > 0 {
                rest = rest.strip_prefix('.').ok_or(WANTED)?;
            }
            let (values, behind) = match rest.strip_prefix('[') {
                Some(within) => within.split_once(']').ok_or("expected a closing bracket")?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            match rest.starts_with('[') {
                true => values
                    .split(';')
                    .try_for_each(|range| insert(field, range))?,
                false => insert(field, values)?,
            }
            rest = behind;
        }
        match rest.is_empty() {
            true => Ok(Self {
                text: text.to_owned(),
                fields,
            }),
            false => Err(WANTED.to_owned()),
        }
    }
}

/// Adds a number or a range.
fn insert(field: &mut Field, range: &str) -> Result<(), String> {
    let number = |text: &str| {
        let is_plain = (1..=3).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
        let number = is_plain.then(|| text.parse::<u8>().ok()).flatten();
        number.ok_or_else(|| format!("expected a number from 0 to 255; found {text:?}"))
    };
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("expected a range upwards; found {range:?}"));
    }
    for octet in first..=last {
        field[usize::from(octet >> 7)] |= 1 << (octet & 0x7f);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<AnswerPattern, String> {
        text.parse()
    }

    #[test]
    fn patterns_have_their_answers() {
        for (text, inside, outside) in [
            (
                "127.0.0.2",
                &["127.0.0.2"][..],
                &["127.0.0.3", "127.0.1.2"][..],
            ),
            (
                "127.0.0.[2..11]",
                &["127.0.0.2", "127.0.0.7", "127.0.0.11"],
                &["127.0.0.1", "127.0.0.12", "127.0.0.130"],
            ),
            (
                "127.0.[0;4].[1;126..129;255]",
                &["127.0.4.1", "127.0.0.127", "127.0.0.128", "127.0.4.255"],
                &["127.0.2.1", "127.0.0.0", "127.0.0.125", "127.0.0.130"],
            ),
            ("127.[0..255].0.1", &["127.200.0.1"], &["126.0.0.1"]),
        ] {
            let found = pattern(text).unwrap();
            assert_eq!(found.to_string(), text);
            let matches = |answer: &&str| found.matches(answer.parse().unwrap());
            assert!(inside.iter().all(matches), "{text}");
            assert!(!outside.iter().any(matches), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_patterns() {
        for text in [
            "",
            "127",
            "127.0.0",
            "127.0.0.",
            "127.0.0.2.",
            "127.0.0.2.3",
            "127.0.0.256",
            "127.0.0.+2",
            "127.0.0.2..4",
            "127.0.0.2;4",
            "127.0.0.[]",
            "127.0.0.[2",
            "127.0.0.[2]x",
            "127.0.0.[4..2]",
            "127.0.0.[2..]",
            "127.0.0.[2;;3]",
            "127.0.0.*",
            "127.0.0.0002",
        ] {
            assert!(pattern(text).is_err(), "{text}");
        }
    }
}
