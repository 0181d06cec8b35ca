//! The surroundings of a simulated process.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use vere_delivery::{Author, DirectoryAway, Happened, Host, Notice, Spool};
use vere_queue::{Envelope, Report, Step};
use vere_spoolwire::{Batch, Block, QueueId, QueueStat, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use super::lives::submit;
use super::pipe::{self, Answer, SimChange, SimCommit, Submitted, Waiting};
use super::{Sleep, Staged};
use crate::schedule::{Micros, SECOND};

/// Reports that are stored at once.
const TURNS: usize = 4;
/// How long a commit of new records may take.
const COMMIT_MAX: Micros = 10 * SECOND;
/// How long a read may take.
const READ_MAX: Micros = 10 * SECOND;

/// The surroundings of a life of a process.
pub(crate) struct SimHost<W> {
    pub(crate) world: Rc<W>,
    pub(crate) life: usize,
    turns: Turns,
    /// Orders of operators, one at a time.
    pub(crate) ordering: Turns,
}

impl<W: Staged> SimHost<W> {
    pub(crate) fn new(world: &Rc<W>, life: usize) -> Self {
        Self {
            world: Rc::clone(world),
            life,
            turns: Turns::new(TURNS),
            ordering: Turns::new(1),
        }
    }

    fn submit(&self, what: Submitted, deadline: Option<Micros>) -> Waiting {
        submit(&*self.world, self.life, what, deadline)
    }

    async fn answer(&self, what: Submitted) -> Result<Answer, SpoolError> {
        let deadline = self.world.now.get() + READ_MAX;
        self.submit(what, Some(deadline)).await
    }
}

/// A bounded number of turns.
pub(crate) struct Turns(Rc<TurnsLeft>);

#[derive(Default)]
struct TurnsLeft {
    count: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

impl Turns {
    fn new(count: usize) -> Self {
        let left = TurnsLeft::default();
        left.count.set(count);
        Self(Rc::new(left))
    }

    fn take(&self) -> Option<Turn> {
        let left = self.0.count.get().checked_sub(1)?;
        self.0.count.set(left);
        Some(Turn(Rc::clone(&self.0)))
    }

    /// Waits for a turn.
    pub(crate) async fn wait(&self) -> Turn {
        poll_fn(|context| match self.take() {
            Some(turn) => Poll::Ready(turn),
            None => {
                let waker = context.waker().clone();
                self.0.waiting.borrow_mut().push(waker);
                Poll::Pending
            }
        })
        .await
    }
}

/// A turn, until the drop of the value.
pub(crate) struct Turn(Rc<TurnsLeft>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() + 1);
        self.0.waiting.take().into_iter().for_each(Waker::wake);
    }
}

impl<W: Staged> Spool for SimHost<W> {
    type Commit = SimCommit;
    type Change = SimChange;

    fn may_deliver(&self) -> bool {
        self.world.has_lease(self.life)
    }

    fn commit(&self, batch: Batch) -> SimCommit {
        let batch = self.world.alters(batch);
        let busy = batch.has_puts() && self.world.draw_fault(2);
        let ids = match busy {
            true => Vec::new(),
            false => self.world.number(self.life, &batch),
        };
        let deadline = self.world.now.get() + COMMIT_MAX;
        let deadline = batch.only_puts().then_some(deadline);
        if busy {
            return SimCommit(pipe::failed(SpoolError::Busy), ids);
        }
        let waiting = self.submit(Submitted::Batch(batch, ids.clone()), deadline);
        SimCommit(waiting, ids)
    }

    fn post(&self, batch: Batch) -> Result<(), SpoolError> {
        if self.world.is_closed(self.life) {
            return Err(SpoolError::Closed);
        }
        if self.world.draw_fault(2) {
            return Err(SpoolError::Busy);
        }
        let ids = self.world.number(self.life, &batch);
        let waiting = self.submit(Submitted::Batch(batch, ids), None);
        waiting.let_go();
        Ok(())
    }

    async fn fetch(
        &self,
        queue: QueueId,
        from: RecordId,
        records: u32,
        octets: u32,
    ) -> Result<Block, SpoolError> {
        let octets = octets.min(self.world.block_octets());
        let fetch = Submitted::Fetch {
            queue,
            from,
            records,
            octets,
        };
        match self.answer(fetch).await? {
            Answer::Block(block) => Ok(block),
            Answer::Done | Answer::List(_) => Err(SpoolError::Closed),
        }
    }

    async fn queues(&self) -> Result<Vec<QueueStat>, SpoolError> {
        match self.answer(Submitted::List).await? {
            Answer::List(list) => Ok(list),
            Answer::Done | Answer::Block(_) => Err(SpoolError::Closed),
        }
    }

    fn begin_queue(&self, name: &str) -> Result<(QueueId, SimChange), SpoolError> {
        if self.world.is_closed(self.life) {
            return Err(SpoolError::Closed);
        }
        let number = self.world.queue_number(self.life, name);
        let create = Submitted::Create(number, name.to_owned());
        Ok((QueueId(number), SimChange(self.submit(create, None))))
    }

    fn drop_queue(&self, queue: QueueId) -> SimChange {
        SimChange(self.submit(Submitted::Remove(queue.0), None))
    }

    async fn renew_readers(&self, _: &QueueStat) -> Result<(), SpoolError> {
        Ok(())
    }
}

impl<W: Staged> Author for SimHost<W> {
    fn may_report(&self, report: &Report, about: TraceId) -> bool {
        self.world.may_report(report, about)
    }

    async fn write(
        &self,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        self.world.write(self.life, about, original, report).await
    }
}

impl<W: Staged> Host for SimHost<W> {
    type Turn = Turn;

    fn now(&self) -> Timestamp {
        self.world.time()
    }

    fn look_at_clock(&self) -> (Timestamp, Option<Step>) {
        (self.now(), None)
    }

    fn steady(&self) -> Duration {
        Duration::from_micros(self.world.now.get())
    }

    async fn pause(&self, span: Duration) {
        let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let until = self.world.now.get().saturating_add(span.max(1));
        Sleep::new(&self.world, until).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.world.spawn(self.life, Box::pin(task));
    }

    fn try_turn(&self) -> Option<Turn> {
        self.turns.take()
    }

    async fn turn(&self) -> Turn {
        self.turns.wait().await
    }

    fn gateway(&self) -> String {
        "mx".to_owned()
    }

    fn hostname(&self) -> String {
        "mx.example".to_owned()
    }

    fn next_id(&self) -> TraceId {
        self.world.next_id()
    }

    fn queue_idle(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn as_released(&self, body: Bytes) -> Bytes {
        body
    }

    fn tell(&self, happened: &Happened<'_>) {
        self.world
            .note(|| format!("g{}: {}", self.life, brief(happened)));
        self.world.hears(self.life, happened);
    }
}

/// A line of the trace about an event.
fn brief(happened: &Happened<'_>) -> String {
    match happened {
        Happened::Settled {
            job,
            attempt,
            settlement,
            ..
        } => {
            let results = attempt.results.iter().map(|one| one.disposition);
            let results: Vec<_> = results.collect();
            let rest = settlement.remaining.as_ref();
            let rest = rest.map(|rest| (rest.mail.recipients.len(), rest.head.not_before));
            let reports: Vec<_> = settlement.reports.iter().map(|one| one.kind).collect();
            let (trace, record) = (job.envelope.head.trace, job.record);
            format!("settled {trace} record {record}: {results:?}, rest {rest:?}, {reports:?}")
        }
        Happened::Queued(destination, envelope) => {
            format!("queued {} for {destination}", envelope.head.trace)
        }
        Happened::Reported(about, notice) => format!("reported {about} by {}", notice.trace),
        other => format!("{other:?}"),
    }
}
