//! Keys, and the names of their files.

use sha2::{Digest as _, Sha256};

use crate::{NAME_MAX, RegisterError, VALUE_MAX};

/// Octets of an encoded name that stand in a file name; with the kind before, and the hash and the
/// ending behind, it stays below the 255 octets of Linux.
const ENCODED_MAX: usize = 150;

/// A key within the bounds: `("group" / "lease") "/" 1*255OCTET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    text: String,
    kind: &'static str,
}

impl Key {
    /// Octets of the longest key.
    pub(crate) const LEN_MAX: usize = "group/".len() + NAME_MAX;

    pub(crate) fn new(text: &str) -> Result<Self, RegisterError> {
        let (kind, name) = match text.split_once('/') {
            Some(("group", name)) => ("group", name),
            Some(("lease", name)) => ("lease", name),
            _ => {
                let what = format!("the key {text:?} is neither group/NAME nor lease/NAME");
                return Err(RegisterError::refused(what));
            }
        };
        if name.is_empty() || name.len() > NAME_MAX {
            let what = format!("a name has 1 to {NAME_MAX} octets, {text:?} does not");
            return Err(RegisterError::refused(what));
        }
        let text = text.to_owned();
        Ok(Self { text, kind })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the key's files, without the suffix: `kind "." *(safe / "%" 2HEXDIG) [ "~"
    /// 64HEXDIG ]`, safe = letters, digits, `-`, `_`.
    ///
    /// The part that does not fit is replaced by the SHA-256 of the key. The file name has neither
    /// a slash nor a dot from the name, so that no name leads out of the directory.
    pub(crate) fn file_stem(&self) -> String {
        let name = &self.text[self.kind.len() + 1..];
        let mut encoded = String::new();
        for octet in name.bytes() {
            let len = encoded.len();
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => {
                    encoded.push(char::from(octet));
                }
                _ => hex(&mut encoded, "%", octet, b"0123456789ABCDEF"),
            }
            if encoded.len() > ENCODED_MAX {
                encoded.truncate(len);
                encoded.push('~');
                for octet in Sha256::digest(self.text.as_bytes()) {
                    hex(&mut encoded, "", octet, b"0123456789abcdef");
                }
                break;
            }
        }
        format!("{}.{encoded}", self.kind)
    }
}

/// Appends `before` and the two digits of an octet.
fn hex(out: &mut String, before: &str, octet: u8, digits: &[u8; 16]) {
    out.push_str(before);
    for digit in [octet >> 4, octet & 15] {
        out.push(char::from(digits[usize::from(digit)]));
    }
}

/// Refuses values beyond the bounds.
pub(crate) fn check_value(value: &[u8]) -> Result<(), RegisterError> {
    if value.len() > VALUE_MAX {
        let what = format!(
            "a value has at most {VALUE_MAX} octets, not {}",
            value.len()
        );
        return Err(RegisterError::refused(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_would_lead_elsewhere_stay_in_the_folder() {
        for (key, stem) in [
            ("group/spool-a_1", "group.spool-a_1"),
            ("group/..", "group.%2E%2E"),
            (
                "lease/../../etc/passwd",
                "lease.%2E%2E%2F%2E%2E%2Fetc%2Fpasswd",
            ),
            ("group/a.value", "group.a%2Evalue"),
            ("group/~", "group.%7E"),
            ("group/\0\u{e9}", "group.%00%C3%A9"),
        ] {
            assert_eq!(Key::new(key).unwrap().file_stem(), stem);
        }
    }

    #[test]
    fn other_keys_are_refused() {
        let long = format!("group/{}", "x".repeat(256));
        for key in [
            "", "group", "group/", "lease/", "/a", "Group/a", "x/a", &long,
        ] {
            let refused = Key::new(key);
            assert!(
                matches!(refused, Err(RegisterError::Refused { .. })),
                "{key}"
            );
        }
        let longest = format!("lease/{}", "x".repeat(255));
        assert_eq!(Key::new(&longest).unwrap().as_str().len(), Key::LEN_MAX);
        assert!(check_value(&[0; VALUE_MAX]).is_ok());
        assert!(check_value(&[0; VALUE_MAX + 1]).is_err());
    }

    #[test]
    fn long_names_that_differ_at_the_end_have_different_files() {
        let key = |end| Key::new(&format!("group/{}{end}", "\u{e9}".repeat(120))).unwrap();
        assert_ne!(key("a").file_stem(), key("b").file_stem());
    }

    proptest! {
        #[test]
        fn every_name_has_a_file_of_its_own(one in "\\PC{1,80}", other in "\\PC{1,80}") {
            let name = |name: &str| name.chars().take(60).collect::<String>();
            let keys = [Key::new(&format!("group/{}", name(&one))), Key::new(&format!("group/{}", name(&other)))];
            let [Ok(one), Ok(other)] = keys else { return Ok(()) };
            let stem = one.file_stem();
            prop_assert!(stem.len() + ".value".len() <= 255);
            let rest = stem.strip_prefix("group.").unwrap();
            prop_assert!(rest.bytes().all(|o| o.is_ascii_alphanumeric() || b"-_%~".contains(&o)));
            prop_assert_eq!(one == other, stem == other.file_stem());
        }
    }
}
