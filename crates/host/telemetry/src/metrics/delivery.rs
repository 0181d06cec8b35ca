//! Relaying mail, and storing mail in mailboxes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, label};

label! {
    /// The result of an attempt for a recipient.
    DeliveryResult("result") {
        /// The next hop took responsibility.
        Relayed = "relayed",
        /// The message was stored in the mailbox.
        Stored = "stored",
        /// The message will be tried again.
        Deferred = "deferred",
        /// The message was refused permanently.
        Bounced = "bounced",
        /// The message expired.
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
    /// The action of a delivery status notification (RFC 3464 section 2.3.3).
    DsnAction("action") {
        /// The message is not delivered and will not be.
        Failed = "failed",
        /// The message is not delivered yet.
        Delayed = "delayed",
        /// It is delivered.
        Delivered = "delivered",
        /// The message was passed to a host that sends no notifications.
        Relayed = "relayed",
        /// The message goes to all recipients of an address.
        Expanded = "expanded",
    }
}

/// Relaying mail, and storing mail in mailboxes.
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
    /// Time of a transaction with a next hop or mailbox.
    pub transaction_seconds: Histogram,
    /// Age of messages at delivery.
    pub age_seconds: Histogram,
    /// Notifications made.
    pub notifications: Family<DsnAction, Counter>,
    /// Notifications suppressed by the limit per address.
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
                "Delivery status notifications not sent because of the limit per address",
            ),
        }
    }
}
