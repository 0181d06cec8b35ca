//! Sending mail on, and storing it in mailboxes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, label};

label! {
    /// What an attempt came to for one recipient.
    DeliveryResult("result") {
        /// The next hop took responsibility.
        Relayed = "relayed",
        /// It lies in the mailbox.
        Stored = "stored",
        /// It is tried again.
        Deferred = "deferred",
        /// It was refused for good.
        Bounced = "bounced",
        /// It became too old.
        Expired = "expired",
    }
}

label! {
    /// How a connection to a next hop began.
    ConnectionResult("result") {
        /// It is open.
        Open = "open",
        /// No host of the destination could be reached.
        Unreachable = "unreachable",
        /// The handshake of TLS failed.
        Tls = "tls",
        /// The host answered, and takes no mail.
        Refused = "refused",
    }
}

label! {
    /// What a delivery status notification tells (RFC 3464 section 2.3.3).
    DsnAction("action") {
        /// The message is not delivered and will not be.
        Failed = "failed",
        /// It is not delivered yet.
        Delayed = "delayed",
        /// It is delivered.
        Delivered = "delivered",
        /// It was given to a host that sends no notifications.
        Relayed = "relayed",
        /// It goes on to all recipients that an address stands for.
        Expanded = "expanded",
    }
}

/// Sending mail on, and storing it in mailboxes.
#[derive(Clone, Debug)]
pub struct DeliveryMetrics {
    /// Attempts by recipient.
    pub recipients: Family<DeliveryResult, Counter>,
    /// Octets of messages delivered, once per transaction.
    pub sent_bytes: Counter,
    /// Open connections to next hops.
    pub connections: Gauge,
    /// Connections begun.
    pub connections_begun: Family<ConnectionResult, Counter>,
    /// Time of one transaction with a next hop or mailbox.
    pub transaction_seconds: Histogram,
    /// Age of messages when they are delivered.
    pub age_seconds: Histogram,
    /// Notifications made.
    pub notifications: Family<DsnAction, Counter>,
    /// Notifications held back since their address had enough.
    pub notifications_limited: Counter,
}

impl DeliveryMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Delivery");
        Self {
            recipients: to.counters("delivery_recipients", "What attempts came to, by recipient"),
            sent_bytes: to.counter("delivery_sent_bytes", "Octets of messages delivered"),
            connections: to.gauge("delivery_connections", "Open connections to next hops"),
            connections_begun: to.counters(
                "delivery_connections_begun",
                "Connections to next hops begun",
            ),
            transaction_seconds: to.times(
                "delivery_transaction_seconds",
                "Time of one transaction with a next hop or mailbox",
            ),
            age_seconds: to.ages("delivery_age_seconds", "Age of messages when delivered"),
            notifications: to.counters(
                "delivery_notifications",
                "Delivery status notifications made",
            ),
            notifications_limited: to.counter(
                "delivery_notifications_limited",
                "Delivery status notifications not sent since their address had enough of them",
            ),
        }
    }
}
