//! Lists of clients in the DNS, which the broker asks and the front shows.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, Label, label};

/// The name of a list, as the settings have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListName(pub String);

impl EncodeLabelSet for ListName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("list", self.0.as_str())].encode(encoder)
    }
}

impl Label for ListName {
    fn describe() -> String {
        "`list`: the names of `[[front.list]]`".to_owned()
    }
}

label! {
    /// The time of an answer, longer than the bound before.
    ListWithin("within") {
        /// Up to a millisecond.
        Ms1 = "1ms",
        /// Up to 3 milliseconds.
        Ms3 = "3ms",
        /// Up to 10 milliseconds.
        Ms10 = "10ms",
        /// Up to 30 milliseconds.
        Ms30 = "30ms",
        /// Up to 100 milliseconds.
        Ms100 = "100ms",
        /// Up to 300 milliseconds.
        Ms300 = "300ms",
        /// Up to a second.
        S1 = "1s",
        /// More.
        More = "more",
    }
}

impl ListWithin {
    /// Every bound, in order.
    pub const ALL: [Self; 8] = [
        Self::Ms1,
        Self::Ms3,
        Self::Ms10,
        Self::Ms30,
        Self::Ms100,
        Self::Ms300,
        Self::S1,
        Self::More,
    ];
}

/// An answer of a list, by its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListAnswered {
    /// The list.
    pub list: ListName,
    /// The time.
    pub within: ListWithin,
}

impl EncodeLabelSet for ListAnswered {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            ("list", self.list.0.as_str()),
            (ListWithin::LABEL, self.within.value()),
        ]
        .encode(encoder)
    }
}

impl Label for ListAnswered {
    fn describe() -> String {
        format!("{}; {}", ListName::describe(), ListWithin::describe())
    }
}

/// Lists of clients.
#[derive(Clone, Debug)]
pub struct ListMetrics {
    /// Queries sent.
    pub queries: Family<ListName, Counter>,
    /// Questions whose answers were kept.
    pub hits: Family<ListName, Counter>,
    /// Questions that shared a query.
    pub shared: Family<ListName, Counter>,
    /// Clients with an entry.
    pub listed: Family<ListName, Counter>,
    /// Queries without a usable answer.
    pub failures: Family<ListName, Counter>,
    /// Questions for which the list was left out.
    pub skipped: Family<ListName, Counter>,
    /// Questions for which the list was left out because it lists everybody.
    pub untrusted: Family<ListName, Counter>,
    /// Answers by their time.
    pub answers: Family<ListAnswered, Counter>,
    /// Questions that the cache could answer.
    pub cache_hits: Counter,
    /// Questions that the cache could not answer.
    pub cache_misses: Counter,
    /// Entries that made room.
    pub cache_evicted: Counter,
    /// Entries of the cache.
    pub cache_entries: Gauge,
    /// Octets of the cache.
    pub cache_octets: Gauge,
}

impl ListMetrics {
    /// Declares the metrics in the section of the front.
    pub(super) fn declare(to: &mut Declarations) -> Self {
        Self {
            queries: to.counters(
                "list_queries",
                "Queries of the broker to lists of clients, since its start",
            ),
            hits: to.counters("list_hits", "Questions about clients whose answers were kept"),
            shared: to.counters(
                "list_shared",
                "Questions about clients that waited for an equal query under way",
            ),
            listed: to.counters("list_listed", "Clients with an entry, each time they were asked about"),
            failures: to.counters("list_failures", "Queries without a usable answer in time"),
            skipped: to.counters(
                "list_skipped",
                "Questions for which the list was left out: too late, not checked yet, resting after failures, or with too many queries under way",
            ),
            untrusted: to.counters(
                "list_untrusted",
                "Questions for which the list was left out because it lists 127.0.0.1, and so everybody",
            ),
            answers: to.counters(
                "list_answers",
                "Answers of lists by their time; a bound does not count the answers of the bounds before",
            ),
            cache_hits: to.counter("list_cache_hits", "Questions that the cache of all lists answered"),
            cache_misses: to.counter("list_cache_misses", "Questions for which a list had to be asked"),
            cache_evicted: to.counter(
                "list_cache_evicted",
                "Answers that made room for others before the end of their time to live",
            ),
            cache_entries: to.gauge("list_cache_entries", "Answers that the broker keeps"),
            cache_octets: to.gauge(
                "list_cache_bytes",
                "Memory of these answers; front.lists.cache is the limit",
            ),
        }
    }
}
