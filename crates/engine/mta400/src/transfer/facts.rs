//! Facts about a protocol data unit, for the audit log.

use vere_x400::{ContentType, Priority, Report};

use crate::cause::Cause;
use crate::destination::Destination;
use crate::subject::Subject;

/// The kind of a protocol data unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// A message.
    Message,
    /// A probe.
    Probe,
    /// A report.
    Report,
}

/// The arrival and the decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The kind.
    pub kind: UnitKind,
    /// The identifier, as text.
    pub identifier: String,
    /// The identifier of the subject of a report.
    pub about: Option<String>,
    /// The originator, absent in a report.
    pub originator: Option<String>,
    /// The content type; in a report, the content type of the subject.
    pub content_type: Option<ContentType>,
    /// The octets of the content, or the length in a probe.
    pub content_octets: u64,
    /// The grade.
    pub priority: Priority,
    /// The number of earlier domains.
    pub hops: usize,
    /// The recipients in the order of the envelope, or the destination of a report.
    pub recipients: Vec<RecipientFact>,
}

/// A recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientFact {
    /// The received address.
    pub address: String,
    /// The originally specified recipient number; 0 for the destination of a report.
    pub number: u32,
    /// The decision.
    pub decision: Decision,
}

/// The decision about a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Another MTA has the responsibility.
    NotOurs,
    /// The recipient goes to a destination.
    Onward {
        /// The destination.
        destination: Destination,
        /// Whether this MTA has redirected the recipient.
        redirected: bool,
    },
    /// The answer to a probe: deliverable.
    Answered(Destination),
    /// Not delivered. A report is due, unless the unit is a report.
    Failed(Cause),
    /// A report for the MTA alone, without a request of the user.
    Consumed,
}

impl Facts {
    pub(super) fn of(subject: &Subject) -> Self {
        let envelope = &subject.envelope;
        let recipients = envelope.per_recipient_fields.iter();
        Self {
            kind: if subject.is_probe() {
                UnitKind::Probe
            } else {
                UnitKind::Message
            },
            identifier: envelope.message_identifier.to_string(),
            about: None,
            originator: Some(envelope.originator_name.to_string()),
            content_type: Some(envelope.content_type.clone()),
            content_octets: subject.content_octets(),
            priority: envelope.priority,
            hops: envelope.trace_information.0.len(),
            recipients: recipients
                .map(|fields| RecipientFact {
                    address: fields.recipient_name.to_string(),
                    number: fields.originally_specified_recipient_number,
                    decision: Decision::NotOurs,
                })
                .collect(),
        }
    }

    pub(super) fn of_report(report: &Report, decision: Decision) -> Self {
        let returned = report.content.returned_content.as_ref();
        Self {
            kind: UnitKind::Report,
            identifier: report.envelope.report_identifier.to_string(),
            about: Some(report.content.subject_identifier.to_string()),
            originator: None,
            content_type: report.content.content_type.clone(),
            content_octets: returned
                .and_then(|content| u64::try_from(content.len()).ok())
                .unwrap_or(0),
            priority: Priority::Normal,
            hops: report.envelope.trace_information.0.len(),
            recipients: vec![RecipientFact {
                address: report.envelope.report_destination_name.to_string(),
                number: 0,
                decision,
            }],
        }
    }

    pub(super) fn decide(&mut self, place: u32, decision: Decision) {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(recipient) = self.recipients.get_mut(place) {
            recipient.decision = decision;
        }
    }
}
