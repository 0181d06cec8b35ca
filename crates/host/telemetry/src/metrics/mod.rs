//! Metrics of a process in the OpenMetrics text format, and their HTTP endpoint.
//!
//! [`Metrics`] holds every metric as a field of a group per concern; the groups' modules are the
//! only places where metrics are declared, each with a help text and its unit in the name.
//! `docs/internals/metrics.md` is [`reference()`] as a file.
//!
//! Counting is an atomic addition. A metric with labels is found under a read lock; a hot path
//! keeps the counter (`family.get_or_create_owned(..)`).
//!
//! ```
//! use vere_telemetry::metrics::{Metrics, SmtpService};
//!
//! let metrics = Metrics::new();
//! metrics.smtp.connections_accepted.get_or_create(&SmtpService::Submission).inc();
//! let text = metrics.encode();
//! assert!(text.contains("vere_smtp_connections_accepted_total{service=\"submission\"} 1\n"));
//! ```

mod broker;
mod declarations;
mod delivery;
mod dnsbl;
mod endpoint;
mod filters;
mod front;
mod judged;
mod lists;
mod otlp;
mod process;
mod quarantine;
mod queue;
mod records;
mod reports;
mod sign;
mod smtp;
mod spool;
mod store;
mod tls;
mod web;
mod x400;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

pub use broker::{BrokerMetrics, CallAnswer, CallResult};
use declarations::Declarations;
pub use delivery::{ConnectionResult, DeliveryMetrics, DeliveryResult, DsnAction};
pub use dnsbl::{
    DnsAnswer, DnsLimited, DnsQuery, DnsQuestion, DnsTransport, DnsblMetrics, ZoneName,
};
pub use endpoint::{CONNECTIONS_MAX, Health, serve};
pub use filters::{FilterAnswered, FilterMetrics, FilterName, FilterResult};
pub use front::{
    BrokerAnswer, BrokerAnswered, BrokerQuestion, FrontHandshake, FrontLoop, FrontMetrics,
    FrontReason, FrontTable, FrontTls, TlsCarrier, WorkerLoss, WorkerSessionEnd,
};
pub use judged::{JudgedMetrics, JudgedVerdict, RuleName};
pub use lists::{ListAnswered, ListMetrics, ListName, ListWithin};
pub use otlp::{OtlpMetrics, OtlpResult};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
pub use quarantine::{QuarantineEnd, QuarantineMetrics};
pub use queue::QueueMetrics;
pub use records::RecordMetrics;
pub use reports::{ReportEnd, ReportFigures, ReportMetrics, Uncounted};
pub use sign::{RecordLook, SealResult, SignMetrics, SignResult};
pub use smtp::{
    AuthResult, ClientName, OverLimit, ReplyClass, Shortage, SmtpMetrics, SmtpService, TurnedAway,
};
pub use spool::{CommitResult, GroupName, NodeName, SpoolMetrics};
pub use store::{KeptMetrics, StoreMetrics};
pub use tls::{
    CertificateFile, Handshake, HandshakeResult, PolicyOutcome, PolicyResult, TlsMetrics,
    TlsPolicy, TlsSide,
};
pub use web::{
    WebConnection, WebConnectionEnd, WebMetrics, WebRequest, WebResource, WebScheme, WebStatus,
};
pub use x400::{X400Bind, X400Metrics, X400Side, X400Unit};

/// Every metric of a process; clones share the counters.
#[derive(Clone)]
pub struct Metrics {
    /// Receiving mail.
    pub smtp: SmtpMetrics,
    /// Port 25 in processes of its own.
    pub front: FrontMetrics,
    /// The server of block lists.
    pub dnsbl: DnsblMetrics,
    /// Calls of the broker.
    pub broker: BrokerMetrics,
    /// Lists of clients, which the broker asks.
    pub lists: ListMetrics,
    /// Content filters, which the gateway asks.
    pub filters: FilterMetrics,
    /// Signing.
    pub sign: SignMetrics,
    /// Judgement of received messages.
    pub judged: JudgedMetrics,
    /// What waits.
    pub queue: QueueMetrics,
    /// What the judgement keeps aside.
    pub quarantine: QuarantineMetrics,
    /// Relaying mail and storing mail in mailboxes.
    pub delivery: DeliveryMetrics,
    /// Lines about messages for other systems.
    pub records: RecordMetrics,
    /// Reports to other systems about their mail.
    pub reports: ReportMetrics,
    /// The spool nodes, as seen by their owner.
    pub spool: SpoolMetrics,
    /// The mail store.
    pub store: StoreMetrics,
    /// TLS on both sides.
    pub tls: TlsMetrics,
    /// The web server for mail programs and other systems.
    pub web: WebMetrics,
    /// The MTA of X.400.
    pub x400: X400Metrics,
    /// The log on its way to a collector.
    pub otlp: OtlpMetrics,
    registry: Arc<Registry>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::declare().0
    }

    fn declare() -> (Self, String) {
        let mut declarations = Declarations::default();
        let smtp = SmtpMetrics::declare(&mut declarations);
        let front = FrontMetrics::declare(&mut declarations);
        let broker = BrokerMetrics::declare(&mut declarations);
        let dnsbl = DnsblMetrics::declare(&mut declarations);
        let lists = ListMetrics::declare(&mut declarations);
        let judged = JudgedMetrics::declare(&mut declarations);
        let filters = FilterMetrics::declare(&mut declarations);
        let sign = SignMetrics::declare(&mut declarations);
        let queue = QueueMetrics::declare(&mut declarations);
        let quarantine = QuarantineMetrics::declare(&mut declarations);
        let delivery = DeliveryMetrics::declare(&mut declarations);
        let records = RecordMetrics::declare(&mut declarations);
        let reports = ReportMetrics::declare(&mut declarations);
        let spool = SpoolMetrics::declare(&mut declarations);
        let store = StoreMetrics::declare(&mut declarations);
        let tls = TlsMetrics::declare(&mut declarations);
        let web = WebMetrics::declare(&mut declarations);
        let x400 = X400Metrics::declare(&mut declarations);
        let otlp = OtlpMetrics::declare(&mut declarations);
        process::declare(&mut declarations);
        let (registry, reference) = declarations.finish();
        (
            Self {
                smtp,
                front,
                dnsbl,
                broker,
                lists,
                judged,
                filters,
                sign,
                queue,
                quarantine,
                delivery,
                records,
                reports,
                spool,
                store,
                tls,
                web,
                x400,
                otlp,
                registry: Arc::new(registry),
            },
            reference,
        )
    }

    /// The state of all metrics as OpenMetrics text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

/// All metrics with their types, labels and help texts, as Markdown.
#[must_use]
pub fn reference() -> String {
    Metrics::declare().1
}

#[cfg(test)]
mod tests;
