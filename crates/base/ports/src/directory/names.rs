//! Names of domains and accounts that are safe in paths, files and databases.

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Octets of the local part of an account's name (RFC 5321 section 4.5.3.1.1).
pub const LOCAL_PART_OCTETS_MAX: usize = 64;

/// The octets allowed in a local part beside letters and digits: `atext` of RFC 5322 without the characters with
/// a meaning in paths, shells, templates or old routing (`!`, `%`).
const LOCAL_PART_SPECIALS: &str = "#&'+-=^_~.";

/// The reason why a text is not a name. The fault is the fault of the text's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is not a domain name.
    #[error("{0:?} is not a domain name")]
    Domain(String),
    /// The text has no `@`.
    #[error("{0:?} is not an address such as user@example.org")]
    MissingAt(String),
    /// The part before the `@` is empty or too long.
    #[error("the part before the @ has {0} octets, allowed are 1 to {LOCAL_PART_OCTETS_MAX}")]
    LocalPartLength(usize),
    /// The part before the `@` holds a character that a name must not hold, or begins or ends with
    /// a dot, or has two in a row.
    #[error(
        "{0:?} is not a user name: letters, digits and {LOCAL_PART_SPECIALS} are \
         allowed, dots not at the ends and not in a row"
    )]
    LocalPart(String),
}

/// Shortens an input for an error text.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A domain name in canonical form: A-labels in lower case, no dot at the end.
///
/// `Bücher.example` and `xn--bcher-kva.EXAMPLE` are the same name (UTS #46, non-transitional).
/// Address literals are no domain names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(Box<str>);

impl DomainName {
    /// Parses a name in any case, with A-labels or U-labels, with or without a dot at the end.
    ///
    /// # Errors
    ///
    /// [`NameError::Domain`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let refused = || NameError::Domain(shortened(text));
        // U-labels are at most a few times shorter than their A-labels.
        if text.len() > 1_024 {
            return Err(refused());
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if is_canonical(text) {
            return Ok(Self(text.into()));
        }
        let name = idna::domain_to_ascii_strict(text).map_err(|_| refused())?;
        if name.is_empty() || name.len() > 253 || ends_with_number(&name) {
            return Err(refused());
        }
        // The library promises safe names, and the file system relies on them.
        let safe =
            |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
        if !name
            .split('.')
            .all(|label| !label.is_empty() && label.bytes().all(safe))
        {
            return Err(refused());
        }
        Ok(Self(name.into_boxed_str()))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text is certainly canonical, so that the library would return the same text. Nearly all domains are
/// canonical, and the domain of each recipient is looked up.
fn is_canonical(text: &str) -> bool {
    let safe = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || *octet == b'-';
    let plain = |label: &str| {
        let octets = label.as_bytes();
        let ends = [octets.first(), octets.last()];
        (1..=63).contains(&octets.len())
            && octets.iter().all(safe)
            && !ends.contains(&Some(&b'-'))
            && octets.get(2..4) != Some(b"--")
    };
    text.len() <= 253 && text.split('.').all(plain) && !ends_with_number(text)
}

/// Whether the last label is a number, as in an address.
fn ends_with_number(name: &str) -> bool {
    let number = |label: &str| label.bytes().all(|octet| octet.is_ascii_digit());
    name.rsplit('.').next().is_none_or(number)
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DomainName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The name of an account or alias, `local-part@domain`, in canonical form.
///
/// Domains compare as [`DomainName`]. Local parts compare after Unicode normalisation to NFC and conversion to
/// lower case (Unicode's, not that of any language), so that `Bob` and `bob` are one person. They hold letters
/// and digits of any script, combining marks, and `#&'+-=^_~.`: no spaces, slashes, quotes, controls or
/// invisible characters, never `.` or `..`. The mail standards allow other addresses too, but no account here
/// has such an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountName {
    local: Box<str>,
    domain: DomainName,
}

impl AccountName {
    /// Parses `local-part@domain`; a quoted local part is refused.
    ///
    /// # Errors
    ///
    /// [`NameError`].
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (local, domain) = text
            .rsplit_once('@')
            .ok_or_else(|| NameError::MissingAt(shortened(text)))?;
        Self::new(local, DomainName::parse(domain)?)
    }

    /// Makes a name of a local part, without quotes, and a domain.
    ///
    /// # Errors
    ///
    /// [`NameError::LocalPart`] and [`NameError::LocalPartLength`].
    pub fn new(local: &str, domain: DomainName) -> Result<Self, NameError> {
        // Checked before and after, so that normalisation has a bound as well.
        if local.is_empty() || local.len() > 4 * LOCAL_PART_OCTETS_MAX {
            return Err(NameError::LocalPartLength(local.len()));
        }
        let canonical = canonical_local(local);
        if canonical.len() > LOCAL_PART_OCTETS_MAX {
            return Err(NameError::LocalPartLength(canonical.len()));
        }
        let dots =
            canonical.starts_with('.') || canonical.ends_with('.') || canonical.contains("..");
        if dots || canonical.starts_with(is_combining_mark) || !canonical.chars().all(allowed) {
            return Err(NameError::LocalPart(shortened(local)));
        }
        Ok(Self {
            local: canonical.into_boxed_str(),
            domain,
        })
    }

    /// The part before the `@`.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The part behind the `@`.
    #[must_use]
    pub fn domain(&self) -> &DomainName {
        &self.domain
    }
}

/// Names sort as their texts do: by local part, then domain, octet by octet.
impl Ord for AccountName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.to_string().cmp(&other.to_string())
    }
}

impl PartialOrd for AccountName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.local, self.domain)
    }
}

impl FromStr for AccountName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

fn canonical_local(local: &str) -> String {
    if local.is_ascii() {
        return local.to_ascii_lowercase();
    }
    // Lower case can undo normalisation, and for a few characters the other way round.
    let mut text: String = local.nfc().collect();
    for _ in 0..4 {
        let next: String = text.to_lowercase().nfc().collect();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn allowed(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || LOCAL_PART_SPECIALS.contains(c);
    }
    c.is_alphanumeric() || is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> String {
        AccountName::parse(text)
            .map(|name| name.to_string())
            .unwrap_or_else(|e| format!("! {e}"))
    }

    #[test]
    fn one_person_has_one_name() {
        assert_eq!(name("Bob@Example.ORG"), "bob@example.org");
        assert_eq!(name("bob@example.org."), "bob@example.org");
        assert_eq!(
            name("bob+tag@b\u{fc}cher.example"),
            "bob+tag@xn--bcher-kva.example"
        );
        assert_eq!(
            name("bob@XN--BCHER-KVA.example"),
            "bob@xn--bcher-kva.example"
        );
        // Composed and decomposed, upper and lower case.
        assert_eq!(name("J\u{d6}RG@a.test"), name("jo\u{308}rg@a.test"));
        assert_eq!(name("\u{7528}\u{6237}@a.test"), "\u{7528}\u{6237}@a.test");
        // Devanagari needs combining marks, which are not letters.
        assert_eq!(
            name("\u{938}\u{902}\u{92a}\u{930}\u{94d}\u{915}@a.test")
                .chars()
                .next(),
            Some('\u{938}')
        );
    }

    #[test]
    fn ordinary_names_are_canonical() {
        for text in ["mx-1.example.org", "a", "4u.test", "a-b--c.test"] {
            assert!(is_canonical(text), "{text}");
        }
        for text in [
            "", "A.test", "a.", "a..b", "-a", "a-.b", "xn--a", "10.0.0.1", "b\u{fc}r",
        ] {
            assert!(!is_canonical(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_is_what_the_library_leaves_alone(text in prop_oneof![
            "[a-c0-2.-]{0,9}",
            "(xn)?--[a-z0-9-]{0,5}",
            "([a-z]{60,65}\\.){1,5}a",
            "[a-zA-Zß.]{1,5}",
        ]) {
            if is_canonical(&text) {
                let given = idna::domain_to_ascii_strict(&text);
                assert_eq!(given.as_deref().ok(), Some(text.as_str()));
                assert_eq!(DomainName::parse(&text).map(|name| name.to_string()), Ok(text));
            }
        }
    }

    #[test]
    fn hostile_local_parts_are_refused() {
        let long = "x".repeat(65);
        for local in [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "a/b",
            "a\0b",
            "a\nb",
            "a\r\nb",
            "a b",
            "\"a b\"",
            "a\\b",
            ".a",
            "a.",
            "a..b",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{feff}",
            "\u{301}a",
            "a@b",
            "{local}",
            "$(id)",
            "`id`",
            "a|b",
            "a;b",
            "a*",
            "a?",
            "a:b",
            "a,b",
            "<a",
            "a>",
            "\u{2028}",
            "a\u{a0}b",
            &long,
        ] {
            let text = format!("{local}@example.org");
            assert!(AccountName::parse(&text).is_err(), "{text:?}");
        }
        assert!(AccountName::parse(&format!("{}@example.org", "x".repeat(64))).is_ok());
        assert!(AccountName::parse("no-at").is_err());
        assert!(
            AccountName::parse(&format!("{}@example.org", "\u{1e9e}".repeat(100_000))).is_err()
        );
    }

    #[test]
    fn hostile_domains_are_refused() {
        let label = "a".repeat(64);
        let long = "a.".repeat(200);
        for domain in [
            "",
            ".",
            "..",
            "a..b",
            "../x",
            "a/b",
            "a\0b",
            "a b",
            "-a.b",
            "a-.b",
            "[127.0.0.1]",
            "127.0.0.1",
            "a_b.c",
            "a\u{202e}.b",
            "xn--\u{e9}.b",
            "a.1",
            "a\nb",
            "a;b",
            "a%00.b",
            &label,
            &long,
        ] {
            assert!(DomainName::parse(domain).is_err(), "{domain:?}");
        }
        assert!(DomainName::parse(&"\u{e9}".repeat(10_000)).is_err());
    }

    proptest! {
        #[test]
        fn canonical_names_are_stable_and_safe(text in "\\PC{0,40}", domain in "[a-zA-Z0-9.\u{e4}\u{df}-]{1,20}") {
            if let Ok(name) = AccountName::parse(&format!("{text}@{domain}")) {
                let again = AccountName::parse(&name.to_string());
                prop_assert_eq!(again.as_ref(), Ok(&name));
                prop_assert!(!name.local().contains(['/', '\0', '\\', '"', '@']));
                prop_assert!(name.local() != "." && name.local() != "..");
                prop_assert!(name.domain().as_str().is_ascii());
            }
        }

        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = AccountName::parse(&text);
            let _ = DomainName::parse(&text);
        }
    }
}
