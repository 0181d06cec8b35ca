//! The ports: everything that deliveries need of the world around them.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::{Attempt, Destination, Envelope, Job, Report, Settlement, Step};
use vere_spoolwire::{Batch, Block, Committed, QueueId, QueueStat, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use crate::notice::Notice;

/// The spool, as the owner of a group sees it. Changes are numbered when they are submitted and take effect in that
/// order, whether somebody waits for them or not.
pub trait Spool {
    /// A commit on the way.
    type Commit: Future<Output = Result<Committed, SpoolError>> + 'static;
    /// A change of queues on the way, which takes effect whether a caller waits or not.
    type Change: Future<Output = Result<(), SpoolError>> + 'static;

    /// Whether deliveries may begin at this moment: this gateway owns the group and holds its delivery lease.
    fn may_deliver(&self) -> bool;

    /// Submits changes, all or nothing. Ready with the numbers of new records, once the changes are safe. A dropped
    /// commit of new records only is taken back; any other stands.
    ///
    /// # Errors
    /// [`SpoolError`]. After [`SpoolError::Timeout`] new records are taken back; after [`SpoolError::Closed`] the
    /// changes may be done or not.
    fn commit(&self, batch: Batch) -> Self::Commit;

    /// Submits changes that nobody waits for.
    ///
    /// # Errors
    /// [`SpoolError::Busy`], [`SpoolError::Invalid`], [`SpoolError::Closed`]; then nothing was submitted.
    fn post(&self, batch: Batch) -> Result<(), SpoolError>;

    /// Reads up to `records` records and about `octets` octets of a queue from `from` on, at least one record.
    ///
    /// # Errors
    /// [`SpoolError::Refused`] without such a queue, [`SpoolError::Timeout`], [`SpoolError::Closed`].
    fn fetch(
        &self,
        queue: QueueId,
        from: RecordId,
        records: u32,
        octets: u32,
    ) -> impl Future<Output = Result<Block, SpoolError>>;

    /// Lists every queue of the group.
    ///
    /// # Errors
    /// [`SpoolError::Timeout`], [`SpoolError::Closed`].
    fn queues(&self) -> impl Future<Output = Result<Vec<QueueStat>, SpoolError>>;

    /// Makes a queue without limits, or finds the queue of that name. Records may be put into the queue at once: they
    /// are refused if the queue is.
    ///
    /// # Errors
    /// [`SpoolError::Busy`], [`SpoolError::Invalid`], [`SpoolError::Closed`]; refusals are told by the future.
    fn begin_queue(&self, name: &str) -> Result<(QueueId, Self::Change), SpoolError>;

    /// Forgets an empty queue, whose number may be given out again. Refused while the queue holds records.
    fn drop_queue(&self, queue: QueueId) -> Self::Change;

    /// Gives a queue that was found the readers that the settings name.
    ///
    /// # Errors
    /// As for a queue that is made.
    fn renew_readers(&self, found: &QueueStat) -> impl Future<Output = Result<(), SpoolError>>;
}

/// The directory cannot say where a sender's mail goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryAway;

/// Writes reports to senders.
pub trait Author {
    /// Whether a report may be sent: its address has not had enough in this hour.
    fn may_report(&self, report: &Report, about: TraceId) -> bool;

    /// Writes a report about a message.
    ///
    /// # Errors
    /// [`DirectoryAway`].
    fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> impl Future<Output = Result<Notice, DirectoryAway>>;
}

/// How a message leaves the quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// A person has released the message, which is delivered.
    Released,
    /// A person has refused the message, which is removed.
    Refused,
    /// The message was kept as long as messages are kept, and is removed.
    Aged,
}

/// An event, for traces, figures and logs.
#[derive(Debug)]
pub enum Happened<'a> {
    /// A commit of new records has ended after this time.
    Stored(&'a Result<Committed, SpoolError>, Duration),
    /// A record is in the queue of its destination.
    Queued(&'a Destination, &'a Envelope),
    /// An attempt has ended.
    Settled {
        /// The name of the queue, while the queue exists.
        queue: Option<&'a str>,
        /// The message.
        job: &'a Job,
        /// The results.
        attempt: &'a Attempt,
        /// Their consequences.
        settlement: &'a Settlement,
    },
    /// A report about a message is stored, or has no receiver.
    Reported(TraceId, &'a Notice),
    /// A record was found at a start.
    Recovered(&'a str, TraceId),
    /// A record that was known is not in the spool.
    Lost(Option<&'a str>, TraceId),
    /// An operator has removed a message.
    Purged(TraceId),
    /// A message has left the quarantine of this destination.
    Unquarantined(&'a Destination, TraceId, Leaving),
    /// An operator holds a message until this time; `None`: an operator has released the message.
    Held(&'a Destination, TraceId, Option<Timestamp>),
    /// The wall clock was put ahead or back.
    ClockStepped(Step),
    /// Lines for other systems are safe in the spool.
    LinesStored,
}

/// Everything around a group: the spool, the author of reports, clocks, tasks and events.
pub trait Host: Spool + Author + Sized + 'static {
    /// A turn to store reports; dropping it gives the turn back.
    type Turn;

    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// The wall clock, and its step since the last call.
    fn look_at_clock(&self) -> (Timestamp, Option<Step>);

    /// Time since any fixed moment, by a clock that never steps.
    fn steady(&self) -> Duration;

    /// Waits.
    fn pause(&self, span: Duration) -> impl Future<Output = ()>;

    /// Runs a task beside all others, on the same thread.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);

    /// Gives a turn to store reports, if one is free. A bounded number at once keeps a mass bounce from making
    /// reports faster than the spool stores them.
    fn try_turn(&self) -> Option<Self::Turn>;

    /// Waits for a turn to store reports.
    fn turn(&self) -> impl Future<Output = Self::Turn>;

    /// The name of the gateway, for lines to other systems.
    fn gateway(&self) -> String;

    /// The name of this host, as reports and returned messages name it.
    fn hostname(&self) -> String;

    /// A new id.
    fn next_id(&self) -> TraceId;

    /// Time after which an empty queue may be ended.
    fn queue_idle(&self) -> Duration;

    /// The form of a message released from the quarantine: no longer than `body`, and equal at each attempt.
    fn as_released(&self, body: Bytes) -> Bytes;

    /// Tells what has happened.
    fn tell(&self, happened: &Happened<'_>);
}
