//! Renews the certificates of the spool on the machine with the key of their CA (`spool.tls.ca_key`).

use std::sync::Arc;
use std::thread::{Builder, sleep};
use std::time::Duration;

use vere_enrolment::renewal::{Renewal, State, renew};
use vere_process::failure::Failure;
use vere_settings::Settings;

/// The pause before the first pass, in which nodes that start as well become ready.
const FIRST: Duration = Duration::from_secs(60);
/// The pause between two passes. A certificate has four months left when it is due, so that a node may be away for long.
const BETWEEN: Duration = Duration::from_secs(6 * 3600);

/// Starts the thread that renews, where there is a key. The thread sleeps nearly always, and ends with the process:
/// killed at any point it leaves an old or a new certificate.
pub(crate) fn start(settings: &Arc<Settings>) {
    let has_key = |tls: &vere_settings::SpoolTls| tls.ca_key.is_some();
    if !settings.spool.tls.as_ref().is_some_and(has_key) {
        return;
    }
    let settings = Arc::clone(settings);
    let work = move || {
        sleep(FIRST);
        loop {
            pass(&settings);
            sleep(BETWEEN);
        }
    };
    if let Err(error) = Builder::new().name("renewal".to_owned()).spawn(work) {
        tracing::error!(%error, "certificates of the spool are not renewed");
    }
}

fn pass(settings: &Settings) {
    match renew(settings, false) {
        Ok(renewals) => renewals.iter().for_each(tell),
        Err(error) => {
            let error = Failure::from(error);
            tracing::error!(%error, "certificates of the spool are not renewed");
        }
    }
}

fn tell(renewal: &Renewal) {
    let node = renewal.node.as_deref().unwrap_or("this machine");
    match &renewal.state {
        Ok(State::Young(_)) => {}
        Ok(State::Renewed(end)) => tracing::info!(node, %end, "certificate of the spool renewed"),
        // A node may be away for a while; the alarm comes two weeks before the end.
        Err(error) => tracing::warn!(node, %error, "certificate of the spool not looked at"),
    }
}
