//! What the gateway counts, and the endpoint that shows it.

use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_queue::Disposition;
use vere_smtp::refusal::Refusal;
use vere_telemetry::metrics::{
    Counter, DeliveryResult, Health, Metrics, NodeName, Refusal as TurnedAway, SmtpService, serve,
};

use super::clock;
use super::listeners::Service;
use super::state::Gateway;
use crate::cli::Failure;

/// How often what is measured and not counted is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// The gateway's metrics; what is counted for every message is at hand without a look-up.
#[derive(Debug)]
pub(super) struct GatewayMetrics {
    all: Metrics,
    relayed: Counter,
    stored: Counter,
    deferred: Counter,
    bounced: Counter,
    expired: Counter,
}

impl Default for GatewayMetrics {
    fn default() -> Self {
        let all = Metrics::new();
        let recipients = |result| all.delivery.recipients.get_or_create_owned(&result);
        Self {
            relayed: recipients(DeliveryResult::Relayed),
            stored: recipients(DeliveryResult::Stored),
            deferred: recipients(DeliveryResult::Deferred),
            bounced: recipients(DeliveryResult::Bounced),
            expired: recipients(DeliveryResult::Expired),
            all,
        }
    }
}

impl GatewayMetrics {
    /// A message of so many octets and recipients was taken, or refused at its end, and how long that
    /// took.
    pub(super) fn received(
        &self,
        octets: usize,
        recipients: usize,
        took: Duration,
        refusal: Option<&Refusal>,
    ) {
        self.all.smtp.store_seconds.observe(took.as_secs_f64());
        if refusal.is_some() {
            self.all.smtp.messages_refused.inc();
            return;
        }
        self.all
            .smtp
            .messages_received
            .get_or_create(&SmtpService::Smtp)
            .inc();
        self.all.smtp.received_bytes.inc_by(octets as u64);
        self.all.smtp.recipients_received.inc_by(recipients as u64);
    }

    /// A connection was accepted.
    pub(super) fn accepted(&self, service: Service) {
        self.all
            .smtp
            .connections_accepted
            .get_or_create(&label(service))
            .inc();
        self.all
            .smtp
            .connections
            .get_or_create(&label(service))
            .inc();
    }

    /// An accepted connection has ended.
    pub(super) fn ended(&self, service: Service) {
        self.all
            .smtp
            .connections
            .get_or_create(&label(service))
            .dec();
    }

    /// A connection was closed at once for want of places.
    pub(super) fn turned_away(&self) {
        self.all
            .smtp
            .connections_refused
            .get_or_create(&TurnedAway::Connections)
            .inc();
    }

    /// One recipient of an attempt: what it came to.
    pub(super) fn attempted(&self, disposition: Disposition, local: bool, expired: bool) {
        match disposition {
            Disposition::Delivered if local => &self.stored,
            Disposition::Delivered => &self.relayed,
            Disposition::Failed => &self.bounced,
            Disposition::Deferred if expired => &self.expired,
            Disposition::Deferred => &self.deferred,
        }
        .inc();
    }
}

fn label(service: Service) -> SmtpService {
    match service {
        Service::Smtp => SmtpService::Smtp,
        Service::Submission => SmtpService::Submission,
        Service::Submissions => SmtpService::Submissions,
    }
}

/// Serves the endpoint on these sockets and keeps the gauges true, until the gateway stops.
///
/// # Errors
/// When a socket cannot be used.
pub(super) fn start(
    gateway: &Rc<Gateway>,
    listeners: Vec<StdListener>,
    health: &watch::Sender<Health>,
) -> Result<(), Failure> {
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(serve(
            listener,
            gateway.metrics.all.clone(),
            health.subscribe(),
        ));
    }
    spawn_local(measure(Rc::clone(gateway)));
    Ok(())
}

async fn measure(gateway: Rc<Gateway>) {
    let node = gateway
        .settings()
        .spool
        .nodes
        .first()
        .map_or_else(String::new, |node| node.name.clone());
    let node = NodeName(node);
    loop {
        let summaries = gateway.queues.borrow().summaries();
        let now = clock::now();
        let sum = |of: &dyn Fn(&vere_queue::QueueSummary) -> u64| {
            i64::try_from(summaries.iter().map(of).sum::<u64>()).unwrap_or(i64::MAX)
        };
        let queue = &gateway.metrics.all.queue;
        queue
            .destinations
            .set(sum(&|one| u64::from(one.messages > 0)));
        queue
            .destinations_paused
            .set(sum(&|one| u64::from(one.paused_until.is_some())));
        queue.messages.set(sum(&|one| one.messages as u64));
        queue.messages_deferred.set(sum(&|one| one.deferred as u64));
        queue.bytes.set(sum(&|one| one.octets));
        let oldest = summaries.iter().filter_map(|one| one.oldest).min();
        let age = oldest.map_or(0, |oldest| now.saturating_since(oldest).as_secs());
        queue
            .oldest_seconds
            .set(i64::try_from(age).unwrap_or(i64::MAX));
        let connected = gateway.link.state().borrow().is_up();
        gateway
            .metrics
            .all
            .spool
            .connected
            .get_or_create(&node)
            .set(i64::from(connected));
        tokio::time::sleep(INTERVAL).await;
    }
}
