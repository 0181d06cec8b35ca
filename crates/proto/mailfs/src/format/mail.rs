//! Mails around bodies (RFC 5322): a header for people and for searches, and the body in an encoding that the account keeps.

use vere_units::Timestamp;

use super::encoding::Encoding;
use super::error::FormatError;
use super::subject::Subject;

/// Octets of a header, about.
const HEADER_OCTETS: usize = 512;

/// The whole mail, with CRLF line ends. `date` is the date of the header; an account that is told no date keeps its own.
#[must_use]
pub fn wrap(subject: &Subject, date: Timestamp, encoding: Encoding, body: &[u8]) -> Vec<u8> {
    let fields = [
        ("From", "vere fs <fs@verefs.invalid>".into()),
        ("Date", date.rfc5322()),
        ("Subject", subject.to_string()),
        ("Message-ID", subject.message_id()),
        ("MIME-Version", "1.0".into()),
        ("Content-Type", "application/octet-stream".into()),
        ("Content-Transfer-Encoding", encoding.word().into()),
    ];
    let encoded = encoding.encoded_len(body.len());
    let mut mail = Vec::with_capacity(encoded.saturating_add(HEADER_OCTETS));
    for (name, text) in fields {
        mail.extend_from_slice(name.as_bytes());
        mail.extend_from_slice(b": ");
        mail.extend_from_slice(text.as_bytes());
        mail.extend_from_slice(b"\r\n");
    }
    mail.extend_from_slice(b"\r\n");
    encoding.encode_to(body, &mut mail);
    mail
}

/// The body of a mail from its text as the account keeps the text, behind the empty line. Rewritten line ends are tolerated, and
/// nothing else.
///
/// # Errors
///
/// If the text is longer than that of any mail, or is not in the encoding.
pub fn unwrap(text: &[u8], encoding: Encoding) -> Result<Vec<u8>, FormatError> {
    encoding.decode(text)
}

#[cfg(test)]
mod tests;
