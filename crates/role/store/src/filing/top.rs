//! The fields put above a message by our gateway.

use vere_mime::{Field, fields};

/// Octets searched of a message: results and rules above the Received field of a gateway have some KiB.
const TOP_OCTETS_MAX: usize = 64 * 1024;
/// Further fields of a gateway above the Received field.
const OURS: &[&str] = &["Authentication-Results", "Received-SPF", "DKIM-Signature"];

/// The meaning of the fields down to the first Received field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Top {
    /// Whether the client is a server that gave the message an id: the Received field has the clause ID (RFC 5321 section 4.4). Such a server
    /// sends the same octets twice only if the first reply was lost. So the octets name the operation, and each mailbox, and thereby each
    /// recipient, remembers its operations. Without that field two equal messages may be distinct, so both are filed.
    pub(super) is_carried: bool,
    /// Whether the message is marked as unwanted. A mark below the Received field is a stranger's, and says nothing.
    pub(super) is_marked: bool,
}

impl Top {
    /// Reads the fields of a message.
    pub(super) fn of(message: &[u8]) -> Self {
        let top = message.get(..TOP_OCTETS_MAX).unwrap_or(message);
        let mut is_marked = false;
        for field in fields(top) {
            if field.is("Received") {
                let is_carried = has_id(&field);
                return Self {
                    is_carried,
                    is_marked: is_marked && is_carried,
                };
            }
            let is_verdict = field.name.to_ascii_lowercase().starts_with(b"x-spam-");
            if !is_verdict && !OURS.iter().any(|name| field.is(name)) {
                return Self::default();
            }
            let is_yes = field.value.trim_ascii().eq_ignore_ascii_case(b"YES");
            is_marked |= field.is("X-Spam-Flag") && is_yes;
        }
        Self::default()
    }
}

fn has_id(received: &Field<'_>) -> bool {
    let stamp = received.value.split(|octet| *octet == b';').next();
    let words = stamp.unwrap_or_default().split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    words.any(|word| word.eq_ignore_ascii_case(b"id")) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_above_the_first_received_field_count() {
        let received = "Received: from a (b [192.0.2.1])\r\n\tby c with ESMTP id 7;\r\n\tdate\r\n";
        let flag = "X-Spam-Flag: YES\r\n";
        for (top, expected) in [
            (received.to_owned(), (true, false)),
            (
                format!(
                    "{flag}Authentication-Results: c; spf=pass\r\nReceived-SPF: pass\r\n{received}"
                ),
                (true, true),
            ),
            (
                format!("x-spam-flag : yes\r\nX-Spam-Score: 9\r\n{received}"),
                (true, true),
            ),
            (format!("X-Spam-Flag: NO\r\n{received}"), (true, false)),
            (format!("DKIM-Signature: v=1\r\n{received}"), (true, false)),
            // Other clients than a gateway, and strangers.
            (format!("{received}{flag}"), (true, false)),
            (format!("Subject: x\r\n{flag}{received}"), (false, false)),
            (format!("{flag}Subject: x\r\n{received}"), (false, false)),
            (
                "X-Spam-Flag: YES\r\nReceived: from a by c; id 7\r\n".to_owned(),
                (false, false),
            ),
            (flag.to_owned(), (false, false)),
            (String::new(), (false, false)),
        ] {
            let found = Top::of(format!("{top}\r\ntext\r\n").as_bytes());
            assert_eq!((found.is_carried, found.is_marked), expected, "{top}");
        }
        let long = format!(
            "X-Spam-Status: {}\r\n{flag}{received}\r\n",
            "x".repeat(TOP_OCTETS_MAX)
        );
        assert_eq!(Top::of(long.as_bytes()), Top::default());
    }
}
