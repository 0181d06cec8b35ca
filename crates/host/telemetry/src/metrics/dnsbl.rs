//! The server of block lists.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, Label, label};

/// The name of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ZoneName(pub String);

impl EncodeLabelSet for ZoneName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("zone", self.0.as_str())].encode(encoder)
    }
}

impl Label for ZoneName {
    fn describe() -> String {
        "`zone`: name in the settings; empty outside all zones".to_owned()
    }
}

label! {
    /// The way on which a query came.
    DnsTransport("transport") {
        /// A datagram.
        Udp = "udp",
        /// A connection.
        Tcp = "tcp",
    }
}

label! {
    /// The type of a question.
    DnsQuestion("type") {
        /// The listing of an address.
        A = "a",
        /// A map of 128 neighbours.
        Aaaa = "aaaa",
        /// The reason of a listing.
        Txt = "txt",
        /// Any other type, and queries that cannot be read.
        Other = "other",
    }
}

label! {
    /// The answer to a query.
    DnsAnswer("answer") {
        /// Records.
        Positive = "positive",
        /// Name or type do not exist.
        Negative = "negative",
        /// An error.
        Error = "error",
    }
}

label! {
    /// The treatment of an answer beyond a rate.
    DnsLimited("result") {
        /// Not sent.
        Dropped = "dropped",
        /// Sent without records, so that the client asks again over TCP.
        Slipped = "slipped",
    }
}

/// A query: transport, zone, type and answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DnsQuery {
    /// The way on which the query came.
    pub transport: DnsTransport,
    /// The zone.
    pub zone: ZoneName,
    /// The type.
    pub question: DnsQuestion,
    /// The answer.
    pub answer: DnsAnswer,
}

impl EncodeLabelSet for DnsQuery {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (DnsTransport::LABEL, self.transport.value()),
            ("zone", self.zone.0.as_str()),
            (DnsQuestion::LABEL, self.question.value()),
            (DnsAnswer::LABEL, self.answer.value()),
        ]
        .encode(encoder)
    }
}

impl Label for DnsQuery {
    fn describe() -> String {
        [
            DnsTransport::describe(),
            ZoneName::describe(),
            DnsQuestion::describe(),
            DnsAnswer::describe(),
        ]
        .join("; ")
    }
}

/// The server of block lists.
#[derive(Clone, Debug)]
pub struct DnsblMetrics {
    /// Queries.
    pub queries: Family<DnsQuery, Counter>,
    /// Answers beyond a rate.
    pub limited: Family<DnsLimited, Counter>,
    /// Answers without their records, because the client takes no longer ones.
    pub truncated: Counter,
    /// Packets that are no queries.
    pub ignored: Counter,
    /// Entries of a zone.
    pub zone_entries: Family<ZoneName, Gauge>,
    /// Octets of memory for the data of a zone.
    pub zone_memory: Family<ZoneName, Gauge>,
    /// The time at which the data of a zone came into force, in seconds since 1970.
    pub zone_loaded: Family<ZoneName, Gauge>,
    /// Milliseconds that the last reading of a zone took.
    pub zone_load: Family<ZoneName, Gauge>,
    /// Readings of zones that failed; the old data remained.
    pub load_failures: Family<ZoneName, Counter>,
}

impl DnsblMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Block lists");
        Self {
            queries: to.counters("dnsbl_queries", "Queries to the server of block lists"),
            limited: to.counters(
                "dnsbl_limited",
                "Answers by UDP beyond a rate (dnsbl.rate_positive and others)",
            ),
            truncated: to.counter(
                "dnsbl_truncated",
                "Answers without their records, because they were longer than the client takes",
            ),
            ignored: to.counter(
                "dnsbl_ignored",
                "Packets without an answer: responses, and those shorter than a header",
            ),
            zone_entries: to.gauges(
                "dnsbl_zone_entries",
                "Entries of a zone: addresses, ranges of addresses and names, without those that others hide, and records",
            ),
            zone_memory: to.gauges("dnsbl_zone_bytes", "Memory for the data of a zone"),
            zone_loaded: to.gauges(
                "dnsbl_zone_loaded_seconds",
                "Time at which the data of a zone came into force, since 1970",
            ),
            zone_load: to.gauges(
                "dnsbl_zone_load_milliseconds",
                "Time that the last reading of a zone took",
            ),
            load_failures: to.counters(
                "dnsbl_load_failures",
                "Readings of a zone that failed, so that the old data remained",
            ),
        }
    }
}
