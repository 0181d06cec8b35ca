//! Port 25 in processes of its own: the front, and what the front knows of its workers and of the broker.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, label};

/// The reason of a decision against a client: one of [`FrontReason::NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrontReason(pub &'static str);

impl FrontReason {
    /// Every reason: the reasons of the engine, a gateway without room for mail, and a load balancer without a PROXY header.
    pub const NAMES: [&'static str; 23] = [
        "connections",
        "address_connections",
        "network_connections",
        "address_rate",
        "network_rate",
        "refusals",
        "errors",
        "early_talk",
        "access",
        "listed",
        "lists_unavailable",
        "spf_fail",
        "spf_error",
        "recipient_unknown",
        "recipient_refused",
        "recipient_deferred",
        "greylisted",
        "first_command",
        "idle",
        "slow",
        "evicted",
        "gateway",
        "proxy",
    ];
}

impl EncodeLabelSet for FrontReason {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("reason", self.0)].encode(encoder)
    }
}

impl Label for FrontReason {
    fn describe() -> String {
        format!("`reason`: {}", Self::NAMES.join(", "))
    }
}

/// The number of a loop of the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrontLoop(pub usize);

impl EncodeLabelSet for FrontLoop {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("front_loop", self.0)].encode(encoder)
    }
}

impl Label for FrontLoop {
    fn describe() -> String {
        "`front_loop`: 0 and on".to_owned()
    }
}

label! {
    /// The end of a session in the hands of workers.
    WorkerSessionEnd("end") {
        /// The worker reported the end.
        Done = "done",
        /// The worker was lost; the client got 421.
        Lost = "lost",
        /// No worker took the session in time; the client got 421.
        Unserved = "unserved",
    }
}

label! {
    /// The way in which the front lost a worker.
    WorkerLoss("reason") {
        /// The process ended without notice.
        Dead = "dead",
        /// A packet of the worker was malformed.
        Protocol = "protocol",
        /// The worker left a session unbegun for too long.
        Unbegun = "unbegun",
    }
}

label! {
    /// Who encrypts a connection behind its handshake.
    TlsCarrier("carrier") {
        /// The kernel.
        Kernel = "kernel",
        /// A thread of the front.
        Thread = "thread",
    }
}

label! {
    /// A table of the front.
    FrontTable("table") {
        /// Addresses of clients.
        Addresses = "addresses",
        /// Networks of clients.
        Networks = "networks",
        /// Client, sender and recipient.
        Greylist = "greylist",
    }
}

label! {
    /// The kind of a question to the broker.
    BrokerQuestion("kind") {
        /// Whether mail for a recipient is accepted.
        Recipient = "recipient",
        /// Whether the sender's domain lets the client send (RFC 7208).
        Spf = "spf",
        /// Which lists have the client (RFC 5782).
        Lists = "lists",
    }
}

label! {
    /// The answer to a question.
    BrokerAnswer("result") {
        /// Yes; of SPF also `none` and `neutral`; of lists: no entry against the client.
        Accepted = "accepted",
        /// No, for good; of SPF also `softfail` and `permerror`, whatever the policy.
        Refused = "refused",
        /// Not now; of lists: one has not answered.
        Deferred = "deferred",
        /// No answer: the broker is away, or has too many questions.
        Lost = "lost",
    }
}

/// A question to the broker and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BrokerAnswered {
    /// The question.
    pub kind: BrokerQuestion,
    /// The answer.
    pub result: BrokerAnswer,
}

impl EncodeLabelSet for BrokerAnswered {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (BrokerQuestion::LABEL, self.kind.value()),
            (BrokerAnswer::LABEL, self.result.value()),
        ]
        .encode(encoder)
    }
}

impl Label for BrokerAnswered {
    fn describe() -> String {
        format!(
            "{}; {}",
            BrokerQuestion::describe(),
            BrokerAnswer::describe()
        )
    }
}

label! {
    /// The end of a handshake of TLS.
    FrontHandshake("result") {
        /// Encrypted, with a signature.
        Done = "done",
        /// Encrypted, by the ticket of an earlier connection.
        Resumed = "resumed",
        /// No encryption came about.
        Failed = "failed",
    }
}

/// Port 25 in processes of its own.
#[derive(Clone, Debug)]
pub struct FrontMetrics {
    /// Open connections, with the connections of workers.
    pub connections: Gauge,
    /// Connections that came.
    pub connections_arrived: Counter,
    /// Connections that came, by the loop that serves them.
    pub loop_connections_arrived: Family<FrontLoop, Counter>,
    /// Connections closed without a greeting.
    pub connections_turned_away: Family<FrontReason, Counter>,
    /// Decisions against admitted clients.
    pub decisions: Family<FrontReason, Counter>,
    /// Encrypted connections.
    pub tls: FrontTls,
    /// Recipients accepted by the front.
    pub recipients_accepted: Counter,
    /// Sessions given to workers.
    pub sessions_handed_over: Counter,
    /// Sessions in wait of a worker.
    pub sessions_waiting: Gauge,
    /// Ends of sessions that were given to workers.
    pub sessions_ended: Family<WorkerSessionEnd, Counter>,
    /// Time from RCPT to the worker's BEGUN.
    pub begin_seconds: Histogram,
    /// Entries of tables.
    pub table_entries: Family<FrontTable, Gauge>,
    /// Number of workers.
    pub workers: Gauge,
    /// Sessions of workers.
    pub worker_sessions: Gauge,
    /// Sessions of the worker with the most.
    pub worker_sessions_most: Gauge,
    /// Workers lost.
    pub workers_lost: Family<WorkerLoss, Counter>,
    /// Layers of the sandbox of the worker with the fewest.
    pub worker_layers: Gauge,
    /// Questions to the broker.
    pub questions: Family<BrokerAnswered, Counter>,
    /// Time of a question.
    pub question_seconds: Histogram,
}

/// STARTTLS at the front.
#[derive(Debug, Clone)]
pub struct FrontTls {
    /// Handshakes by their ends.
    pub handshakes: Family<FrontHandshake, Counter>,
    /// Encrypted connections by carrier: the kernel or a thread.
    pub connections: Family<TlsCarrier, Counter>,
}

impl FrontTls {
    fn declare(to: &mut Declarations) -> Self {
        Self {
            handshakes: to.counters(
                "front_tls_handshakes",
                "Handshakes of TLS behind STARTTLS; a resumed one needs no signature of the signer",
            ),
            connections: to.counters(
                "front_tls_connections",
                "Connections encrypted by STARTTLS, by who encrypts behind the handshake",
            ),
        }
    }
}

impl FrontMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Front, workers and broker");
        Self {
            connections: to.gauge(
                "front_connections",
                "Open connections of port 25, those of workers included",
            ),
            connections_arrived: to.counter(
                "front_connections_arrived",
                "Connections to port 25, those that were turned away included",
            ),
            loop_connections_arrived: to.counters(
                "front_loop_connections_arrived",
                "Connections to port 25 by the loop of the front that serves them",
            ),
            connections_turned_away: to.counters(
                "front_connections_turned_away",
                "Connections closed in place of the greeting",
            ),
            decisions: to.counters(
                "front_decisions",
                "Commands refused or put off, and connections closed, of clients that were let in",
            ),
            tls: FrontTls::declare(to),
            recipients_accepted: to.counter(
                "front_recipients_accepted",
                "Recipients accepted by the front, the first of each session",
            ),
            sessions_handed_over: to.counter(
                "front_sessions_handed_over",
                "Sessions given to workers",
            ),
            sessions_waiting: to.gauge(
                "front_sessions_waiting",
                "Sessions that wait for a worker with room",
            ),
            sessions_ended: to.counters(
                "front_sessions_ended",
                "Ends of sessions that were given to workers",
            ),
            begin_seconds: to.times(
                "front_begin_seconds",
                "Time from the RCPT that was accepted to the beginning of the session in a worker",
            ),
            table_entries: to.gauges("front_table_entries", "Entries of the tables of the front"),
            workers: to.gauge("front_workers", "Workers that take sessions"),
            worker_sessions: to.gauge("front_worker_sessions", "Sessions that workers have"),
            worker_sessions_most: to.gauge(
                "front_worker_sessions_most",
                "Sessions of the worker that has most; front.sessions_at_once is the limit",
            ),
            workers_lost: to.counters(
                "front_workers_lost",
                "Workers that ended without notice or were given up",
            ),
            worker_layers: to.gauge(
                "front_worker_layers",
                "Layers of the sandbox of the worker that has fewest; 7 with another user, 6 without, 0 without workers",
            ),
            questions: to.counters(
                "front_questions",
                "Questions of the front to the broker, by answer",
            ),
            question_seconds: to.times(
                "front_question_seconds",
                "Time from a question of the front to the answer of the broker",
            ),
        }
    }
}
