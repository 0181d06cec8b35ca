//! Checks of values about the judgement of messages: scores, thresholds, patterns of attachments and recipients.

use toml::de::DeValue;
use vere_units::Score;

use super::text::{senders, shown, type_of};
use crate::errors::Problem;
use crate::judging::Threshold;

/// Octets of a pattern of names.
const PATTERN_OCTETS_MAX: usize = 255;
/// Octets of a media type: 127 each for type and subtype (RFC 6838 section 4.2).
const TYPE_OCTETS_MAX: usize = 255;

/// Checks a score within bounds in points: a decimal fraction or a whole number, never a binary fraction.
pub(super) fn score(
    wanted: String,
    value: &DeValue<'_>,
    min: i64,
    max: i64,
) -> Result<Score, Problem> {
    let text = match value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Integer(number) => return Err(not_allowed(&wanted, number.as_str())),
        other => {
            return Err(Problem::WrongType {
                found: type_of(other),
                wanted,
            });
        }
    };
    let score = text.parse().ok();
    let bounds = Score::from_points(min)..=Score::from_points(max);
    score
        .filter(|score| bounds.contains(score))
        .ok_or_else(|| not_allowed(&wanted, text))
}

/// Checks a threshold: a score, or `"never"`.
pub(super) fn threshold(
    wanted: String,
    value: &DeValue<'_>,
    max: i64,
) -> Result<Threshold, Problem> {
    match value.as_str() {
        Some("never") => Ok(Threshold::Never),
        Some(text) => Err(not_allowed(&wanted, text)),
        None => score(wanted, value, -max, max).map(Threshold::At),
    }
}

fn not_allowed(wanted: &str, found: &str) -> Problem {
    Problem::NotAllowed {
        found: shown(found),
        allowed: format!("expected {wanted}"),
    }
}

/// Checks a pattern of attachments' names; letter case does not count.
pub(super) fn name_pattern(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > PATTERN_OCTETS_MAX {
        return Err(format!("expected 1 to {PATTERN_OCTETS_MAX} bytes"));
    }
    if text.ends_with(['.', ' ']) {
        return Err("expected a pattern that ends in neither a dot nor a space: names are compared without these".to_owned());
    }
    Ok(text.to_lowercase())
}

/// Checks a media type: `type "/" (subtype / "*")`.
pub(super) fn media_type(text: &str) -> Result<String, String> {
    let is_name = |text: &str| {
        let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&octet);
        !text.is_empty() && text.bytes().all(is_fit)
    };
    match text.split_once('/') {
        Some((kind, subtype))
            if text.len() <= TYPE_OCTETS_MAX
                && is_name(kind)
                && (subtype == "*" || is_name(subtype)) =>
        {
            Ok(text.to_ascii_lowercase())
        }
        _ => {
            Err("expected a media type such as \"application/zip\" or \"application/*\"".to_owned())
        }
    }
}

/// Checks the recipients of a policy: like senders, but for the null reverse-path.
pub(super) fn recipient(text: &str) -> Result<String, String> {
    match text {
        "<>" => Err("expected an address or a domain".to_owned()),
        _ => senders(text).map(|text| text.to_lowercase()),
    }
}
