//! Content filters, which the gateway asks.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, label};

/// The name of a filter, as the settings have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterName(pub String);

impl EncodeLabelSet for FilterName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("filter", self.0.as_str())].encode(encoder)
    }
}

impl Label for FilterName {
    fn describe() -> String {
        "`filter`: the names of `[[filter]]`".to_owned()
    }
}

label! {
    /// The result of a question to a filter.
    FilterResult("result") {
        /// The filter accepts the message.
        Accepted = "accepted",
        /// The filter asks for a mark on the message.
        Marked = "marked",
        /// The filter asks to hold the message.
        Quarantined = "quarantined",
        /// The filter asks to have the message again later.
        Deferred = "deferred",
        /// The filter refuses the message.
        Refused = "refused",
        /// The filter found a virus.
        Virus = "virus",
        /// The message is longer than the filter is shown.
        Skipped = "skipped",
        /// The filter gave no answer that can be used.
        Unavailable = "unavailable",
        /// The filter was left alone after failures.
        Resting = "resting",
        /// Too many messages waited for filters.
        Crowded = "crowded",
    }
}

/// An answer of a filter, or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterAnswered {
    /// The filter.
    pub filter: FilterName,
    /// The result.
    pub result: FilterResult,
}

impl EncodeLabelSet for FilterAnswered {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            ("filter", self.filter.0.as_str()),
            (FilterResult::LABEL, self.result.value()),
        ]
        .encode(encoder)
    }
}

impl Label for FilterAnswered {
    fn describe() -> String {
        format!("{}; {}", FilterName::describe(), FilterResult::describe())
    }
}

/// Content filters.
#[derive(Clone, Debug)]
pub struct FilterMetrics {
    /// Questions by filter and result.
    pub answers: Family<FilterAnswered, Counter>,
    /// Time of a question.
    pub seconds: Family<FilterName, Histogram, fn() -> Histogram>,
}

impl FilterMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Content filters");
        Self {
            answers: to.counters(
                "gateway_filter_answers",
                "Questions of the gateway to content filters, by filter and result",
            ),
            seconds: to.times_by(
                "gateway_filter_seconds",
                "Time from a question to the answer of the filter, or to the end of the wait",
            ),
        }
    }
}
