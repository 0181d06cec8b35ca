//! Messages waiting for delivery.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::Declarations;

/// Messages waiting for delivery.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    /// Destinations with messages.
    pub destinations: Gauge,
    /// Destinations with a queue, with or without messages.
    pub destinations_known: Gauge,
    /// Destinations paused after failures.
    pub destinations_paused: Gauge,
    /// Destinations that wait because of a rate limit.
    pub destinations_throttled: Gauge,
    /// Destinations that wait for a connection to their site or place.
    pub destinations_crowded: Gauge,
    /// Sites: sets of hosts that serve destinations.
    pub sites: Gauge,
    /// Sites suspended after failures.
    pub sites_suspended: Gauge,
    /// Waiting messages, counted once per destination.
    pub messages: Gauge,
    /// Their octets.
    pub bytes: Gauge,
    /// Memory of the envelopes and bodies next in line.
    pub memory_bytes: Gauge,
    /// Messages waiting for another attempt.
    pub messages_deferred: Gauge,
    /// Messages held individually by an operator.
    pub messages_held: Gauge,
    /// Age of the oldest message.
    pub oldest_seconds: Gauge,
    /// Number of steps of the wall clock while messages waited by the clock.
    pub clock_steps: Counter,
}

impl QueueMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Queues");
        Self {
            destinations: to.gauge("queue_destinations", "Destinations that have messages"),
            destinations_known: to.gauge(
                "queue_destinations_known",
                "Destinations that have a queue, with or without messages",
            ),
            destinations_paused: to.gauge(
                "queue_destinations_paused",
                "Destinations that are paused after failures",
            ),
            destinations_throttled: to.gauge(
                "queue_destinations_throttled",
                "Destinations that wait because of a rate",
            ),
            destinations_crowded: to.gauge(
                "queue_destinations_crowded",
                "Destinations that wait for a free connection to their hosts, or within a limit",
            ),
            sites: to.gauge("queue_sites", "Sets of hosts that serve known destinations"),
            sites_suspended: to.gauge(
                "queue_sites_suspended",
                "Sets of hosts that are left alone after failures",
            ),
            messages: to.gauge(
                "queue_messages",
                "Messages that wait, counted once per destination",
            ),
            bytes: to.gauge("queue_bytes", "Octets of messages that wait"),
            memory_bytes: to.gauge(
                "queue_memory_bytes",
                "Memory of the messages that leave next",
            ),
            messages_deferred: to.gauge(
                "queue_messages_deferred",
                "Messages that wait for another attempt",
            ),
            messages_held: to.gauge(
                "queue_messages_held",
                "Messages that an operator holds one by one",
            ),
            oldest_seconds: to.gauge(
                "queue_oldest_seconds",
                "Age of the oldest message that waits",
            ),
            clock_steps: to.counter(
                "queue_clock_steps",
                "Times that the wall clock was put ahead or back while the gateway ran",
            ),
        }
    }
}
