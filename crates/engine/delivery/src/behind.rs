//! Walks through messages that wait behind the head of a queue while the destination cannot be reached. Only the head
//! is tried; the walk ends messages whose age is over, and tells senders of long delays. Tried messages are reported
//! with their attempt (`settling`), and messages with an end of their own end at that time (`overdue`).
//!
//! Record number and age grow together, so the walk stops at the first young message.
//!
//! One task for all queues, block by block in turn, with a pause after each report and one block of records in
//! memory: a million messages make no storm.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::{Envelope, Job, MessageSummary, Queues, Report, Standing, delay};
use vere_spoolwire::{Batch, Block, QueueId, RecordId, SpoolError};
use vere_units::Timestamp;

use crate::backlog::Reason;
use crate::group::Group;
use crate::host::Host;
use crate::reading;
use crate::reporting::Unstored;

/// Records in one block.
const BLOCK_RECORDS: u32 = 100;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// The pause after each report: no more than 1,000 leave in a second.
const PAUSE: Duration = Duration::from_millis(1);

/// Orders a walk through a queue, if messages of the queue are due to expire or to be reported.
pub(crate) fn look_through<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    remote: &str,
    reply: &str,
) {
    let now = group.host.now();
    let due = group.queues.look(|queues| {
        let expired = queues.first_expired(queue, now);
        expired.or_else(|| queues.first_untold(queue, now))
    });
    if due.is_none() {
        return;
    }
    let reason = Reason {
        remote: remote.to_owned(),
        reply: reply.to_owned(),
    };
    if group.backlog.add(queue, reason) {
        group.host.spawn(run(Rc::clone(group)));
    }
}

/// Runs until no queue waits.
async fn run<H: Host>(group: Rc<Group<H>>) {
    let mut after = QueueId(0);
    while let Some((queue, reason)) = group.backlog.next(after) {
        after = queue;
        match block(&group, queue, &reason).await {
            Ok(true) => group.backlog.go_on(queue, reason),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(
                    queue = queue.0,
                    ?error,
                    "cannot tell senders of delays and ends yet"
                );
            }
        }
    }
    group.backlog.ended();
}

/// Walks through one block of a queue. Returns whether more blocks may follow.
async fn block<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    reason: &Reason,
) -> Result<bool, Unstored> {
    if !group.delivering() {
        return Ok(false);
    }
    let now = group.host.now();
    let expired = group.queues.look(|queues| queues.first_expired(queue, now));
    if let Some(from) = expired {
        return end(group, queue, from, reason).await;
    }
    let untold = group.queues.look(|queues| queues.first_untold(queue, now));
    match untold {
        Some(from) => tell(group, queue, from, reason).await,
        None => Ok(false),
    }
}

async fn fetch<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    from: RecordId,
) -> Result<Block, SpoolError> {
    let fetched = group.host.fetch(queue, from, BLOCK_RECORDS, BLOCK_OCTETS);
    fetched.await
}

/// Ends the messages of a block whose age is over.
async fn end<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    from: RecordId,
    reason: &Reason,
) -> Result<bool, Unstored> {
    let block = fetch(group, queue, from).await?;
    let mut ended = false;
    for (record, envelope, body) in reading::readable(block.records) {
        // A message with an end of its own may end before or after messages of its age (`overdue`).
        if envelope.head.expires.is_some() {
            continue;
        }
        let accepted = accepted(group, queue, record, &envelope);
        // Re-check before each message: the gateway may be stopping, or the fetch may have outlasted the lease.
        if !group.delivering() || !is_expired(group, accepted) {
            break;
        }
        let Some(job) = claim_unheld(group, queue, record, envelope, body) else {
            continue;
        };
        ended = true;
        let attempt = Queues::unreachable_attempt(&job.envelope, &reason.remote, &reason.reply);
        if group.settle(queue, &job, &attempt) > 0 {
            group.host.pause(PAUSE).await;
            group.room_for_reports().await;
        }
    }
    // The next look finds the same record otherwise: another version wrote it, or it is gone.
    Ok(ended)
}

/// Returns a message as the queues know it.
fn message<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    record: RecordId,
    envelope: &Envelope,
) -> Option<MessageSummary> {
    let trace = envelope.head.trace;
    group
        .queues
        .look(|queues| queues.message(queue, record, trace))
}

/// The time of acceptance as the queues know it: the record's time may be by a clock that was put ahead or back since.
fn accepted<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    record: RecordId,
    envelope: &Envelope,
) -> Timestamp {
    let message = message(group, queue, record, envelope);
    message.map_or(envelope.head.accepted, |message| message.accepted)
}

fn is_expired<H: Host>(group: &Group<H>, accepted: Timestamp) -> bool {
    let now = group.host.now();
    group.queues.look(|queues| queues.is_expired(accepted, now))
}

/// Claims a message as for an attempt. A held message does not expire.
fn claim_unheld<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    record: RecordId,
    envelope: Envelope,
    body: Bytes,
) -> Option<Job> {
    let message = message(group, queue, record, &envelope);
    if message.is_some_and(|message| message.standing == Standing::Held) {
        return None;
    }
    group
        .queues
        .change(|queues| queues.claim(queue, record, envelope, body))
}

/// Tells the senders of a block, from the first unexamined message to the first message that is too young.
async fn tell<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    from: RecordId,
    reason: &Reason,
) -> Result<bool, Unstored> {
    let block = fetch(group, queue, from).await?;
    let (end, next) = (block.end, block.next);
    for (record, envelope, _) in reading::readable(block.records) {
        if !group.delivering() {
            return Ok(false);
        }
        let accepted = accepted(group, queue, record, &envelope);
        if is_young(group, accepted) {
            let young = Some(accepted);
            group
                .queues
                .change(|queues| queues.told(queue, record, young));
            return Ok(false);
        }
        if tell_one(group, queue, record, envelope, reason).await? {
            group.host.pause(PAUSE).await;
        }
        group
            .queues
            .change(|queues| queues.told(queue, record.next(), None));
    }
    if end || next <= from {
        return Ok(false);
    }
    group.queues.change(|queues| queues.told(queue, next, None));
    Ok(true)
}

fn is_young<H: Host>(group: &Group<H>, accepted: Timestamp) -> bool {
    let after = group.queues.look(|queues| queues.policy().delay_notice);
    after.is_none_or(|after| accepted + after > group.host.now())
}

/// Notifies the sender of one message. Returns whether the message had a sender to notify. Messages in flight or held
/// are reported by their own attempts.
async fn tell_one<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    record: RecordId,
    envelope: Envelope,
    reason: &Reason,
) -> Result<bool, Unstored> {
    if notice(group, (queue, record), &envelope, reason).is_none() {
        return Ok(false);
    }
    let Some(message) = message(group, queue, record, &envelope) else {
        return Ok(false);
    };
    let due = match message.standing {
        Standing::Ready => group.host.now(),
        Standing::Deferred => message.due.unwrap_or_else(|| group.host.now()),
        Standing::InFlight | Standing::Held | Standing::Quarantined => return Ok(false),
    };
    let claimed = group
        .queues
        .change(|queues| queues.claim(queue, record, envelope, Bytes::new()));
    let Some(job) = claimed else {
        return Ok(false);
    };
    let told = change(group, queue, &job, reason).await;
    let mut back = Envelope::clone(&job.envelope);
    back.head.attempts = message.attempts;
    back.head.not_before = Some(due);
    let now = group.host.now();
    group
        .queues
        .change(|queues| queues.written(queue, &job, &back, now));
    told
}

fn notice<H: Host>(
    group: &Group<H>,
    (queue, record): (QueueId, RecordId),
    envelope: &Envelope,
    reason: &Reason,
) -> Option<(Envelope, Report)> {
    let mut dated = envelope.clone();
    dated
        .head
        .accept_at(accepted(group, queue, record, envelope));
    let (Reason { remote, reply }, now) = (reason, group.host.now());
    let (mut rest, report) = group
        .queues
        .look(|queues| delay::notice(&dated, queues.policy(), now, remote, reply))?;
    (rest.head.accepted, rest.head.expires) = (envelope.head.accepted, envelope.head.expires);
    Some((rest, report))
}

/// Stores the report together with the new envelope. The record is read once more, because an attempt may have changed
/// the record since the block was read; nobody changes the record meanwhile.
async fn change<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    job: &Job,
    reason: &Reason,
) -> Result<bool, Unstored> {
    let Some(record) = reading::record(&group.host, queue, job.record).await? else {
        return Ok(false);
    };
    let Ok(envelope) = Envelope::decode(&record.meta) else {
        return Ok(false);
    };
    let body = record.body;
    let Some((rest, report)) = notice(group, (queue, job.record), &envelope, reason) else {
        return Ok(false);
    };
    let mut batch = Batch::new();
    batch.replace(queue, record.id, rest.encode().into());
    let mut job = job.clone();
    job.envelope = Rc::new(envelope);
    job.body = Some(body.clone());
    if !group.host.may_report(&report, job.envelope.head.trace) {
        let lines = group.report_lines(queue, &job, &report, None);
        group.store(batch, Vec::new(), &lines).await?;
        return Ok(true);
    }
    let notices = group.notices(queue, &job, &body, &[report]).await?;
    group
        .store_notices(batch, &job.envelope, &notices, &Vec::new())
        .await?;
    Ok(true)
}
