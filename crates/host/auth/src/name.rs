//! Domain names out of messages.

/// Most octets of a name (RFC 1035 section 2.3.4, without the trailing dot).
const NAME_OCTETS_MAX: usize = 253;
/// Most octets of a label.
const LABEL_OCTETS_MAX: usize = 63;

/// Returns the name in lower case, with A-labels, without a trailing dot; `None` for a text that is no name of the DNS.
pub(crate) fn domain(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let text = text.strip_suffix('.').unwrap_or(text);
    let name = match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        // RFC 8616 section 4: U-labels stand for A-labels.
        false if text.len() <= NAME_OCTETS_MAX => idna::domain_to_ascii(text).ok()?,
        false => return None,
    };
    is_name(&name).then_some(name)
}

/// Returns whether a name can be looked up.
pub(crate) fn is_name(name: &str) -> bool {
    let is_octet = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    let is_label =
        |label: &str| (1..=LABEL_OCTETS_MAX).contains(&label.len()) && label.bytes().all(is_octet);
    name.len() <= NAME_OCTETS_MAX && name.split('.').all(is_label)
}

/// Returns whether a name is the domain or below the domain; both are in lower case.
pub(crate) fn is_within(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_ascii() {
        for (text, expected) in [
            ("Example.ORG.", Some("example.org")),
            (" _x.example.org ", Some("_x.example.org")),
            ("b\u{fc}cher.example", Some("xn--bcher-kva.example")),
            ("", None),
            (".", None),
            ("a..b", None),
            ("a b.example", None),
            ("[192.0.2.1]", None),
            ("a\0.example", None),
        ] {
            assert_eq!(domain(text.as_bytes()).as_deref(), expected, "{text}");
        }
        assert_eq!(domain(b"\xff.example"), None);
        assert_eq!(domain("a".repeat(64).as_bytes()), None);
        assert_eq!(domain("a.".repeat(128).as_bytes()), None);
    }

    #[test]
    fn names_below_a_domain_are_within() {
        assert!(is_within("a.example", "a.example") && is_within("b.a.example", "a.example"));
        assert!(!is_within("ba.example", "a.example") && !is_within("example", "a.example"));
    }
}
