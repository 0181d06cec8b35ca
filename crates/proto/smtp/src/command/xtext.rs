//! `xtext`, the encoding of text in parameters (RFC 3461 section 4).

use std::fmt;

/// Checked text in xtext form, as written in parameters.
///
/// ```text
/// xtext   = *( xchar / hexchar )
/// xchar   = any ASCII CHAR between "!" (33) and "~" (126) inclusive, except for "+" and "="
/// hexchar = "+" followed by two upper case hexadecimal digits
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Xtext(Box<str>);

impl Xtext {
    /// Accepts text already in xtext form; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        decode(text).is_some().then(|| Self(text.into()))
    }

    /// Encodes octets.
    #[must_use]
    pub fn encode(plain: &[u8]) -> Self {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let hex = |nibble: u8| {
            char::from(
                HEX.get(usize::from(nibble & 15))
                    .copied()
                    .unwrap_or_default(),
            )
        };
        let mut text = String::with_capacity(plain.len());
        for &octet in plain {
            if is_xchar(octet) {
                text.push(char::from(octet));
            } else {
                text.extend(['+', hex(octet >> 4), hex(octet)]);
            }
        }
        Self(text.into_boxed_str())
    }

    /// The xtext form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The decoded octets, of any value.
    #[must_use]
    pub fn decode(&self) -> Vec<u8> {
        decode(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Xtext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_xchar(octet: u8) -> bool {
    matches!(octet, b'!'..=b'~') && octet != b'+' && octet != b'='
}

/// The decoded octets; `None` for text that is not xtext.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut octets = text.bytes();
    while let Some(octet) = octets.next() {
        match octet {
            b'+' => {
                let high = hex_value(octets.next()?)?;
                plain.push((high << 4) | hex_value(octets.next()?)?);
            }
            octet if is_xchar(octet) => plain.push(octet),
            _ => return None,
        }
    }
    Some(plain)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'A'..=b'F' => Some(digit.wrapping_sub(b'A').wrapping_add(10)),
        _ => None,
    }
}
