//! Keeps the gauges true, and serves the endpoint.

use std::collections::BTreeSet;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_spool::owner::{NetworkState, SyncState};
use vere_telemetry::metrics::{CertificateFile, Health, NodeName, QueueMetrics, TlsMetrics, serve};
use vere_units::Timestamp;

use crate::cli::Failure;
use crate::gateway::clock;
use crate::gateway::state::Gateway;
use crate::gateway::tls::ServerTls;

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
        queues(&gateway, &gateway.metrics.all.queue);
        certificates(&gateway.metrics.all.tls, &tls, &mut shown);
        tokio::time::sleep(INTERVAL).await;
    }
}

fn queues(gateway: &Gateway, queue: &QueueMetrics) {
    let summaries = gateway.queues.borrow().summaries();
    let sum = |of: &dyn Fn(&vere_queue::QueueSummary) -> u64| {
        i64::try_from(summaries.iter().map(of).sum::<u64>()).unwrap_or(i64::MAX)
    };
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
    let age = oldest.map_or(0, |oldest| clock::now().saturating_since(oldest).as_secs());
    queue
        .oldest_seconds
        .set(i64::try_from(age).unwrap_or(i64::MAX));
}

/// Writes when certificates end, when that is not what is `shown` already.
fn certificates(metrics: &TlsMetrics, tls: &ServerTls, shown: &mut Vec<(PathBuf, Timestamp)>) {
    let ends = tls.certificate_ends();
    if ends == *shown {
        return;
    }
    metrics.certificate_expiry_seconds.clear();
    for (file, end) in &ends {
        let file = CertificateFile(file.display().to_string());
        let seconds = i64::try_from(end.as_millis() / 1000).unwrap_or(i64::MAX);
        metrics
            .certificate_expiry_seconds
            .get_or_create(&file)
            .set(seconds);
    }
    *shown = ends;
}
