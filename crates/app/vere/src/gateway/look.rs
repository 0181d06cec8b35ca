//! Shows queues and messages. What memory knows is answered from memory; the rest of a message comes
//! from the spool, for the messages shown only.

use std::collections::HashMap;

use vere_queue::{Destination, Envelope, MessageSummary, QueueSummary, Standing};
use vere_spoolwire::{QueueId, RecordId};
use vere_units::TraceId;

use super::state::Gateway;
use super::{clock, orders, recovery};
use crate::control::{Answer, MessageRow, QueueRow};

/// Messages in one answer, at most.
const SHOW_MAX: usize = 10_000;
/// Queues in one answer, at most: what the others wait for meanwhile stays below some milliseconds.
const LIST_MAX: usize = 2_000;
/// Records in one block from the spool.
const BLOCK_RECORDS: u32 = 200;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// Blocks read for one answer; messages behind them are shown without sender and recipients.
const BLOCKS_MAX: usize = 100;

/// Queues in the order of their destinations, those behind `after` if it is given; of the `group` of a
/// dead gateway if one is given, which holds none when it is not adopted (any more).
pub(super) fn list(
    gateway: &Gateway,
    group: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Answer {
    let adopted = gateway.adopted.borrow();
    let gateway = match group {
        None => gateway,
        Some(group) => match adopted.iter().find(|(name, _)| name == group) {
            Some((_, adopted)) => adopted.as_ref(),
            None => return answer(&Vec::<QueueRow>::new()),
        },
    };
    let after = after.and_then(|name| name.parse::<Destination>().ok());
    let queues = gateway.queues.borrow();
    let rows: Vec<_> = queues
        .summaries(after.as_ref(), limit.min(LIST_MAX))
        .iter()
        .map(|summary| queue_row(gateway, summary, group))
        .collect();
    answer(&rows)
}

/// The messages of a queue in acceptance order, those behind the message `after` if it is given; or the
/// places of one message.
pub(super) async fn show(
    gateway: &Gateway,
    what: &str,
    after: Option<TraceId>,
    limit: usize,
) -> Answer {
    let known = what
        .parse::<Destination>()
        .ok()
        .and_then(|known| gateway.queues.borrow().number(&known));
    if let Some(number) = known {
        let page: Vec<_> = gateway
            .queues
            .borrow()
            .list(number, after, limit.min(SHOW_MAX))
            .collect();
        return answer(&rows(gateway, number, &page).await);
    }
    let Ok(trace) = what.parse::<TraceId>() else {
        return Answer::Error(format!("no queue {what}; vere queue list names them"));
    };
    let places: Vec<_> = {
        let queues = gateway.queues.borrow();
        let place = |(number, record)| {
            let message = queues.message(number, record, trace)?;
            Some((number, message))
        };
        queues
            .places(trace)
            .filter_map(place)
            .take(SHOW_MAX)
            .collect()
    };
    if places.is_empty() {
        return Answer::Error(format!(
            "no message {trace} is queued; vere trace {trace} tells what became of it"
        ));
    }
    let mut found = Vec::with_capacity(places.len());
    for (number, message) in places {
        found.append(&mut rows(gateway, number, &[message]).await);
    }
    answer(&found)
}

async fn rows(gateway: &Gateway, number: u32, page: &[MessageSummary]) -> Vec<MessageRow> {
    let envelopes = envelopes(gateway, number, page).await;
    let destination = gateway
        .queues
        .borrow()
        .destination(number)
        .map(ToString::to_string)
        .unwrap_or_default();
    page.iter()
        .map(|message| message_row(&destination, message, envelopes.get(&message.record)))
        .collect()
}

/// The envelopes of a page, as far as the spool gives them.
async fn envelopes(
    gateway: &Gateway,
    number: u32,
    page: &[MessageSummary],
) -> HashMap<u64, Envelope> {
    let mut envelopes = HashMap::with_capacity(page.len());
    let mut wanted = page;
    for _ in 0..BLOCKS_MAX {
        let Some(first) = wanted.first() else { break };
        let left = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        let count = left.min(BLOCK_RECORDS);
        let from = RecordId(first.record);
        let block = gateway
            .link
            .fetch(QueueId(number), from, count, BLOCK_OCTETS)
            .await;
        let Ok(block) = block else { break };
        for (record, envelope, _) in recovery::readable(block.records) {
            envelopes.insert(record, envelope);
        }
        let seen = wanted.partition_point(|message| message.record < block.next.0);
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

/// What is shown of a queue.
pub(super) fn queue_row(
    gateway: &Gateway,
    summary: &QueueSummary,
    group: Option<&str>,
) -> QueueRow {
    let now = clock::now();
    let order = gateway.queues.borrow().order(&summary.destination, now);
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
        oldest_seconds: summary.oldest.map(age),
        oldest: summary.oldest.map(|time| time.to_string()),
        last_reply: summary.last_reply.clone(),
    }
}

fn message_row(
    destination: &str,
    message: &MessageSummary,
    envelope: Option<&Envelope>,
) -> MessageRow {
    let state = match message.standing {
        Standing::Ready => "ready",
        Standing::InFlight => "in flight",
        Standing::Deferred => "deferred",
    };
    let recipients = envelope.map(|envelope| envelope.recipients.as_slice());
    let addresses = recipients.unwrap_or_default().iter();
    MessageRow {
        id: message.trace.to_string(),
        destination: destination.to_owned(),
        state: state.to_owned(),
        accepted: message.accepted.to_string(),
        attempts: message.attempts,
        not_before: message.due.map(|time| time.to_string()),
        size: message.size,
        priority: message.priority,
        reverse_path: envelope.map(|one| one.reverse_path.clone().unwrap_or_default()),
        recipients: addresses.map(|one| one.address.clone()).collect(),
        last_reply: envelope.and_then(|one| one.last_reply.clone()),
    }
}
