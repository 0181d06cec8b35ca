//! The log line of an operator's action: user, action, mail, and outcome.

use vere_control::{
    Action, Answer, MessageChange, OrderChange, QuarantineAction, QuarantineSelection, Request,
};

/// Writes the line of a request that changes something; nothing for a question.
pub(super) fn write(uid: u32, request: &Request, answer: &Answer) {
    match request {
        Request::QueueOrder {
            destination,
            change,
            seconds,
            ..
        } => {
            let (verb, way) = order(change);
            tracing::info!(
                uid,
                verb,
                queue = destination.as_str(),
                way,
                seconds = *seconds,
                error = error(answer),
                "operator"
            );
        }
        Request::QueueMessage {
            id,
            destination,
            change,
            seconds,
        } => tracing::info!(
            uid,
            verb = match change {
                MessageChange::Hold => "hold",
                MessageChange::Release => "release",
            },
            queue = destination.as_deref(),
            queue_id = %id,
            seconds = *seconds,
            error = error(answer),
            "operator"
        ),
        Request::QueueAct {
            destination,
            selection,
            action,
            report,
        } => {
            let Some(verb) = action_verb(*action) else {
                return;
            };
            tracing::info!(
                uid,
                verb,
                queue = destination.as_deref().unwrap_or("all"),
                sender = selection.sender.as_deref(),
                rcpt = selection.recipient.as_deref(),
                older_than = selection.older_than,
                queue_id = selection.id.map(tracing::field::display),
                report = *report,
                messages = count(answer, "messages"),
                busy = count(answer, "busy"),
                trouble = trouble(answer),
                error = error(answer),
                "operator"
            );
        }
        Request::QuarantineAct {
            selection, action, ..
        } => quarantine(uid, selection, *action, answer),
        Request::SendersRemove { sender, recipient } => {
            senders(uid, sender, recipient.as_deref(), answer);
        }
        _ => {}
    }
}

fn senders(uid: u32, sender: &str, rcpt: Option<&str>, answer: &Answer) {
    tracing::info!(
        uid,
        verb = "remove",
        queue = "learned senders",
        sender,
        rcpt,
        error = error(answer),
        "operator"
    );
}

fn quarantine(
    uid: u32,
    selection: &QuarantineSelection,
    action: QuarantineAction,
    answer: &Answer,
) {
    let verb = match action {
        QuarantineAction::Count => return,
        QuarantineAction::Release => "release",
        QuarantineAction::Refuse => "refuse",
    };
    tracing::info!(
        uid,
        verb,
        queue = "quarantine",
        sender = selection.sender.as_deref(),
        rcpt = selection.recipient.as_deref(),
        ids = selection.ids.len(),
        queue_id = selection.ids.first().map(tracing::field::display),
        messages = count(answer, "messages"),
        trouble = trouble(answer),
        error = error(answer),
        "operator"
    );
}

fn order(change: &OrderChange) -> (&'static str, Option<&str>) {
    match change {
        OrderChange::Hold => ("hold", None),
        OrderChange::Release => ("release", None),
        OrderChange::Refuse => ("refuse", None),
        OrderChange::Accept => ("accept", None),
        OrderChange::Reroute { to } => ("reroute", Some(to)),
        OrderChange::Restore => ("undo", None),
    }
}

const fn action_verb(action: Action) -> Option<&'static str> {
    match action {
        Action::Count => None,
        Action::Retry => Some("retry"),
        Action::Bounce => Some("bounce"),
        Action::Expire => Some("expire"),
        Action::Purge => Some("purge"),
    }
}

fn count(answer: &Answer, field: &str) -> Option<u64> {
    match answer {
        Answer::Ok(value) => value.get(field)?.as_u64(),
        Answer::Error(_) => None,
    }
}

fn trouble(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Ok(value) => value.get("trouble")?.as_str(),
        Answer::Error(_) => None,
    }
}

fn error(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Ok(_) => None,
        Answer::Error(text) => Some(text),
    }
}
