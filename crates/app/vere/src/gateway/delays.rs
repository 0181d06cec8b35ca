//! Tells the senders of messages that wait behind others for a destination that cannot be reached that they are
//! delayed. Of those that were tried the schedule tells with the attempt ([`settling`](super::settling)).
//!
//! One task for all queues, with a pause after each report, and one block of records in memory: a million messages
//! make no storm.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_local;
use vere_queue::{Envelope, Job, Report, Standing, delay};
use vere_spool::owner::Batch;
use vere_spoolwire::{QueueId, RecordId};

use super::state::{FETCH_BYTES, Gateway};
use super::{clock, recovery};
use crate::spool::link::SpoolError;

/// Records in one block.
const BLOCK_RECORDS: u32 = 100;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// The pause after each report: no more than 100 leave in a second.
const PAUSE: Duration = Duration::from_millis(10);

/// Why messages wait: which host, or destination, said what.
#[derive(Debug)]
struct Reason {
    remote: String,
    reply: String,
}

/// Queues that are to be looked through, and why their messages wait.
#[derive(Debug, Default)]
pub(super) struct Delays {
    waiting: RefCell<BTreeMap<u32, Reason>>,
    running: Cell<bool>,
}

impl Delays {
    fn next(&self) -> Option<(u32, Reason)> {
        self.waiting.borrow_mut().pop_first()
    }
}

/// Has the senders of what waits in a queue told, where it is time.
pub(super) fn tell(gateway: &Rc<Gateway>, queue: u32, remote: &str, reply: &str) {
    let due = gateway.queues.borrow().first_untold(queue, clock::now());
    if due.is_none() {
        return;
    }
    let reason = Reason {
        remote: remote.to_owned(),
        reply: reply.to_owned(),
    };
    gateway.delays.waiting.borrow_mut().insert(queue, reason);
    if !gateway.delays.running.replace(true) {
        let gateway = Rc::clone(gateway);
        spawn_local(async move {
            while let Some((queue, reason)) = gateway.delays.next() {
                if let Err(error) = look_through(&gateway, queue, &reason).await {
                    tracing::warn!(queue, ?error, "cannot tell senders of a delay yet");
                }
            }
            gateway.delays.running.set(false);
        });
    }
}

/// Looks through the records of a queue, from the first that was not looked at to the first that is too young.
async fn look_through(
    gateway: &Rc<Gateway>,
    queue: u32,
    reason: &Reason,
) -> Result<(), SpoolError> {
    while gateway.delivering() {
        let first = gateway.queues.borrow().first_untold(queue, clock::now());
        let Some(from) = first.map(RecordId) else {
            return Ok(());
        };
        let block = gateway
            .link
            .fetch(QueueId(queue), from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await?;
        let (end, next) = (block.end, block.next.0);
        for (record, envelope, _) in recovery::readable(block.records) {
            if is_young(gateway, &envelope) {
                let young = Some(envelope.accepted);
                gateway.queues.borrow_mut().told(queue, record, young);
                return Ok(());
            }
            if tell_one(gateway, queue, record, envelope, reason).await? {
                tokio::time::sleep(PAUSE).await;
            }
            gateway.queues.borrow_mut().told(queue, record + 1, None);
        }
        if end || next <= from.0 {
            return Ok(());
        }
        gateway.queues.borrow_mut().told(queue, next, None);
    }
    Ok(())
}

fn is_young(gateway: &Gateway, envelope: &Envelope) -> bool {
    let after = gateway.queues.borrow().policy().delay_notice;
    after.is_none_or(|after| envelope.accepted + after > clock::now())
}

/// Tells the sender of one message; whether there was one to be told. What is under way or held is told of by its
/// own attempts.
async fn tell_one(
    gateway: &Rc<Gateway>,
    queue: u32,
    record: u64,
    envelope: Envelope,
    reason: &Reason,
) -> Result<bool, SpoolError> {
    if notice(gateway, &envelope, reason).is_none() {
        return Ok(false);
    }
    let message = gateway
        .queues
        .borrow()
        .message(queue, record, envelope.trace);
    let Some(message) = message else {
        return Ok(false);
    };
    let due = match message.standing {
        Standing::Ready => clock::now(),
        Standing::Deferred => message.due.unwrap_or_else(clock::now),
        Standing::InFlight | Standing::Held => return Ok(false),
    };
    let claimed = gateway
        .queues
        .borrow_mut()
        .claim(queue, record, envelope, Bytes::new());
    let Some(job) = claimed else {
        return Ok(false);
    };
    let told = change(gateway, queue, &job, reason).await;
    let back = Envelope {
        attempts: message.attempts,
        not_before: Some(due),
        ..Envelope::clone(&job.envelope)
    };
    let mut queues = gateway.queues.borrow_mut();
    queues.written(queue, &job, &back, clock::now());
    drop(queues);
    gateway.changed.notify_one();
    told
}

fn notice(gateway: &Gateway, envelope: &Envelope, reason: &Reason) -> Option<(Envelope, Report)> {
    let queues = gateway.queues.borrow();
    let Reason { remote, reply } = reason;
    delay::notice(envelope, queues.policy(), clock::now(), remote, reply)
}

/// Stores the report and what it makes of the record, which nobody else changes meanwhile: it is read once more,
/// since an attempt may have changed it after it was read with others.
async fn change(
    gateway: &Rc<Gateway>,
    queue: u32,
    job: &Job,
    reason: &Reason,
) -> Result<bool, SpoolError> {
    let id = RecordId(job.record);
    let block = gateway
        .link
        .fetch(QueueId(queue), id, 1, FETCH_BYTES)
        .await?;
    let mut records = recovery::readable(block.records);
    let Some((_, envelope, body)) = records.find(|(record, ..)| *record == job.record) else {
        return Ok(false);
    };
    let Some((rest, report)) = notice(gateway, &envelope, reason) else {
        return Ok(false);
    };
    let mut batch = Batch::new();
    batch.replace(QueueId(queue), id, rest.encode().into());
    let mut job = job.clone();
    job.envelope = Rc::new(envelope);
    job.body = Some(body.clone());
    if !gateway.may_report(&report, job.envelope.trace) {
        let lines = gateway.report_lines(queue, &job, &report, None);
        gateway.store(batch, Vec::new(), &lines).await?;
        return Ok(true);
    }
    let reports = [report];
    let (parts, lines) = gateway.report_parts(queue, &job, &body, &reports).await;
    gateway.store(batch, parts, &lines).await?;
    gateway.metrics.notified(reports[0].kind);
    Ok(true)
}
