//! Keeps the gauges true, and serves the endpoint.

use std::collections::BTreeSet;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_queue::{GateTotals, Queues};
use vere_spool::owner::{NetworkState, SyncState};
use vere_telemetry::metrics::{
    CertificateFile, Gauge, GroupName, Health, NodeName, QueueMetrics, TlsMetrics, serve,
};
use vere_units::Timestamp;

use crate::cli::Failure;
use crate::gateway::clock;
use crate::gateway::state::Gateway;
use crate::gateway::tls::ServerTls;
use crate::spool::link::SpoolLink;

/// How often what is measured and not counted is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Serves the endpoint on these sockets and keeps the gauges true, until the gateway stops.
///
/// # Errors
/// When a socket cannot be used.
pub(crate) fn start(
    gateway: &Rc<Gateway>,
    tls: ServerTls,
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
    spawn_local(follow_nodes(Rc::clone(gateway)));
    spawn_local(measure(Rc::clone(gateway), tls));
    Ok(())
}

async fn follow_nodes(gateway: Rc<Gateway>) {
    let mut replicas = gateway.link.replicas();
    let mut up: BTreeSet<String> = BTreeSet::new();
    // The first look needs no change.
    let mut table = gateway.link.table();
    loop {
        for row in &table {
            let node = NodeName(row.node.clone());
            let holds = row.sync == SyncState::Sync && row.active == NetworkState::Run;
            let connected = &gateway.metrics.all.spool.connected;
            connected.get_or_create(&node).set(i64::from(holds));
            if row.active == NetworkState::Run {
                up.insert(row.node.clone());
            } else if up.remove(&row.node) {
                gateway.metrics.disconnected(&node);
            }
        }
        if replicas.changed().await.is_err() {
            return;
        }
        table.clone_from(&replicas.borrow_and_update());
    }
}

async fn measure(gateway: Rc<Gateway>, tls: ServerTls) {
    let mut shown = Vec::new();
    loop {
        // It ends also when nobody asks.
        if gateway.is_recovered() {
            gateway.throttled();
        }
        queues(&gateway, &gateway.metrics.all.queue);
        spool(&gateway);
        let mut ends = tls.certificate_ends();
        ends.extend(gateway.link.certificate_end());
        certificates(&gateway.metrics.all.tls, ends, &mut shown);
        tokio::time::sleep(INTERVAL).await;
    }
}

fn queues(gateway: &Gateway, queue: &QueueMetrics) {
    let own = gateway.queues.borrow();
    let adopted = gateway.adopted.borrow();
    let others: Vec<_> = adopted
        .iter()
        .map(|(_, other)| other.queues.borrow())
        .collect();
    let all = || std::iter::once(&own).chain(&others);
    let count = |of: &dyn Fn(&Queues) -> usize| {
        i64::try_from(all().map(|queues| of(queues)).sum::<usize>()).unwrap_or(i64::MAX)
    };
    let octets = |octets: u64| i64::try_from(octets).unwrap_or(i64::MAX);
    queue
        .destinations
        .set(count(&|all| all.totals().destinations));
    queue
        .destinations_known
        .set(count(&Queues::destinations_known));
    queue
        .destinations_paused
        .set(count(&|all| all.totals().paused));
    sites(
        &all().map(|all| all.gate_totals()).collect::<Vec<_>>(),
        queue,
    );
    queue.messages.set(count(&|all| all.totals().messages));
    queue
        .messages_deferred
        .set(count(&|all| all.totals().deferred));
    queue.messages_held.set(count(&|all| all.totals().held));
    queue
        .bytes
        .set(octets(all().map(|all| all.totals().octets).sum()));
    queue.memory_bytes.set(count(&Queues::head_octets));
    let lines = |gateway: &Gateway| gateway.records.waiting();
    let waiting: u64 = adopted.iter().map(|(_, other)| lines(other)).sum();
    let gauge = &gateway.metrics.all.records.waiting_bytes;
    gauge.set(octets(lines(gateway) + waiting));
    let oldest = all().filter_map(|all| all.oldest()).min();
    let age = oldest.map_or(0, |oldest| clock::now().saturating_since(oldest).as_secs());
    queue.oldest_seconds.set(octets(age));
}

fn sites(all: &[GateTotals], queue: &QueueMetrics) {
    let set = |gauge: &Gauge, of: fn(&GateTotals) -> usize| {
        let sum: usize = all.iter().map(of).sum();
        gauge.set(i64::try_from(sum).unwrap_or(i64::MAX));
    };
    set(&queue.sites, |one| one.sites);
    set(&queue.sites_suspended, |one| one.sites_suspended);
    set(&queue.destinations_throttled, |one| one.waiting_rate);
    set(&queue.destinations_crowded, |one| one.waiting_connection);
}

/// Writes when certificates end, when that is not what is `shown` already.
fn certificates(
    metrics: &TlsMetrics,
    ends: Vec<(PathBuf, Timestamp)>,
    shown: &mut Vec<(PathBuf, Timestamp)>,
) {
    if ends == *shown {
        return;
    }
    metrics.certificate_expiry_seconds.clear();
    for (file, end) in &ends {
        let file = CertificateFile(file.display().to_string());
        let gauge = metrics.certificate_expiry_seconds.get_or_create(&file);
        gauge.set(seconds(*end));
    }
    *shown = ends;
}

fn seconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis() / 1000).unwrap_or(i64::MAX)
}

/// The leases of this gateway's group and of those it adopted, and the nodes' certificates.
fn spool(gateway: &Gateway) {
    let metrics = &gateway.metrics.all.spool;
    metrics.lease_held.clear();
    metrics.lease_remaining_seconds.clear();
    let own = gateway.settings().gateway.name.clone();
    let lease = |group: &str, link: &SpoolLink| {
        let (group, left) = (GroupName(group.to_owned()), link.lease_left().as_secs());
        let held = i64::from(link.may_deliver());
        metrics.lease_held.get_or_create(&group).set(held);
        let remaining = metrics.lease_remaining_seconds.get_or_create(&group);
        remaining.set(i64::try_from(left).unwrap_or(i64::MAX));
    };
    lease(&own, &gateway.link);
    for (group, other) in &*gateway.adopted.borrow() {
        lease(group, &other.link);
    }
    for (node, end) in gateway.link.node_certificate_ends() {
        let expiry = &metrics.node_certificate_expiry_seconds;
        expiry.get_or_create(&NodeName(node)).set(seconds(end));
    }
}
