//! Receiving mail.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, label};

label! {
    /// The service a client talks to.
    SmtpService("service") {
        /// Mail from other hosts.
        Smtp = "smtp",
        /// Mail from users, with STARTTLS.
        Submission = "submission",
        /// Mail from users, within TLS.
        Submissions = "submissions",
        /// Mail from programs on this machine.
        Sendmail = "sendmail",
    }
}

label! {
    /// The reason for closing a connection before the first command.
    TurnedAway("reason") {
        /// Too many connections in all.
        Connections = "connections",
        /// Too many connections of the same client.
        Client = "client",
        /// A front end sent no valid PROXY header.
        Proxy = "proxy",
        /// The spool sends no acknowledgements until an operator acts.
        Spool = "spool",
        /// Queues or memory are nearly used up.
        Pressure = "pressure",
    }
}

label! {
    /// The fate of a message of an account that has sent as much as may be.
    OverLimit("result") {
        /// The client was told to come back later.
        Deferred = "deferred",
        /// The message was taken and waits for an operator.
        Held = "held",
    }
}

label! {
    /// The fate of a message or connection under memory pressure.
    Shortage("result") {
        /// The message was refused.
        Refused = "refused",
        /// The connection was ended: the client sent next to no data.
        Ended = "ended",
    }
}

/// The address or network of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientName(pub String);

impl EncodeLabelSet for ClientName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("client", self.0.as_str())].encode(encoder)
    }
}

impl Label for ClientName {
    fn describe() -> String {
        "`client`: address, IPv6 network or user of this machine; one at a time".to_owned()
    }
}

label! {
    /// The first digit of a reply code.
    ReplyClass("class") {
        /// Done.
        Positive = "2",
        /// Go on.
        Intermediate = "3",
        /// Not now.
        Transient = "4",
        /// Never.
        Permanent = "5",
    }
}

label! {
    /// How an authentication ended.
    AuthResult("result") {
        /// The client proved the identity of the account.
        Accepted = "accepted",
        /// It is not.
        Rejected = "rejected",
        /// The proof could not be checked.
        Unavailable = "unavailable",
    }
}

/// Receiving mail.
#[derive(Clone, Debug)]
pub struct SmtpMetrics {
    /// Open connections.
    pub connections: Family<SmtpService, Gauge>,
    /// Connections taken.
    pub connections_accepted: Family<SmtpService, Counter>,
    /// Connections closed before the first command.
    pub connections_refused: Family<TurnedAway, Counter>,
    /// Replies sent.
    pub replies: Family<ReplyClass, Counter>,
    /// Ends of authentications.
    pub authentications: Family<AuthResult, Counter>,
    /// Messages accepted with responsibility.
    pub messages_received: Family<SmtpService, Counter>,
    /// Their octets.
    pub received_bytes: Counter,
    /// Recipients of messages received.
    pub recipients_received: Counter,
    /// Messages refused after the body was received.
    pub messages_refused: Counter,
    /// Time from the end of a body to the reply.
    pub store_seconds: Histogram,
    /// Memory of bodies being received.
    pub body_memory_bytes: Gauge,
    /// Files of long bodies being received.
    pub body_disk_bytes: Gauge,
    /// Memory held by the client with the largest share, while memory is short or was short within the
    /// last minute.
    pub body_memory_heaviest_bytes: Family<ClientName, Gauge>,
    /// Disk space held by the client with the largest share.
    pub body_disk_heaviest_bytes: Family<ClientName, Gauge>,
    /// Messages that released memory or disk space during a shortage.
    pub body_memory_shortages: Family<Shortage, Counter>,
    /// Messages over the bounds of their account.
    pub over_limit: Family<OverLimit, Counter>,
    /// Whether new mail is turned away because queues or memory are nearly used up.
    pub throttled: Gauge,
}

impl SmtpMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Receiving mail");
        Self {
            connections: to.gauges("smtp_connections", "Open connections from clients"),
            connections_accepted: to.counters(
                "smtp_connections_accepted",
                "Connections taken from clients",
            ),
            connections_refused: to.counters(
                "smtp_connections_refused",
                "Connections closed before the first command",
            ),
            replies: to.counters("smtp_replies", "Replies sent to clients"),
            authentications: to.counters("smtp_authentications", "Authentications that ended"),
            messages_received: to.counters(
                "smtp_messages_received",
                "Messages for which responsibility was taken",
            ),
            received_bytes: to.counter("smtp_received_bytes", "Octets of messages received"),
            recipients_received: to.counter(
                "smtp_recipients_received",
                "Recipients of messages received",
            ),
            messages_refused: to.counter(
                "smtp_messages_refused",
                "Messages refused after the body was received",
            ),
            store_seconds: to.times(
                "smtp_store_seconds",
                "Time from the end of a message to the reply",
            ),
            body_memory_bytes: to.gauge(
                "smtp_body_memory_bytes",
                "Memory of messages that are being received",
            ),
            body_disk_bytes: to.gauge(
                "smtp_body_disk_bytes",
                "Octets of long messages that are being received, in files",
            ),
            body_memory_heaviest_bytes: to.gauges(
                "smtp_body_memory_heaviest_bytes",
                "Memory of the messages of the client that holds most, while memory is short and a minute longer",
            ),
            body_disk_heaviest_bytes: to.gauges(
                "smtp_body_disk_heaviest_bytes",
                "Disk space of the client with the largest share of long messages, while disk space is short and a minute longer",
            ),
            body_memory_shortages: to.counters(
                "smtp_body_memory_shortages",
                "Messages refused, and connections ended, because of their memory or disk space",
            ),
            over_limit: to.counters(
                "smtp_messages_over_limit",
                "Messages of accounts that had sent as much as [sending] allows",
            ),
            throttled: to.gauge(
                "smtp_throttled",
                "1 while new mail is turned away since queues or memory are nearly used up",
            ),
        }
    }
}
