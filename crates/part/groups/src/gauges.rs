//! Keeps the gauges of queues, nodes and leases true, and serves the endpoint.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::io;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_owner::{NetworkState, SyncState};
use vere_queue::{GateTotals, Queues, Totals};
use vere_telemetry::metrics::{
    CertificateFile, Family, Gauge, GroupName, Health, Metrics, NodeName, QueueMetrics,
    SpoolMetrics, TlsMetrics, serve,
};
use vere_units::Timestamp;

use super::group::Group;
use super::groups::Groups;
use super::trade::Trade;
use vere_link::link::SpoolLink;
use vere_process::clock;

/// Serves the endpoint on these sockets and keeps the gauges of nodes true, until the process stops; the other gauges
/// are [`Gauges`].
///
/// # Errors
/// When a socket cannot be used.
pub fn start<T: Trade>(
    groups: &Groups<T>,
    listeners: Vec<StdListener>,
    health: &watch::Sender<Health>,
) -> io::Result<()> {
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(serve(
            listener,
            groups.process().metrics().clone(),
            health.subscribe(),
        ));
    }
    spawn_local(follow_nodes(Rc::clone(&groups.own)));
    Ok(())
}

async fn follow_nodes<T: Trade>(group: Rc<Group<T>>) {
    let spool = &group.host.process.metrics().spool;
    let mut replicas = group.host.link.replicas();
    let mut up: BTreeSet<String> = BTreeSet::new();
    // The first look needs no change.
    let mut table = group.host.link.table();
    loop {
        let alone = table.iter().any(|row| row.alone);
        spool.one_memory.set(i64::from(alone));
        for row in &table {
            let node = NodeName(row.node.clone());
            let holds = matches!(row.sync, SyncState::Sync | SyncState::Slow);
            let holds = holds && row.active == NetworkState::Run;
            spool.connected.get_or_create(&node).set(i64::from(holds));
            if row.active == NetworkState::Run {
                up.insert(row.node.clone());
            } else if up.remove(&row.node) {
                spool.disconnections.get_or_create(&node).inc();
            }
        }
        if replicas.changed().await.is_err() {
            return;
        }
        table.clone_from(&replicas.borrow_and_update());
    }
}

/// Gauges of queues, nodes, leases and certificates; their labels come and go.
#[derive(Debug, Default)]
pub struct Gauges {
    files: HashSet<CertificateFile>,
    groups: HashSet<GroupName>,
    nodes: HashSet<NodeName>,
}

impl Gauges {
    /// Makes the gauges true. `certificates`: the files of the certificates that the process shows, and their ends.
    pub fn look<T: Trade>(&mut self, groups: &Groups<T>, certificates: Vec<(PathBuf, Timestamp)>) {
        let metrics = groups.process().metrics();
        queues(groups, metrics);
        self.spool(groups, &metrics.spool);
        let mut ends = certificates;
        ends.extend(groups.own.host.link.certificate_end());
        self.certificates(&metrics.tls, ends);
    }

    /// Nodes that are slow, the leases of the own group and of adopted ones, and the nodes' certificates.
    fn spool<T: Trade>(&mut self, groups: &Groups<T>, metrics: &SpoolMetrics) {
        for row in groups.own.host.link.table() {
            let slow = matches!(row.sync, SyncState::Slow | SyncState::Resting);
            let gauge = metrics.slow.get_or_create(&NodeName(row.node));
            gauge.set(i64::from(slow));
        }
        let own = groups.process().group();
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
            &mut self.groups.clone(),
            remaining,
        );
        let held = leases.into_iter().map(|(group, held, _)| (group, held));
        show(&metrics.lease_held, &mut self.groups, held);
        let ends = groups.own.host.link.node_certificate_ends().into_iter();
        let ends = ends.map(|(node, end)| (NodeName(node), seconds(end)));
        show(
            &metrics.node_certificate_expiry_seconds,
            &mut self.nodes,
            ends,
        );
    }

    /// Shows when certificates end.
    fn certificates(&mut self, metrics: &TlsMetrics, ends: Vec<(PathBuf, Timestamp)>) {
        let named = |(file, end): (PathBuf, Timestamp)| {
            (CertificateFile(file.display().to_string()), seconds(end))
        };
        let ends = ends.into_iter().map(named);
        show(&metrics.certificate_expiry_seconds, &mut self.files, ends);
    }
}

fn queues<T: Trade>(groups: &Groups<T>, metrics: &Metrics) {
    let queue = &metrics.queue;
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
        (&metrics.quarantine.messages, |of| of.quarantined),
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
    metrics.records.waiting_bytes.set(octets(waiting.sum()));
    let oldest = all
        .iter()
        .filter_map(|group| group.queues.look(Queues::oldest));
    let age = |oldest| clock::now().saturating_since(oldest).as_secs();
    queue
        .oldest_seconds
        .set(octets(oldest.min().map_or(0, age)));
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

/// Sets the gauges of a family, and removes gauges of old labels in turn: a scrape in between
/// sees old and new gauges, and never an empty family. `shown`: the labels that have a gauge.
pub fn show<L: Clone + Eq + Hash>(
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

fn seconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis() / 1000).unwrap_or(i64::MAX)
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
