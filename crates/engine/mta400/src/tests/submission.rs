use vere_x400::ipm::{BodyPart, InformationObject};
use vere_x400::*;

use super::sample::*;
use crate::*;

fn site() -> Site {
    Site::new(domain("A"), "mta-a").unwrap()
}

fn submission() -> Submission {
    Submission {
        originator: user("origin", "A"),
        recipients: vec![user("x", "C"), user("y", "C")],
        priority: Priority::Urgent,
        indicators: PerMessageIndicators::CONTENT_RETURN_REQUEST,
        content_identifier: Some("order 17 of the 4th of May".to_owned()),
        not_before: Some(time(60)),
        latest: Some(time(600)),
        alternate: Some(user("z", "C")),
        ..Submission::default()
    }
}

#[test]
fn a_message_is_made_of_plain_fields() {
    let message = site()
        .compose(&submission(), "Hi", "Text\r\n", "id-1")
        .unwrap();
    let envelope = &message.envelope;
    assert_eq!(
        envelope.message_identifier.to_string(),
        "[/PRMD=A/ADMD=Carrier/C=GB/;id-1]"
    );
    assert_eq!(envelope.originator_name.address, user("origin", "A"));
    assert_eq!(envelope.content_type, ContentType::P22);
    assert_eq!(envelope.priority, Priority::Urgent);
    assert_eq!(
        envelope.per_message_indicators,
        PerMessageIndicators::CONTENT_RETURN_REQUEST
    );
    assert_eq!(
        envelope.content_identifier.as_ref().unwrap().0.text(),
        "order 17 of the "
    );
    assert_eq!(envelope.deferred_delivery_time, Some(time(60)));
    let latest = envelope
        .extensions
        .value(StandardExtension::LatestDeliveryTime);
    assert_eq!(
        latest,
        Ok(Some(ExtensionValue::LatestDeliveryTime(time(600))))
    );
    assert_eq!(envelope.trace_information.0, []);
    let types = envelope
        .original_encoded_information_types
        .as_ref()
        .unwrap();
    assert_eq!(types.to_string(), "ia5-text");
    for (number, fields) in (1..).zip(&envelope.per_recipient_fields) {
        assert_eq!(fields.originally_specified_recipient_number, number);
        let kind = StandardExtension::OriginatorRequestedAlternateRecipient;
        assert!(fields.extensions.find(kind).is_some());
    }
    let Ok(InformationObject::Ipm(ipm)) = InformationObject::decode(&message.content.to_bytes())
    else {
        panic!("no message")
    };
    assert_eq!(ipm.heading.this_ipm.user_relative_identifier.text(), "id-1");
    let identified = ipm.heading.this_ipm.user.as_ref().unwrap();
    assert_eq!(identified.address, user("origin", "A"));
    let originator = ipm.heading.originator.as_ref().unwrap();
    let originator = originator.formal_name.as_ref().unwrap();
    assert_eq!(originator.address, user("origin", "A"));
    assert_eq!(ipm.heading.primary_recipients.len(), 2);
    assert_eq!(ipm.heading.subject.as_ref().unwrap().0.text(), "Hi");
    assert_eq!(ipm.body[0].to_text().as_deref(), Some("Text\r\n"));
    let apdu = Apdu::Message(message);
    assert_eq!(Apdu::split(&apdu.to_bytes()), Ok(apdu));
}

#[test]
fn reports_are_asked_for_in_bits() {
    for (reports, text) in [
        (
            Reports::None,
            "responsibility, originating-MTA-non-delivery-report",
        ),
        (
            Reports::Failures,
            "responsibility, originating-MTA-non-delivery-report, originator-non-delivery-report",
        ),
        (
            Reports::All,
            "responsibility, originating-MTA-report, originator-report",
        ),
    ] {
        let submission = Submission {
            reports,
            ..submission()
        };
        let message = site().compose(&submission, "", "", "1").unwrap();
        let bits = message.envelope.per_recipient_fields[0].per_recipient_indicators;
        assert_eq!(bits.to_string(), text);
    }
}

#[test]
fn text_outside_ascii_is_general_text() {
    let plain = Submission {
        alternate: None,
        latest: None,
        content_identifier: None,
        ..submission()
    };
    let message = site().compose(&plain, "", "Grüße", "1").unwrap();
    let types = message.envelope.original_encoded_information_types.unwrap();
    assert_eq!(
        types.to_string(),
        "1.0.10021.7.1.0.1, 1.0.10021.7.1.0.6, 1.0.10021.7.1.0.100"
    );
    assert_eq!(message.envelope.content_identifier, None);
    assert_eq!(message.envelope.extensions, Extensions::default());
    let extensions = &message.envelope.per_recipient_fields[0].extensions;
    assert_eq!(*extensions, Extensions::default());
    let Ok(InformationObject::Ipm(ipm)) = InformationObject::decode(&message.content.to_bytes())
    else {
        panic!("no message")
    };
    assert_eq!(ipm.heading.subject, None);
    assert!(matches!(ipm.body[0], BodyPart::Extended(_)));
    let error = site().compose(&plain, "", "日本", "1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "text: expected characters of ISO 8859-1; found '日'"
    );
    let error = site().compose(&plain, "日", "", "1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "subject: expected characters of TeletexString; found '日'"
    );
}

#[test]
fn a_probe_asks_for_a_length() {
    let probe = site().probe(&submission(), Some(1_000), "p1").unwrap();
    assert_eq!(probe.content_length, Some(1_000));
    assert_eq!(probe.content_type, ContentType::P22);
    assert_eq!(probe.per_recipient_fields.len(), 2);
    let bits = probe.per_recipient_fields[0].per_recipient_indicators;
    let all = "responsibility, originating-MTA-report, originator-report";
    assert_eq!(bits.to_string(), all);
    assert_eq!(probe.probe_identifier.local_identifier.text(), "p1");
    let none = Submission {
        recipients: vec![],
        ..submission()
    };
    assert_eq!(
        site().probe(&none, None, "p"),
        Err(SubmissionError::NoRecipients)
    );
    let error = site().compose(&none, "", "", "1").unwrap_err();
    assert_eq!(error.to_string(), "expected a recipient; found none");
}

#[test]
fn names_of_mtas_have_a_bound() {
    let site = Site::new(domain("A"), &"m".repeat(40)).unwrap();
    assert_eq!(site.mta_name.text().len(), MTA_NAME_MAX);
    assert!(Site::new(domain("A"), "mü").is_err());
}

#[test]
fn a_content_of_any_type_is_enclosed_unchanged() {
    let content = bytes::Bytes::from_static(b"UNB+UNOA");
    let kind: ContentType = "35".parse().unwrap();
    let message = site()
        .enclose(&submission(), kind.clone(), content.clone(), "id-1")
        .unwrap();
    let envelope = &message.envelope;
    assert_eq!(
        (&envelope.content_type, message.content.to_bytes()),
        (&kind, content)
    );
    assert_eq!(envelope.original_encoded_information_types, None);
    assert_eq!(
        (envelope.priority, envelope.deferred_delivery_time),
        (Priority::Urgent, Some(time(60)))
    );
    let latest = envelope
        .extensions
        .find(StandardExtension::LatestDeliveryTime);
    assert!(latest.is_some());
    let nobody = Submission {
        recipients: Vec::new(),
        ..submission()
    };
    assert_eq!(
        site().enclose(&nobody, kind, bytes::Bytes::new(), "id-1"),
        Err(SubmissionError::NoRecipients)
    );
}
