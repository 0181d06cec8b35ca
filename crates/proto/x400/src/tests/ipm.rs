//! Interpersonal messages and notifications.

use bytes::Bytes;
use vere_ber::{Any, Encoding, Explicit, Kept, Tag, TeletexString, Value, Writer, encode};

use super::sample::{FORMS, hex, name, printable, time, vary};
use crate::ipm::*;

fn identifier(local: &str) -> IpmIdentifier {
    IpmIdentifier {
        user: Some(name("G=John;S=Smith;P=Acme;A=Carrier;C=GB")),
        user_relative_identifier: printable(local),
        ..IpmIdentifier::default()
    }
}

fn descriptor() -> OrDescriptor {
    OrDescriptor {
        formal_name: Some(name("CN=Desk;P=Acme;A=Carrier;C=GB")),
        free_form_name: Some(TeletexString::new("Jürgen").unwrap()),
        telephone_number: Some(printable("+44 20")),
        ..OrDescriptor::default()
    }
}

fn recipient() -> RecipientSpecifier {
    RecipientSpecifier {
        recipient: descriptor(),
        notification_requests: NotificationRequests::RN.with(NotificationRequests::NRN),
        reply_requested: true,
        ..RecipientSpecifier::default()
    }
}

fn heading() -> Heading {
    Heading {
        this_ipm: identifier("m1"),
        originator: Some(descriptor()),
        authorizing_users: Some(vec![descriptor()]),
        primary_recipients: vec![recipient(), name("S=x;C=GB").into()],
        copy_recipients: vec![recipient()],
        blind_copy_recipients: Some(vec![recipient()]),
        replied_to_ipm: Some(identifier("m0")),
        obsoleted_ipms: vec![identifier("a"), identifier("b")],
        related_ipms: vec![identifier("c")],
        subject: Some(Explicit(TeletexString::new("Über die Brücke").unwrap())),
        expiry_time: Some(time("260601000000Z")),
        reply_time: Some(time("260602000000Z")),
        reply_recipients: Some(vec![descriptor()]),
        importance: Some(Importance::High),
        sensitivity: Some(Sensitivity::Private),
        auto_forwarded: true,
        extensions: vec![IpmsExtension {
            kind: "2.6.1.5.2".parse().unwrap(),
            value: Some(Any(hex("0a0101"))),
            ..IpmsExtension::default()
        }],
        ..Heading::default()
    }
}

fn forwarded() -> BodyPart {
    let inner = Ipm {
        heading: heading(),
        body: vec![BodyPart::text("inner\r\n").unwrap()],
        ..Ipm::default()
    };
    let mut out = Writer::default();
    out.constructed(Tag::context(9), |out| {
        out.raw(&hex("3100"));
        inner.write(out);
    });
    BodyPart::Other(9, out.finish())
}

pub(super) fn ipm() -> InformationObject {
    InformationObject::Ipm(Ipm {
        heading: heading(),
        body: vec![
            BodyPart::text("Hello\r\nWorld\r\n").unwrap(),
            BodyPart::text("Grüße\r\n").unwrap(),
            BodyPart::Other(14, hex("8e03 010203")),
            forwarded(),
        ],
        ..Ipm::default()
    })
}

#[test]
fn messages_are_read_as_written() {
    let octets = ipm().encode();
    assert_eq!(InformationObject::decode(&octets).unwrap(), ipm());
    for form in FORMS {
        let read = InformationObject::decode(&vary(&octets, form).into()).unwrap();
        assert_eq!(
            read.to_string().replace(char::is_numeric, ""),
            ipm().to_string().replace(char::is_numeric, "")
        );
    }
}

#[test]
fn text_bodies() {
    let ascii = BodyPart::text("Hello").unwrap();
    assert_eq!(encode(&ascii), hex("a009 3100 1605 48656c6c6f"));
    let latin = BodyPart::text("é").unwrap();
    let expected = "af25 a013 0604 56010b0b a00b 3109 020101 020106 020164 280e 0604 5601040b a006 1b04 1b2d41e9";
    assert_eq!(encode(&latin), hex(expected));
    for text in ["", "Hello\r\n", "Grüße aus Köln\r\n"] {
        assert_eq!(BodyPart::text(text).unwrap().to_text().unwrap(), text);
    }
    assert_eq!(
        BodyPart::text("日").unwrap_err().to_string(),
        "expected characters of ISO 8859-1; found '日'"
    );
    assert_eq!(BodyPart::text("é").unwrap().kind(), "general-text");
    // Escape sequences of character sets, the last sequence cut off.
    let BodyPart::Extended(mut part) = BodyPart::text("é").unwrap() else {
        panic!()
    };
    part.data.encoding = Encoding::of(hex("1b0d 1b2842 41 1b2d41 e9 1b2540 1b28"));
    assert_eq!(BodyPart::Extended(part).to_text().unwrap(), "Aé");
}

pub(super) fn notification(outcome: IpnOutcome) -> InformationObject {
    InformationObject::Ipn(Ipn {
        subject_ipm: identifier("m1"),
        ipn_originator: Some(descriptor()),
        ipm_intended_recipient: Some(descriptor()),
        outcome,
        ..Ipn::default()
    })
}

#[test]
fn notifications() {
    let InformationObject::Ipm(returned) = ipm() else {
        panic!()
    };
    let mut out = Writer::default();
    returned.write_tagged(Tag::context(3), &mut out);
    let receipt = notification(IpnOutcome::Receipt(ReceiptFields {
        receipt_time: time("260504030201Z"),
        acknowledgment_mode: AcknowledgmentMode::Automatic,
        suppl_receipt_info: Some(printable("read")),
        ..ReceiptFields::default()
    }));
    let non_receipt = notification(IpnOutcome::NonReceipt(NonReceiptFields {
        non_receipt_reason: NonReceiptReason::IpmDiscarded,
        discard_reason: Some(DiscardReason::IpmExpired),
        auto_forward_comment: Some(printable("gone")),
        returned_ipm: Some(Kept(out.finish())),
        ..NonReceiptFields::default()
    }));
    for object in [
        &receipt,
        &non_receipt,
        &notification(IpnOutcome::Other(Vec::new())),
    ] {
        assert_eq!(
            InformationObject::decode(&object.encode()).as_ref(),
            Ok(object)
        );
    }
    assert!(
        receipt
            .to_string()
            .contains("receipt-time: 2026-05-04T03:02:01Z")
    );
    let text = non_receipt.to_string();
    assert!(
        text.contains("non-receipt-reason: ipm-discarded") && text.contains("    Hello"),
        "{text}"
    );
}

#[test]
fn messages_are_shown() {
    let text = ipm().to_string();
    for line in [
        "this-IPM: m1*G=John;S=Smith;P=Acme;A=Carrier;C=GB",
        "originator: Jürgen <CN=Desk;P=Acme;A=Carrier;C=GB> (+44 20)",
        "subject: Über die Brücke",
        "importance: high",
        "  notification-requests: rn, nrn",
        "body part: ia5-text, 20 octets",
        "  World",
        "  Grüße",
        "body part: bilaterally-defined, 5 octets",
        "    inner",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
}

#[test]
fn contents_of_1984() {
    assert!(!ipm().is_1984());
    let InformationObject::Ipm(mut plain) = ipm() else {
        panic!()
    };
    plain.heading.extensions.clear();
    plain.body.remove(1);
    assert!(
        !InformationObject::Ipm(plain.clone()).is_1984(),
        "bilaterally-defined is of 1988"
    );
    plain.body.remove(1);
    assert!(InformationObject::Ipm(plain).is_1984());
}

#[test]
fn headers_of_aeronautical_messages() {
    let text = "\u{1}PRI: FF\r\nFT: 101523\r\nOHI: TEST\r\n\u{2}(FPL-ABC)\r\n";
    let header = AtsHeader::read(text).unwrap();
    assert_eq!(
        (header.priority, header.filing_time),
        (AtsPriority::Ff, "101523")
    );
    assert_eq!(
        (header.optional_heading_information, header.text),
        (Some("TEST"), "(FPL-ABC)\r\n")
    );
    assert_eq!(header.to_text(), text);
    let plain = AtsHeader::read("PRI: gg\nFT: 101523\n\nTEXT").unwrap();
    assert_eq!((plain.priority, plain.text), (AtsPriority::Gg, "TEXT"));
    for text in [
        "",
        "Hello",
        "PRI: XX\r\nFT: 101523\r\n",
        "PRI: FF\r\nFT: 1015\r\n",
        "PRI: FF\r\n",
        "FT: 101523\r\nPRI: FF\r\n",
    ] {
        assert_eq!(AtsHeader::read(text), None, "{text:?}");
    }
}

/// Forwarded messages inside each other are printed to a depth, not to the end of the stack.
#[test]
fn forwarded_messages_are_bounded() {
    let mut part = BodyPart::text("x").unwrap();
    for _ in 0..60 {
        let inner = Ipm {
            heading: Heading {
                this_ipm: identifier("m"),
                ..Heading::default()
            },
            body: vec![part],
            ..Ipm::default()
        };
        let mut out = Writer::default();
        out.constructed(Tag::context(9), |out| {
            out.raw(&hex("3100"));
            inner.write(out);
        });
        part = BodyPart::Other(9, out.finish());
    }
    let ipm = Ipm {
        body: vec![part],
        ..Ipm::default()
    };
    let octets = Bytes::from(InformationObject::Ipm(ipm.clone()).to_string());
    assert!(octets.len() < 10_000);
    assert!(
        InformationObject::decode(&InformationObject::Ipm(ipm).encode()).is_err(),
        "deeper than DEPTH_MAX"
    );
}
