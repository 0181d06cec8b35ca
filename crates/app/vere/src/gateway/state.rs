//! State shared by the gateway's tasks. All tasks run on one thread, so no locks are needed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify, Semaphore};
use vere_directory::Directory;
use vere_queue::{Destination, Envelope, Job, Queues, ReportLimit};
use vere_settings::Settings;
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId, Refusal};
use vere_telemetry::trace::{Event, EventKind, TraceLog};
use vere_units::{Timestamp, TraceId};

use super::behind::Behind;
use super::clock;
use super::ids::TraceIds;
use super::known::Expected;
use super::metrics::GatewayMetrics;
use super::outbound::{Outbound, OutboundError};
use super::part::Part;
use super::pressure::Pressure;
use super::reading::{self, POST_RETRY};
use super::records::{self, Lines, Records};
use super::reporting::STORING_MAX;
use super::routing::Router;
use super::scheduler::note_lost;
use super::signing::Signer;
use crate::role::memory::{BodyMemory, DISK, MEMORY};
use crate::secret;
use crate::spool::link::{Commit, SpoolError, SpoolLink};

/// What a gateway is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) settings: Arc<Settings>,
    pub(super) directory: Directory,
    pub(super) link: SpoolLink,
    pub(super) outbound: Rc<Outbound>,
    pub(super) metrics: Rc<GatewayMetrics>,
    pub(super) trace: TraceLog,
    pub(super) records: Records,
}

/// The state of a running gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    settings: RefCell<Arc<Settings>>,
    pub(super) router: Router,
    pub(super) link: SpoolLink,
    /// Connections to other hosts.
    pub(super) outbound: Rc<Outbound>,
    pub(super) queues: RefCell<Queues>,
    /// Told whenever the scheduler may have something to do.
    pub(super) changed: Notify,
    pub(super) ids: Rc<TraceIds>,
    pub(super) metrics: Rc<GatewayMetrics>,
    /// Lines about messages for other systems.
    pub(super) records: Records,
    /// How many reports each address got.
    pub(super) report_limit: Rc<RefCell<ReportLimit>>,
    /// Ends with reports that are being stored.
    pub(super) storing: Semaphore,
    /// Queues to be looked through behind their heads.
    pub(super) behind: Behind,
    /// What signs own users' mail and reports, if the settings want that.
    pub(super) signer: Option<Rc<Signer>>,
    /// Memory of messages that are being received.
    pub(super) memory: Rc<BodyMemory>,
    /// Room on the disk for long ones.
    pub(super) disk: Rc<BodyMemory>,
    /// Whether so much waits that the intake is throttled.
    pub(super) pressure: Pressure,
    trace: TraceLog,
    pub(super) wakers: RefCell<HashMap<u32, Rc<Notify>>>,
    /// Room for queues is made for one at a time.
    pub(super) making: Mutex<()>,
    /// Until this time the gateway does not search for empty queues to end: the last search ended none.
    pub(super) full_until: Cell<Option<Instant>>,
    /// Serialises changes of queue commands. `orders_queue`: the queue that stores the commands, once known.
    pub(super) ordering: Arc<Mutex<()>>,
    pub(super) orders_queue: Cell<Option<QueueId>>,
    recovered: Cell<bool>,
    unreadable: Cell<u64>,
    stopping: Cell<bool>,
    /// Groups of dead gateways that are delivered here meanwhile, by name.
    pub(super) adopted: RefCell<Vec<(String, Rc<Self>)>>,
    clock: clock::Watch,
}

/// Returns empty queues. The spool may hold mail of queues from before a step of the wall clock.
fn begin_queues(settings: &Settings) -> Queues {
    let mut queues = Queues::new(super::policy(settings));
    queues.spare_until(clock::now());
    queues
}

impl Gateway {
    /// The time now, by which the queues go: where the wall clock was put ahead or back, they have followed it.
    pub(super) fn queue_time(&self) -> Timestamp {
        let (now, step) = self.clock.look();
        if let Some(step) = step {
            self.metrics.clock_stepped();
            tracing::warn!(
                seconds = step.seconds(),
                "wall clock was put ahead or back: retries wait as long as before, and nothing expires for one full retry"
            );
            self.queues.borrow_mut().clock_stepped(step, now);
            self.changed.notify_one();
        }
        now
    }

    /// Puts a gateway together.
    pub(super) fn new(parts: Parts) -> Self {
        let queues = begin_queues(&parts.settings);
        let signer = parts.settings.dkim.as_ref();
        let signer = signer.map(|dkim| Signer::new(&dkim.socket, Rc::clone(&parts.metrics)));
        Self {
            signer: signer.map(Rc::new),
            report_limit: Rc::default(),
            storing: Semaphore::new(STORING_MAX),
            behind: Behind::default(),
            ids: Rc::new(TraceIds::of(&parts.settings.gateway.name)),
            settings: RefCell::new(parts.settings),
            router: Router {
                directory: parts.directory,
            },
            link: parts.link,
            outbound: parts.outbound,
            queues: RefCell::new(queues),
            clock: clock::Watch::default(),
            changed: Notify::new(),
            memory: Rc::new(BodyMemory::new(MEMORY, parts.metrics.body_memory())),
            disk: Rc::new(BodyMemory::new(DISK, parts.metrics.body_disk())),
            metrics: parts.metrics,
            records: parts.records,
            pressure: Pressure::default(),
            trace: parts.trace,
            wakers: RefCell::default(),
            making: Mutex::new(()),
            full_until: Cell::new(None),
            ordering: Arc::default(),
            orders_queue: Cell::new(None),
            recovered: Cell::new(false),
            unreadable: Cell::new(0),
            stopping: Cell::new(false),
            adopted: RefCell::default(),
        }
    }

    /// Returns a gateway with queues of its own on another link; everything else is shared.
    pub(super) fn beside(&self, link: SpoolLink) -> Self {
        let settings = self.settings();
        Self {
            signer: self.signer.clone(),
            report_limit: Rc::clone(&self.report_limit),
            storing: Semaphore::new(STORING_MAX),
            behind: Behind::default(),
            ids: Rc::clone(&self.ids),
            router: Router {
                directory: self.router.directory.clone(),
            },
            link,
            outbound: Rc::clone(&self.outbound),
            queues: RefCell::new(begin_queues(&settings)),
            clock: clock::Watch::default(),
            settings: RefCell::new(settings),
            changed: Notify::new(),
            memory: Rc::clone(&self.memory),
            disk: Rc::clone(&self.disk),
            metrics: Rc::clone(&self.metrics),
            records: self.records.beside(),
            pressure: Pressure::default(),
            trace: self.trace.clone(),
            wakers: RefCell::default(),
            making: Mutex::new(()),
            full_until: Cell::new(None),
            ordering: Arc::default(),
            orders_queue: Cell::new(None),
            recovered: Cell::new(false),
            unreadable: Cell::new(0),
            stopping: Cell::new(false),
            adopted: RefCell::default(),
        }
    }

    /// This one and those that deliver the queues of dead gateways beside it.
    pub(super) fn with_adopted(self: &Rc<Self>) -> Vec<Rc<Self>> {
        let adopted = self.adopted.borrow();
        let others = adopted.iter().map(|(_, other)| Rc::clone(other));
        std::iter::once(Rc::clone(self)).chain(others).collect()
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Puts other settings in force; sessions and attempts under way keep theirs.
    ///
    /// # Errors
    /// When roots of certificates or passwords cannot be used; then nothing changes.
    pub(super) fn set_settings(&self, settings: Arc<Settings>) -> Result<(), OutboundError> {
        self.outbound.set_settings(&settings)?;
        for (_, adopted) in self.adopted.borrow().iter() {
            adopted.set_settings(Arc::clone(&settings))?;
        }
        self.queues
            .borrow_mut()
            .set_policy(super::policy(&settings));
        self.settings.replace(settings);
        Ok(())
    }

    /// Whether what the spool holds was taken back: then the queues are known.
    pub(super) fn is_recovered(&self) -> bool {
        self.recovered.get()
    }

    /// What the spool holds was taken back.
    pub(super) fn recovered(&self) {
        self.recovered.set(true);
        self.changed.notify_one();
    }

    /// A record was found that this version cannot read; it stays where it is.
    pub(super) fn left_alone(&self) {
        self.unreadable.set(self.unreadable.get() + 1);
    }

    /// Records that were found and cannot be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable.get()
    }

    /// Whether attempts may begin now: after recovery, until the stop, and under the delivery lease.
    pub(super) fn delivering(&self) -> bool {
        self.recovered.get() && !self.stopping.get() && self.link.may_deliver()
    }

    /// Delivers no more, whatever comes: the gateway is about to end.
    pub(super) fn stop_delivering(&self) {
        self.stopping.set(true);
    }

    /// What wakes an idle worker of a queue.
    pub(super) fn waker(&self, queue: u32) -> Rc<Notify> {
        Rc::clone(self.wakers.borrow_mut().entry(queue).or_default())
    }

    /// Notes an event of a message's way.
    pub(super) fn note(&self, event: &Event<'_>) {
        self.trace.append(event);
    }

    /// Writes buffered events to disk.
    pub(super) fn flush_trace(&self) {
        self.trace.flush();
    }

    /// Stores records, with other changes and lines for other systems in the same batch, and takes them into
    /// their queues once the spool holds them safely.
    pub(super) async fn store(
        self: &Rc<Self>,
        batch: Batch,
        parts: Vec<Part>,
        lines: &Lines,
    ) -> Result<(), SpoolError> {
        let begun = Instant::now();
        let destinations = || parts.iter().map(|part| &part.destination);
        let mut expected = self.expect(destinations())?;
        let mut committed = self.put(&batch, &parts, lines, &expected).await;
        if committed == Err(SpoolError::Refused(Refusal::NoQueue)) {
            drop(expected);
            expected = self.expect_made(destinations()).await?;
            committed = self.put(&batch, &parts, lines, &expected).await;
        }
        self.metrics.committed(&committed, begun.elapsed());
        let committed = committed?;
        self.lines_stored(lines);
        let now = clock::now();
        let stored = parts.into_iter().zip(expected.numbers());
        for ((part, number), RecordId(record)) in stored.zip(committed.ids) {
            self.note_queued(&part.destination, &part.envelope);
            // Usually registered already; not if two creations of this queue overlapped and one was refused.
            self.register(number, &part.destination);
            self.queues
                .borrow_mut()
                .admit(number, record, part.envelope, Some(part.body), now);
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Puts records into their queues, with the other changes of the batch.
    fn put(&self, batch: &Batch, parts: &[Part], lines: &Lines, expected: &Expected<'_>) -> Commit {
        let mut batch = batch.clone();
        for (part, number) in parts.iter().zip(expected.numbers()) {
            let envelope = part.envelope.encode().into();
            batch.put(QueueId(number), envelope, part.body.clone());
        }
        records::put(lines, &mut batch);
        self.link.commit(batch)
    }

    fn note_queued(&self, destination: &Destination, envelope: &Envelope) {
        let queue = destination.to_string();
        for recipient in &envelope.recipients {
            self.note(&Event {
                queue: Some(&queue),
                rcpt: Some(&recipient.address),
                ..Event::new(EventKind::Queued, envelope.trace, clock::now())
            });
        }
    }

    /// The next message for a worker, if one is ready.
    pub(super) fn take(&self, queue: u32, fresh: bool) -> Option<Job> {
        if !self.delivering() {
            if fresh {
                self.queues.borrow_mut().stays_away(queue);
            }
            return None;
        }
        let now = self.queue_time();
        let mut queues = self.queues.borrow_mut();
        let job = queues.take(queue, fresh, now);
        if queues.has_next() {
            self.changed.notify_one();
        }
        job
    }

    /// The body of a job, from memory or from the spool; `None` when there is none now, and the worker should end: the
    /// job is given back, or forgotten where the spool does not have it any more.
    pub(super) async fn body(&self, queue: u32, job: &Job) -> Option<Bytes> {
        let body = match &job.body {
            Some(body) => Ok(Some(body.clone())),
            None => self.fetch_body(queue, job).await,
        };
        match body {
            // The delivery begins now: whoever fetched for long, or was stopped, may not do so any more.
            Ok(Some(body)) if self.delivering() => return Some(body),
            Ok(Some(_)) => self.queues.borrow_mut().give_back(queue, job),
            Ok(None) => {
                self.queues.borrow_mut().lose(queue, job);
                note_lost(self, job.envelope.trace, QueueId(queue));
                self.changed.notify_one();
            }
            Err(error) => {
                tracing::warn!(queue_id = %job.envelope.trace, ?error, "cannot fetch a body");
                self.queues.borrow_mut().give_back(queue, job);
                tokio::time::sleep(POST_RETRY).await;
            }
        }
        None
    }

    /// Returns `None` if the spool has no such record.
    async fn fetch_body(&self, queue: u32, job: &Job) -> Result<Option<Bytes>, SpoolError> {
        let found = reading::record(&self.link, queue, job.record).await?;
        Ok(found.map(|record| record.body))
    }

    /// Messages being delivered.
    pub(super) fn in_flight(&self) -> usize {
        self.queues.borrow().totals().in_flight
    }

    /// 32 unguessable octets.
    pub(super) fn random(&self) -> [u8; 32] {
        secret::random()
    }

    /// A fresh trace id.
    pub(super) fn trace_id(&self) -> TraceId {
        self.ids.next(clock::now())
    }
}
