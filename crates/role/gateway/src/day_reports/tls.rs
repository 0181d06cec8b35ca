//! Counts the encryption of connections to other domains (`reports.tls`), and finds the destinations of the reports.

use vere_auth::{Dns as _, Unavailable};
use vere_judging::Names;
use vere_observed::Files;
use vere_reports::{Destination, Kind, tls_destinations};
use vere_telemetry::metrics::Uncounted;

use super::wanted::is_wanted;
use crate::process::Process;
use vere_process::clock;

/// Writes the counts of connections since the last call. Connections of the last seconds of a day may count for the next one.
pub(super) async fn count(process: &Process, files: Option<&Files>) {
    let (seen, beyond) = process.outbound.take_sessions();
    if !is_wanted(process, Kind::Tls) {
        return;
    }
    let lost = |reason, sessions: u64| {
        let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
        process.metrics.uncounted(Kind::Tls, reason, sessions);
    };
    if beyond > 0 {
        lost(Uncounted::Busy, beyond.into());
    }
    if seen.is_empty() {
        return;
    }
    let sessions: u64 = seen.iter().map(|(_, times)| u64::from(*times)).sum();
    let Some(files) = files else {
        return lost(Uncounted::Disk, sessions);
    };
    let now = clock::now();
    let written = files.run(move |observed| {
        for (seen, times) in &seen {
            observed.tls(now, seen, (*times).into());
        }
        observed.flush()
    });
    match written.await {
        Ok(()) => {
            let sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
            process.metrics.counted(Kind::Tls, sessions);
        }
        Err(error) => {
            lost(Uncounted::Disk, sessions);
            tracing::warn!(%error, sessions, "counts for reports cannot be written");
        }
    }
}

/// The destinations of a domain's TLSRPT record. The domain may name destinations elsewhere: a report has no data about further domains.
pub(super) async fn destinations(
    names: &Names,
    domain: &str,
) -> Result<Vec<Destination>, Unavailable> {
    let records = names.texts(&format!("_smtp._tls.{domain}")).await?;
    Ok(tls_destinations(&records))
}
