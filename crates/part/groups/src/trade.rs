//! What a kind of mail makes of its queues.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_meters::pressure::{Bound, Pressure};
use vere_queue::{Destination, Envelope, Place, Policy, Report};
use vere_settings::Settings;
use vere_telemetry::metrics::Metrics;
use vere_units::TraceId;

/// The process whose mail is in the queues: the gateway for mail of SMTP, an MTA for mail of X.400. All groups of a
/// process share one value, on one thread.
pub trait Trade: fmt::Debug + Sized + 'static {
    /// The word for an owner of such queues, for people.
    const OWNER: &'static str;

    /// What becomes of new mail while the spool acknowledges nothing, for the log.
    const REFUSING: &'static str;

    /// The settings in force.
    fn settings(&self) -> Arc<Settings>;

    /// The name of the process's own group in the register.
    fn group(&self) -> String;

    /// The delivery rules of the settings in force.
    fn policy(&self) -> Policy;

    /// Whether lines about messages are kept in the queues, for other systems.
    fn keeps_lines(&self) -> bool {
        false
    }

    /// A new id.
    fn next_id(&self) -> TraceId;

    /// Whether a report may be sent: its address has not had enough in this hour.
    fn may_report(&self, report: &Report, about: TraceId) -> bool;

    /// Writes a report about a message.
    ///
    /// # Errors
    /// [`DirectoryAway`] when the place of the sender's mail is unknown now.
    fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> impl Future<Output = Result<Notice, DirectoryAway>>;

    /// The form of a message released from the quarantine: no longer than `body`, and equal at each attempt.
    fn as_released(&self, body: Bytes) -> Bytes {
        body
    }

    /// Tells what has happened to a message. The figures of queues and spool are counted already.
    fn tell(&self, happened: &Happened<'_>);

    /// Writes buffered events of messages to disk.
    fn flush_trace(&self);

    /// The figures of the process.
    fn metrics(&self) -> &Metrics;

    /// Which limit throttles new mail of the process.
    fn pressure(&self) -> &Pressure;

    /// Tells that the throttling of new mail has begun or ended: the limit and its used share in percent, or `None`.
    fn tell_throttled(&self, by: Option<(Bound, u64)>);

    /// Whether the group of that name, whose owner is dead, holds mail of this kind, so that it may be adopted.
    fn adopts(name: &str) -> bool;

    /// Checks that mail may come to a destination now.
    ///
    /// # Errors
    /// The place of mail for the domain of the destination; `None` where there is no place.
    fn leads_to(&self, destination: &Destination) -> Result<(), Option<Place>>;
}
