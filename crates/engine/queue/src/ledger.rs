//! Event lines for other systems: a line of JSON for every end of a delivery, and for every
//! notification. `docs/internals/records.md` lists the fields.
//!
//! A line is the metadata of a record in one of two queues of the group, and enters the queue in
//! the batch of the change that the line describes. The line's id is derived from spool data only.
//! An attempt repeated because its first end was not persisted therefore gives the same id.

use serde::Serialize;
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use crate::destination::Destination;
use crate::envelope::{Envelope, Recipient};
use crate::order::{FOREVER, Order};
use crate::report::{LOCAL, Report, ReportedRecipient};
use crate::settlement::{Attempt, Disposition, RecipientResult, Settlement, bounded};

/// The version of the lines that this code writes.
pub const LEDGER_VERSION: u8 = 1;
/// The queue of lines about ends. No destination has this name.
pub const FINISHED_QUEUE: &str = "@finished";
/// The queue of lines about notifications.
pub const NOTICES_QUEUE: &str = "@notices";
/// Recipients in one line, so that the line fits into a record's metadata. Each recipient may have
/// two addresses of 320 octets and a reply of [`REPLY_KEPT_MAX`](crate::settlement::REPLY_KEPT_MAX)
/// octets, which escaping at worst doubles.
const RECIPIENTS_PER_LINE: usize = 200;

/// What an operator changed for a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderNotice {
    /// Delivery is paused.
    Held,
    /// Delivery is resumed.
    Released,
    /// New mail is refused.
    Refused,
    /// New mail is accepted again.
    Accepted,
    /// Messages take a detour.
    Rerouted,
    /// Messages take their own route again.
    Restored,
}

impl OrderNotice {
    const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Released => "released",
            Self::Refused => "refused",
            Self::Accepted => "accepted",
            Self::Rerouted => "rerouted",
            Self::Restored => "restored",
        }
    }
}

/// The record that a line is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The record's queue in the spool.
    pub queue: QueueId,
    /// The record's number in the queue.
    pub record: RecordId,
    /// The name of the destination.
    pub destination: &'a str,
    /// The envelope before the attempt.
    pub envelope: &'a Envelope,
}

impl Subject<'_> {
    /// Attempts so far, including the attempt that ended now.
    fn attempt(&self) -> u32 {
        u32::from(self.envelope.head.attempts) + 1
    }

    fn id(&self) -> String {
        let (trace, queue, record) = (self.envelope.head.trace, self.queue, self.record);
        format!("{trace}-{queue}-{record}-{}", self.attempt())
    }
}

/// Writes lines.
#[derive(Debug, Clone, Copy)]
pub struct Ledger<'a> {
    /// The name of the gateway that writes the line.
    pub gateway: &'a str,
    /// The time of the event.
    pub now: Timestamp,
}

#[derive(Serialize)]
struct Finished<'a> {
    v: u8,
    kind: &'static str,
    id: &'a str,
    time: String,
    gateway: &'a str,
    message: TraceId,
    accepted: String,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    envid: Option<&'a str>,
    size: u32,
    #[serde(skip_serializing_if = "is_zero")]
    priority: i8,
    destination: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<&'a str>,
    attempts: u32,
    last: bool,
    recipients: &'a [Told<'a>],
}

#[derive(Serialize)]
struct Notice<'a> {
    v: u8,
    kind: &'static str,
    id: &'a str,
    time: String,
    gateway: &'a str,
    notice: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<TraceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<TraceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recipients: &'a [Told<'a>],
}

/// The result of one recipient, as a line has it.
#[derive(Serialize)]
struct Told<'a> {
    to: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    orcpt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    status: &'a str,
    reply: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
const fn is_zero(priority: &i8) -> bool {
    *priority == 0
}

impl Ledger<'_> {
    /// Lines about an attempt, with the recipients for whom the attempt was the last. Empty when
    /// all recipients are tried again.
    #[must_use]
    pub fn finished(
        &self,
        of: &Subject<'_>,
        attempt: &Attempt,
        settlement: &Settlement,
    ) -> Vec<String> {
        let local = attempt.remote == LOCAL;
        let recipients = of.envelope.mail.recipients.iter().enumerate();
        let recipients: Vec<_> = recipients
            .filter_map(|(index, recipient)| {
                let result = attempt.results.get(index);
                let word = ended(recipient, result, settlement, local)?;
                Some(tell(recipient, Some(word), result))
            })
            .collect();
        let last = settlement.remaining.is_none();
        self.ends(of, Some(&attempt.remote), last, &recipients)
    }

    /// The lines about a message that an operator removed.
    #[must_use]
    pub fn removed(&self, of: &Subject<'_>) -> Vec<String> {
        let recipients = of.envelope.mail.recipients.iter();
        let recipients: Vec<_> = recipients
            .map(|recipient| tell(recipient, Some("removed"), None))
            .collect();
        self.ends(of, None, true, &recipients)
    }

    fn ends(
        &self,
        of: &Subject<'_>,
        remote: Option<&str>,
        last: bool,
        recipients: &[Told<'_>],
    ) -> Vec<String> {
        let parts = recipients.chunks(RECIPIENTS_PER_LINE).enumerate();
        let count = recipients.len().div_ceil(RECIPIENTS_PER_LINE);
        let line = |(part, recipients): (usize, &[Told<'_>])| {
            to_line(&Finished {
                v: LEDGER_VERSION,
                kind: "finished",
                id: &numbered(of.id(), part),
                time: self.now.to_string(),
                gateway: self.gateway,
                message: of.envelope.head.trace,
                accepted: of.envelope.head.accepted.to_string(),
                from: of.envelope.mail.reverse_path.as_deref().unwrap_or_default(),
                message_id: of.envelope.mail.message_id.as_deref(),
                envid: of.envelope.mail.envid.as_deref(),
                size: of.envelope.head.size,
                priority: of.envelope.head.priority,
                destination: of.destination,
                remote,
                attempts: of.attempt(),
                last: last && part + 1 == count,
                recipients,
            })
        };
        parts.map(line).collect()
    }

    /// Lines about a report to the sender. `sent` is the report's own trace id, `None` while the
    /// report is held back.
    #[must_use]
    pub fn reported(
        &self,
        of: &Subject<'_>,
        report: &Report,
        sent: Option<TraceId>,
    ) -> Vec<String> {
        let destination = Some(of.destination);
        self.notices(of.id(), of.envelope.head.trace, destination, report, sent)
    }

    /// Lines about a report to the sender of a message that was just accepted.
    #[must_use]
    pub fn expanded(
        &self,
        message: TraceId,
        report: &Report,
        sent: Option<TraceId>,
    ) -> Vec<String> {
        self.notices(message.to_string(), message, None, report, sent)
    }

    fn notices(
        &self,
        id: String,
        message: TraceId,
        destination: Option<&str>,
        report: &Report,
        sent: Option<TraceId>,
    ) -> Vec<String> {
        let recipients: Vec<_> = report.recipients.iter().map(reported).collect();
        let notice = report.kind.action();
        let id = match sent {
            Some(_) => format!("{id}-{notice}"),
            None => format!("{id}-{notice}-limited"),
        };
        let parts = recipients.chunks(RECIPIENTS_PER_LINE).enumerate();
        let line = |(part, recipients): (usize, &[Told<'_>])| {
            to_line(&Notice {
                v: LEDGER_VERSION,
                kind: "notice",
                id: &numbered(id.clone(), part),
                time: self.now.to_string(),
                gateway: self.gateway,
                notice,
                message: Some(message),
                report: sent,
                to: Some(&report.to),
                destination,
                until: None,
                way: None,
                recipients,
            })
        };
        parts.map(line).collect()
    }

    /// The line about a message that an operator holds or releases. `id` must be unused.
    #[must_use]
    pub fn held(
        &self,
        id: TraceId,
        destination: &Destination,
        message: TraceId,
        change: OrderNotice,
        until: Option<Timestamp>,
    ) -> String {
        let until = until.filter(|until| *until != FOREVER);
        to_line(&Notice {
            v: LEDGER_VERSION,
            kind: "notice",
            id: &format!("{id}-{}", change.word()),
            time: self.now.to_string(),
            gateway: self.gateway,
            notice: change.word(),
            message: Some(message),
            report: None,
            to: None,
            destination: Some(&destination.to_string()),
            until: until.map(|until| until.to_string()),
            way: None,
            recipients: &[],
        })
    }

    /// The line about an order of an operator. `id` must be unused.
    #[must_use]
    pub fn ordered(&self, id: TraceId, order: &Order, change: OrderNotice) -> String {
        let until = match change {
            OrderNotice::Held => order.held_until,
            OrderNotice::Refused => order.refused_until,
            OrderNotice::Rerouted => order.detour.as_ref().map(|detour| detour.until),
            OrderNotice::Released | OrderNotice::Accepted | OrderNotice::Restored => None,
        };
        let way = order.detour.as_ref().map(|detour| detour.to.to_string());
        let until = until.filter(|until| *until != FOREVER);
        to_line(&Notice {
            v: LEDGER_VERSION,
            kind: "notice",
            id: &format!("{id}-{}", change.word()),
            time: self.now.to_string(),
            gateway: self.gateway,
            notice: change.word(),
            message: None,
            report: None,
            to: None,
            destination: Some(&order.destination.to_string()),
            until: until.map(|until| until.to_string()),
            way: way.filter(|_| change == OrderNotice::Rerouted),
            recipients: &[],
        })
    }
}

/// The word for a recipient's final result. `None` when the recipient is tried again.
fn ended(
    recipient: &Recipient,
    result: Option<&RecipientResult>,
    settlement: &Settlement,
    local: bool,
) -> Option<&'static str> {
    match result.map_or(Disposition::Deferred, |result| result.disposition) {
        Disposition::Delivered if local => Some("delivered"),
        Disposition::Delivered => Some("relayed"),
        Disposition::Failed => Some("failed"),
        Disposition::Deferred => settlement
            .expired
            .contains(&recipient.address)
            .then_some("expired"),
    }
}

fn tell<'a>(
    recipient: &'a Recipient,
    word: Option<&'static str>,
    result: Option<&'a RecipientResult>,
) -> Told<'a> {
    Told {
        to: &recipient.address,
        orcpt: recipient.orcpt.as_deref(),
        result: word,
        status: result.map_or("", |result| &result.status),
        reply: result.map_or_else(String::new, |result| bounded(&result.reply)),
    }
}

fn reported(one: &ReportedRecipient) -> Told<'_> {
    Told {
        to: &one.address,
        orcpt: one.orcpt.as_deref(),
        result: None,
        status: &one.status,
        reply: bounded(&one.diagnostic),
    }
}

/// Derives the id of a part: the first of several lines has the id itself, the further parts append
/// a number from 2 on.
fn numbered(id: String, part: usize) -> String {
    if part == 0 {
        id
    } else {
        format!("{id}.{}", part + 1)
    }
}

/// Cannot fail: no serialized value contains a map with keys other than strings.
fn to_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
