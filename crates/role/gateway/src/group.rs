//! What mail by SMTP makes of its queues.

use std::sync::Arc;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_groups::Trade;
use vere_meters::pressure::{Bound, Pressure};
use vere_queue::{Destination, Envelope, Place, Policy, Report};
use vere_settings::{GROUP_PREFIX, Settings};
use vere_telemetry::metrics::Metrics;
use vere_units::TraceId;

use super::process::Process;
use super::telling;

/// A group of queues that is delivered.
pub(super) type Group = vere_groups::Group<Process>;
/// The surroundings of a group.
pub(super) type GroupHost = vere_groups::GroupHost<Process>;
/// All groups of the process.
pub(super) type Groups = vere_groups::Groups<Process>;

impl Trade for Process {
    const OWNER: &'static str = "gateway";
    const REFUSING: &'static str = "mail is answered 4xx";

    fn settings(&self) -> Arc<Settings> {
        self.settings()
    }

    fn group(&self) -> String {
        self.settings().gateway.name.clone()
    }

    fn policy(&self) -> Policy {
        vere_groups::policy(&self.settings())
    }

    fn keeps_lines(&self) -> bool {
        self.event_target.is_some()
    }

    fn next_id(&self) -> TraceId {
        self.trace_id()
    }

    fn may_report(&self, report: &Report, about: TraceId) -> bool {
        self.may_report(report, about)
    }

    async fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        let written = self.notice(about, original, report).await;
        written.map_err(|_| DirectoryAway)
    }

    fn as_released(&self, body: Bytes) -> Bytes {
        vere_judge::as_released(&body).map_or(body, Bytes::from)
    }

    fn tell(&self, happened: &Happened<'_>) {
        telling::tell(self, happened);
    }

    fn flush_trace(&self) {
        self.flush_trace();
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics.all
    }

    fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    fn tell_throttled(&self, by: Option<(Bound, u64)>) {
        match by {
            Some((bound, percent)) => {
                tracing::warn!(%bound, percent, "intake throttled: new connections get 421, new messages 452");
            }
            None => tracing::info!("intake throttling ended"),
        }
        self.show_throttled();
    }

    fn adopts(name: &str) -> bool {
        !name.starts_with(GROUP_PREFIX)
    }

    fn leads_to(&self, destination: &Destination) -> Result<(), Option<Place>> {
        self.router.leads_to(&self.settings(), destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway that delivered such mail would send it by SMTP.
    #[test]
    fn queues_of_x400_are_left_to_its_mtas() {
        assert!(Process::adopts("mx1") && Process::adopts("x400"));
        assert!(!Process::adopts("x400.mta1"));
    }
}
