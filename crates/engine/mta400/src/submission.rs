//! Messages and probes from plain fields, for `vere x400 send` and `vere x400 probe`.

use bytes::Bytes;
use vere_ber::{Explicit, ObjectIdentifier, PrintableString, StringError, TeletexString};
use vere_x400::ipm::{
    BodyPart, BodyPartError, Heading, InformationObject, Ipm, IpmIdentifier, OrDescriptor,
};
use vere_x400::{
    BuiltInEncodedInformationTypes, Content, ContentIdentifier, ContentType,
    EncodedInformationTypes, ExtensionValue, Message, MessageTransferEnvelope, OrAddress, OrName,
    PerMessageIndicators, PerRecipientIndicators, PerRecipientMessageTransferFields, Priority,
    ProbeTransferEnvelope, Time,
};

use crate::reports::{identifier, printable};
use crate::site::Site;
use crate::subject::into_probe;

/// Characters of a content identifier, at most (`ub-content-id-length`).
const CONTENT_IDENTIFIER_MAX: usize = 16;
/// The encoded information types of general text: registrations of control characters, ASCII, and the right half
/// of ISO 8859-1.
const GENERAL_TEXT_TYPES: [&str; 3] = [
    "1.0.10021.7.1.0.1",
    "1.0.10021.7.1.0.6",
    "1.0.10021.7.1.0.100",
];

/// The reports for the originator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reports {
    /// None.
    None,
    /// About failures.
    #[default]
    Failures,
    /// About deliveries and failures.
    All,
}

impl Reports {
    /// The indicators: the requests of the originator, and failures for the MTA in any case.
    const fn indicators(self) -> PerRecipientIndicators {
        let mta = PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT;
        let bits = match self {
            Self::None => mta,
            Self::Failures => mta.with(PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT),
            Self::All => PerRecipientIndicators::ORIGINATING_MTA_REPORT
                .with(PerRecipientIndicators::ORIGINATOR_REPORT),
        };
        bits.with(PerRecipientIndicators::RESPONSIBILITY)
    }
}

/// A submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Submission {
    /// The originator.
    pub originator: OrAddress,
    /// The recipients.
    pub recipients: Vec<OrAddress>,
    /// The reports.
    pub reports: Reports,
    /// The grade.
    pub priority: Priority,
    /// Indicators for all recipients: return of content, alternate recipients, conversion, disclosure.
    pub indicators: PerMessageIndicators,
    /// A text for the reports, cut after 16 characters.
    pub content_identifier: Option<String>,
    /// The time before which nothing is delivered.
    pub not_before: Option<Time>,
    /// The time after which nothing is delivered.
    pub latest: Option<Time>,
    /// The alternate recipient for undeliverable messages.
    pub alternate: Option<OrAddress>,
}

/// A fault of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// The subject.
    #[error("subject: {0}")]
    Subject(StringError),
    /// The text.
    #[error("text: {0}")]
    Text(#[from] BodyPartError),
    /// No recipient.
    #[error("expected a recipient; found none")]
    NoRecipients,
}

impl Site {
    /// Makes a message with a content of type P22. `id` is a unique text of at most 32 characters. The message has no
    /// trace; pass the message to `Mta::transfer` from [`Source::Local`](crate::Source::Local).
    ///
    /// # Errors
    /// [`SubmissionError`] without recipients, or for a character outside ISO 8859-1 or TeletexString.
    pub fn compose(
        &self,
        submission: &Submission,
        subject: &str,
        text: &str,
        id: &str,
    ) -> Result<Message, SubmissionError> {
        let part = BodyPart::text(text)?;
        let subject = TeletexString::new(subject).map_err(SubmissionError::Subject)?;
        let envelope = self.timed_envelope(submission, types_of(&part), id)?;
        let heading = heading(submission, subject, id);
        let ipm = Ipm {
            heading,
            body: vec![part],
            ..Ipm::default()
        };
        Ok(Message {
            envelope,
            content: Content::new(InformationObject::Ipm(ipm).encode()),
        })
    }

    /// Makes a message with a content of any type, whose octets stay as they are. `id` is as in [`Self::compose`]. The
    /// envelope has no encoded information types: only the content knows them.
    ///
    /// # Errors
    /// [`SubmissionError::NoRecipients`].
    pub fn enclose(
        &self,
        submission: &Submission,
        content_type: ContentType,
        content: Bytes,
        id: &str,
    ) -> Result<Message, SubmissionError> {
        let mut envelope =
            self.timed_envelope(submission, EncodedInformationTypes::default(), id)?;
        envelope.original_encoded_information_types = None;
        envelope.content_type = content_type;
        Ok(Message {
            envelope,
            content: Content::new(content),
        })
    }

    /// Makes a probe for a message of type P22 in IA5 text with `content_octets` octets. A probe always requests all
    /// reports, the only purpose of a probe.
    ///
    /// # Errors
    /// [`SubmissionError::NoRecipients`].
    pub fn probe(
        &self,
        submission: &Submission,
        content_octets: Option<u32>,
        id: &str,
    ) -> Result<ProbeTransferEnvelope, SubmissionError> {
        let submission = Submission {
            reports: Reports::All,
            ..submission.clone()
        };
        let envelope = self.envelope(&submission, ia5(), id)?;
        Ok(into_probe(envelope, content_octets))
    }

    /// The envelope of a message: with grade and times, which a probe does not have.
    fn timed_envelope(
        &self,
        submission: &Submission,
        types: EncodedInformationTypes,
        id: &str,
    ) -> Result<MessageTransferEnvelope, SubmissionError> {
        let mut envelope = self.envelope(submission, types, id)?;
        envelope.priority = submission.priority;
        envelope.deferred_delivery_time = submission.not_before;
        if let Some(latest) = submission.latest {
            let value = ExtensionValue::LatestDeliveryTime(latest);
            envelope.extensions.set(&value);
        }
        Ok(envelope)
    }

    fn envelope(
        &self,
        submission: &Submission,
        types: EncodedInformationTypes,
        id: &str,
    ) -> Result<MessageTransferEnvelope, SubmissionError> {
        if submission.recipients.is_empty() {
            return Err(SubmissionError::NoRecipients);
        }
        let text = submission.content_identifier.as_deref();
        let content_identifier = text
            .and_then(|text| PrintableString::new(&printable(text, CONTENT_IDENTIFIER_MAX)).ok())
            .map(ContentIdentifier);
        let recipients = (1..).zip(&submission.recipients);
        Ok(MessageTransferEnvelope {
            message_identifier: identifier(self, id),
            originator_name: OrName::from(submission.originator.clone()),
            original_encoded_information_types: Some(types),
            content_type: ContentType::P22,
            content_identifier,
            per_message_indicators: submission.indicators,
            per_recipient_fields: recipients
                .map(|(number, address)| recipient(submission, number, address))
                .collect(),
            ..MessageTransferEnvelope::default()
        })
    }
}

fn recipient(
    submission: &Submission,
    number: u32,
    address: &OrAddress,
) -> PerRecipientMessageTransferFields {
    let mut fields = PerRecipientMessageTransferFields {
        recipient_name: address.clone().into(),
        originally_specified_recipient_number: number,
        per_recipient_indicators: submission.reports.indicators(),
        ..PerRecipientMessageTransferFields::default()
    };
    if let Some(alternate) = &submission.alternate {
        let name = alternate.clone().into();
        let value = ExtensionValue::OriginatorRequestedAlternateRecipient(name);
        fields.extensions.set(&value);
    }
    fields
}

fn heading(submission: &Submission, subject: TeletexString, id: &str) -> Heading {
    let originator = OrName::from(submission.originator.clone());
    let identifier = PrintableString::from_octets(printable(id, 64).into());
    Heading {
        this_ipm: IpmIdentifier {
            user: Some(originator.clone()),
            user_relative_identifier: identifier,
            ..IpmIdentifier::default()
        },
        originator: Some(OrDescriptor::from(originator)),
        primary_recipients: submission
            .recipients
            .iter()
            .map(|address| OrName::from(address.clone()).into())
            .collect(),
        subject: (!subject.is_empty()).then_some(Explicit(subject)),
        ..Heading::default()
    }
}

fn ia5() -> EncodedInformationTypes {
    EncodedInformationTypes::built_in(BuiltInEncodedInformationTypes::IA5_TEXT)
}

fn types_of(part: &BodyPart) -> EncodedInformationTypes {
    if let BodyPart::Ia5Text(_) = part {
        return ia5();
    }
    let registered = GENERAL_TEXT_TYPES.iter();
    let types: Vec<ObjectIdentifier> = registered.filter_map(|text| text.parse().ok()).collect();
    EncodedInformationTypes {
        extended: Some(types),
        ..EncodedInformationTypes::default()
    }
}
