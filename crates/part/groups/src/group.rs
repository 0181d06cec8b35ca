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
use vere_spoolwire::{Batch, Block, QueueId, QueueLimits, QueueStat, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use super::figures;
use super::trade::Trade;

/// How long deliveries and sessions may go on after the stop was asked for.
pub const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Ends with reports that are being stored at once: each has a message, and the report, in memory.
const STORING_MAX: usize = 64;

/// A group of queues that is delivered.
pub type Group<T> = vere_delivery::Group<GroupHost<T>>;

/// The surroundings of a group. All tasks run on one thread, so no locks are needed.
#[derive(Debug)]
pub struct GroupHost<T> {
    /// The process, which all of its groups share.
    pub process: Rc<T>,
    /// The link to the spool.
    pub link: SpoolLink,
    clock: clock::Watch,
    started: Instant,
    /// Ends with reports that are being stored.
    storing: Arc<Semaphore>,
    /// Serialises changes of queue commands.
    pub(crate) ordering: Arc<Mutex<()>>,
    /// Notified when more lines for other systems are stored.
    more_lines: Notify,
}

/// Returns a group behind a link, with empty queues.
pub fn new<T: Trade>(process: &Rc<T>, link: SpoolLink) -> Group<T> {
    let host = GroupHost {
        process: Rc::clone(process),
        link,
        clock: clock::Watch::default(),
        started: Instant::now(),
        storing: Arc::new(Semaphore::new(STORING_MAX)),
        ordering: Arc::default(),
        more_lines: Notify::new(),
    };
    Group::new(host, process.policy(), process.keeps_lines())
}

/// Applies the delivery rules of the settings in force.
pub(crate) fn set_policy<T: Trade>(group: &Group<T>) {
    let policy = group.host.process.policy();
    group.queues.change(|queues| queues.set_policy(policy));
}

impl<T> GroupHost<T> {
    /// Waits until more lines for other systems are stored.
    pub async fn more_lines(&self) {
        self.more_lines.notified().await;
    }
}

impl<T: Trade> Spool for GroupHost<T> {
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

impl<T: Trade> Author for GroupHost<T> {
    fn may_report(&self, report: &Report, about: TraceId) -> bool {
        self.process.may_report(report, about)
    }

    async fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        self.process.write(about, original, report).await
    }
}

impl<T: Trade> Host for GroupHost<T> {
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
        self.process.group()
    }

    fn hostname(&self) -> String {
        self.process.settings().hostname.clone()
    }

    fn next_id(&self) -> TraceId {
        self.process.next_id()
    }

    fn queue_idle(&self) -> Duration {
        self.process.settings().delivery.queue_idle.duration()
    }

    fn as_released(&self, body: Bytes) -> Bytes {
        self.process.as_released(body)
    }

    fn tell(&self, happened: &Happened<'_>) {
        if matches!(happened, Happened::LinesStored) {
            self.more_lines.notify_one();
        }
        figures::count(self.process.metrics(), happened);
        self.process.tell(happened);
    }
}
