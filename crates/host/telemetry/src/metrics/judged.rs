//! Judgement of received messages.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::declarations::{Declarations, Label, label};

label! {
    /// The verdict about a message.
    JudgedVerdict("verdict") {
        /// Delivered as it is.
        Accept = "accept",
        /// Delivered and marked.
        Tag = "tag",
        /// Kept aside.
        Quarantine = "quarantine",
        /// The client was told to come back later.
        Defer = "defer",
        /// Refused.
        Reject = "reject",
    }
}

/// A rule that matched: a name of the settings, or `symbol` for all findings of filters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleName(pub &'static str);

impl EncodeLabelSet for RuleName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("rule", self.0)].encode(encoder)
    }
}

impl Label for RuleName {
    fn describe() -> String {
        "`rule`: name in `[judging.weights]`, or `symbol` for the findings of filters".to_owned()
    }
}

/// Judgement of received messages.
#[derive(Clone, Debug)]
pub struct JudgedMetrics {
    /// Messages by verdict.
    pub messages: Family<JudgedVerdict, Counter>,
    /// Matches by rule.
    pub rules: Family<RuleName, Counter>,
}

impl JudgedMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Judging");
        Self {
            messages: to.counters("judged_messages", "Received messages by verdict"),
            rules: to.counters(
                "judged_rules",
                "Matches of each rule, those with weight 0 included",
            ),
        }
    }
}
