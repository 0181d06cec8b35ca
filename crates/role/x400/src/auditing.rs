//! The lines of the audit log.

use std::net::SocketAddr;

use vere_archive::{Audit, AuditOptions, AuditRecipient, Line, LineKind, OpenError};
use vere_delivery::Notice;
use vere_mta400::{Decision, Outcome};
use vere_process::clock;
use vere_queue::{Attempt, Disposition, Envelope};
use vere_settings::X400;
use vere_units::{Timestamp, TraceId};

use crate::origin::{self, Origin};

/// Opens the audit log, if the settings want one.
///
/// # Errors
/// When the folder cannot be used.
pub(crate) fn open(x400: &X400) -> Result<Option<Audit>, OpenError> {
    let options = AuditOptions {
        keep: x400.audit_keep.duration(),
        ..AuditOptions::default()
    };
    let open = || Audit::open(&x400.audit_folder(), &options);
    x400.audit.then(open).transpose()
}

/// A unit is safe.
pub(crate) fn arrival(
    audit: &Audit,
    origin: Origin<'_>,
    trace: TraceId,
    at: Timestamp,
    outcome: &Outcome,
) {
    let facts = &outcome.facts;
    let texts: Vec<_> = facts
        .recipients
        .iter()
        .map(|one| words(&one.decision))
        .collect();
    let recipients: Vec<_> = facts
        .recipients
        .iter()
        .zip(&texts)
        .map(|(one, (decision, destination, cause))| AuditRecipient {
            address: &one.address,
            number: Some(one.number),
            decision,
            destination: destination.as_deref(),
            cause: cause.as_deref(),
        })
        .collect();
    let (source, address) = (origin.text(), origin.address.map(|one| one.to_string()));
    let content_type = facts.content_type.as_ref().map(ToString::to_string);
    audit.add(&Line {
        trace: Some(trace),
        kind: Some(origin::kind(facts.kind)),
        identifier: Some(&facts.identifier),
        about: facts.about.as_deref(),
        source: Some(&source),
        originator: facts.originator.as_deref(),
        content_type: content_type.as_deref(),
        content_octets: Some(facts.content_octets),
        priority: Some(&facts.priority.to_string()),
        hops: u64::try_from(facts.hops).ok(),
        recipients: &recipients,
        address: address.as_deref(),
        ..Line::new(at, LineKind::Arrival)
    });
}

/// The decision in a word, its destination, and the cause of a failure.
fn words(decision: &Decision) -> (&'static str, Option<String>, Option<String>) {
    match decision {
        Decision::NotOurs => ("not_ours", None, None),
        Decision::Onward {
            destination,
            redirected,
        } => {
            let word = if *redirected { "redirected" } else { "onward" };
            (word, Some(destination.to_string()), None)
        }
        Decision::Answered(destination) => ("answered", Some(destination.to_string()), None),
        Decision::Failed(cause) => ("failed", None, Some(cause.to_string())),
        Decision::Consumed => ("consumed", None, None),
    }
}

/// No responsibility was taken for a unit.
pub(crate) fn refused(audit: &Audit, origin: Origin<'_>, why: &str) {
    let (source, address) = (origin.text(), origin.address.map(|one| one.to_string()));
    audit.add(&Line {
        source: Some(&source),
        address: address.as_deref(),
        said: Some(why),
        ..Line::new(clock::now(), LineKind::Refused)
    });
}

/// An attempt has ended. A line of its own says for which recipients the responsibility has gone.
pub(crate) fn attempt(audit: &Audit, queue: &str, envelope: &Envelope, attempt: &Attempt) {
    let now = clock::now();
    let recipients: Vec<_> = envelope
        .mail
        .recipients
        .iter()
        .zip(&attempt.results)
        .map(|(recipient, result)| AuditRecipient {
            address: &recipient.address,
            number: None,
            decision: match result.disposition {
                Disposition::Delivered => "delivered",
                Disposition::Deferred => "deferred",
                Disposition::Failed => "failed",
            },
            destination: None,
            cause: None,
        })
        .collect();
    let first = attempt.results.first();
    let all_delivered = attempt
        .results
        .iter()
        .all(|one| one.disposition == Disposition::Delivered);
    let kind = if all_delivered {
        LineKind::Delivery
    } else {
        LineKind::Attempt
    };
    audit.add(&Line {
        trace: Some(envelope.head.trace),
        identifier: envelope.mail.message_id.as_deref(),
        destination: Some(queue),
        attempt: Some(u64::from(envelope.head.attempts) + 1),
        recipients: &recipients,
        status: first
            .map(|one| one.status.as_str())
            .filter(|_| !all_delivered),
        said: first.map(|one| one.reply.as_str()),
        peer: Some(&attempt.remote),
        ..Line::new(now, kind)
    });
}

/// A report of this MTA is safe.
pub(crate) fn report(audit: &Audit, about: TraceId, notice: &Notice) {
    audit.add(&Line {
        trace: notice.sent(),
        about: Some(&about.to_string()),
        said: Some(notice.kind.action()),
        originator: Some(&notice.to),
        ..Line::new(clock::now(), LineKind::Report)
    });
}

/// The ends of an association that a peer has opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) peer: &'a str,
    pub(crate) address: SocketAddr,
    /// The number of the association in this process.
    pub(crate) number: u64,
}

/// A bind was answered; with a reason: refused.
pub(crate) fn bind(audit: &Audit, link: Link<'_>, refused: Option<&str>) {
    let kind = match refused {
        None => LineKind::BindAccepted,
        Some(_) => LineKind::BindRefused,
    };
    association(
        audit,
        link,
        Line {
            said: refused,
            ..Line::new(clock::now(), kind)
        },
    );
}

/// An association has ended.
pub(crate) fn end(audit: &Audit, link: Link<'_>, transfers: u64, said: &str) {
    association(
        audit,
        link,
        Line {
            transfers: Some(transfers),
            said: Some(said),
            ..Line::new(clock::now(), LineKind::AssociationEnd)
        },
    );
}

fn association(audit: &Audit, link: Link<'_>, line: Line<'_>) {
    let address = link.address.to_string();
    audit.add(&Line {
        association: Some(link.number),
        peer: Some(link.peer),
        address: Some(&address),
        direction: Some("in"),
        ..line
    });
}
