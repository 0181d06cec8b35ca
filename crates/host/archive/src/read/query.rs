//! What is searched for.

use vere_units::{Timestamp, TraceId};

use crate::entry::Kind;
use crate::format::Fields;

/// Conditions, of which all must hold. The default finds everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Arrived at this time or later.
    pub since: Option<Timestamp>,
    /// Arrived before this time.
    pub until: Option<Timestamp>,
    /// The id in the trace.
    pub trace: Option<TraceId>,
    /// The MTS identifier, whole: of the entry, or of the subject of a report.
    pub identifier: Option<String>,
    /// A part of the originator's address, without regard to ASCII case.
    pub originator: Option<String>,
    /// A part of the address of a recipient, without regard to ASCII case.
    pub recipient: Option<String>,
    /// The kind.
    pub kind: Option<Kind>,
    /// The sender, whole: `peer:NAME`, `local`, `gateway:NAME`.
    pub source: Option<String>,
    /// A destination, whole: `peer:NAME`, `file:NAME` and so on.
    pub destination: Option<String>,
    /// The content type, whole, without regard to ASCII case.
    pub content_type: Option<String>,
}

impl Query {
    /// Whether the fields meet all conditions.
    #[must_use]
    pub fn matches(&self, fields: &Fields<'_>) -> bool {
        let identified = |wanted: &str| fields.identifier == wanted || fields.about == wanted;
        self.is_in_time(fields.at)
            && self.trace.is_none_or(|trace| fields.trace == trace)
            && self.kind.is_none_or(|kind| fields.kind == kind)
            && is_met(&self.identifier, identified)
            && is_met(&self.source, |wanted| fields.source == wanted)
            && is_met(&self.content_type, |wanted| {
                fields.content_type.eq_ignore_ascii_case(wanted)
            })
            && is_met(&self.destination, |wanted| {
                fields.destinations.iter().any(|text| text == wanted)
            })
            && is_met(&self.originator, |wanted| {
                contains(fields.originator, wanted)
            })
            && is_met(&self.recipient, |wanted| {
                fields.recipients.iter().any(|text| contains(text, wanted))
            })
    }

    fn is_in_time(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }

    /// Whether entries between two times may meet the conditions.
    pub(super) fn may_match(&self, first: Timestamp, last: Timestamp) -> bool {
        self.since.is_none_or(|since| last >= since) && self.until.is_none_or(|until| first < until)
    }
}

fn is_met(wanted: &Option<String>, condition: impl FnOnce(&str) -> bool) -> bool {
    wanted.as_deref().is_none_or(condition)
}

/// Whether a text has a part, without regard to ASCII case.
fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some(first) = part.first() else {
        return true;
    };
    let at = |place: usize| {
        let there = text.get(place..).and_then(|rest| rest.get(..part.len()));
        there.is_some_and(|there| there.eq_ignore_ascii_case(part))
    };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, text).any(at)
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn parts_are_found_without_regard_to_case() {
        for (text, part) in [
            ("", ""),
            ("C=GB;S=Smith", ""),
            ("C=GB;S=Smith", "smith"),
            ("C=GB;S=Smith", "S=SMITH"),
            ("aab", "AB"),
            ("C=GB;S=Müller", "Müller"),
            ("x", "X"),
            ("a;b", ";"),
        ] {
            assert!(contains(text, part), "{text} {part}");
        }
        for (text, part) in [
            ("", "a"),
            ("smit", "smith"),
            ("C=GB;S=Smith", "smyth"),
            ("MÜLLER", "müller"),
        ] {
            assert!(!contains(text, part), "{text} {part}");
        }
    }
}
