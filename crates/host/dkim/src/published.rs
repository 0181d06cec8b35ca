//! Whether the DNS has the record of a key (RFC 6376 section 3.6.1): receivers verify signatures by that record.

use std::collections::BTreeMap;
use std::fmt;

/// The records of a key's name, compared with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The one record has the key.
    Key,
    /// The one record has the key, and says that signatures are a test (`t=y`).
    Testing,
    /// The name has no record.
    Missing,
    /// The name has several records, of which receivers use none or any.
    Several(usize),
    /// The record has no public key.
    NoKey,
    /// The record has an empty public key: the key is revoked.
    Revoked,
    /// The record has another key.
    OtherKey,
    /// The record has another algorithm.
    OtherAlgorithm,
}

impl Published {
    /// Compares the texts of a key's name in the DNS with the wanted text of the record.
    #[must_use]
    pub fn compare(wanted: &str, texts: &[String]) -> Self {
        let text = match texts {
            [] => return Self::Missing,
            [text] => text,
            several => return Self::Several(several.len()),
        };
        let (published, own) = (tags(text), tags(wanted));
        let of = |tag: &str| published.get(tag).map(String::as_str);
        let kind = |tags: &BTreeMap<String, String>| {
            tags.get("k").map_or("rsa", String::as_str).to_owned()
        };
        match of("p") {
            None => Self::NoKey,
            Some("") => Self::Revoked,
            Some(public) if Some(public) != own.get("p").map(String::as_str) => Self::OtherKey,
            Some(_) if kind(&published) != kind(&own) => Self::OtherAlgorithm,
            Some(_) if of("t").is_some_and(|flags| flags.split(':').any(|flag| flag == "y")) => {
                Self::Testing
            }
            Some(_) => Self::Key,
        }
    }

    /// Whether receivers can verify signatures of the key.
    #[must_use]
    pub const fn is_seen(self) -> bool {
        matches!(self, Self::Key | Self::Testing)
    }
}

impl fmt::Display for Published {
    /// The predicate of a sentence about the name of the record.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("has the key"),
            Self::Testing => f.write_str("says that signatures are a test (t=y)"),
            Self::Missing => f.write_str("has no record"),
            Self::Several(count) => {
                write!(f, "has {count} records: receivers use none or any")
            }
            Self::NoKey => f.write_str("has no public key"),
            Self::Revoked => f.write_str("is revoked (p= is empty)"),
            Self::OtherKey => f.write_str("has another key than the one that signs"),
            Self::OtherAlgorithm => f.write_str("names another algorithm"),
        }
    }
}

/// The tags of a record without white space (RFC 6376 section 3.2).
fn tags(text: &str) -> BTreeMap<String, String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = plain.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(tag, value)| (tag.to_ascii_lowercase(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_key_whatever_its_blanks_and_order() {
        let own = "v=DKIM1; k=ed25519; p=AAAA";
        let compared = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            Published::compare(own, &texts)
        };
        for (texts, wanted) in [
            (&[own][..], Published::Key),
            (&["p=A A\tAA;k=ed25519"], Published::Key),
            (&["v=DKIM1; k=ed25519; t=s:y; p=AAAA"], Published::Testing),
            (&["v=DKIM1; k=ed25519; t=s; p=AAAA"], Published::Key),
            (&[], Published::Missing),
            (&[own, own], Published::Several(2)),
            (&["v=DKIM1; k=ed25519"], Published::NoKey),
            (&["v=DKIM1; p="], Published::Revoked),
            (&["v=DKIM1; k=ed25519; p=AAAB"], Published::OtherKey),
            (&["v=DKIM1; p=AAAA"], Published::OtherAlgorithm),
            (&["\u{fc};;=;p"], Published::NoKey),
        ] {
            assert_eq!(compared(texts), wanted, "{texts:?}");
            assert_eq!(
                wanted.is_seen(),
                matches!(wanted, Published::Key | Published::Testing)
            );
        }
        assert_eq!(
            Published::compare("v=DKIM1; k=rsa; p=AA", &["p=AA".to_owned()]),
            Published::Key,
            "RSA is the default"
        );
    }
}
