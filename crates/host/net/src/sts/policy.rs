//! The publications of a domain: the DNS record that announces a policy, and the policy itself.

use std::time::Duration;

/// Longest life of a policy (RFC 8461 section 3.2): about a year.
pub const MAX_AGE_MAX: Duration = Duration::from_secs(31_557_600);
/// Octets of a policy that are read (RFC 8461 section 3.3 suggests as much).
pub const POLICY_OCTETS_MAX: usize = 64 * 1024;
/// The most host patterns kept of a policy.
const PATTERNS_MAX: usize = 256;
/// Octets of the identifier in the DNS record.
const ID_OCTETS_MAX: usize = 32;

/// The mode of a policy (RFC 8461 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No mail is sent to a host that fails validation.
    Enforce,
    /// Failures are noticed, and the mail is sent.
    Testing,
    /// There is no policy any more.
    None,
}

impl Mode {
    /// The word of the policy file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Testing => "testing",
            Self::None => "none",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Enforce, Self::Testing, Self::None]
            .into_iter()
            .find(|mode| mode.as_str() == word)
    }
}

/// A policy (RFC 8461 section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The mode.
    pub mode: Mode,
    /// The lifetime of the policy, from the fetch on.
    pub max_age: Duration,
    /// The hosts permitted to accept the domain's mail, lower case; `*.` stands for a single label.
    pub mx: Vec<String>,
}

/// The error in a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A line has no colon.
    #[error("line {0} of the policy has no colon")]
    Line(usize),
    /// The first version is missing or not `STSv1`.
    #[error("the policy's version is not STSv1")]
    Version,
    /// The mode is missing or unknown.
    #[error("expected mode enforce, testing or none")]
    Mode,
    /// The age is missing or no number of seconds.
    #[error("the policy's max_age is no number of seconds")]
    MaxAge,
    /// There is no host, although the mode needs some.
    #[error("the policy names no host")]
    NoHost,
    /// An `mx` value is no host pattern.
    #[error("the policy's mx {0:?} is no host name")]
    Host(String),
}

impl Policy {
    /// Reads a policy file: lines that end in LF or CRLF, in any order.
    ///
    /// ```text
    /// sts-policy-record  = sts-policy-field *WSP *(sts-policy-term sts-policy-field *WSP) [sts-policy-term]
    /// sts-policy-field   = name ":" *WSP value
    /// sts-policy-term    = LF / CRLF
    /// ```
    ///
    /// The first of repeated fields applies, except for `mx`; unknown fields are skipped.
    ///
    /// # Errors
    /// The error that makes the policy unusable.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (mut version, mut mode, mut max_age) = (None, None, None);
        let mut mx = Vec::new();
        for (index, line) in text.split('\n').enumerate() {
            let line = line.trim_matches(['\r', ' ', '\t']);
            if line.is_empty() {
                continue;
            }
            let (name, value) = line.split_once(':').ok_or(PolicyError::Line(index + 1))?;
            let value = value.trim_matches([' ', '\t']);
            match name.trim_end() {
                "version" => {
                    version.get_or_insert(value);
                }
                "mode" => {
                    mode.get_or_insert(value);
                }
                "max_age" => {
                    max_age.get_or_insert(value);
                }
                "mx" if mx.len() < PATTERNS_MAX => mx.push(pattern(value)?),
                _ => {}
            }
        }
        if version != Some("STSv1") {
            return Err(PolicyError::Version);
        }
        let mode = mode.and_then(Mode::parse).ok_or(PolicyError::Mode)?;
        let max_age = max_age.and_then(seconds).ok_or(PolicyError::MaxAge)?;
        if mx.is_empty() && mode != Mode::None {
            return Err(PolicyError::NoHost);
        }
        Ok(Self { mode, max_age, mx })
    }

    /// The lines of a policy file with the known fields, for reports (RFC 8460 section 4.4).
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let head = [
            "version: STSv1".to_owned(),
            format!("mode: {}", self.mode.as_str()),
            format!("max_age: {}", self.max_age.as_secs()),
        ];
        let hosts = self.mx.iter().map(|pattern| format!("mx: {pattern}"));
        head.into_iter().chain(hosts).collect()
    }

    /// Whether the policy permits the host (RFC 8461 section 4.1).
    #[must_use]
    pub fn names(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.mx
            .iter()
            .any(|pattern| match pattern.strip_prefix("*.") {
                Some(parent) => {
                    let label = host.split_once('.');
                    label.is_some_and(|(label, rest)| !label.is_empty() && rest == parent)
                }
                None => *pattern == host,
            })
    }
}

/// Parses 1 to 10 digits; a number above the maximum becomes the maximum.
fn seconds(text: &str) -> Option<Duration> {
    let digits = (1..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let seconds = digits.then(|| text.parse().ok()).flatten()?;
    Some(Duration::from_secs(seconds).min(MAX_AGE_MAX))
}

fn pattern(value: &str) -> Result<String, PolicyError> {
    let name = value.strip_prefix("*.").unwrap_or(value);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
    };
    if name.len() > 253 || !name.split('.').all(label) {
        let shown: String = value.chars().take(64).collect();
        return Err(PolicyError::Host(shown));
    }
    Ok(value.to_ascii_lowercase())
}

/// Reads the identifier of the DNS record below `_mta-sts` (RFC 8461 section 3.1); `None` for no record or
/// several records.
///
/// ```text
/// sts-text-record = sts-version 1*(sts-field-delim sts-field) [sts-field-delim]
/// sts-version     = %s"v=STSv1"
/// sts-field-delim = *WSP ";" *WSP
/// sts-id          = %s"id=" 1*32(ALPHA / DIGIT)
/// ```
#[must_use]
pub fn record_id(texts: &[String]) -> Option<String> {
    let is_record = |text: &&String| {
        let rest = text.strip_prefix("v=STSv1");
        rest.is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(';'))
    };
    let mut records = texts.iter().filter(is_record);
    let (record, None) = (records.next()?, records.next()) else {
        return None;
    };
    let fields = record
        .split(';')
        .map(|field| field.trim_matches([' ', '\t']));
    let id = fields
        .filter_map(|field| field.strip_prefix("id="))
        .next()?;
    let fits = (1..=ID_OCTETS_MAX).contains(&id.len());
    (fits && id.bytes().all(|octet| octet.is_ascii_alphanumeric())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 8461 section 3.2.
    const EXAMPLE: &str = "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\n\
                           mx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n";

    #[test]
    fn the_example_of_the_standard() {
        let policy = Policy::parse(EXAMPLE).unwrap();
        assert_eq!(policy.mode, Mode::Enforce);
        assert_eq!(policy.max_age, Duration::from_secs(604_800));
        assert!(policy.names("mail.example.com") && policy.names("MAIL.example.com."));
        // RFC 8461 section 4.1: the wildcard stands for the leftmost label only.
        assert!(policy.names("a.example.net"));
        assert!(!policy.names("a.b.example.net") && !policy.names("example.net"));
        assert!(!policy.names(".example.net") && !policy.names("mail2.example.com"));
    }

    #[test]
    fn forms_that_are_let_pass() {
        let text =
            "mode: testing\nx-new: y\nversion: STSv1\nmax_age: 9999999999\nmx: a.b\nmode: none";
        let policy = Policy::parse(text).unwrap();
        assert_eq!((policy.mode, policy.max_age), (Mode::Testing, MAX_AGE_MAX));
        let none = Policy::parse("version: STSv1\nmode: none\nmax_age: 0\n").unwrap();
        assert!(none.mx.is_empty());
    }

    #[test]
    fn what_is_no_policy() {
        let cases = [
            ("", PolicyError::Version),
            ("mode: enforce\nmax_age: 1\nmx: a.b", PolicyError::Version),
            (
                "version: STSv2\nmode: enforce\nmax_age: 1\nmx: a.b",
                PolicyError::Version,
            ),
            (
                "version: STSv1\nmode: force\nmax_age: 1\nmx: a.b",
                PolicyError::Mode,
            ),
            (
                "version: STSv1\nmode: enforce\nmx: a.b",
                PolicyError::MaxAge,
            ),
            (
                "version: STSv1\nmode: enforce\nmx: a.b\nmax_age: -1",
                PolicyError::MaxAge,
            ),
            (
                "version: STSv1\nmode: enforce\nmax_age: 1",
                PolicyError::NoHost,
            ),
            ("<html>", PolicyError::Line(1)),
        ];
        for (text, error) in cases {
            assert_eq!(Policy::parse(text), Err(error), "{text}");
        }
        let star = "version: STSv1\nmode: enforce\nmax_age: 1\nmx: *";
        assert!(matches!(Policy::parse(star), Err(PolicyError::Host(_))));
    }

    #[test]
    fn the_record_gives_its_id() {
        let id = |texts: &[&str]| {
            record_id(
                &texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            id(&["v=STSv1; id=20160831085700Z;"]).as_deref(),
            Some("20160831085700Z")
        );
        assert_eq!(id(&["v=spf1 -all", "v=STSv1 ;id=a"]).as_deref(), Some("a"));
        // RFC 8461 section 3.1: several records count as no record.
        assert_eq!(id(&["v=STSv1; id=a;", "v=STSv1; id=b;"]), None);
        for wrong in [
            "v=STSv1",
            "v=STSv1; id=",
            "v=STSv1; id=a-b",
            "v=STSv2; id=a",
            "V=STSv1;id=a",
        ] {
            assert_eq!(id(&[wrong]), None, "{wrong}");
        }
        assert_eq!(id(&[&format!("v=STSv1; id={}", "a".repeat(33))]), None);
        assert_eq!(id(&[]), None);
    }
}
