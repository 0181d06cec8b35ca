//! Policies of DMARC as records (RFC 9989 section 4.7).
//!
//! ```text
//! dmarc-record  = dmarc-version *(*WSP ";" *WSP dmarc-tag) [*WSP ";" *WSP]
//! dmarc-version = "v" *WSP "=" *WSP %s"DMARC1"
//! ```

use std::fmt;

use crate::tags::Tags;

/// Most octets of a record. RFC 9989 has no limit; a record with reports to 10 addresses has 600.
const RECORD_OCTETS_MAX: usize = 4_096;

/// The wish of a domain for messages that fail (RFC 9989 section 4.7, tag `p`), from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Nothing is to be done.
    None,
    /// The message is suspicious.
    Quarantine,
    /// The message is to be refused.
    Reject,
}

impl Policy {
    fn of(text: &[u8]) -> Option<Self> {
        let all = [Self::None, Self::Quarantine, Self::Reject];
        let is = |policy: &Self| text.eq_ignore_ascii_case(policy.as_str().as_bytes());
        all.into_iter().find(is)
    }

    /// Returns the word of the tag `p`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Quarantine => "quarantine",
            Self::Reject => "reject",
        }
    }

    const fn milder(self) -> Self {
        match self {
            Self::Reject => Self::Quarantine,
            Self::Quarantine | Self::None => Self::None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The relation of a domain to the mail below it (tag `psd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suffix {
    /// A public suffix: the domains below belong to others.
    Public,
    /// An organization.
    Organization,
    Unknown,
}

/// A record. An unknown tag, or one with an invalid value, counts as absent, except for a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    policy: Option<Policy>,
    pub(crate) subdomains: Option<Policy>,
    pub(crate) absent: Option<Policy>,
    pub(crate) is_testing: bool,
    pub(crate) is_dkim_strict: bool,
    pub(crate) is_spf_strict: bool,
    pub(crate) suffix: Suffix,
}

/// The domain of the author, seen from the domain that has the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The domain itself.
    Own,
    /// A domain below.
    Below,
    /// A domain below that does not exist.
    Absent,
}

impl Record {
    /// Reads the record among the TXT records of a name: several ones count as none (section 4.10 step 2).
    pub(crate) fn among(records: &[Vec<u8>]) -> Option<Self> {
        let mut found = records.iter().filter_map(|record| Self::of(record));
        match (found.next(), found.next()) {
            (Some(record), None) => Some(record),
            _ => None,
        }
    }

    fn of(record: &[u8]) -> Option<Self> {
        let version = record.split(|octet| *octet == b';').next()?;
        let (name, value) = Tags::of(version).ok()?.first()?;
        let is_record = name.eq_ignore_ascii_case(b"v") && value == b"DMARC1";
        if !is_record || record.len() > RECORD_OCTETS_MAX {
            return None;
        }
        let tags = Tags::lenient(record);
        let is = |tag: &str, word: &[u8]| {
            let value = tags.value_in_any_case(tag);
            value.is_some_and(|value| value.eq_ignore_ascii_case(word))
        };
        let suffix = match () {
            () if is("psd", b"y") => Suffix::Public,
            () if is("psd", b"n") => Suffix::Organization,
            () => Suffix::Unknown,
        };
        let [policy, subdomains, absent] = policies(&tags);
        Some(Self {
            policy,
            subdomains,
            absent,
            is_testing: is("t", b"y"),
            is_dkim_strict: is("adkim", b"s"),
            is_spf_strict: is("aspf", b"s"),
            suffix,
        })
    }

    /// Whether the tag `np` changes the policy, so that the existence of a domain has to be known.
    pub(crate) fn has_absent(&self) -> bool {
        self.absent
            .is_some_and(|absent| Some(absent) != self.subdomains.or(self.policy))
    }

    /// Returns the policy for a domain, and what remains of it while the domain tests DMARC (tag `t`); `None` for a record that is none.
    pub(crate) fn policy(&self, place: Place) -> Option<(Policy, Policy)> {
        let policy = self.policy?;
        let subdomains = self.subdomains.unwrap_or(policy);
        let policy = match place {
            Place::Own => policy,
            Place::Below => subdomains,
            Place::Absent => self.absent.unwrap_or(subdomains),
        };
        let applied = if self.is_testing {
            policy.milder()
        } else {
            policy
        };
        Some((policy, applied))
    }
}

/// Reads the tags `p`, `sp`, `np`. Where `p` is absent or one of them is invalid, the policy is "none" if the domain wants reports, and
/// the record is none otherwise (section 4.10.1).
fn policies(tags: &Tags<'_>) -> [Option<Policy>; 3] {
    let values = ["p", "sp", "np"].map(|tag| tags.value_in_any_case(tag));
    let policies = values.map(|value| value.and_then(Policy::of));
    let is_invalid = policies
        .iter()
        .zip(values)
        .any(|(policy, value)| value.is_some() && policy.is_none());
    let reports = tags.value_in_any_case("rua").unwrap_or_default();
    match values[0].is_none() || is_invalid {
        false => policies,
        true if reports.split(|octet| *octet == b',').any(is_uri) => {
            [Some(Policy::None), None, None]
        }
        true => [None; 3],
    }
}

/// Whether a text is a URI to which reports could be sent, by any scheme (RFC 9989 section 4.6).
fn is_uri(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let colon = memchr::memchr(b':', text).and_then(|at| text.split_at_checked(at));
    let Some((scheme, [_, rest @ ..])) = colon else {
        return false;
    };
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|octet| octet.is_ascii_alphanumeric() || b"+-.".contains(octet));
    let is_rest = !rest.is_empty() && rest.iter().all(u8::is_ascii_graphic);
    let is_mail = scheme.eq_ignore_ascii_case(b"mailto");
    is_scheme && is_rest && (!is_mail || rest.contains(&b'@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies_of(record: &str) -> Option<[Option<Policy>; 3]> {
        let record = Record::of(record.as_bytes())?;
        let policy = |place| record.policy(place).map(|(_, applied)| applied);
        Some([
            policy(Place::Own),
            policy(Place::Below),
            policy(Place::Absent),
        ])
    }

    #[test]
    fn records_have_policies() {
        use Policy::{None as Nothing, Quarantine, Reject};
        for (record, expected) in [
            ("v=DMARC1; p=reject", Some([Some(Reject); 3])),
            (
                "V = DMARC1;p=Reject;SP=none",
                Some([Some(Reject), Some(Nothing), Some(Nothing)]),
            ),
            (
                "v=DMARC1; p=none; np=reject;",
                Some([Some(Nothing), Some(Nothing), Some(Reject)]),
            ),
            (
                "v=DMARC1; p=none; sp=quarantine; np=reject",
                Some([Some(Nothing), Some(Quarantine), Some(Reject)]),
            ),
            ("v=DMARC1; p=reject; t=y", Some([Some(Quarantine); 3])),
            (
                "v=DMARC1; p=quarantine; t=y; pct=0; x; y=1",
                Some([Some(Nothing); 3]),
            ),
            ("v=DMARC1", Some([None; 3])),
            ("v=DMARC1; p=refuse", Some([None; 3])),
            (
                "v=DMARC1; p=refuse; rua=mailto:a@b.example",
                Some([Some(Nothing); 3]),
            ),
            ("v=DMARC1; rua=mailto:a@b.example", Some([Some(Nothing); 3])),
            ("v=DMARC1; p=reject; sp=x", Some([None; 3])),
            ("v=dmarc1; p=reject", None),
            ("v=DMARC12; p=reject", None),
            ("p=reject; v=DMARC1", None),
            ("x; v=DMARC1; p=reject", None),
            ("", None),
        ] {
            assert_eq!(policies_of(record), expected, "{record}");
        }
    }

    #[test]
    fn addresses_of_reports_are_uris() {
        for text in [
            "mailto:a@b.example",
            " MAILTO:a@b.example!10m ",
            "https://b.example/r",
            "a+b-c.d:x",
        ] {
            assert!(is_uri(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            ":",
            "mailto:",
            "mailto:a",
            "b.example",
            "https:",
            "1a:x",
            ":x",
            "a_b:x",
            "a:x y",
            "a b:x",
        ] {
            assert!(!is_uri(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn several_records_are_none() {
        let among = |records: &[&str]| {
            let records: Vec<_> = records
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect();
            Record::among(&records)
        };
        assert!(among(&["v=DMARC1; p=none", "v=spf1 -all"]).is_some());
        assert_eq!(among(&["v=DMARC1; p=none", "v=DMARC1; p=none"]), None);
        let long = |octets: usize| {
            let record = "v=DMARC1; p=none; ".to_owned();
            record.clone() + &"x".repeat(octets - record.len())
        };
        assert!(among(&[&long(RECORD_OCTETS_MAX)]).is_some());
        assert_eq!(among(&[&long(RECORD_OCTETS_MAX + 1)]), None);
        let record = among(&["v=DMARC1; p=none; adkim=S; aspf=s; psd=Y"]).unwrap();
        assert!(record.is_dkim_strict && record.is_spf_strict);
        assert_eq!(record.suffix, Suffix::Public);
    }
}
