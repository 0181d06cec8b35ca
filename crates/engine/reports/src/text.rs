//! Texts of strangers: bounded, in one line, without controls.

use crate::bounds::{NAME_OCTETS_MAX, TEXT_OCTETS_MAX};
use crate::error::{ReportError, is_plain};

/// A text as it is kept and written: controls become blanks, blanks at both ends go.
///
/// # Errors
/// [`ReportError::Many`] beyond [`TEXT_OCTETS_MAX`].
pub(crate) fn kept(text: &str) -> Result<String, ReportError> {
    if text.len() > TEXT_OCTETS_MAX {
        return Err(ReportError::many("octets of a text", TEXT_OCTETS_MAX));
    }
    Ok(plain(text))
}

/// The same for a text of our own, without a bound.
pub(crate) fn plain(text: &str) -> String {
    let text = text.trim();
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let plain = |character| if is_plain(character) { character } else { ' ' };
    text.chars()
        .map(plain)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// A domain as it is compared and shown: lower case, without a dot or blanks at the end.
pub(crate) fn domain(text: &str) -> String {
    let is_end = |character: char| character == '.' || character.is_whitespace();
    text.trim_end_matches(is_end).to_ascii_lowercase()
}

/// Whether a text is a domain name that may stand in a header field or a file name: letters, digits, `-`, `_` and dots.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// The beginning of a text that fits into a row of a summary.
pub(crate) fn shortened(text: &str) -> String {
    let mut end = text.len().min(NAME_OCTETS_MAX);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default().to_owned()
}
