//! Errors of reading reports.

use thiserror::Error;

use crate::bounds::FOUND_OCTETS_MAX;

/// Why octets are not a report. Each error is permanent: the same octets give the same error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportError {
    /// A message without an attachment that could be a report, or octets of another kind.
    #[error("expected a report (XML or JSON, plain, in gzip or zip); found none")]
    None,
    /// A bound was exceeded.
    #[error("expected at most {max} {what}; found more")]
    Many {
        /// What was counted.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// A damaged or unsupported archive.
    #[error("expected a sound {format} archive; found {found}")]
    Archive {
        /// The format.
        format: &'static str,
        /// What was found.
        found: String,
    },
    /// XML with a document type. Entities of a document type could expand without end.
    #[error("expected no document type in a report; found one at octet {at}")]
    DocumentType {
        /// The offset in the XML.
        at: u64,
    },
    /// XML that is cut or not well formed.
    #[error("expected well-formed XML; found {found} at octet {at}")]
    Xml {
        /// What was found.
        found: String,
        /// The offset in the XML.
        at: u64,
    },
    /// An element that a report must have is missing.
    #[error("expected the element {element} in {within}; found none")]
    Missing {
        /// The missing element.
        element: &'static str,
        /// The element around it.
        within: &'static str,
    },
    /// A value of the wrong form.
    #[error("{place}: expected {expected}; found \"{found}\"")]
    Value {
        /// The element or key.
        place: &'static str,
        /// The form.
        expected: &'static str,
        /// The beginning of the value, with escapes.
        found: String,
    },
    /// JSON that is no TLS report.
    #[error("expected a TLS report in JSON; found an error: {0}")]
    Json(String),
}

impl ReportError {
    pub(crate) const fn many(what: &'static str, max: usize) -> Self {
        Self::Many { what, max }
    }

    pub(crate) fn value(place: &'static str, expected: &'static str, found: &str) -> Self {
        Self::Value {
            place,
            expected,
            found: excerpt(found),
        }
    }

    pub(crate) fn archive(format: &'static str, found: impl ToString) -> Self {
        Self::Archive {
            format,
            found: excerpt(&found.to_string()),
        }
    }
}

/// The beginning of a stranger's text, in one line of printable characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if out.len() >= FOUND_OCTETS_MAX {
            out.push_str("...");
            break;
        }
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            character if is_plain(character) => out.push(character),
            character => out.extend(character.escape_default()),
        }
    }
    out
}

/// Whether a character can be shown as it is: no control, and nothing that changes the direction of a line.
pub(crate) fn is_plain(character: char) -> bool {
    !(character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
}
