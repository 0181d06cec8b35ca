//! Counters of the store, and the endpoint that shows them.

use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_sasl::server::Login;
use vere_store::{Counts, ReclaimReport};
use vere_telemetry::metrics::{Counter, Gauge, Health, Metrics, StoreMetrics, serve};

use super::mail_store::MailStore;
use vere_login::login_log;
use vere_process::last_backup::LastBackup;

/// How often the record of the last backup is read.
const BACKUP_INTERVAL: Duration = Duration::from_secs(30);

/// Counters of the store.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    all: Metrics,
    of: StoreMetrics,
}

impl Default for Figures {
    fn default() -> Self {
        let all = Metrics::new();
        let of = all.store.clone();
        Self { all, of }
    }
}

impl Figures {
    /// Serves the endpoint on these sockets until the role ends. `data` has the record of the last backup.
    ///
    /// # Errors
    /// When a socket cannot be used.
    pub(super) fn serve(
        &self,
        listeners: Vec<StdListener>,
        health: &watch::Sender<Health>,
        data: &Path,
    ) -> std::io::Result<()> {
        if !listeners.is_empty() {
            spawn_local(watch_backups(self.of.last_backup.clone(), data.to_owned()));
        }
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            spawn_local(serve(listener, self.all.clone(), health.subscribe()));
        }
        Ok(())
    }

    /// Adds the difference between two states of the store's counts.
    pub(super) fn counted(&self, before: &Counts, now: &Counts) {
        let add = |counter: &Counter, before: u64, now: u64| {
            counter.inc_by(now.saturating_sub(before));
        };
        let of = &self.of;
        add(
            &of.messages_added,
            before.messages_added,
            now.messages_added,
        );
        let removed = (before.messages_removed, now.messages_removed);
        add(&of.messages_removed, removed.0, removed.1);
        add(&of.changes, before.changes, now.changes);
        add(&of.change_bytes, before.change_octets, now.change_octets);
        add(&of.bodies, before.bodies, now.bodies);
        add(&of.body_bytes, before.body_octets, now.body_octets);
    }

    /// Returns the gauge of memory held for fetched messages.
    pub(super) fn fetch_bytes(&self) -> Gauge {
        self.of.fetch_bytes.clone()
    }

    /// An attempt to log in has ended.
    pub(super) fn logged_in(&self, login: &Login) {
        let result = login_log::result(login);
        self.of.authentications.get_or_create(&result).inc();
    }

    /// The log was synced.
    pub(super) fn synced(&self, took: Duration) {
        self.of.syncs.inc();
        self.of.sync_seconds.observe(took.as_secs_f64());
    }

    /// Updates the gauges of the log.
    pub(super) fn look(&self, store: &MailStore, scarce: bool) {
        if let Ok(known) = store.reclaimable() {
            self.of.log_bytes.set(known.log.cast_signed());
            self.of.log_dead_bytes.set(known.dead.cast_signed());
        }
        self.of.room_scarce.set(i64::from(scarce));
    }

    /// Sets the gauges of expunged messages that are kept.
    pub(super) fn kept(&self, messages: u64, octets: u64) {
        self.of.kept.messages.set(messages.cast_signed());
        self.of.kept.bytes.set(octets.cast_signed());
    }

    /// Expunged messages are not kept any more.
    pub(super) fn let_go(&self, messages: u64, octets: u64) {
        self.of.kept.let_go.inc_by(messages);
        self.of.kept.let_go_bytes.inc_by(octets);
    }

    /// Parsers have so many layers around them.
    pub(super) fn confined(&self, layers: u32) {
        self.of.parser_layers.set(layers.into());
    }

    /// A pass over the log has ended.
    pub(super) fn reclaimed(&self, report: &ReclaimReport) {
        self.of.reclaim_passes.inc();
        self.of.reclaimed_bytes.inc_by(report.saved);
        self.of.snapshots.inc_by(report.snapshots);
    }

    /// Counts a failure to reclaim some or all room.
    pub(super) fn not_reclaimed(&self) {
        self.of.reclaim_failures.inc();
    }

    /// Counts an operation whose id came a second time with other content.
    pub(super) fn collided(&self) {
        self.of.operation_collisions.inc();
    }

    /// How many did.
    #[cfg(test)]
    pub(super) fn collisions(&self) -> u64 {
        self.of.operation_collisions.get()
    }

    /// A search was answered, for which this many messages and octets were read.
    pub(super) fn searched(&self, (read, octets): (u64, u64)) {
        self.of.searches.inc();
        self.of.search_messages_read.inc_by(read);
        self.of.search_read_bytes.inc_by(octets);
    }
}

/// Keeps the gauge equal to the record of the last backup, which another process writes.
async fn watch_backups(gauge: Gauge, data: PathBuf) {
    loop {
        // Without a readable record, the age of the last backup is unknown: the gauge keeps the value.
        if let Ok(Some(last)) = LastBackup::read(&data) {
            gauge.set((last.made.as_millis() / 1000).cast_signed());
        }
        tokio::time::sleep(BACKUP_INTERVAL).await;
    }
}
