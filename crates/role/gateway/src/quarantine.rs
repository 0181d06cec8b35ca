//! Answers questions about the quarantine, releases and removes its messages (`vere quarantine`).

mod digest;
mod facts;
mod found;
mod keeping;
mod learning;

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use vere_control::{
    Answer, QuarantineActed, QuarantineAction, QuarantineRow, QuarantineSelection, QuarantineText,
    Request,
};
use vere_delivery::{Leaving, Released, is_meant};
use vere_filters::Filters;
use vere_queue::Envelope;
use vere_spoolwire::SpoolError;
use vere_units::TraceId;

use super::group::Groups;
use facts::Facts;
use found::{Aside, Found, all, breathe, keep_for};

pub(super) use keeping::keep;

/// Messages in one answer.
const LIST_MAX: usize = 1_000;
/// Octets of a message in one answer.
const PIECE: usize = 4 << 20;

/// Answers a request about the quarantine.
pub(super) async fn serve(groups: &Groups, request: &Request) -> Answer {
    match request {
        Request::QuarantineList {
            selection,
            after,
            limit,
        } => list(groups, selection, *after, *limit).await,
        Request::QuarantineShow { id } => show(groups, *id).await,
        Request::QuarantineText { id, from } => text(groups, *id, *from).await,
        Request::QuarantineAct {
            selection,
            action,
            learn,
        } => act(groups, selection, (*action, *learn)).await,
        Request::SendersList { sender, recipient } => {
            let wanted = (sender.as_deref(), recipient.as_deref());
            answer(&learning::list(groups.process(), wanted))
        }
        Request::SendersRemove { sender, recipient } => {
            match learning::remove(groups.process(), sender, recipient.as_deref()).await {
                Ok(count) => answer(&count),
                Err(error) => Answer::Error(error.to_string()),
            }
        }
        _ => Answer::Error("expected a request about the quarantine; found another one".to_owned()),
    }
}

/// Whether a selection needs the envelopes of messages.
const fn needs_envelope(selection: &QuarantineSelection) -> bool {
    selection.recipient.is_some() || selection.sender.is_some()
}

/// Whether a message has the addresses of a selection.
fn is_addressed(selection: &QuarantineSelection, envelope: &Envelope) -> bool {
    let reverse_path = envelope.mail.reverse_path.as_deref().unwrap_or_default();
    let sender = selection.sender.as_ref();
    let recipient = selection.recipient.as_ref();
    sender.is_none_or(|wanted| is_meant(wanted, reverse_path))
        && recipient.is_none_or(|wanted| {
            let mut recipients = envelope.mail.recipients.iter();
            recipients.any(|one| is_meant(wanted, &one.address))
        })
}

/// Lists the messages of a selection behind `after`.
async fn list(
    groups: &Groups,
    selection: &QuarantineSelection,
    after: Option<TraceId>,
    limit: usize,
) -> Answer {
    let limit = limit.min(LIST_MAX);
    let keep = keep_for(&groups.process().settings());
    let mut rows = Vec::new();
    let mut last = None;
    for (index, found) in all(groups).into_iter().enumerate() {
        let trace = found.aside.message.trace;
        let is_wanted = after.is_none_or(|after| trace > after)
            && (selection.ids.is_empty() || selection.ids.contains(&trace));
        if !is_wanted {
            continue;
        }
        // All rows of an id are in one answer, since the next answer begins behind the id.
        if rows.len() >= limit && last != Some(trace) {
            break;
        }
        last = Some(trace);
        let read = found.aside.read().await.ok().flatten();
        let envelope = read.as_ref().map(|(envelope, _)| envelope);
        if needs_envelope(selection) && !envelope.is_some_and(|one| is_addressed(selection, one)) {
            continue;
        }
        let facts = read.as_ref().map(|(_, body)| Facts::of(body));
        rows.push(row(&found, keep, envelope, facts));
        breathe(index).await;
    }
    answer(&rows)
}

/// Shows a message with the header, in each place where the message waits.
async fn show(groups: &Groups, id: TraceId) -> Answer {
    let keep = keep_for(&groups.process().settings());
    let mut rows = Vec::new();
    for found in all(groups) {
        if found.aside.message.trace != id {
            continue;
        }
        let read = match found.aside.read().await {
            Ok(read) => read,
            Err(error) => return Answer::Error(error.to_string()),
        };
        let envelope = read.as_ref().map(|(envelope, _)| envelope);
        let facts = read.as_ref().map(|(_, body)| Facts::of(body));
        let mut row = row(&found, keep, envelope, facts);
        if let Some((_, body)) = &read {
            row.header = facts::header(body);
        }
        rows.push(row);
    }
    match rows.is_empty() {
        true => Answer::Error(missing(id)),
        false => answer(&rows),
    }
}

/// Gives a piece of a message.
async fn text(groups: &Groups, id: TraceId, from: usize) -> Answer {
    let mut all = all(groups).into_iter();
    let Some(found) = all.find(|found| found.aside.message.trace == id) else {
        return Answer::Error(missing(id));
    };
    match found.aside.read().await {
        Ok(Some((_, body))) => {
            let rest = body.get(from..).unwrap_or_default();
            let piece = rest.get(..PIECE).unwrap_or(rest);
            answer(&QuarantineText::new(piece, body.len()))
        }
        Ok(None) => Answer::Error(missing(id)),
        Err(error) => Answer::Error(error.to_string()),
    }
}

fn missing(id: TraceId) -> String {
    format!("no message {id} is in the quarantine; vere trace {id} tells what became of it")
}

/// Does something with the messages of a selection, in adopted queues too.
async fn act(
    groups: &Groups,
    selection: &QuarantineSelection,
    (action, learn): (QuarantineAction, bool),
) -> Answer {
    if !groups.are_recovered() {
        return Answer::Error("the queues are not read back yet; ask again".to_owned());
    }
    let mut found = all(groups);
    let wanted: HashSet<TraceId> = selection.ids.iter().copied().collect();
    if !wanted.is_empty() {
        found.retain(|found| wanted.contains(&found.aside.message.trace));
    }
    let there: HashSet<TraceId> = found.iter().map(|one| one.aside.message.trace).collect();
    let mut acted = QuarantineActed {
        missing: selection.ids.clone(),
        ..QuarantineActed::default()
    };
    acted.missing.retain(|id| !there.contains(id));
    let selection = selection.clone();
    let teacher = learn.then(|| groups.process().filtering.filters());
    // The task continues after the client disconnects: a half-finished action is worse than a finished action.
    let done = spawn_local(async move {
        for (index, one) in found.iter().enumerate() {
            let order = (&selection, action, teacher.as_deref());
            if let Err(trouble) = act_on(&one.aside, order, &mut acted).await {
                acted.trouble = Some(trouble);
                break;
            }
            breathe(index).await;
        }
        if let Some(one) = found.first().filter(|_| acted.senders > 0) {
            let synced = learning::sync(&one.aside.group.host.process).await;
            acted.unlearned = acted
                .unlearned
                .or(synced.err().map(|error| error.to_string()));
        }
        acted
    });
    match done.await {
        Ok(acted) => answer(&acted),
        Err(error) => Answer::Error(error.to_string()),
    }
}

async fn act_on(
    aside: &Aside,
    (selection, action, teacher): (&QuarantineSelection, QuarantineAction, Option<&Filters>),
    acted: &mut QuarantineActed,
) -> Result<(), String> {
    let text = |error: SpoolError| error.to_string();
    let mut whole = None;
    if needs_envelope(selection) || teacher.is_some() {
        let read = aside.read().await.map_err(text)?;
        match read {
            Some(read) if is_addressed(selection, &read.0) => whole = Some(read),
            _ if needs_envelope(selection) => return Ok(()),
            _ => {}
        }
    }
    let done = match action {
        QuarantineAction::Count => true,
        QuarantineAction::Release => {
            let released = aside.release().await.map_err(|error| error.to_string())?;
            released == Released::Done
        }
        QuarantineAction::Refuse => {
            let group = Rc::clone(&aside.group);
            let one = std::slice::from_ref(aside);
            let removed = group.remove_quarantined(one, Leaving::Refused).await;
            removed.map_err(text)? > 0
        }
    };
    if done {
        acted.messages += 1;
        acted.octets += u64::from(aside.message.size);
        if let (Some(filters), Some(read)) = (teacher, whole) {
            learning::learn(filters, aside, action, (&read.0, &read.1), acted).await;
        }
    } else {
        acted.missing.push(aside.message.trace);
    }
    Ok(())
}

fn row(
    found: &Found,
    keep: Duration,
    envelope: Option<&Envelope>,
    facts: Option<Facts>,
) -> QuarantineRow {
    let Aside {
        destination,
        message,
        ..
    } = &found.aside;
    let facts = facts.unwrap_or_default();
    let recipients = envelope.map(|one| one.mail.recipients.as_slice());
    let addresses = recipients.unwrap_or_default().iter();
    QuarantineRow {
        id: message.trace.to_string(),
        group: found.group.clone(),
        destination: destination.to_string(),
        reverse_path: envelope.map(|one| one.mail.reverse_path.clone().unwrap_or_default()),
        recipients: addresses.map(|one| one.address.clone()).collect(),
        since: message.accepted.to_string(),
        until: (message.accepted + keep).to_string(),
        size: message.size,
        from: facts.from,
        subject: facts.subject,
        score: facts.score,
        header: Vec::new(),
    }
}

fn answer(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(value) {
        Ok(value) => Answer::Ok(value),
        Err(error) => Answer::Error(error.to_string()),
    }
}
