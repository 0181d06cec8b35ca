//! Shows queues and messages. Summaries come from memory; envelopes come from the spool, for the shown messages only.

use std::collections::HashMap;
use std::rc::Rc;

use vere_process::clock;
use vere_queue::{Destination, Envelope, MessageSummary, QueueSummary, Standing};
use vere_spoolwire::{QueueId, RecordId};
use vere_units::TraceId;

use super::{orders, unrouted};
use crate::group::Group;
use crate::groups::Groups;
use crate::trade::Trade;
use vere_control::{Answer, MessageRow, QueueRow};

/// Maximum of messages in one answer.
const SHOW_MAX: usize = 10_000;
/// Maximum of queues in one answer: longer answers would delay other tasks by more than some milliseconds.
const LIST_MAX: usize = 2_000;
/// Records in one block from the spool.
const BLOCK_RECORDS: u32 = 200;
/// Approximate size of one block, in octets.
const BLOCK_OCTETS: u32 = 1 << 20;
/// Blocks read for one answer; messages beyond these blocks are shown without sender and recipients.
const BLOCKS_MAX: usize = 100;

/// Lists queues in the order of their destinations, from behind `after` on if given. With `group`, lists the queues
/// of that dead gateway: absent if this gateway has not adopted the group.
pub(super) fn list<T: Trade>(
    groups: &Groups<T>,
    group: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Answer {
    let found = match group {
        None => Some(Rc::clone(&groups.own)),
        Some(name) => groups.find(name),
    };
    let Some(one) = found else {
        return answer(&Vec::<QueueRow>::new());
    };
    let after = after.and_then(|name| name.parse::<Destination>().ok());
    let limit = limit.min(LIST_MAX);
    let rows: Vec<_> = one
        .queues
        .look(|queues| queues.summaries(after.as_ref(), limit))
        .iter()
        .map(|summary| queue_row(&one, summary, group))
        .collect();
    answer(&rows)
}

/// A message in a queue of one of the gateways here.
struct Found {
    /// Index of the gateway: 0 is this gateway, followed by adopted groups.
    place: usize,
    number: QueueId,
    message: MessageSummary,
}

/// Selects the messages to show.
pub(super) struct Asked<'a> {
    /// A destination, for its messages in acceptance order; or a queue id, for all places of the message. Without
    /// either, held messages of all queues.
    pub(super) what: Option<&'a str>,
    /// Restrict to messages held individually.
    pub(super) held: bool,
    /// The dead gateway whose adopted group to show; by default this gateway and all adopted groups.
    pub(super) group: Option<&'a str>,
    /// Restrict to messages behind this queue id.
    pub(super) after: Option<TraceId>,
    pub(super) limit: usize,
}

/// Shows messages.
pub(super) async fn show<T: Trade>(groups: &Groups<T>, asked: Asked<'_>) -> Answer {
    let limit = asked.limit.min(SHOW_MAX);
    let mut all = groups.named();
    all.retain(|(name, _)| {
        let group = asked.group;
        group.is_none_or(|group| name.as_deref() == Some(group))
    });
    let found = match (asked.what, asked.held) {
        (None, _) => Ok(held_in(&all, |_, _| true, asked.after, limit)),
        (Some(what), true) => of_what(groups.process(), &all, what, None, 1).map(|_| {
            let (name, id) = (what.parse().ok(), what.parse().ok());
            let is = |destination: &Destination, trace: TraceId| {
                name.as_ref() == Some(destination) || id == Some(trace)
            };
            held_in(&all, is, asked.after, limit)
        }),
        (Some(what), false) => of_what(groups.process(), &all, what, asked.after, limit),
    };
    match found {
        Ok(found) => answer(&rows(&all, &found).await),
        Err(error) => Answer::Error(error),
    }
}

/// Returns the messages of a queue, from behind `after` on if given; or the places of one message.
fn of_what<T: Trade>(
    process: &T,
    all: &[(Option<String>, Rc<Group<T>>)],
    what: &str,
    after: Option<TraceId>,
    limit: usize,
) -> Result<Vec<Found>, String> {
    if let Some(found) = of_queue(all, what, after, limit) {
        return Ok(found);
    }
    let Ok(trace) = what.parse::<TraceId>() else {
        return Err(match what.parse::<Destination>() {
            Ok(name) => unrouted::no_queue(process, &name),
            Err(error) => error.to_string(),
        });
    };
    let found = of_message(all, trace);
    if found.is_empty() {
        return Err(format!(
            "no message {what} is queued; vere trace {what} tells what became of it"
        ));
    }
    Ok(found)
}

/// Returns the first messages of all queues with the given destination, in acceptance order; `None` if no such queue
/// exists.
fn of_queue<T: Trade>(
    all: &[(Option<String>, Rc<Group<T>>)],
    what: &str,
    after: Option<TraceId>,
    limit: usize,
) -> Option<Vec<Found>> {
    let destination = what.parse::<Destination>().ok()?;
    let mut known = false;
    let mut found = Vec::new();
    for (place, (_, one)) in all.iter().enumerate() {
        let listed = one.queues.look(|queues| {
            let number = queues.number(&destination)?;
            Some((
                number,
                queues.list(number, after, limit).collect::<Vec<_>>(),
            ))
        });
        let Some((number, messages)) = listed else {
            continue;
        };
        known = true;
        found.extend(messages.into_iter().map(|message| Found {
            place,
            number,
            message,
        }));
    }
    // Ids grow with time, and thus order messages of several gateways. A single queue is in order already.
    if all.len() > 1 {
        found.sort_by_key(|found| found.message.trace);
        found.truncate(limit);
    }
    known.then_some(found)
}

/// Returns all places where a message waits.
fn of_message<T: Trade>(all: &[(Option<String>, Rc<Group<T>>)], trace: TraceId) -> Vec<Found> {
    let mut found = Vec::new();
    for (place, (_, one)) in all.iter().enumerate() {
        one.queues.look(|queues| {
            let at = |(number, record)| {
                let message = queues.message(number, record, trace)?;
                Some(Found {
                    place,
                    number,
                    message,
                })
            };
            found.extend(queues.places(trace).filter_map(at).take(SHOW_MAX));
        });
    }
    found
}

/// Returns the messages held individually, here and in adopted queues: the oldest [`SHOW_MAX`] of them, oldest first.
pub(super) async fn held<T: Trade>(groups: &Groups<T>) -> Vec<MessageRow> {
    let all = groups.named();
    let found = held_in(&all, |_, _| true, None, SHOW_MAX);
    rows(&all, &found).await
}

/// Selects wanted messages among the messages held individually, oldest first.
fn held_in<T: Trade>(
    all: &[(Option<String>, Rc<Group<T>>)],
    is_wanted: impl Fn(&Destination, TraceId) -> bool,
    after: Option<TraceId>,
    limit: usize,
) -> Vec<Found> {
    let mut found = Vec::new();
    for (place, (_, one)) in all.iter().enumerate() {
        one.queues.look(|queues| {
            let wanted = |number: QueueId, message: &MessageSummary| {
                let destination = queues.destination(number);
                after.is_none_or(|after| message.trace > after)
                    && destination.is_some_and(|name| is_wanted(name, message.trace))
            };
            let held = queues.held_messages();
            let held = held.filter(|(number, message)| wanted(*number, message));
            found.extend(held.map(|(number, message)| Found {
                place,
                number,
                message,
            }));
        });
    }
    found.sort_by_key(|found| found.message.trace);
    found.truncate(limit);
    found
}

async fn rows<T: Trade>(
    all: &[(Option<String>, Rc<Group<T>>)],
    found: &[Found],
) -> Vec<MessageRow> {
    // Blocks are read queue by queue; the shown rows keep the order of `found`.
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|at| {
        (
            found[*at].place,
            found[*at].number,
            found[*at].message.record,
        )
    });
    let mut rows: Vec<Option<MessageRow>> = vec![None; found.len()];
    for run in order
        .chunk_by(|a, b| (found[*a].place, found[*a].number) == (found[*b].place, found[*b].number))
    {
        let Found { place, number, .. } = found[run[0]];
        let (group, one) = &all[place];
        let page: Vec<_> = run.iter().map(|at| found[*at].message).collect();
        let envelopes = envelopes(one, number, &page).await;
        let destination = one.queues.name(number).unwrap_or_default();
        for (at, message) in run.iter().zip(&page) {
            let envelope = envelopes.get(&message.record);
            rows[*at] = Some(message_row(
                &destination,
                group.as_deref(),
                message,
                envelope,
            ));
        }
    }
    rows.into_iter().flatten().collect()
}

/// Reads the envelopes of a page, as far as the spool delivers them.
async fn envelopes<T: Trade>(
    group: &Group<T>,
    number: QueueId,
    page: &[MessageSummary],
) -> HashMap<RecordId, Envelope> {
    let mut envelopes = HashMap::with_capacity(page.len());
    let mut wanted = page;
    for _ in 0..BLOCKS_MAX {
        let Some(first) = wanted.first() else { break };
        let left = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let count = left.min(BLOCK_RECORDS);
        let from = first.record;
        let block = group
            .host
            .link
            .fetch(number, from, count, BLOCK_OCTETS)
            .await;
        let Ok(block) = block else { break };
        for (record, envelope, _) in vere_delivery::readable(block.records) {
            envelopes.insert(record, envelope);
        }
        let seen = wanted.partition_point(|message| message.record < block.next);
        wanted = &wanted[seen..];
        if block.end {
            break;
        }
    }
    envelopes
}

fn answer(rows: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(rows) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}

/// Returns the shown figures of a queue.
pub(super) fn queue_row<T: Trade>(
    one: &Group<T>,
    summary: &QueueSummary,
    group: Option<&str>,
) -> QueueRow {
    let now = clock::now();
    let order = one
        .queues
        .look(|queues| queues.order(&summary.destination, now));
    let age = |oldest| now.saturating_since(oldest).as_secs();
    QueueRow {
        group: group.map(str::to_owned),
        destination: summary.destination.to_string(),
        messages: summary.messages,
        octets: summary.octets,
        came: summary.came,
        left: summary.left,
        priorities: summary.priorities.iter().copied().collect(),
        deferred: summary.deferred,
        in_flight: summary.in_flight,
        held: summary.held,
        quarantined: summary.quarantined,
        connections: summary.connections,
        connections_max: summary.connections_max,
        in_order: summary.in_order,
        site: summary.site.as_ref().map(ToString::to_string),
        latency_ms: summary
            .latency
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        paused_until: summary.paused_until.map(|time| time.to_string()),
        held_until: summary.held_until.map(orders::until_text),
        refused_until: order.refused_until.map(orders::until_text),
        unrouted: unrouted::is_unrouted(&*one.host.process, &summary.destination, &order),
        way: order.detour.map(|detour| detour.to.to_string()),
        oldest_seconds: summary.oldest.map(age),
        oldest: summary.oldest.map(|time| time.to_string()),
        last_reply: summary.last_reply.clone(),
        last_answer: summary.last_answer.clone(),
    }
}

fn message_row(
    destination: &str,
    group: Option<&str>,
    message: &MessageSummary,
    envelope: Option<&Envelope>,
) -> MessageRow {
    let state = match message.standing {
        Standing::Ready => "ready",
        Standing::InFlight => "in flight",
        Standing::Deferred => "deferred",
        Standing::Held => "held",
        Standing::Quarantined => "quarantined",
    };
    let recipients = envelope.map(|envelope| envelope.mail.recipients.as_slice());
    let held = envelope.filter(|_| message.held_until.is_some());
    let addresses = recipients.unwrap_or_default().iter();
    MessageRow {
        id: message.trace.to_string(),
        group: group.map(str::to_owned),
        destination: destination.to_owned(),
        state: state.to_owned(),
        accepted: message.accepted.to_string(),
        attempts: message.attempts,
        not_before: message.due.map(|time| time.to_string()),
        held_until: message.held_until.map(orders::until_text),
        held_since: held
            .and_then(|one| one.head.held_since)
            .map(|since| since.to_string()),
        held_for: held.map(|one| one.head.held_for.as_str().to_owned()),
        size: message.size,
        priority: message.priority,
        reverse_path: envelope.map(|one| one.mail.reverse_path.clone().unwrap_or_default()),
        recipients: addresses.map(|one| one.address.clone()).collect(),
        last_reply: envelope.and_then(|one| one.head.last_reply.clone()),
    }
}
