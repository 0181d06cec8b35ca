//! Keeps the gauges true, and serves the endpoint.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::io;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_groups::throttle::throttled;
use vere_owner::{NetworkState, SyncState};
use vere_queue::{GateTotals, Queues, Totals};
use vere_telemetry::metrics::{
    CertificateFile, ClientName, Family, Gauge, GroupName, Health, NodeName, QuarantineMetrics,
    QueueMetrics, TlsMetrics, serve,
};
use vere_units::Timestamp;

use super::group::{Group, Groups};
use super::process::Process;
use vere_link::link::SpoolLink;
use vere_process::clock;
use vere_process::memory::BodyMemory;
use vere_process::tls::ServerTls;

/// How often what is measured and not counted is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Serves the endpoint on these sockets and keeps the gauges true, until the gateway stops.
///
/// # Errors
/// When a socket cannot be used.
pub(crate) fn start(
    groups: &Rc<Groups>,
    tls: ServerTls,
    listeners: Vec<StdListener>,
    health: &watch::Sender<Health>,
) -> io::Result<()> {
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(serve(
            listener,
            groups.process().metrics.all.clone(),
            health.subscribe(),
        ));
    }
    spawn_local(follow_nodes(Rc::clone(&groups.own)));
    spawn_local(measure(Rc::clone(groups), tls));
    Ok(())
}

async fn follow_nodes(group: Rc<Group>) {
    let mut replicas = group.host.link.replicas();
    let mut up: BTreeSet<String> = BTreeSet::new();
    // The first look needs no change.
    let mut table = group.host.link.table();
    loop {
        let alone = table.iter().any(|row| row.alone);
        let one_memory = &group.host.process.metrics.all.spool.one_memory;
        one_memory.set(i64::from(alone));
        for row in &table {
            let node = NodeName(row.node.clone());
            let spool = &group.host.process.metrics.all.spool;
            let holds = matches!(row.sync, SyncState::Sync | SyncState::Slow);
            let holds = holds && row.active == NetworkState::Run;
            spool.connected.get_or_create(&node).set(i64::from(holds));
            if row.active == NetworkState::Run {
                up.insert(row.node.clone());
            } else if up.remove(&row.node) {
                group.host.process.metrics.disconnected(&node);
            }
        }
        if replicas.changed().await.is_err() {
            return;
        }
        table.clone_from(&replicas.borrow_and_update());
    }
}

async fn measure(groups: Rc<Groups>, tls: ServerTls) {
    let (own, process) = (&groups.own, groups.process());
    let mut shown = Shown::default();
    loop {
        // It ends also when nobody asks.
        if own.is_recovered() {
            throttled(own);
            process.is_short();
        }
        body_memory(process, &mut shown);
        queues(&groups, &process.metrics.all.queue);
        quarantine(&groups, &process.metrics.all.quarantine);
        spool(&groups, &mut shown);
        let mut ends = tls.certificate_ends();
        ends.extend(own.host.link.certificate_end());
        certificates(&process.metrics.all.tls, ends, &mut shown.files);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The clients with the most memory and with the most disk for messages, while memory or disk is short: one client each,
/// so that there are never many labels.
fn body_memory(process: &Process, shown: &mut Shown) {
    let (memory, disk) = (&process.memory, &process.disk);
    let row = |of: &BodyMemory, short: bool| {
        let heaviest = of.heaviest().filter(|_| short)?;
        let octets = i64::try_from(heaviest.octets).unwrap_or(i64::MAX);
        Some((ClientName(heaviest.client.to_string()), octets))
    };
    let smtp = &process.metrics.all.smtp;
    let in_memory = row(memory, process.is_memory_short());
    show(
        &smtp.body_memory_heaviest_bytes,
        &mut shown.clients,
        in_memory,
    );
    let on_disk = row(disk, disk.was_short());
    show(&smtp.body_disk_heaviest_bytes, &mut shown.on_disk, on_disk);
}

fn queues(groups: &Groups, queue: &QueueMetrics) {
    let all = groups.all();
    let count = |of: &dyn Fn(&Queues) -> usize| {
        let sum: usize = all.iter().map(|group| group.queues.look(of)).sum();
        i64::try_from(sum).unwrap_or(i64::MAX)
    };
    let octets = |octets: u64| i64::try_from(octets).unwrap_or(i64::MAX);
    for (gauge, of) in [
        (
            &queue.destinations,
            (|of| of.destinations) as fn(&Totals) -> usize,
        ),
        (&queue.destinations_paused, |of| of.paused),
        (&queue.messages, |of| of.messages),
        (&queue.messages_deferred, |of| of.deferred),
        (&queue.messages_held, |of| of.held),
    ] {
        gauge.set(count(&|queues| of(queues.totals())));
    }
    let known = &queue.destinations_known;
    known.set(count(&Queues::destinations_known));
    queue.memory_bytes.set(count(&Queues::head_octets));
    let gates = all
        .iter()
        .map(|group| group.queues.look(Queues::gate_totals));
    sites(&gates.collect::<Vec<_>>(), queue);
    let stored = all
        .iter()
        .map(|group| group.queues.look(|queues| queues.totals().octets));
    queue.bytes.set(octets(stored.sum()));
    let waiting = all.iter().map(|group| group.event_lines.waiting());
    let gauge = &groups.process().metrics.all.records.waiting_bytes;
    gauge.set(octets(waiting.sum()));
    let oldest = all
        .iter()
        .filter_map(|group| group.queues.look(Queues::oldest));
    let age = |oldest| clock::now().saturating_since(oldest).as_secs();
    queue
        .oldest_seconds
        .set(octets(oldest.min().map_or(0, age)));
}

fn quarantine(groups: &Groups, metrics: &QuarantineMetrics) {
    let all = groups.all();
    let count = |group: &Rc<Group>| group.queues.look(|queues| queues.totals().quarantined);
    let sum: usize = all.iter().map(count).sum();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    metrics.messages.set(number(sum));
    metrics
        .senders
        .set(number(groups.process().learned.count()));
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

/// Labels that have a gauge, of families whose labels come and go.
#[derive(Debug, Default)]
struct Shown {
    files: HashSet<CertificateFile>,
    groups: HashSet<GroupName>,
    nodes: HashSet<NodeName>,
    clients: HashSet<ClientName>,
    on_disk: HashSet<ClientName>,
}

/// Sets the gauges of a family, and removes gauges of old labels in turn: a scrape in between
/// sees old and new gauges, and never an empty family.
fn show<L: Clone + Eq + Hash>(
    family: &Family<L, Gauge>,
    shown: &mut HashSet<L>,
    values: impl IntoIterator<Item = (L, i64)>,
) {
    let mut gone = std::mem::take(shown);
    for (label, value) in values {
        family.get_or_create(&label).set(value);
        gone.remove(&label);
        shown.insert(label);
    }
    for label in gone {
        family.remove(&label);
    }
}

/// Shows when certificates end.
fn certificates(
    metrics: &TlsMetrics,
    ends: Vec<(PathBuf, Timestamp)>,
    shown: &mut HashSet<CertificateFile>,
) {
    let named = |(file, end): (PathBuf, Timestamp)| {
        (CertificateFile(file.display().to_string()), seconds(end))
    };
    let ends = ends.into_iter().map(named);
    show(&metrics.certificate_expiry_seconds, shown, ends);
}

fn seconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis() / 1000).unwrap_or(i64::MAX)
}

/// Nodes that are slow, the leases of this gateway's group and of those it adopted, and the nodes'
/// certificates.
fn spool(groups: &Groups, shown: &mut Shown) {
    let metrics = &groups.process().metrics.all.spool;
    for row in groups.own.host.link.table() {
        let slow = matches!(row.sync, SyncState::Slow | SyncState::Resting);
        let gauge = metrics.slow.get_or_create(&NodeName(row.node));
        gauge.set(i64::from(slow));
    }
    let own = groups.process().settings().gateway.name.clone();
    let mut leases = Vec::new();
    let mut lease = |group: &str, link: &SpoolLink| {
        let left = i64::try_from(link.lease_left().as_secs()).unwrap_or(i64::MAX);
        let held = i64::from(link.may_deliver());
        leases.push((GroupName(group.to_owned()), held, left));
    };
    lease(&own, &groups.own.host.link);
    for (name, other) in groups.adopted() {
        lease(&name, &other.host.link);
    }
    let remaining = leases.iter().map(|(group, _, left)| (group.clone(), *left));
    show(
        &metrics.lease_remaining_seconds,
        &mut shown.groups.clone(),
        remaining,
    );
    let held = leases.into_iter().map(|(group, held, _)| (group, held));
    show(&metrics.lease_held, &mut shown.groups, held);
    let ends = groups.own.host.link.node_certificate_ends().into_iter();
    let ends = ends.map(|(node, end)| (NodeName(node), seconds(end)));
    show(
        &metrics.node_certificate_expiry_seconds,
        &mut shown.nodes,
        ends,
    );
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName(name.to_owned())
    }

    #[test]
    fn a_label_that_is_no_more_has_no_gauge() {
        let family = Family::<GroupName, Gauge>::default();
        let mut shown = HashSet::new();
        show(&family, &mut shown, [(group("a"), 1), (group("b"), 2)]);
        show(&family, &mut shown, [(group("b"), 3), (group("c"), 4)]);
        let value = |name| family.get(&group(name)).map(|gauge| gauge.get());
        assert_eq!(
            [value("a"), value("b"), value("c")],
            [None, Some(3), Some(4)]
        );
        show(&family, &mut shown, []);
        assert!(shown.is_empty() && value("b").is_none());
    }

    #[test]
    fn who_looks_meanwhile_sees_what_stays() {
        let family = Family::<GroupName, Gauge>::default();
        let mut shown = HashSet::new();
        show(&family, &mut shown, [(group("own"), 0)]);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looker = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(family.get(&group("own")).is_some(), "nothing to be seen");
                }
            });
            for round in 0..20_000 {
                let other = group(if round % 2 == 0 { "even" } else { "odd" });
                show(&family, &mut shown, [(group("own"), round), (other, round)]);
            }
            over.store(true, Ordering::Relaxed);
            assert!(looker.join().is_ok());
        });
    }
}
