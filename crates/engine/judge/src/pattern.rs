//! Patterns of senders and of attachments' names.

/// Characters of which Windows strips the end of a file's name, and which therefore hide its kind from nobody.
const STRIPPED: [char; 2] = ['.', ' '];

/// Whether a list of senders has an address: by the address, its domain, or `.example.org` for a domain above. Letter case does not count.
/// The empty text stands for the null reverse-path.
pub(crate) fn has_sender(list: &[String], address: &str) -> bool {
    let domain = address.rsplit_once('@').map(|(_, domain)| domain);
    list.iter().any(|entry| {
        if entry.is_empty() || entry.contains('@') {
            return entry.eq_ignore_ascii_case(address);
        }
        domain.is_some_and(|domain| match entry.starts_with('.') {
            true => is_below(domain, entry),
            false => entry.eq_ignore_ascii_case(domain),
        })
    })
}

/// Whether a domain lies below another, which is given with a leading dot.
fn is_below(domain: &str, above: &str) -> bool {
    let split = domain.len().checked_sub(above.len());
    let end = split.filter(|at| *at > 0).and_then(|at| domain.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(above))
}

/// Returns the name of a file as programs see it: lower case, without controls, and without dots and blanks at its end.
pub(crate) fn file_name(name: &str) -> String {
    let seen = name.chars().filter(|c| !c.is_control());
    let name: String = seen.flat_map(char::to_lowercase).collect();
    let is_stripped = |c: char| STRIPPED.contains(&c) || c.is_whitespace();
    name.trim_end_matches(is_stripped).to_owned()
}

/// Whether a pattern matches a whole name: `*` stands for any characters, `?` for one. The time is at most the product of the lengths.
pub(crate) fn matches_name(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut read) = (0, 0);
    // The place behind the last star, and the characters of the name that the star has taken.
    let mut star = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, read));
            }
            Some(c) if *c == '?' || name.get(read) == Some(c) => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((behind, taken)) = star else {
                    return false;
                };
                (at, read) = (behind, taken + 1);
                star = Some((behind, taken + 1));
            }
        }
    }
    pattern.iter().skip(at).all(|c| *c == '*')
}

/// Whether a pattern has a media type: `type/subtype`, or `type/*`.
pub(crate) fn matches_type(pattern: &str, media_type: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => media_type
            .get(..start.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(start)),
        None => pattern.eq_ignore_ascii_case(media_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_match_by_address_domain_and_domain_above() {
        let list = ["bob@example.net", "example.org", ".example.com", ""].map(str::to_owned);
        for address in [
            "bob@example.net",
            "BOB@Example.NET",
            "any@example.org",
            "\"a@b\"@example.org",
            "a@mx.example.com",
            "a@a.b.Example.com",
            "",
        ] {
            assert!(has_sender(&list, address), "{address}");
        }
        for address in [
            "bo@example.net",
            "bob@example.net.example",
            "a@mx.example.org",
            "a@example.com",
            "a@badexample.com",
            "a@.example.com",
            "example.org",
            "a@é.example.co",
        ] {
            assert!(!has_sender(&list, address), "{address}");
        }
        assert!(!has_sender(&list[..3], ""));
    }

    #[test]
    fn names_match_as_a_whole() {
        for (pattern, name) in [
            ("*.exe", "a.exe"),
            ("*.exe", ".exe"),
            ("*", ""),
            ("a?c*", "abcdef"),
            ("*a*b", "xaxxabxb"),
            ("é?", "éa"),
            ("**", "a"),
            ("a", "a"),
        ] {
            assert!(matches_name(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.exe", "a.exe.txt"),
            ("*.exe", "exe"),
            ("a?c", "ac"),
            ("", "a"),
            ("a", ""),
            ("*ab", "ba"),
            ("ab", "abc"),
        ] {
            assert!(!matches_name(pattern, name), "{pattern} {name}");
        }
        let (pattern, name) = ("*a".repeat(100) + "b", "a".repeat(128));
        assert!(!matches_name(&pattern, &name));
    }

    #[test]
    fn names_are_compared_as_windows_reads_them() {
        for name in ["A.EXE", "a.exe.", "a.exe . .", "a.e\u{0}xe", "a.exe\u{a0}"] {
            assert_eq!(file_name(name), "a.exe", "{name:?}");
        }
    }

    #[test]
    fn types_match_whole_or_by_their_first_half() {
        assert!(matches_type("application/zip", "APPLICATION/zip"));
        assert!(matches_type("video/*", "video/mp4"));
        assert!(!matches_type("video/*", "videos/mp4"));
        assert!(!matches_type("application/zip", "application/zipped"));
        assert!(!matches_type("video/*", "vid"));
    }
}
