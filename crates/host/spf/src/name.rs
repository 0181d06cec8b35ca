//! Names as they come out of sessions and macros.

/// Most octets of a name (RFC 1035 section 2.3.4, without the trailing dot).
const NAME_OCTETS_MAX: usize = 253;
/// Most octets of a label.
const LABEL_OCTETS_MAX: usize = 63;

/// Returns the domain that has a policy: a name of several labels without a trailing dot (RFC 7208 section 4.3).
pub(super) fn domain(text: &str) -> Option<&str> {
    let name = without_dot(text);
    let is_domain = is_name(name) && name.contains('.') && !name.starts_with('[');
    is_domain.then_some(name)
}

/// Returns whether a text can be looked up. Others do not exist.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |label: &str| (1..=LABEL_OCTETS_MAX).contains(&label.len());
    text.len() <= NAME_OCTETS_MAX && text.split('.').all(fits)
}

/// Removes labels from the left until the name has 253 octets at most (RFC 7208 section 7.3).
pub(super) fn shortened(text: &str) -> &str {
    let mut name = without_dot(text);
    while name.len() > NAME_OCTETS_MAX {
        match name.split_once('.') {
            Some((_, rest)) => name = rest,
            // Such a label is no name, and so nothing is found.
            None => return name,
        }
    }
    name
}

/// Returns whether a name is the domain or below the domain.
pub(super) fn is_within(name: &str, domain: &str) -> bool {
    let above = name.len().checked_sub(domain.len());
    let Some((before, end)) = above.and_then(|octets| name.split_at_checked(octets)) else {
        return false;
    };
    end.eq_ignore_ascii_case(domain) && (before.is_empty() || before.ends_with('.'))
}

fn without_dot(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_several_labels_of_allowed_lengths() {
        let long = format!("{}.example.org", "a".repeat(64));
        for (text, expected) in [
            ("example.org", Some("example.org")),
            ("example.org.", Some("example.org")),
            ("bücher.example", Some("bücher.example")),
            ("org", None),
            ("org.", None),
            ("a..example", None),
            (".example.org", None),
            ("[192.0.2.1]", None),
            ("", None),
            (&long, None),
        ] {
            assert_eq!(domain(text), expected, "{text}");
        }
    }

    #[test]
    fn long_names_lose_labels_on_the_left() {
        let name = format!("cut.{}org", "a.".repeat(125));
        assert_eq!(name.len(), 257);
        assert_eq!(shortened(&name), &name[4..]);
        assert_eq!(shortened(&name[4..]), &name[4..]);
        let label = "a".repeat(300);
        assert_eq!(shortened(&label), label);
        assert!(!is_name(&label));
    }

    #[test]
    fn names_below_a_domain_are_within() {
        for (name, domain, expected) in [
            ("Example.org", "example.ORG", true),
            ("mx.example.org", "example.org", true),
            ("badexample.org", "example.org", false),
            ("org", "example.org", false),
            ("é.org", "\u{a9}.org", false),
        ] {
            assert_eq!(is_within(name, domain), expected, "{name} {domain}");
        }
    }
}
