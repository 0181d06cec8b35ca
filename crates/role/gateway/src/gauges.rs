//! Keeps the gauges true.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use vere_groups::gauges::{Gauges, show};
use vere_groups::throttle::throttled;
use vere_telemetry::metrics::ClientName;

use super::group::Groups;
use super::process::Process;
use vere_process::memory::BodyMemory;
use vere_process::tls::ServerTls;

/// How often what is measured and not counted is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the gauges true until the gateway stops.
pub(super) async fn measure(groups: Rc<Groups>, tls: ServerTls) {
    let (own, process) = (&groups.own, groups.process());
    let (mut gauges, mut shown) = (Gauges::default(), Shown::default());
    loop {
        // It ends also when nobody asks.
        if own.is_recovered() {
            throttled(own);
            process.is_short();
        }
        body_memory(process, &mut shown);
        learned(process);
        gauges.look(&groups, tls.certificate_ends());
        tokio::time::sleep(INTERVAL).await;
    }
}

fn learned(process: &Process) {
    let senders = i64::try_from(process.learned.count()).unwrap_or(i64::MAX);
    process.metrics.all.quarantine.senders.set(senders);
}

/// Clients that have a gauge.
#[derive(Debug, Default)]
struct Shown {
    clients: HashSet<ClientName>,
    on_disk: HashSet<ClientName>,
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
