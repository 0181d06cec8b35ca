//! Modified UTF-7, in which mailbox names travel before UTF-8 is enabled (RFC 3501 section 5.1.3).

use base64::Engine as _;
use base64::alphabet::IMAP_MUTF7;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

const CODE: GeneralPurpose = GeneralPurpose::new(&IMAP_MUTF7, NO_PAD);

/// Writes a name in modified UTF-7.
///
/// ```
/// assert_eq!(vere_imap::utf7::encode("Entwürfe & mehr"), "Entw&APw-rfe &- mehr");
/// ```
#[must_use]
pub fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut shifted: Vec<u8> = Vec::new();
    for c in name.chars() {
        if matches!(c, ' '..='~') {
            unshift(&mut shifted, &mut out);
            out.push(c);
            if c == '&' {
                out.push('-');
            }
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shifted.extend_from_slice(&unit.to_be_bytes());
            }
        }
    }
    unshift(&mut shifted, &mut out);
    out
}

fn unshift(shifted: &mut Vec<u8>, out: &mut String) {
    if !shifted.is_empty() {
        out.push('&');
        CODE.encode_string(&*shifted, out);
        out.push('-');
        shifted.clear();
    }
}

/// Decodes a name in modified UTF-7; `None` for invalid text, and for text that is not in the
/// canonical form.
#[must_use]
pub fn decode(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((plain, shifted)) = rest.split_once('&') {
        out.push_str(plain);
        let (code, behind) = shifted.split_once('-')?;
        if code.is_empty() {
            out.push('&');
        } else {
            let octets = CODE.decode(code).ok()?;
            let (units, []) = octets.as_chunks::<2>() else {
                return None;
            };
            let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
            for c in char::decode_utf16(units) {
                out.push(c.ok()?);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    // Two names on the wire must not decode to the same mailbox.
    (encode(&out) == name).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_examples() {
        for (wire, name) in [
            ("INBOX", "INBOX"),
            ("~peter/mail/&U,BTFw-/&ZeVnLIqe-", "~peter/mail/台北/日本語"),
            ("a&-b", "a&b"),
            ("&2D3eAA-", "\u{1F600}"),
        ] {
            assert_eq!(decode(wire).as_deref(), Some(name));
            assert_eq!(encode(name), wire);
        }
    }

    /// RFC 3501 section 5.1.3: no superfluous shift, no printable ASCII in base64.
    #[test]
    fn refuses_other_forms() {
        for wire in [
            "&",
            "a&b",
            "&Jjo!-",
            "&U,BTFw-&ZeVnLIqe-",
            "&AGE-",
            "&2D0-",
            "&AA-",
            "é",
        ] {
            assert_eq!(decode(wire), None, "{wire}");
        }
    }

    proptest! {
        #[test]
        fn comes_back(name in "\\PC{0,20}") {
            prop_assert_eq!(decode(&encode(&name)), Some(name));
        }
    }
}
