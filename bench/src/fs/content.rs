//! Content of files and mails: never repeated, so no system saves work by knowing an earlier file.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::random::Random;

/// Octets of content in a line of an encoded mail.
const LINE: usize = 960;

/// Octets of a line's text in the product's 8-bit encoding: each 80 octets have a key.
const LINE_KEYED: usize = LINE + LINE / 80;

/// Characters of a line of base64.
const LINE_BASE64: usize = 76;

/// Octets that do not compress, different at each call.
pub(super) fn octets(count: usize) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut random = Random::new(NEXT.fetch_add(1, Ordering::Relaxed));
    let mut octets = Vec::with_capacity(count + 8);
    while octets.len() < count {
        octets.extend_from_slice(&random.next().to_le_bytes());
    }
    octets.truncate(count);
    octets
}

/// How content is put into a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Octets of lines, as a body: an octet costs 1.002.
    Eight,
    /// As the product's 8-bit encoding: an octet costs 1.0146.
    Keyed,
    /// An attachment: an octet costs 1.37.
    Base64,
}

/// A mail with `count` octets of content.
pub(super) fn mail(count: usize, encoding: Encoding) -> Vec<u8> {
    let count = match encoding {
        Encoding::Keyed => count.div_ceil(LINE) * LINE_KEYED,
        Encoding::Eight | Encoding::Base64 => count,
    };
    let content = octets(count);
    let word = match encoding {
        Encoding::Eight | Encoding::Keyed => "8bit",
        Encoding::Base64 => "base64",
    };
    let head = format!(
        "From: fs <fs@bench.test>\r\nSubject: block\r\nMIME-Version: 1.0\r\n\
         Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: {word}\r\n\r\n"
    );
    let mut mail = head.into_bytes();
    let (encoded, line) = match encoding {
        // Three octets are not allowed in a line; a real encoding escapes them at a cost of 1.2 %.
        Encoding::Eight => (content.into_iter().map(allowed).collect(), LINE),
        Encoding::Keyed => (content.into_iter().map(allowed).collect(), LINE_KEYED),
        Encoding::Base64 => (STANDARD.encode(content).into_bytes(), LINE_BASE64),
    };
    for line in encoded.chunks(line) {
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
    mail
}

const fn allowed(octet: u8) -> u8 {
    match octet {
        0 | b'\r' | b'\n' => b'=',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_never_the_same() {
        let (one, other) = (octets(1_001), octets(1_001));
        assert_eq!((one.len(), other.len()), (1_001, 1_001));
        assert_ne!(one, other);
    }

    #[test]
    fn mails_have_lines_within_the_limits() {
        for encoding in [Encoding::Eight, Encoding::Keyed, Encoding::Base64] {
            let mail = mail(100_000, encoding);
            assert!(!mail.contains(&0));
            let mut lines = mail.split(|octet| *octet == b'\n');
            assert!(lines.all(|line| line.len() <= 998));
            let most = if encoding == Encoding::Eight {
                100_500
            } else {
                137_500
            };
            assert!((100_000..most).contains(&mail.len()), "{}", mail.len());
        }
    }
}
