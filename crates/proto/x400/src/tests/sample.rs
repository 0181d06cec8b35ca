//! Values with every field, and octets in every form of BER.

use bytes::Bytes;
use vere_ber::{Any, Ia5String, ObjectIdentifier, PrintableString, TeletexString, Unknown, Writer};

use crate::*;

pub(super) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

pub(super) fn domain() -> GlobalDomainIdentifier {
    GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).unwrap()
}

pub(super) fn identifier(local: &str) -> MtsIdentifier {
    MtsIdentifier::new(domain(), Ia5String::new(local).unwrap())
}

pub(super) fn name(text: &str) -> OrName {
    OrName::from(text.parse::<OrAddress>().unwrap())
}

pub(super) fn time(text: &str) -> Time {
    Time::parse(text.as_bytes()).unwrap()
}

fn now() -> Time {
    time("260504030201Z")
}

pub(super) fn printable(text: &str) -> PrintableString {
    PrintableString::new(text).unwrap()
}

fn oid(text: &str) -> ObjectIdentifier {
    text.parse().unwrap()
}

/// A value of each decoded extension.
pub(super) fn extension_values() -> Vec<ExtensionValue> {
    let john = || name("G=John;S=Smith;P=Acme;A=Carrier;C=GB");
    let mut values = vec![
        ExtensionValue::RecipientReassignmentProhibited(Switch::On),
        ExtensionValue::OriginatorRequestedAlternateRecipient(john()),
        ExtensionValue::DlExpansionProhibited(Switch::On),
        ExtensionValue::ConversionWithLossProhibited(Switch::On),
        ExtensionValue::LatestDeliveryTime(now()),
        ExtensionValue::RequestedDeliveryMethod(vec![
            DeliveryMethod::MhsDelivery,
            DeliveryMethod::Other(77),
        ]),
        ExtensionValue::PhysicalForwardingProhibited(Switch::On),
        ExtensionValue::PhysicalForwardingAddressRequest(Switch::On),
        ExtensionValue::PhysicalDeliveryModes(PhysicalDeliveryModes::EXPRESS_MAIL),
        ExtensionValue::RegisteredMailType(RegisteredMailType::RegisteredMail),
        ExtensionValue::RecipientNumberForAdvice(TeletexString::new("+44 20 0").unwrap()),
        ExtensionValue::PhysicalRenditionAttributes(oid("2.6.3.3.0")),
        ExtensionValue::OriginatorReturnAddress("CN=Return;P=Acme;A=Carrier;C=GB".parse().unwrap()),
        ExtensionValue::PhysicalDeliveryReportRequest(
            PhysicalDeliveryReportRequest::ReturnOfNotificationByMhs,
        ),
        ExtensionValue::MessageSecurityLabel(SecurityLabel {
            security_policy_identifier: Some(oid("1.3.26.1.2")),
            security_classification: Some(SecurityClassification::Restricted),
            privacy_mark: Some(printable("commercial")),
            ..SecurityLabel::default()
        }),
        ExtensionValue::ProofOfSubmissionRequest(Switch::On),
        ExtensionValue::ProofOfDeliveryRequest(Switch::On),
        ExtensionValue::ContentCorrelator(ContentCorrelator::Ia5Text(
            Ia5String::new("order 17").unwrap(),
        )),
    ];
    values.extend(histories());
    values
}

/// The extensions about the way of a message.
fn histories() -> Vec<ExtensionValue> {
    let john = || name("G=John;S=Smith;P=Acme;A=Carrier;C=GB");
    vec![
        ExtensionValue::RedirectionHistory(vec![Redirection {
            intended_recipient_name: IntendedRecipientName {
                intended_recipient: john(),
                redirection_time: now(),
                ..Default::default()
            },
            redirection_reason: RedirectionReason::Alias,
            ..Default::default()
        }]),
        ExtensionValue::DlExpansionHistory(vec![DlExpansion {
            dl: john(),
            dl_expansion_time: now(),
            ..Default::default()
        }]),
        ExtensionValue::PhysicalForwardingAddress(john()),
        // The originator and at least one list.
        ExtensionValue::OriginatorAndDlExpansionHistory(vec![
            OriginatorAndDlExpansion {
                originator_or_dl_name: john(),
                origination_or_expansion_time: now(),
                ..Default::default()
            };
            2
        ]),
        ExtensionValue::ReportingDlName(john()),
        ExtensionValue::TraceInformation(TraceInformation(vec![TraceInformationElement::relayed(
            domain(),
            now(),
        )])),
        ExtensionValue::InternalTraceInformation(InternalTraceInformation(vec![
            InternalTraceInformationElement::relayed(
                domain(),
                Ia5String::new("mta1").unwrap(),
                now(),
            ),
        ])),
        ExtensionValue::ReportingMtaName(ReportingMtaName {
            domain: domain(),
            mta_name: Ia5String::new("mta1").unwrap(),
            ..Default::default()
        }),
        ExtensionValue::Other(
            StandardExtension::OriginatorCertificate,
            Any(hex("3003020105")),
        ),
    ]
}

pub(super) fn extensions() -> Extensions {
    let mut fields: Vec<_> = extension_values()
        .iter()
        .map(ExtensionField::standard)
        .collect();
    // An extension after 1999, a private extension with a criticality of 24 bits, an extension without a value.
    fields.push(ExtensionField {
        kind: ExtensionType::Standard(StandardExtension::Other(99)),
        criticality: Criticality::FOR_TRANSFER,
        value: Some(Any(hex("3006800101 810102"))),
        ..ExtensionField::default()
    });
    fields.push(ExtensionField {
        kind: ExtensionType::Private(oid("1.3.6.1.4.1.4711.400.1")),
        criticality: Criticality(vere_ber::BitSet::bit(20)),
        value: Some(Any(hex("0c026869"))),
        ..ExtensionField::default()
    });
    fields.push(ExtensionField {
        kind: ExtensionType::Private(oid("1.3.6.1.4.1.4711.400.2")),
        ..ExtensionField::default()
    });
    Extensions(fields)
}

fn types() -> EncodedInformationTypes {
    let mut types = EncodedInformationTypes::built_in(BuiltInEncodedInformationTypes::IA5_TEXT);
    types.extended = Some(vec![oid("1.0.10021.7.1.0.1"), oid("1.0.10021.7.1.0.6")]);
    // non-basic-parameters of G3 facsimile, kept as octets.
    types.unknown = Unknown(vec![hex("8104 0500c020")]);
    types
}

fn trace() -> TraceInformation {
    let mut second = TraceInformationElement::relayed(
        GlobalDomainIdentifier::new("DE", " ", None).unwrap(),
        time("2605040302-0130"),
    );
    let information = &mut second.domain_supplied_information;
    information.routing_action = RoutingAction::Rerouted;
    information.attempted_domain = Some(domain());
    information.deferred_time = Some(now());
    information.converted_encoded_information_types = Some(types());
    information.other_actions = OtherActions::REDIRECTED;
    TraceInformation(vec![
        TraceInformationElement::relayed(domain(), now()),
        second,
    ])
}

fn indicators() -> PerRecipientIndicators {
    PerRecipientIndicators::RESPONSIBILITY
        .with(PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT)
        .with(PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT)
}

/// An element outside all versions of X.411.
pub(super) fn unknown_element() -> Unknown {
    Unknown(vec![hex("bf8a3b05 0c03616263")])
}

fn directory_name(mut name: OrName) -> OrName {
    name.address
        .unknown
        .0
        .push(hex("a00f 300d310b3009060355040613024742"));
    name
}

pub(super) const ADDRESSES: &[&str] = &[
    "G=John;I=F;S=Smith;Q=Jr;O=Acme;OU1=Sales;OU2=North;P=Acme;A=Carrier;C=GB;DDA:RFC-822=js(a)acme.example",
    "C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX",
    "C=XX;A=ICAO;P=EUROPE;O=LE;OU1=LEMG;CN=LEMGZPZX",
    "N-ID=0471123;P=Acme;A=Carrier;C=GB",
    "X.121=262123456;T-ID=tlx1;T-TY=tlx;A=Carrier;C=262",
    "NET-NUM=442000000;NET-SUB=17;T-TY=g3fax;A=Carrier;C=GB",
    "S=Größe;G=Åsa;O=Œuvre;OU1=Çedille;CN=Ünal;P=Acme;A=Carrier;C=DE;DDA:größe=zwölf",
    "S=Иванов;G=Пётр;O=Организация;OU1=Отдел;CN=日本;P=Acme;A=Carrier;C=RU;DDA:тип=знач",
    "PD-SN=Post;PD-C=DE;PD-PC=53113;PD-PN=Karl Müller;PD-S=Allee 1;PD-A1=Zeile 1;PD-A2=Zeile 2;A=Carrier;C=DE",
];

pub(super) fn message() -> Message {
    let recipient = |number: u32, address: &str| PerRecipientMessageTransferFields {
        recipient_name: directory_name(name(address)),
        originally_specified_recipient_number: number,
        per_recipient_indicators: indicators(),
        explicit_conversion: Some(ExplicitConversion::Ia5TextToTeletex),
        extensions: extensions(),
        unknown: unknown_element(),
    };
    let envelope = MessageTransferEnvelope {
        message_identifier: identifier("260504.030201.1"),
        originator_name: directory_name(name(ADDRESSES[0])),
        original_encoded_information_types: Some(types()),
        content_type: ContentType::P22,
        content_identifier: Some(ContentIdentifier(printable("17"))),
        priority: Priority::Urgent,
        per_message_indicators: PerMessageIndicators::CONTENT_RETURN_REQUEST
            .with(PerMessageIndicators::SERVICE_MESSAGE),
        deferred_delivery_time: Some(now()),
        per_domain_bilateral_information: Some(vec![Any(hex(
            "300e 61041302 4742 62041302 5858 0500",
        ))]),
        trace_information: trace(),
        extensions: extensions(),
        per_recipient_fields: (1..)
            .zip(ADDRESSES)
            .map(|(number, address)| recipient(number, address))
            .collect(),
        unknown: unknown_element(),
    };
    Message {
        envelope,
        content: Content::new(Bytes::from(vec![0xA5; 300])),
    }
}

pub(super) fn probe() -> ProbeTransferEnvelope {
    let message = message().envelope;
    let recipients = message.per_recipient_fields.into_iter();
    ProbeTransferEnvelope {
        probe_identifier: message.message_identifier,
        originator_name: message.originator_name,
        original_encoded_information_types: message.original_encoded_information_types,
        content_type: ContentType::Extended(oid("1.3.26.0.4406.0.4.1")),
        content_identifier: message.content_identifier,
        content_length: Some(70_000),
        per_message_indicators: message.per_message_indicators,
        per_domain_bilateral_information: message.per_domain_bilateral_information,
        trace_information: message.trace_information,
        extensions: message.extensions,
        per_recipient_fields: recipients
            .map(|recipient| PerRecipientProbeTransferFields {
                recipient_name: recipient.recipient_name,
                originally_specified_recipient_number: recipient
                    .originally_specified_recipient_number,
                per_recipient_indicators: recipient.per_recipient_indicators,
                explicit_conversion: recipient.explicit_conversion,
                extensions: recipient.extensions,
                unknown: recipient.unknown,
            })
            .collect(),
        unknown: message.unknown,
    }
}

pub(super) fn report() -> Report {
    let delivered = ReportType::Delivery(DeliveryReport {
        message_delivery_time: now(),
        type_of_mts_user: TypeOfMtsUser::Ms,
        ..DeliveryReport::default()
    });
    let failed = ReportType::non_delivery(
        NonDeliveryReasonCode::UnableToTransfer,
        Some(NonDeliveryDiagnosticCode::MaximumTimeExpired),
    );
    let unusual = ReportType::non_delivery(
        NonDeliveryReasonCode::Other(300),
        Some(NonDeliveryDiagnosticCode::Other(999)),
    );
    let recipient = |number: u32, report_type| PerRecipientReportTransferFields {
        actual_recipient_name: name(ADDRESSES[0]),
        originally_specified_recipient_number: number,
        per_recipient_indicators: indicators(),
        last_trace_information: LastTraceInformation {
            arrival_time: now(),
            converted_encoded_information_types: Some(types()),
            report_type,
            ..LastTraceInformation::default()
        },
        originally_intended_recipient_name: Some(name(ADDRESSES[1])),
        supplementary_information: Some(printable("connection refused")),
        extensions: extensions(),
        unknown: unknown_element(),
    };
    Report {
        envelope: ReportTransferEnvelope {
            report_identifier: identifier("r1"),
            report_destination_name: name(ADDRESSES[0]),
            trace_information: trace(),
            extensions: extensions(),
            unknown: unknown_element(),
        },
        content: ReportTransferContent {
            subject_identifier: identifier("s1"),
            subject_intermediate_trace_information: Some(trace()),
            original_encoded_information_types: Some(types()),
            content_type: Some(ContentType::P2),
            content_identifier: Some(ContentIdentifier(printable("17"))),
            returned_content: Some(Bytes::from(vec![0x5A; 5_000])),
            additional_information: Some(Any(hex("0500"))),
            extensions: extensions(),
            per_recipient_fields: vec![
                recipient(1, delivered),
                recipient(2, failed),
                recipient(3, unusual),
            ],
            unknown: unknown_element(),
        },
        unknown: Unknown::default(),
    }
}

pub(super) fn apdus() -> Vec<Apdu> {
    vec![
        Apdu::Message(message()),
        Apdu::Probe(probe()),
        Apdu::Report(Box::new(report())),
    ]
}

/// Decides which optional fields are present: one bit for each question.
pub(super) struct Choices(u64);

impl Choices {
    pub(super) const fn new(bits: u64) -> Self {
        Self(bits)
    }

    fn yes(&mut self) -> bool {
        self.0 = self.0.rotate_right(1);
        self.0 & 1 == 1
    }

    fn optional<T>(&mut self, field: &mut Option<T>) {
        if !self.yes() {
            *field = None;
        }
    }

    fn default<T: Default>(&mut self, field: &mut T) {
        if !self.yes() {
            *field = T::default();
        }
    }

    fn some<T>(&mut self, fields: &mut Vec<T>) {
        fields.retain(|_| self.yes());
    }
}

/// The samples with some of their fields. Names keep an address, and lists of recipients a recipient.
pub(super) fn varied_apdu(which: usize, choices: &mut Choices) -> Apdu {
    match which {
        0 => Apdu::Message(varied_message(choices)),
        1 => Apdu::Probe(varied_probe(choices)),
        _ => Apdu::Report(Box::new(varied_report(choices))),
    }
}

fn varied_message(choices: &mut Choices) -> Message {
    let mut message = message();
    let envelope = &mut message.envelope;
    choices.optional(&mut envelope.original_encoded_information_types);
    choices.optional(&mut envelope.content_identifier);
    choices.default(&mut envelope.priority);
    choices.default(&mut envelope.per_message_indicators);
    choices.optional(&mut envelope.deferred_delivery_time);
    choices.optional(&mut envelope.per_domain_bilateral_information);
    choices.some(&mut envelope.trace_information.0);
    choices.some(&mut envelope.extensions.0);
    choices.default(&mut envelope.unknown);
    let first = envelope.per_recipient_fields[0].clone();
    choices.some(&mut envelope.per_recipient_fields);
    envelope.per_recipient_fields.push(first);
    for recipient in &mut envelope.per_recipient_fields {
        choices.optional(&mut recipient.explicit_conversion);
        choices.default(&mut recipient.per_recipient_indicators);
        choices.some(&mut recipient.extensions.0);
        choices.default(&mut recipient.unknown);
    }
    message
}

fn varied_probe(choices: &mut Choices) -> ProbeTransferEnvelope {
    let mut probe = probe();
    choices.optional(&mut probe.original_encoded_information_types);
    choices.optional(&mut probe.content_identifier);
    choices.optional(&mut probe.content_length);
    choices.default(&mut probe.per_message_indicators);
    choices.optional(&mut probe.per_domain_bilateral_information);
    choices.some(&mut probe.trace_information.0);
    choices.some(&mut probe.extensions.0);
    choices.default(&mut probe.unknown);
    for recipient in &mut probe.per_recipient_fields {
        choices.optional(&mut recipient.explicit_conversion);
        choices.some(&mut recipient.extensions.0);
        choices.default(&mut recipient.unknown);
    }
    probe
}

fn varied_report(choices: &mut Choices) -> Report {
    let mut report = report();
    choices.some(&mut report.envelope.trace_information.0);
    choices.some(&mut report.envelope.extensions.0);
    choices.default(&mut report.envelope.unknown);
    let content = &mut report.content;
    choices.optional(&mut content.subject_intermediate_trace_information);
    choices.optional(&mut content.original_encoded_information_types);
    choices.optional(&mut content.content_type);
    choices.optional(&mut content.content_identifier);
    choices.optional(&mut content.returned_content);
    choices.optional(&mut content.additional_information);
    choices.some(&mut content.extensions.0);
    choices.default(&mut content.unknown);
    for recipient in &mut content.per_recipient_fields {
        choices.optional(&mut recipient.originally_intended_recipient_name);
        choices.optional(&mut recipient.supplementary_information);
        choices.some(&mut recipient.extensions.0);
        choices.default(&mut recipient.unknown);
        let last = &mut recipient.last_trace_information;
        choices.optional(&mut last.converted_encoded_information_types);
        if let ReportType::NonDelivery(report) = &mut last.report_type {
            choices.optional(&mut report.non_delivery_diagnostic_code);
        }
    }
    report
}

/// The form of [`vary`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Form {
    /// Indefinite lengths of constructed values.
    pub(super) indefinite: bool,
    /// Lengths of five octets.
    pub(super) long: bool,
    /// Strings in segments.
    pub(super) segments: bool,
    /// Elements of a SET in reverse.
    pub(super) reverse: bool,
}

pub(super) const FORMS: [Form; 5] = [
    Form {
        indefinite: true,
        long: false,
        segments: false,
        reverse: false,
    },
    Form {
        indefinite: false,
        long: true,
        segments: false,
        reverse: false,
    },
    Form {
        indefinite: false,
        long: false,
        segments: true,
        reverse: false,
    },
    Form {
        indefinite: false,
        long: false,
        segments: false,
        reverse: true,
    },
    Form {
        indefinite: true,
        long: true,
        segments: true,
        reverse: true,
    },
];

/// The same values in another form. `octets` are definite.
pub(super) fn vary(octets: &[u8], form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = octets;
    while !rest.is_empty() {
        let header = vere_ber::Header::read(rest, 0).unwrap();
        let end = vere_ber::extent(rest, 0).unwrap();
        let (value, after) = rest.split_at(end);
        out.extend(vary_value(value, header, form));
        rest = after;
    }
    out
}

fn vary_value(value: &[u8], header: vere_ber::Header, form: Form) -> Vec<u8> {
    let (tag, contents) = (&value[..header.tag_octets], &value[header.octets..]);
    if header.constructed {
        let mut contents = vary(contents, form);
        if form.reverse && header.tag == vere_ber::Tag::SET {
            contents = reversed(&contents);
        }
        return framed(tag, &contents, form, true);
    }
    let text = matches!(header.tag.number, 4 | 12 | 18..=30)
        && header.tag.class == vere_ber::Class::Universal;
    if form.segments && text && contents.len() > 1 {
        let (first, second) = contents.split_at(contents.len() / 2);
        let mut segments = framed(&[0x04], first, form, false);
        // The second segment is in segments itself.
        segments.extend(framed(
            &[0x24],
            &framed(&[0x04], second, form, false),
            form,
            true,
        ));
        return framed(&[tag[0] | 0x20], &segments, form, true);
    }
    framed(tag, contents, form, false)
}

fn framed(tag: &[u8], contents: &[u8], form: Form, constructed: bool) -> Vec<u8> {
    let mut out = tag.to_vec();
    if constructed && form.indefinite {
        out.push(0x80);
        out.extend_from_slice(contents);
        out.extend([0, 0]);
    } else {
        let length = u32::try_from(contents.len()).unwrap();
        if form.long {
            out.push(0x84);
            out.extend(length.to_be_bytes());
        } else {
            let mut writer = Writer::default();
            writer.header(vere_ber::Tag::NULL, false, contents.len());
            out.extend_from_slice(&writer.finish()[1..]);
        }
        out.extend_from_slice(contents);
    }
    out
}

fn reversed(contents: &[u8]) -> Vec<u8> {
    let mut values = Vec::new();
    let mut rest = contents;
    while !rest.is_empty() {
        let end = vere_ber::extent(rest, 0).unwrap();
        values.push(&rest[..end]);
        rest = &rest[end..];
    }
    values.reverse();
    values.concat()
}
