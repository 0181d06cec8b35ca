//! Records of queues, and the unit for one attempt.
//!
//! All parts of a unit share one stored form: the envelope with the decisions of this MTA, and the received
//! content. An attempt names the remaining recipients. `Mta::outgoing` then sets responsibility bits, removes the
//! internal trace at the border of the domain, and makes an envelope of 1984 for a peer of 1984. A retry for fewer
//! recipients works with the stored form alone.

use std::collections::BTreeSet;

use bytes::Bytes;
use vere_x400::{
    Apdu, ApduError, Extensions, PerRecipientIndicators, PerRecipientMessageTransferFields, Report,
    downgrade_report,
};

use crate::destination::Destination;
use crate::peers::Profile;
use crate::subject::{Subject, is_responsible, set_responsible};
use crate::transfer::{Mta, Onward, Outcome, downgraded, leave_domain, mark_redirected};

/// The type before the place of a recipient, in the field that SMTP uses for the original recipient.
const TAG: &str = "x400;";

/// The record of a part in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The originator as text. A report has no originator, since reports never cause reports.
    pub reverse_path: Option<String>,
    /// The recipients.
    pub recipients: Vec<RecordRecipient>,
}

/// A recipient of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRecipient {
    /// The address as text.
    pub address: String,
    /// The place in the envelope, from 0.
    pub place: u32,
    /// Whether a report about a delivery is due: on request, and about a probe always. A peer writes it itself.
    pub tell_success: bool,
    /// Whether a report about a failure is due.
    pub tell_failure: bool,
}

impl RecordRecipient {
    /// The place as text, for the field of the original recipient in a queue.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("{TAG}{}", self.place)
    }

    /// The place in a text of [`Self::tag`].
    #[must_use]
    pub fn place_of(tag: &str) -> Option<u32> {
        tag.strip_prefix(TAG)?.parse().ok()
    }
}

impl Outcome {
    /// The octets to store, common to all parts, in pieces for a vectored write. The content has separate pieces.
    #[must_use]
    pub fn pieces(&self) -> Vec<Bytes> {
        self.apdu.to_pieces()
    }

    /// The record of a part.
    #[must_use]
    pub fn record(&self, part: &Onward) -> Record {
        // A gateway says what it has delivered; a peer reports by itself.
        let ends = part.destination.peer().is_none();
        let originator = match &self.apdu {
            Apdu::Report(report) => {
                return Record {
                    reverse_path: None,
                    recipients: vec![destination_of(report)],
                };
            }
            Apdu::Message(message) => &message.envelope.originator_name,
            Apdu::Probe(probe) => &probe.originator_name,
        };
        let recipient = |place: &u32| self.recipient(*place, ends);
        Record {
            reverse_path: Some(originator.to_string()),
            recipients: part.recipients.iter().filter_map(recipient).collect(),
        }
    }

    /// The recipient of a message or a probe at a place.
    fn recipient(&self, place: u32, ends: bool) -> Option<RecordRecipient> {
        let index = usize::try_from(place).ok()?;
        let (name, asked) = match &self.apdu {
            Apdu::Message(message) => {
                let fields = message.envelope.per_recipient_fields.get(index)?;
                (&fields.recipient_name, fields.per_recipient_indicators)
            }
            Apdu::Probe(probe) => {
                let fields = probe.per_recipient_fields.get(index)?;
                (&fields.recipient_name, fields.per_recipient_indicators)
            }
            Apdu::Report(_) => return None,
        };
        let told = matches!(self.apdu, Apdu::Probe(_))
            || asked.contains(PerRecipientIndicators::ORIGINATING_MTA_REPORT)
            || asked.contains(PerRecipientIndicators::ORIGINATOR_REPORT);
        Some(RecordRecipient {
            address: name.to_string(),
            place,
            tell_success: ends && told,
            tell_failure: true,
        })
    }
}

fn destination_of(report: &Report) -> RecordRecipient {
    RecordRecipient {
        address: report.envelope.report_destination_name.to_string(),
        place: 0,
        tell_success: false,
        tell_failure: false,
    }
}

/// A fault of a stored unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Octets outside P1.
    #[error(transparent)]
    Unit(#[from] ApduError),
    /// A place beyond the last recipient.
    #[error("expected a place of the {1} recipients; found {0}")]
    Place(u32, usize),
}

/// A unit for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The unit, unless every recipient is left out.
    pub apdu: Option<Apdu>,
    /// The places of recipients beyond the abilities of a peer of 1984: report
    /// [`Cause::Downgrade`](crate::Cause::Downgrade).
    pub left_out: Vec<u32>,
}

impl Mta {
    /// Makes the unit for a destination from the stored octets. The next system gets the responsibility for the
    /// recipients in `places`.
    ///
    /// # Errors
    /// [`RecordError`] for octets outside P1, or for a place beyond the last recipient.
    pub fn outgoing(
        &self,
        stored: &Bytes,
        places: &[u32],
        to: &Destination,
    ) -> Result<Outgoing, RecordError> {
        match Subject::of(Apdu::split(stored)?) {
            Ok(subject) => self.outgoing_subject(subject, places, to),
            Err(report) => Ok(self.outgoing_report(report, to)),
        }
    }

    fn outgoing_subject(
        &self,
        mut subject: Subject,
        places: &[u32],
        to: &Destination,
    ) -> Result<Outgoing, RecordError> {
        give(&mut subject.envelope.per_recipient_fields, places)?;
        let envelope = &mut subject.envelope;
        let ours = |fields: &&PerRecipientMessageTransferFields| is_responsible(fields);
        mark_redirected(
            &self.site,
            &mut envelope.trace_information,
            &mut envelope.extensions,
            envelope.per_recipient_fields.iter().filter(ours),
        );
        self.cross_border(&mut envelope.extensions, to);
        let mut left_out = Vec::new();
        if self.profile(to) == Profile::Y1984 {
            left_out = downgraded(&mut subject);
            let places: BTreeSet<_> = places.iter().collect();
            left_out.retain(|place| places.contains(place));
        }
        let any = subject
            .envelope
            .per_recipient_fields
            .iter()
            .any(is_responsible);
        Ok(Outgoing {
            apdu: any.then(|| subject.into_apdu()),
            left_out,
        })
    }

    fn outgoing_report(&self, mut report: Box<Report>, to: &Destination) -> Outgoing {
        self.cross_border(&mut report.envelope.extensions, to);
        let report = match self.profile(to) {
            Profile::Y1988 => Some(report),
            Profile::Y1984 => downgrade_report(&report).ok().map(Box::new),
        };
        Outgoing {
            left_out: if report.is_some() {
                Vec::new()
            } else {
                vec![0]
            },
            apdu: report.map(Apdu::Report),
        }
    }

    fn cross_border(&self, extensions: &mut Extensions, to: &Destination) {
        let terms = to.peer().and_then(|name| self.peers.get(name));
        if !terms.is_some_and(|terms| self.site.is_own(&terms.domain)) {
            leave_domain(extensions);
        }
    }

    fn profile(&self, to: &Destination) -> Profile {
        let terms = to.peer().and_then(|name| self.peers.get(name));
        terms.map_or(Profile::Y1988, |terms| terms.profile)
    }
}

/// Gives the next system the responsibility for the recipients at some places, and for no further recipients.
fn give(
    recipients: &mut [PerRecipientMessageTransferFields],
    places: &[u32],
) -> Result<(), RecordError> {
    for fields in &mut *recipients {
        set_responsible(fields, false);
    }
    let count = recipients.len();
    for place in places {
        let index = usize::try_from(*place).unwrap_or(usize::MAX);
        let fields = recipients.get_mut(index);
        set_responsible(fields.ok_or(RecordError::Place(*place, count))?, true);
    }
    Ok(())
}
