//! The answer of a filter.

use vere_milter::Change;

use crate::failure::Failure;

/// The result of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// The filter answered.
    Answered(Outcome),
    /// The message is longer than the filter is shown.
    Skipped {
        /// The octets of the message.
        octets: usize,
        /// The bound.
        size_max: usize,
    },
    /// The filter gave no answer that can be used.
    Unavailable(Failure),
}

/// The answer of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The decision.
    pub verdict: Verdict,
    /// Whether the filter asks for a mark on the message: "add header" and "rewrite subject" of rspamd.
    pub is_marked: bool,
    /// The symbols of rspamd, by name.
    pub symbols: Vec<Symbol>,
    /// The score; rspamd alone has scores.
    pub score: Option<f64>,
    /// The score from which the filter refuses.
    pub required: Option<f64>,
    /// The name of a virus that was found.
    pub virus: Option<String>,
    /// Changes of message and envelope, in order; absent where the message is refused.
    pub changes: Vec<Change>,
    /// The action of rspamd in rspamd's words, such as `add header`; empty for other filters.
    pub action: String,
}

impl Outcome {
    /// A decision without findings.
    #[must_use]
    pub const fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            is_marked: false,
            symbols: Vec::new(),
            score: None,
            required: None,
            virus: None,
            changes: Vec::new(),
            action: String::new(),
        }
    }
}

/// The decision of a filter. A text is the filter's own, one line of printable ASCII, and may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The message goes on.
    Accept,
    /// The client may try again later.
    Defer(String),
    /// The message is refused.
    Reject(String),
    /// The message is held. A filter that discards holds too: no message is lost without trace.
    Quarantine(String),
}

/// A rule of rspamd that fits the message.
#[derive(Debug, Clone, PartialEq)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The part of the score.
    pub score: f64,
    /// The findings.
    pub options: Vec<String>,
}
