//! Content filters' part of a judgement: answers as facts, and the changes of message and envelope.

use bytes::Bytes;
use vere_filters::Mail;
use vere_judge::{Filter, Virus};
use vere_smtp::address::{ForwardPath, ReversePath};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use crate::process::Process;
use crate::service::Service;
use crate::{clock, filtering};

/// The answers of the content filters.
#[derive(Debug)]
pub(super) struct Filtered {
    pub(super) filters: Vec<Filter>,
    pub(super) viruses: Vec<Virus>,
    /// Whether the filters found more than the facts have room for.
    pub(super) cut: bool,
    /// Whether filters left no recipient to whom mail can go. The deleted recipients stay: no message is lost without trace.
    pub(super) is_discarded: bool,
}

/// Asks the content filters for this mail, and applies the changes of filters.
///
/// # Errors
/// The refusal for the client where a filter gave no answer.
pub(super) async fn filter(
    process: &Process,
    asked: (Service, Mail),
    trace: TraceId,
    message: &mut Message,
) -> Result<Filtered, Refusal> {
    let body = Bytes::from(std::mem::take(&mut message.body));
    let findings = filtering::ask(process, asked, trace, message, &body).await;
    message.body = Vec::from(findings.message.unwrap_or(body));
    if findings.defer.is_some() {
        let refusal = Refusal::Site {
            permanent: false,
            text: format!("message cannot be checked now, try again later, id {trace}"),
        };
        note_deferred(process, trace, message, message.recipients.len(), &refusal);
        return Err(refusal);
    }
    if let Some(path) = findings.reverse_path {
        match ReversePath::parse(&format!("<{path}>")) {
            Ok(path) => message.reverse_path.reverse_path = path,
            Err(error) => {
                tracing::warn!(queue_id = %trace, path, %error, "a content filter names a sender that is none")
            }
        }
    }
    for address in findings.added {
        add_recipient(process, trace, message, &address)?;
    }
    let is_deleted = |rcpt: &RcptTo| {
        let path = rcpt.forward_path.as_str();
        findings
            .deleted
            .iter()
            .any(|gone| gone.eq_ignore_ascii_case(path))
    };
    // The filter's own recipients may lead nowhere.
    let is_empty = message.recipients.iter().all(is_deleted);
    if !is_empty {
        message.recipients.retain(|rcpt| !is_deleted(rcpt));
    }
    Ok(Filtered {
        filters: findings.filters,
        viruses: findings.viruses,
        cut: findings.cut,
        is_discarded: findings.is_discarded || is_empty,
    })
}

/// Adds a recipient named by a filter. An address that leads nowhere is left out: the client cannot correct the filter.
///
/// # Errors
/// The refusal for the client where nobody can say now whether the address leads anywhere.
fn add_recipient(
    process: &Process,
    trace: TraceId,
    message: &mut Message,
    address: &str,
) -> Result<(), Refusal> {
    let no_recipient = |error: &dyn std::fmt::Display| {
        tracing::warn!(queue_id = %trace, address, %error, "a content filter names a recipient that is none");
    };
    let path = match ForwardPath::parse(&format!("<{address}>")) {
        Ok(path) => path,
        Err(error) => {
            no_recipient(&error);
            return Ok(());
        }
    };
    match process.router.find(&process.settings(), &path) {
        Ok(_) => message.recipients.push(RcptTo::new(path)),
        Err(refusal) if refusal.is_permanent() => no_recipient(&refusal),
        Err(refusal) => {
            note_deferred(process, trace, message, message.recipients.len(), &refusal);
            return Err(refusal);
        }
    }
    Ok(())
}

/// Writes into the trace that a message for so many recipients was not taken for want of a filter, of the directory, or of room in the
/// quarantine.
pub(crate) fn note_deferred(
    process: &Process,
    trace: TraceId,
    message: &Message,
    recipients: usize,
    refusal: &Refusal,
) {
    let reply = refusal.to_string();
    process.note(&Event {
        reverse_path: Some(message.reverse_path.reverse_path.as_str()),
        recipients: u32::try_from(recipients).ok(),
        peer: Some(message.session.address),
        reply: Some(&reply),
        ..Event::new(EventKind::Refused, trace, clock::now())
    });
}
