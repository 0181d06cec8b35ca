//! The mail store.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::Declarations;
use super::smtp::AuthResult;

/// The mail store.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    /// Ends of authentications over IMAP.
    pub authentications: Family<AuthResult, Counter>,
    /// Messages added to mailboxes.
    pub messages_added: Counter,
    /// Messages removed from mailboxes.
    pub messages_removed: Counter,
    /// Changes of mailboxes and of lists of mailboxes.
    pub changes: Counter,
    /// Octets of the changes.
    pub change_bytes: Counter,
    /// Bodies written.
    pub bodies: Counter,
    /// Octets of the bodies.
    pub body_bytes: Counter,
    /// Syncs of the log.
    pub syncs: Counter,
    /// Time of the syncs.
    pub sync_seconds: Histogram,
    /// Octets of the log.
    pub log_bytes: Gauge,
    /// Approximate octets of the log that are not needed.
    pub log_dead_bytes: Gauge,
    /// Expunged messages that are kept.
    pub kept: KeptMetrics,
    /// When the last good backup was made, in seconds since 1970; 0 for a system without any backup.
    pub last_backup: Gauge,
    /// 1 while no message is taken in since the disk is nearly full.
    pub room_scarce: Gauge,
    /// Layers of the sandbox that hold for parsers.
    pub parser_layers: Gauge,
    /// Passes over the log that reclaimed space.
    pub reclaim_passes: Counter,
    /// Number of failures to reclaim space.
    pub reclaim_failures: Counter,
    /// Octets reclaimed.
    pub reclaimed_bytes: Counter,
    /// Snapshots of mailboxes written.
    pub snapshots: Counter,
    /// Operations whose id was used before with another content.
    pub operation_collisions: Counter,
    /// Searches for text.
    pub searches: Counter,
    /// Octets held of messages being fetched by clients.
    pub fetch_bytes: Gauge,
    /// Messages read for searches.
    pub search_messages_read: Counter,
    /// Octets read for searches.
    pub search_read_bytes: Counter,
}

/// Expunged messages that are kept.
#[derive(Clone, Debug)]
pub struct KeptMetrics {
    /// Messages kept now.
    pub messages: Gauge,
    /// Octets of the messages kept now.
    pub bytes: Gauge,
    /// Messages let go by age, by the size of an account, or for want of space.
    pub let_go: Counter,
    /// Octets of the messages let go.
    pub let_go_bytes: Counter,
}

impl KeptMetrics {
    fn declare(to: &mut Declarations) -> Self {
        Self {
            messages: to.gauge(
                "store_kept_messages",
                "Expunged messages kept for undelete, those of deleted mailboxes included; unknown (0) for some seconds after a start",
            ),
            bytes: to.gauge(
                "store_kept_bytes",
                "Octets of expunged messages kept for undelete; each reference counted",
            ),
            let_go: to.counter(
                "store_kept_let_go",
                "Expunged messages let go by age (store.keep_expunged), by the size of an account, or because the disk was nearly full",
            ),
            let_go_bytes: to.counter(
                "store_kept_let_go_bytes",
                "Octets of expunged messages let go",
            ),
        }
    }
}

impl StoreMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Mail store");
        Self {
            authentications: to.counters(
                "imap_authentications",
                "Authentications over IMAP that ended",
            ),
            messages_added: to.counter(
                "store_messages_added",
                "Messages that came into mailboxes, copies included",
            ),
            messages_removed: to.counter(
                "store_messages_removed",
                "Messages expunged or moved away, without the messages of deleted mailboxes",
            ),
            changes: to.counter(
                "store_changes",
                "Changes of mailboxes and lists; divided by the syncs: changes per sync",
            ),
            change_bytes: to.counter("store_change_bytes", "Octets of changes in the log"),
            bodies: to.counter(
                "store_bodies",
                "Bodies written to the log; messages added divided by this number: messages per body",
            ),
            body_bytes: to.counter("store_body_bytes", "Octets of bodies in the log"),
            syncs: to.counter("store_syncs", "Syncs of the log"),
            sync_seconds: to.times("store_sync_seconds", "Time that a sync of the log took"),
            log_bytes: to.gauge("store_log_bytes", "Octets of the log"),
            log_dead_bytes: to.gauge(
                "store_log_dead_bytes",
                "Approximate octets of the log not needed any more; reclaimed at store.reclaim_from percent",
            ),
            kept: KeptMetrics::declare(to),
            last_backup: to.gauge(
                "backup_last_success_timestamp_seconds",
                "When `vere backup` made the last good backup, in seconds since 1970; 0: never",
            ),
            room_scarce: to.gauge(
                "store_room_scarce",
                "1 while no message is taken in since the disk is nearly full",
            ),
            parser_layers: to.gauge(
                "store_parser_layers",
                "Layers of the sandbox that hold for processes that parse messages; 7 with another user, 6 without",
            ),
            reclaim_passes: to.counter("store_reclaim_passes", "Passes over the log to reclaim room"),
            reclaim_failures: to.counter(
                "store_reclaim_failures",
                "Times that room could not be reclaimed; the log of the program says why",
            ),
            reclaimed_bytes: to.counter("store_reclaimed_bytes", "Octets of the log that came back"),
            snapshots: to.counter("store_snapshots", "Snapshots of mailboxes written to the log"),
            operation_collisions: to.counter(
                "store_operation_collisions",
                "Operations refused because the id was used before with other content; the log of the program names the account",
            ),
            fetch_bytes: to.gauge(
                "store_fetch_bytes",
                "Memory for messages requested and not yet read by clients; limits.fetch_memory_max is the limit",
            ),
            searches: to.counter("store_searches", "Searches for text"),
            search_messages_read: to.counter(
                "store_search_messages_read",
                "Messages that searches had to look into, since the index was not certain",
            ),
            search_read_bytes: to.counter(
                "store_search_read_bytes",
                "Octets that searches read of messages",
            ),
        }
    }
}
