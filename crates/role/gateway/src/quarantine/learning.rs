//! What a release and a refusal teach: content filters by the message, the own list by the author.

use std::fs::File;
use std::io;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_control::{QuarantineActed, QuarantineAction, SenderRow};
use vere_filters::{Class, Filters};
use vere_quarantine::Entry;
use vere_queue::Envelope;

use super::found::Aside;
use crate::known;
use crate::process::Process;

/// Why a message teaches no sender.
const UNPROVEN: &str = "expected one author in a domain that DMARC, aligned DKIM or aligned SPF proved; \
    found none: anybody could forge the address";

/// Learns by a message that was released or refused.
pub(super) async fn learn(
    filters: &Filters,
    aside: &Aside,
    action: QuarantineAction,
    read: (&Envelope, &Bytes),
    acted: &mut QuarantineActed,
) {
    let senders = acted.senders;
    if let Err(error) = note_sender(aside, action, read, acted) {
        acted.unlearned.get_or_insert(error.to_string());
    }
    let is_noted = acted.senders > senders;
    teach(filters, action, read.1, is_noted, acted).await;
}

/// Notes the author of a released message for the recipients, and forgets the author of a refused one.
fn note_sender(
    aside: &Aside,
    action: QuarantineAction,
    (envelope, body): (&Envelope, &Bytes),
    acted: &mut QuarantineActed,
) -> io::Result<()> {
    let process = &aside.group.host.process;
    let Some(author) = vere_judge::noted_author(body) else {
        return match action {
            QuarantineAction::Release => Err(io::Error::other(UNPROVEN)),
            QuarantineAction::Refuse | QuarantineAction::Count => Ok(()),
        };
    };
    let recipients = known::of_queued(process, &aside.destination, envelope);
    let queue_id = aside.message.trace;
    match action {
        QuarantineAction::Count => {}
        QuarantineAction::Release => {
            process.learned.learn(author, &recipients)?;
            acted.senders += 1;
            tracing::info!(%queue_id, sender = author, recipients = recipients.len(), "sender learned by a release");
        }
        QuarantineAction::Refuse => {
            if process.learned.unlearn(author, &recipients)? > 0 {
                acted.senders += 1;
                tracing::info!(%queue_id, sender = author, recipients = recipients.len(), "sender forgotten by a refusal");
            }
        }
    }
    Ok(())
}

/// Teaches the filters that learn by a message.
async fn teach(
    filters: &Filters,
    action: QuarantineAction,
    body: &Bytes,
    is_noted: bool,
    acted: &mut QuarantineActed,
) {
    let class = match action {
        QuarantineAction::Count => return,
        QuarantineAction::Release => Class::Ham,
        QuarantineAction::Refuse => Class::Spam,
    };
    let learned = filters.learn(None, body, class).await;
    let failure = learned.iter().find_map(|one| {
        let failure = one.result.as_ref().err()?;
        Some(format!("{}: {failure}", one.filter))
    });
    let why = match (failure, learned.is_empty()) {
        (None, false) => {
            acted.taught += 1;
            return;
        }
        (Some(failure), _) => failure,
        (None, true) if is_noted => return,
        (None, true) => "expected a [[filter]] with learn_address; found none".to_owned(),
    };
    acted.untaught.get_or_insert(why);
}

/// Lists learned senders, by sender and recipient.
pub(super) fn list(
    process: &Process,
    (sender, recipient): (Option<&str>, Option<&str>),
) -> Vec<SenderRow> {
    let row = |entry: Entry| {
        let (year, month, day) = entry.used.date();
        SenderRow {
            sender: entry.sender,
            recipient: entry.recipient,
            used: format!("{year:04}-{month:02}-{day:02}"),
        }
    };
    let entries = process.learned.list(sender, recipient).into_iter();
    entries.map(row).collect()
}

/// Forgets learned senders.
///
/// # Errors
/// When the list cannot be written.
pub(super) async fn remove(
    process: &Process,
    sender: &str,
    recipient: Option<&str>,
) -> io::Result<usize> {
    let count = process.learned.forget(sender, recipient)?;
    sync(process).await?;
    Ok(count)
}

/// Brings the list of senders safely to the disk, beside the gateway's thread.
///
/// # Errors
/// When the disk takes nothing.
pub(super) async fn sync(process: &Process) -> io::Result<()> {
    let handles = process.learned.handles()?;
    spawn_blocking(move || handles.iter().try_for_each(File::sync_all)).await?
}
