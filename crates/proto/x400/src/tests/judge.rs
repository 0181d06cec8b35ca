//! tshark as the judge of P1: APDUs and binds through real associations, in one capture.
//!
//! tshark decodes every layer from the packets to the bodies of interpersonal messages. X.410 mode is decoded in part
//! only; there the octets that arrive are compared.

mod line;

use bytes::Bytes;
use vere_ber::Unknown;
use vere_capture::{BETWEEN, Capture, Complaint};
use vere_osi::association::{Event, Mode, OpenRequest};
use vere_units::Secret;

use self::line::{Line, X410, request};
use super::ipm;
use super::sample::{Choices, domain, printable, time, varied_apdu};
use crate::ipm::{AcknowledgmentMode, BodyPart, InformationObject, IpnOutcome, ReceiptFields};
use crate::*;

/// Associations and APDUs of the capture.
const ASSOCIATIONS: u64 = 260;
const APDUS_EACH: u64 = 4;

/// Complaints that are no faults: the end of the message, and the reason.
const KNOWN: &[(&str, &str)] = &[(
    "P1 Unknown Content (unknown built-in content-type)",
    "tshark decodes a returned content by its type, which X.411 leaves optional in a report",
)];

/// A number without a pattern for each place.
fn scattered(place: u64) -> u64 {
    let mut bits = place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^ (bits >> 27)
}

/// Contents of P22: texts of both alphabets, a forwarded message, a receipt.
fn content(bits: u64) -> InformationObject {
    let InformationObject::Ipm(mut message) = ipm::ipm() else {
        panic!("a message")
    };
    if bits & 4 != 0 {
        let length = usize::try_from(bits >> 8 & 0xFFF).unwrap();
        message.body = vec![BodyPart::text(&"text\r\n".repeat(length / 6)).unwrap()];
    }
    match bits & 3 {
        0 => ipm::notification(IpnOutcome::Receipt(ReceiptFields {
            receipt_time: time("260504030201Z"),
            acknowledgment_mode: AcknowledgmentMode::Automatic,
            suppl_receipt_info: Some(printable("read")),
            ..ReceiptFields::default()
        })),
        _ => InformationObject::Ipm(message),
    }
}

/// Takes away what the samples have beyond X.411: unknown elements and extensions, and a certificate that is none.
fn plain(apdu: &mut Apdu) {
    let extensions = |fields: &mut Extensions| {
        fields.0.retain(|field| {
            !matches!(
                field.kind,
                ExtensionType::Private(_)
                    | ExtensionType::Standard(
                        StandardExtension::OriginatorCertificate | StandardExtension::Other(_)
                    )
            )
        });
    };
    match apdu {
        Apdu::Message(Message { envelope, .. }) => {
            envelope.unknown = Unknown::default();
            traced(&mut envelope.trace_information);
            extensions(&mut envelope.extensions);
            for recipient in &mut envelope.per_recipient_fields {
                recipient.unknown = Unknown::default();
                extensions(&mut recipient.extensions);
            }
        }
        Apdu::Probe(envelope) => {
            envelope.unknown = Unknown::default();
            traced(&mut envelope.trace_information);
            extensions(&mut envelope.extensions);
            for recipient in &mut envelope.per_recipient_fields {
                recipient.unknown = Unknown::default();
                extensions(&mut recipient.extensions);
            }
        }
        Apdu::Report(report) => plain_report(report, extensions),
    }
}

fn plain_report(report: &mut Report, extensions: impl Fn(&mut Extensions)) {
    report.envelope.unknown = Unknown::default();
    report.content.unknown = Unknown::default();
    traced(&mut report.envelope.trace_information);
    extensions(&mut report.envelope.extensions);
    extensions(&mut report.content.extensions);
    for recipient in &mut report.content.per_recipient_fields {
        recipient.unknown = Unknown::default();
        extensions(&mut recipient.extensions);
    }
}

/// Every APDU has been somewhere.
fn traced(trace: &mut TraceInformation) {
    if trace.0.is_empty() {
        let now = time("260504030201Z");
        trace
            .0
            .push(TraceInformationElement::relayed(domain(), now));
    }
}

/// An APDU of each kind in turn, with some of its fields and extensions.
fn apdu(place: u64) -> Apdu {
    let bits = scattered(place);
    let which = usize::try_from(place % 3).unwrap();
    let mut apdu = varied_apdu(which, &mut Choices::new(bits));
    plain(&mut apdu);
    match &mut apdu {
        Apdu::Message(message) => message.content = Content::new(content(bits).encode()),
        Apdu::Probe(_) => {}
        Apdu::Report(report) => {
            let returned = &mut report.content.returned_content;
            *returned = returned.take().map(|_| content(bits).encode());
        }
    }
    apdu
}

/// Binds without and with passwords of both kinds.
fn bind(place: u64) -> MtaBindArgument {
    let password = match place % 3 {
        0 => return MtaBindArgument::Unauthenticated(vere_ber::Null),
        1 => Password::ia5(b"secret"),
        _ => Password::Octets(Secret::new(Bytes::from_static(b"\0\x01secret"))),
    };
    MtaBindArgument::Authenticated(MtaInitiator {
        initiator_name: vere_ber::Ia5String::new("mta1.example").unwrap(),
        initiator_credentials: Credentials::Simple(password),
        ..MtaInitiator::default()
    })
}

fn bound(place: u64) -> MtaBindResult {
    match bind(place) {
        MtaBindArgument::Unauthenticated(null) => MtaBindResult::Unauthenticated(null),
        MtaBindArgument::Authenticated(initiator) => MtaBindResult::Authenticated(MtaResponder {
            responder_name: initiator.initiator_name,
            responder_credentials: initiator.initiator_credentials,
            ..MtaResponder::default()
        }),
    }
}

/// The request of an association of its own sizes and versions.
fn varied_request(place: u64, mode: Mode) -> OpenRequest {
    let form = form(mode);
    OpenRequest {
        checkpoint_size: u32::try_from(place % 4).unwrap(),
        session_versions: if mode == Mode::Normal && !place.is_multiple_of(5) {
            3
        } else {
            1
        },
        ..request(mode, place, bind(place).encode(form))
    }
}

const fn form(mode: Mode) -> BindForm {
    match mode {
        Mode::Normal => BindForm::Tagged,
        Mode::X410(_) => BindForm::Plain,
    }
}

fn open(place: u64, mode: Mode) -> Line {
    let sizes = [65_531, 128, 2048, 1000];
    let size = sizes[usize::try_from(place % 4).unwrap()];
    let mut line = Line::new(size);
    line.open(varied_request(place, mode));
    line.accept(bound(place).encode(form(mode)));
    line
}

/// An association with transfers in both directions, some in two parts, to its release or abort.
fn whole(place: u64) -> Line {
    let mut line = open(place, Mode::Normal);
    for number in 0..APDUS_EACH {
        if number == APDUS_EACH / 2 && place.is_multiple_of(2) {
            line.pass_turn();
        }
        let apdu = apdu(place * APDUS_EACH + number);
        match (place + number) % 9 {
            0 => line.transfer_in_two(&apdu.to_pieces()),
            _ => line.transfer(&apdu.to_pieces()),
        }
        let arrived = line.arrived();
        assert_eq!(arrived, apdu.to_bytes());
        assert_eq!(Apdu::split(&arrived), Ok(apdu));
    }
    match place % 7 {
        0 => line.abort(),
        _ => line.release(),
    }
    line
}

fn refused(place: u64) -> Line {
    let mut line = Line::new(65_531);
    line.open(varied_request(place, Mode::Normal));
    let errors = [MtaBindError::Busy, MtaBindError::AuthenticationError];
    let error = errors[usize::try_from(place % 2).unwrap()];
    line.refuse(error.encode(BindForm::Tagged));
    line
}

/// A message whose identifier claims more octets than there are.
fn broken() -> Line {
    let mut line = open(1, Mode::Normal);
    let mut octets = apdu(0).to_bytes().to_vec();
    let identifier = octets.iter().position(|octet| *octet == 0x64).unwrap();
    octets[identifier + 1] = 0x7F;
    line.transfer(&[octets.into()]);
    line.release();
    line
}

fn is_known(complaint: &Complaint) -> bool {
    KNOWN
        .iter()
        .any(|(end, _)| complaint.message.ends_with(end))
}

#[test]
fn tshark_finds_no_fault_but_in_the_broken_envelope() {
    let mut capture = Capture::new();
    let mut resumed = 0;
    for place in 0..ASSOCIATIONS {
        let line = whole(place);
        let events = line.events();
        resumed += events
            .iter()
            .filter(|event| matches!(event, Event::ResumeIndication(_)))
            .count();
        capture.add(line.wire());
    }
    assert!(resumed >= 20, "{resumed}");
    for place in 0..20 {
        capture.add(refused(place).wire());
    }
    let broken = capture.add(broken().wire());
    let Some(complaints) = capture.complaints() else {
        return;
    };
    let (wanted, others): (Vec<_>, Vec<_>) = complaints
        .into_iter()
        .partition(|complaint| complaint.connection == broken);
    assert!(!wanted.is_empty(), "the broken envelope was not found");
    let unknown: Vec<_> = others
        .iter()
        .filter(|complaint| !is_known(complaint))
        .collect();
    let some = unknown.iter().take(20);
    assert!(unknown.is_empty(), "{:#?}", some.collect::<Vec<_>>());
}

#[test]
fn tshark_sees_each_apdu() {
    let mut capture = Capture::new();
    for place in 0..6 {
        capture.add(whole(place).wire());
    }
    let kinds = [
        ("p1.MTS_APDU", 24),
        ("p1.MTABindArgument", 6),
        ("p1.MTABindResult", 6),
        ("p22.ipm_element", 4),
        ("p22.ia5_text_element", 4),
    ];
    let names = kinds.map(|(name, _)| name);
    let Some(lines) = capture.fields(&["-Y", "p1"], &names) else {
        return;
    };
    for (place, (name, least)) in kinds.into_iter().enumerate() {
        let values = lines.iter().filter_map(|line| line.get(place));
        let values = values.filter(|value| !value.is_empty());
        let seen: usize = values.map(|value| value.split(BETWEEN).count()).sum();
        assert!(seen >= least, "{name}: {seen}");
    }
}

#[test]
fn apdus_arrive_in_x410_mode() {
    for place in 0..30 {
        let mut line = open(place, X410);
        for number in 0..3 {
            let apdu = match apdu(place * 3 + number) {
                Apdu::Message(mut message) => {
                    let Ok(down) = downgrade_message(&message.envelope, true) else {
                        continue;
                    };
                    message.envelope = down.envelope;
                    Apdu::Message(message)
                }
                other => other,
            };
            line.transfer(&apdu.to_pieces());
            assert_eq!(line.arrived(), apdu.to_bytes());
        }
        assert!(
            !line
                .events()
                .iter()
                .any(|event| matches!(event, Event::Aborted(..)))
        );
        line.release();
    }
}
