//! Content transfer encodings (RFC 2045 section 6) taken off, for BINARY (RFC 3516).

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::header::field;
use super::value;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// `quoted-printable`.
    QuotedPrintable,
    /// `base64`.
    Base64,
    /// In a way that is not known here.
    Unknown,
}

impl Encoding {
    /// The encoding that the header of a part names.
    #[must_use]
    pub fn of(header: &[u8]) -> Self {
        let Some(name) = field(header, "Content-Transfer-Encoding") else {
            return Self::Identity;
        };
        match value::parse(name).text.to_ascii_lowercase().as_slice() {
            b"" | b"7bit" | b"8bit" | b"binary" => Self::Identity,
            b"quoted-printable" => Self::QuotedPrintable,
            b"base64" => Self::Base64,
            _ => Self::Unknown,
        }
    }

    /// Takes the encoding off, leaving out what is not part of it; `None` when it is not known.
    #[must_use]
    pub fn decode(self, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Identity => Some(body.to_vec()),
            Self::QuotedPrintable => Some(quoted_printable(body)),
            Self::Base64 => Some(base64(body)),
            Self::Unknown => None,
        }
    }
}

fn base64(body: &[u8]) -> Vec<u8> {
    let code: Vec<u8> = body
        .iter()
        .copied()
        .take_while(|octet| *octet != b'=')
        .filter(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/'))
        .collect();
    // One character alone stands for nothing whole.
    let whole = if code.len() % 4 == 1 {
        code.len().saturating_sub(1)
    } else {
        code.len()
    };
    LENIENT
        .decode(code.get(..whole).unwrap_or_default())
        .unwrap_or_default()
}

fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|octet| *octet == b'\n') {
        let text = line.trim_ascii_end();
        let end = line.len().saturating_sub(
            line.iter()
                .rev()
                .take_while(|octet| matches!(octet, b'\r' | b'\n'))
                .count(),
        );
        let line_end = line.get(end..).unwrap_or_default();
        let (text, soft) = match text.strip_suffix(b"=") {
            Some(text) => (text, true),
            None => (text, false),
        };
        decode_line(text, &mut out);
        if !soft {
            out.extend_from_slice(line_end);
        }
    }
    out
}

fn decode_line(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some((&octet, rest)) = text.split_first() {
        text = rest;
        let escaped = match (octet, rest) {
            (b'=', [high, low, behind @ ..]) => hex(*high)
                .zip(hex(*low))
                .map(|(high, low)| (high << 4 | low, behind)),
            _ => None,
        };
        match escaped {
            Some((octet, behind)) => {
                out.push(octet);
                text = behind;
            }
            None => out.push(octet),
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_encodings_off() {
        assert_eq!(base64(b"aGVs\r\nbG8=\r\n"), b"hello");
        assert_eq!(base64(b"aGVsbG8"), b"hello");
        assert_eq!(base64(b"aGVsb"), b"hel");
        assert_eq!(
            quoted_printable(b"a=3Db=\r\nc  \r\nd=ZZ=\n"),
            b"a=bc\r\nd=ZZ"
        );
        assert_eq!(
            Encoding::of(b"Content-Transfer-Encoding: BASE64 (x)\r\n\r\n"),
            Encoding::Base64
        );
        assert_eq!(
            Encoding::of(b"Content-Transfer-Encoding: x-uue\r\n"),
            Encoding::Unknown
        );
        assert_eq!(Encoding::Unknown.decode(b"x"), None);
    }
}
