//! Keeps the gauges true.

use std::rc::Rc;
use std::time::Duration;

use vere_groups::Groups;
use vere_groups::gauges::Gauges;
use vere_groups::throttle::throttled;
use vere_process::tls::ServerTls;
use vere_telemetry::metrics::X400Side;

use crate::process::Process;

/// How often what is measured and not counted is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the gauges true until the MTA stops.
pub(crate) async fn keep(groups: Rc<Groups<Process>>, tls: ServerTls) {
    let mut gauges = Gauges::default();
    let process = groups.process();
    loop {
        // Throttling ends also when nobody asks.
        if groups.own.is_recovered() {
            throttled(&groups.own);
        }
        let x400 = &process.figures.all.x400;
        let held = i64::try_from(process.budget.held()).unwrap_or(i64::MAX);
        x400.receiving_bytes.set(held);
        let out = i64::try_from(process.peers.open_all()).unwrap_or(i64::MAX);
        x400.associations.get_or_create(&X400Side::Out).set(out);
        gauges.look(&groups, tls.certificate_ends());
        tokio::time::sleep(INTERVAL).await;
    }
}
