//! MTAs, messages and short ways to look at outcomes.

use bytes::Bytes;
use vere_ber::{Any, Ia5String};
use vere_x400::*;

use crate::*;

pub(super) const NOW: u64 = 1_777_777_777;

pub(super) fn time(after: u64) -> Time {
    Time::from_unix(NOW + after)
}

pub(super) fn domain(private: &str) -> GlobalDomainIdentifier {
    GlobalDomainIdentifier::new("GB", "Carrier", Some(private)).unwrap()
}

pub(super) fn address(text: &str) -> OrAddress {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A user of a private domain.
pub(super) fn user(name: &str, private: &str) -> OrAddress {
    address(&format!("S={name};P={private};A=Carrier;C=GB"))
}

pub(super) fn route(address: &str, to: &str) -> RouteSetting {
    RouteSetting {
        address: address.to_owned(),
        to: to.to_owned(),
        whole: false,
    }
}

/// Names of everything that the rows name.
pub(super) fn names(rows: &[RouteSetting]) -> Names {
    let mut names = Names::default();
    for row in rows {
        let Some((kind, name)) = row.to.split_once(':') else {
            continue;
        };
        match kind {
            "peer" => names.peers.insert(name.to_owned()),
            "gateway" => names.gateways.insert(name.to_owned()),
            _ => names.users.insert(name.to_owned()),
        };
    }
    names
}

pub(super) fn terms(name: &str, private: &str) -> Terms {
    let mut terms = Terms::new(name, domain(private));
    terms.addresses = vec!["192.0.2.1".parse().unwrap()];
    terms
}

pub(super) fn mta(private: &str, name: &str, peers: Vec<Terms>, rows: &[RouteSetting]) -> Mta {
    Mta {
        site: Site::new(domain(private), name).unwrap(),
        peers: Peers::new(peers).unwrap(),
        routes: Routes::new(rows, &names(rows)).unwrap(),
    }
}

/// An MTA of domain B between A and C, with users `smith` and `jones`, a gateway, and a peer of its own domain.
pub(super) fn middle() -> Mta {
    mta(
        "B",
        "mta-b",
        vec![terms("a", "A"), terms("c", "C"), terms("b2", "B")],
        &[
            route("P=A;A=Carrier;C=GB", "peer:a"),
            route("P=C;A=Carrier;C=GB", "peer:c"),
            route("P=B;A=Carrier;C=GB", "unknown"),
            route("S=smith;P=B;A=Carrier;C=GB", "store:smith"),
            route("S=jones;P=B;A=Carrier;C=GB", "file:jones"),
            route("S=second;P=B;A=Carrier;C=GB", "peer:b2"),
            route("O=AFTN;A=ICAO;C=XX", "gateway:aftn"),
        ],
    )
}

pub(super) fn identifier(local: &str) -> MtsIdentifier {
    MtsIdentifier::new(domain("A"), Ia5String::new(local).unwrap())
}

pub(super) fn recipient(number: u32, address: OrAddress) -> PerRecipientMessageTransferFields {
    PerRecipientMessageTransferFields {
        recipient_name: address.into(),
        originally_specified_recipient_number: number,
        per_recipient_indicators: PerRecipientIndicators::RESPONSIBILITY
            .with(PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT)
            .with(PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT),
        ..Default::default()
    }
}

/// A message from a user of A, as A sends it.
pub(super) fn message(recipients: &[OrAddress]) -> Message {
    let recipients = (1..).zip(recipients);
    Message {
        envelope: MessageTransferEnvelope {
            message_identifier: identifier("m1"),
            originator_name: user("origin", "A").into(),
            content_type: ContentType::P2,
            trace_information: TraceInformation(vec![TraceInformationElement::relayed(
                domain("A"),
                Time::from_unix(NOW - 60),
            )]),
            per_recipient_fields: recipients
                .map(|(number, address)| recipient(number, address.clone()))
                .collect(),
            ..Default::default()
        },
        content: Content::new(Bytes::from_static(b"the content")),
    }
}

pub(super) fn probe(recipients: &[OrAddress]) -> ProbeTransferEnvelope {
    crate::subject::into_probe(message(recipients).envelope, Some(70_000))
}

/// A report of C to a user.
pub(super) fn report(to: OrAddress) -> Report {
    let site = Site::new(domain("C"), "mta-c").unwrap();
    let mut about = message(&[user("gone", "C")]);
    about.envelope.originator_name = to.into();
    let fates = [(0, Fate::failed(Cause::UnknownRecipient))];
    let mut report = site
        .report(Apdu::Message(about), &fates, time(0), "r1")
        .unwrap();
    report
        .envelope
        .push_trace(TraceInformationElement::relayed(domain("C"), time(0)));
    report
}

pub(super) fn arrival(source: Source<'_>) -> Arrival<'_> {
    Arrival {
        source,
        at: time(0),
        id: "260503.1",
    }
}

pub(super) const FROM_A: Source<'static> = Source::Peer("a");

/// What the MTA does with a message from A.
pub(super) fn from_a(mta: &Mta, message: Message) -> Outcome {
    mta.transfer(Apdu::Message(message), arrival(FROM_A))
        .unwrap()
}

/// The destinations with the places of their recipients.
pub(super) fn parts(outcome: &Outcome) -> Vec<(String, Vec<u32>)> {
    let part = |part: &Onward| (part.destination.to_string(), part.recipients.clone());
    outcome.onward.iter().map(part).collect()
}

/// The recipients of the report with their causes' codes.
pub(super) fn reported(outcome: &Outcome) -> Vec<(u32, ReportType)> {
    let report = outcome.report.iter();
    report
        .flat_map(|report| &report.content.per_recipient_fields)
        .map(|fields| {
            let last = &fields.last_trace_information;
            (
                fields.originally_specified_recipient_number,
                last.report_type.clone(),
            )
        })
        .collect()
}

/// The cause of the only recipient of a message.
#[track_caller]
pub(super) fn assert_failed(outcome: &Outcome, cause: Cause) {
    assert_eq!(outcome.onward, []);
    assert_eq!(reported(outcome), [(1, cause.report_type())], "{cause}");
    assert_eq!(
        outcome.facts.recipients[0].decision,
        Decision::Failed(cause)
    );
}

pub(super) fn envelope(outcome: &Outcome) -> &MessageTransferEnvelope {
    match &outcome.apdu {
        Apdu::Message(message) => &message.envelope,
        other => panic!("no message: {other:?}"),
    }
}

/// An extension after 1999 with this criticality.
pub(super) fn unknown_extension(criticality: Criticality) -> ExtensionField {
    ExtensionField {
        kind: ExtensionType::Standard(StandardExtension::Other(99)),
        criticality,
        value: Some(Any(Bytes::from_static(&[0x04, 0x02, 0x68, 0x69]))),
        ..ExtensionField::default()
    }
}

/// An extension whose value is of another type than it should be.
pub(super) fn broken(kind: StandardExtension) -> ExtensionField {
    ExtensionField {
        kind: ExtensionType::Standard(kind),
        value: Some(Any(Bytes::from_static(&[0x01, 0x01, 0xFF]))),
        ..ExtensionField::default()
    }
}

pub(super) fn internal(mta: &str) -> InternalTraceInformationElement {
    InternalTraceInformationElement::relayed(domain("B"), Ia5String::new(mta).unwrap(), time(0))
}
