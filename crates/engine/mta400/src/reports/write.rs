//! Writes reports.

use bytes::Bytes;
use vere_x400::{
    Apdu, MessageTransferEnvelope, OrName, PerMessageIndicators, PerRecipientMessageTransferFields,
    Report, ReportTransferContent, ReportTransferEnvelope, Time,
};

use super::fate::Fate;
use super::text::identifier;
use super::{due, fields};
use crate::history::expansions;
use crate::site::Site;
use crate::subject::Subject;

/// A recipient of the subject, and the end of the recipient.
type Due<'a> = (&'a PerRecipientMessageTransferFields, &'a Fate);

impl Site {
    /// Writes the report about recipients of a stored unit, as far as a report is due. A fate has the place of a
    /// recipient in the envelope. Reports never cause reports. Pass the report to `Mta::transfer` from
    /// [`Source::Local`](crate::Source::Local).
    ///
    /// `id` is a unique text of at most 32 characters.
    #[must_use]
    pub fn report(
        &self,
        about: Apdu,
        fates: &[(u32, Fate)],
        now: Time,
        id: &str,
    ) -> Option<Report> {
        let subject = Subject::of(about).ok()?;
        self.report_about(&subject, fates, now, id)
    }

    pub(crate) fn report_about(
        &self,
        subject: &Subject,
        fates: &[(u32, Fate)],
        now: Time,
        id: &str,
    ) -> Option<Report> {
        let due: Vec<Due<'_>> = fates
            .iter()
            .filter_map(|(place, fate)| {
                let place = usize::try_from(*place).ok()?;
                let fields = subject.envelope.per_recipient_fields.get(place)?;
                due::is_due(subject, fields, fate).then_some((fields, fate))
            })
            .collect();
        if due.is_empty() {
            return None;
        }
        Some(Report {
            envelope: ReportTransferEnvelope {
                report_identifier: identifier(self, id),
                report_destination_name: destination(&subject.envelope),
                extensions: fields::envelope_extensions(self, &subject.envelope),
                ..ReportTransferEnvelope::default()
            },
            content: self.content(subject, &due, now),
            ..Report::default()
        })
    }

    fn content(&self, subject: &Subject, due: &[Due<'_>], now: Time) -> ReportTransferContent {
        let envelope = &subject.envelope;
        let arrived = self.arrived(envelope).unwrap_or(now);
        let recipients = due
            .iter()
            .map(|(fields, fate)| fields::recipient(subject, fields, fate, arrived));
        let failed = due
            .iter()
            .any(|(_, fate)| matches!(fate, Fate::Failed { .. }));
        let audited = due.iter().any(|(fields, _)| due::is_audited(fields));
        ReportTransferContent {
            subject_identifier: envelope.message_identifier.clone(),
            subject_intermediate_trace_information: audited
                .then(|| envelope.trace_information.clone()),
            original_encoded_information_types: envelope.original_encoded_information_types.clone(),
            content_type: Some(envelope.content_type.clone()),
            content_identifier: envelope.content_identifier.clone(),
            returned_content: failed.then(|| self.returned(subject)).flatten(),
            extensions: fields::content_extensions(envelope),
            per_recipient_fields: recipients.collect(),
            ..ReportTransferContent::default()
        }
    }

    /// The content, on request and within the bound.
    fn returned(&self, subject: &Subject) -> Option<Bytes> {
        let indicators = subject.envelope.per_message_indicators;
        let asked = indicators.contains(PerMessageIndicators::CONTENT_RETURN_REQUEST);
        let most = u64::try_from(self.return_octets_max).unwrap_or(u64::MAX);
        if asked && subject.content_octets() <= most && most > 0 {
            subject.content()
        } else {
            None
        }
    }

    /// The arrival of the subject in the domain.
    fn arrived(&self, envelope: &MessageTransferEnvelope) -> Option<Time> {
        let last = envelope.trace_information.0.last()?;
        let own = self.is_own(&last.global_domain_identifier);
        own.then_some(last.domain_supplied_information.arrival_time)
    }
}

/// The last list of the expansion history, or the originator.
fn destination(envelope: &MessageTransferEnvelope) -> OrName {
    match expansions(&envelope.extensions).pop() {
        Some(list) => list.dl,
        None => envelope.originator_name.clone(),
    }
}
