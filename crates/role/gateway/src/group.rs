//! A group of queues with its surroundings: the process, the link to the spool, clocks and tasks.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_local;
use tokio::time::Instant;
use vere_delivery::{Author, DirectoryAway, Happened, Host, Notice, Spool};
use vere_link::link::{Change, Commit, SpoolLink};
use vere_process::clock;
use vere_queue::{Envelope, Report, Step};
use vere_settings::Settings;
use vere_spoolwire::{Batch, Block, QueueId, QueueLimits, QueueStat, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use super::policy::policy;
use super::process::Process;
use super::telling;

/// How long deliveries and sessions may go on after the stop was asked for.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Ends with reports that are being stored at once: each has a message, and the report, in memory.
const STORING_MAX: usize = 64;

/// A group of queues that is delivered.
pub(super) type Group = vere_delivery::Group<GroupHost>;

/// The surroundings of a group. All tasks run on one thread, so no locks are needed.
#[derive(Debug)]
pub(super) struct GroupHost {
    pub(super) process: Rc<Process>,
    pub(super) link: SpoolLink,
    clock: clock::Watch,
    started: Instant,
    /// Ends with reports that are being stored.
    storing: Arc<Semaphore>,
    /// Serialises changes of queue commands.
    pub(super) ordering: Arc<Mutex<()>>,
    /// Notified when more lines for other systems are stored.
    pub(super) more_lines: Notify,
}

/// Returns a group behind a link, with empty queues.
pub(super) fn new(process: &Rc<Process>, link: SpoolLink) -> Group {
    let host = GroupHost {
        process: Rc::clone(process),
        link,
        clock: clock::Watch::default(),
        started: Instant::now(),
        storing: Arc::new(Semaphore::new(STORING_MAX)),
        ordering: Arc::default(),
        more_lines: Notify::new(),
    };
    Group::new(
        host,
        policy(&process.settings()),
        process.event_target.is_some(),
    )
}

/// Applies the delivery rules of other settings.
pub(super) fn set_policy(group: &Group, settings: &Settings) {
    group
        .queues
        .change(|queues| queues.set_policy(policy(settings)));
}

/// Whether the waiting event lines exceed their limit; then no mail is accepted.
pub(super) fn has_too_many_lines(group: &Group) -> bool {
    let settings = group.host.process.settings();
    let max = settings.records.as_ref().map(|records| records.waiting_max);
    max.is_some_and(|max| group.event_lines.waiting() > max.as_u64())
}

impl Spool for GroupHost {
    type Commit = Commit;
    type Change = Change;

    fn may_deliver(&self) -> bool {
        self.link.may_deliver()
    }

    fn commit(&self, batch: Batch) -> Commit {
        self.link.commit(batch)
    }

    fn post(&self, batch: Batch) -> Result<(), SpoolError> {
        self.link.post(batch).map(drop)
    }

    async fn fetch(
        &self,
        queue: QueueId,
        from: RecordId,
        records: u32,
        octets: u32,
    ) -> Result<Block, SpoolError> {
        self.link.fetch(queue, from, records, octets).await
    }

    async fn queues(&self) -> Result<Vec<QueueStat>, SpoolError> {
        self.link.queues().await
    }

    fn begin_queue(&self, name: &str) -> Result<(QueueId, Change), SpoolError> {
        self.link.begin_queue(name, QueueLimits::UNLIMITED)
    }

    fn drop_queue(&self, queue: QueueId) -> Change {
        self.link.drop_queue(queue)
    }

    async fn renew_readers(&self, found: &QueueStat) -> Result<(), SpoolError> {
        self.link.renew_readers(found).await
    }
}

impl Author for GroupHost {
    fn may_report(&self, report: &Report, about: TraceId) -> bool {
        self.process.may_report(report, about)
    }

    async fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        let written = self.process.notice(about, original, report).await;
        written.map_err(|_| DirectoryAway)
    }
}

impl Host for GroupHost {
    /// `None` never happens: the semaphore is never closed.
    type Turn = Option<OwnedSemaphorePermit>;

    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn look_at_clock(&self) -> (Timestamp, Option<Step>) {
        self.clock.look()
    }

    fn steady(&self) -> Duration {
        self.started.elapsed()
    }

    async fn pause(&self, span: Duration) {
        if span.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(span).await;
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        spawn_local(task);
    }

    fn try_turn(&self) -> Option<Self::Turn> {
        let turn = Arc::clone(&self.storing).try_acquire_owned();
        turn.ok().map(Some)
    }

    async fn turn(&self) -> Self::Turn {
        Arc::clone(&self.storing).acquire_owned().await.ok()
    }

    fn gateway(&self) -> String {
        self.process.settings().gateway.name.clone()
    }

    fn hostname(&self) -> String {
        self.process.settings().hostname.clone()
    }

    fn next_id(&self) -> TraceId {
        self.process.trace_id()
    }

    fn queue_idle(&self) -> Duration {
        self.process.settings().delivery.queue_idle.duration()
    }

    fn as_released(&self, body: Bytes) -> Bytes {
        vere_judge::as_released(&body).map_or(body, Bytes::from)
    }

    fn tell(&self, happened: &Happened<'_>) {
        if matches!(happened, Happened::LinesStored) {
            self.more_lines.notify_one();
        }
        telling::tell(&self.process, happened);
    }
}
