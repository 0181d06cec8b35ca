//! Ends waiting messages whose own end has come ([`ScheduleHead::expires`](vere_queue::ScheduleHead)), whether the
//! destination can be reached or not. Other messages end by age, at an attempt or behind one (`behind`).
//!
//! One task for all queues, which take turns page by page, with one block of records in memory, and a pause after each
//! report.

use std::rc::Rc;
use std::time::Duration;

use vere_queue::{Envelope, Job, MessageSummary, Queues};
use vere_spoolwire::{QueueId, Record, RecordId, SpoolError};
use vere_units::TraceId;

use crate::group::Group;
use crate::host::Host;
use crate::reading;

/// The pause between two looks: so much later a message may end.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// Messages of one queue before the turn of the next.
const PAGE: usize = 100;
/// Record numbers that one block spans.
const BLOCK_RECORDS: u64 = 100;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// The pause after each report: no more than 1,000 leave in a second.
const REPORT_PAUSE: Duration = Duration::from_millis(1);
/// The reason of an end where no answer of the destination is known.
const REASON: &str = "delivery time expired";

/// Starts the task if a message is overdue. Costs a comparison between the looks.
pub(crate) fn look<H: Host>(group: &Rc<Group<H>>) {
    let is_due = group.overdue.is_due(group.host.steady(), LOOK_PAUSE);
    if is_due && next(group, None).is_some() {
        group.overdue.began();
        group.host.spawn(run(Rc::clone(group)));
    }
}

/// Runs until a round through all queues ends no message. The next look finds messages that could not be ended.
async fn run<H: Host>(group: Rc<Group<H>>) {
    while round(&group).await {}
    group.overdue.ended();
}

/// Ends one page of each queue. Returns whether a message has ended.
async fn round<H: Host>(group: &Rc<Group<H>>) -> bool {
    let (mut ended, mut after) = (false, None);
    while let Some(queue) = next(group, after) {
        after = Some(queue);
        match page(group, queue).await {
            Ok(some) => ended |= some,
            Err(error) => {
                tracing::warn!(
                    queue = queue.0,
                    ?error,
                    "cannot end messages whose time is over yet"
                );
            }
        }
    }
    ended
}

fn next<H: Host>(group: &Group<H>, after: Option<QueueId>) -> Option<QueueId> {
    if !group.delivering() {
        return None;
    }
    let now = group.queue_time();
    group.queues.look(|queues| queues.next_overdue(after, now))
}

async fn page<H: Host>(group: &Rc<Group<H>>, queue: QueueId) -> Result<bool, SpoolError> {
    let now = group.queue_time();
    let page = group.queues.look(|queues| queues.overdue(queue, now, PAGE));
    let (mut rest, mut ended) = (page.as_slice(), false);
    while let Some(first) = rest.first() {
        let end = RecordId(first.record.0.saturating_add(BLOCK_RECORDS));
        let (near, far) = rest.split_at(rest.partition_point(|one| one.record < end));
        ended |= block(group, queue, near).await?;
        rest = far;
    }
    Ok(ended)
}

/// Ends messages whose records are in one block.
async fn block<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    near: &[MessageSummary],
) -> Result<bool, SpoolError> {
    let (Some(first), Some(last)) = (near.first(), near.last()) else {
        return Ok(false);
    };
    let count = last.record.0.saturating_sub(first.record.0) + 1;
    let count = u32::try_from(count).unwrap_or(1);
    let fetched = group.host.fetch(queue, first.record, count, BLOCK_OCTETS);
    let records = fetched.await?.records;
    let mut ended = lose(group, queue, first, &records);
    for (record, envelope, body) in reading::readable(records) {
        let trace = envelope.head.trace;
        let is_meant = near.binary_search_by_key(&record, |one| one.record).is_ok();
        // Attempts, operators and the clock may have changed the state since the page was listed.
        if !is_meant || !is_overdue(group, queue, (record, trace)) {
            continue;
        }
        let claimed = group
            .queues
            .change(|queues| queues.claim(queue, record, envelope, body));
        let Some(job) = claimed else { continue };
        ended = true;
        if end(group, queue, &job) > 0 {
            group.host.pause(REPORT_PAUSE).await;
            group.room_for_reports().await;
        }
    }
    Ok(ended)
}

fn is_overdue<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    (record, trace): (RecordId, TraceId),
) -> bool {
    let now = group.queue_time();
    let overdue = group
        .queues
        .look(|queues| queues.is_overdue(queue, record, trace, now));
    overdue && group.delivering()
}

/// Forgets an overdue message whose record is gone: the message would stay at the head of all pages. Returns whether
/// the message was lost.
fn lose<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    first: &MessageSummary,
    records: &[Record],
) -> bool {
    let MessageSummary { record, trace, .. } = *first;
    let is_there = records.first().is_some_and(|found| found.id == record);
    if is_there || !is_overdue(group, queue, (record, trace)) {
        return false;
    }
    group
        .queues
        .change(|queues| queues.discard(queue, record, trace));
    group.note_lost(queue, trace);
    true
}

/// Settles a message as by an attempt of this host. Returns the number of reports on the way.
fn end<H: Host>(group: &Rc<Group<H>>, queue: QueueId, job: &Job) -> usize {
    let reply = reply(group, queue, &job.envelope);
    let attempt = Queues::unreachable_attempt(&job.envelope, &group.host.hostname(), &reply);
    group.settle(queue, job, &attempt)
}

/// The reason for the sender: the last answer about the message, or the failure of the destination.
fn reply<H: Host>(group: &Group<H>, queue: QueueId, envelope: &Envelope) -> String {
    let said = envelope.head.last_reply.clone();
    let failure = || {
        let failure = |queues: &Queues| queues.failure(queue).map(str::to_owned);
        group.queues.look(failure)
    };
    said.or_else(failure).unwrap_or_else(|| REASON.to_owned())
}
