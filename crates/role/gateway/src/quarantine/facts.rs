//! The texts of a message in the quarantine for people. Strangers choose the texts: each text is cut before the
//! decoding, and escaped before the printing.

use vere_control::HeaderField;
use vere_mime::{Field, fields, text};

/// Decoded octets of a field.
const FIELD_OCTETS_MAX: usize = 2_048;
/// Shown fields of a header.
const FIELDS_MAX: usize = 200;
/// Shown characters of a name.
const NAME_CHARS_MAX: usize = 100;

/// The fields for a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) from: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) score: Option<String>,
}

impl Facts {
    /// Reads the fields of a message; of several fields with one name, the first.
    pub(super) fn of(message: &[u8]) -> Self {
        let mut facts = Self::default();
        for field in fields(message) {
            let place = if field.is("From") {
                &mut facts.from
            } else if field.is("Subject") {
                &mut facts.subject
            } else if field.is("X-Spam-Score") {
                &mut facts.score
            } else {
                continue;
            };
            place.get_or_insert_with(|| decoded(field.value));
        }
        facts
    }
}

/// Returns the fields of a message, decoded.
pub(super) fn header(message: &[u8]) -> Vec<HeaderField> {
    let shown = |field: Field<'_>| {
        let name = String::from_utf8_lossy(field.name);
        HeaderField {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            value: decoded(field.value),
        }
    };
    fields(message).take(FIELDS_MAX).map(shown).collect()
}

/// The text of a field.
fn decoded(value: &[u8]) -> String {
    let start = value.get(..FIELD_OCTETS_MAX).unwrap_or(value);
    let text = text::of_field(start);
    let more = if value.len() > FIELD_OCTETS_MAX {
        "..."
    } else {
        ""
    };
    format!("{}{more}", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_cut() {
        let long = "x".repeat(5_000);
        let message = format!(
            "X-Spam-Score: 12.5\r\nFrom: =?utf-8?q?J=C3=B6rg?=\r\n <a@b>\r\nSubject: {long}\r\n\
             Subject: second\r\n\r\nFrom: body\r\n"
        );
        let facts = Facts::of(message.as_bytes());
        assert_eq!(facts.from.as_deref(), Some("Jörg <a@b>"));
        assert_eq!(facts.score.as_deref(), Some("12.5"));
        let subject = facts.subject.unwrap_or_default();
        assert!(subject.ends_with("xxx...") && subject.len() <= FIELD_OCTETS_MAX + 3);
        let shown = header(message.as_bytes());
        assert_eq!(shown.len(), 4);
        assert_eq!((&*shown[3].name, &*shown[3].value), ("Subject", "second"));
        let many = "a: b\r\n".repeat(1_000);
        assert_eq!(header(many.as_bytes()).len(), FIELDS_MAX);
    }
}
