use bytes::Bytes;
use vere_ber::{Ia5String, PrintableString};
use vere_x400::*;

use super::sample::*;
use crate::*;

fn site() -> Site {
    Site::new(domain("B"), "mta-b").unwrap()
}

/// A message as this MTA stores it.
fn stored() -> Message {
    let mut message = message(&[user("x", "C"), user("y", "C"), user("z", "C")]);
    message
        .envelope
        .push_trace(TraceInformationElement::relayed(domain("B"), time(5)));
    message
}

fn write(message: Message, fates: &[(u32, Fate)]) -> Option<Report> {
    site().report(Apdu::Message(message), fates, time(900), "r-1")
}

const FAILED: Fate = Fate::failed(Cause::Expired);

fn delivered() -> Fate {
    Fate::Delivered {
        at: time(800),
        user: TypeOfMtsUser::Ms,
    }
}

#[test]
fn a_report_names_its_subject_and_its_recipients() {
    let mut message = stored();
    let all = PerRecipientIndicators::ORIGINATOR_REPORT;
    message.envelope.per_recipient_fields[2].per_recipient_indicators = all;
    message.envelope.content_identifier =
        Some(ContentIdentifier(PrintableString::new("17").unwrap()));
    let types = EncodedInformationTypes::built_in(BuiltInEncodedInformationTypes::IA5_TEXT);
    message.envelope.original_encoded_information_types = Some(types.clone());
    let said = Fate::of_status("4.4.7", "421 no room & time");
    let report = write(message, &[(0, said), (2, delivered())]).unwrap();
    let envelope = &report.envelope;
    assert_eq!(
        envelope.report_identifier.to_string(),
        "[/PRMD=B/ADMD=Carrier/C=GB/;r-1]"
    );
    assert_eq!(
        envelope.report_destination_name.address,
        user("origin", "A")
    );
    assert_eq!(envelope.trace_information.0, []);
    let name = ExtensionValue::ReportingMtaName(ReportingMtaName {
        domain: domain("B"),
        mta_name: Ia5String::new("mta-b").unwrap(),
        ..Default::default()
    });
    assert_eq!(
        envelope.extensions,
        Extensions(vec![ExtensionField::standard(&name)])
    );
    let content = &report.content;
    assert_eq!(content.subject_identifier, identifier("m1"));
    assert_eq!(content.subject_intermediate_trace_information, None);
    assert_eq!(content.original_encoded_information_types, Some(types));
    assert_eq!(content.content_type, Some(ContentType::P2));
    assert_eq!(content.content_identifier.as_ref().unwrap().0.text(), "17");
    assert_eq!(content.returned_content, None);
    assert_eq!(content.extensions, Extensions::default());
    let [first, third] = content.per_recipient_fields.as_slice() else {
        panic!("two recipients")
    };
    assert_eq!(first.actual_recipient_name.address, user("x", "C"));
    assert_eq!(first.originally_intended_recipient_name, None);
    let text = first.supplementary_information.as_ref().unwrap().text();
    assert_eq!(text, "421 no room ? time");
    let last = &first.last_trace_information;
    assert_eq!(last.arrival_time, time(5));
    assert_eq!(last.converted_encoded_information_types, None);
    assert_eq!(last.report_type, Cause::Expired.report_type());
    assert_eq!(third.originally_specified_recipient_number, 3);
    assert_eq!(third.per_recipient_indicators, all);
    assert_eq!(third.supplementary_information, None);
    let delivery = ReportType::Delivery(DeliveryReport {
        message_delivery_time: time(800),
        type_of_mts_user: TypeOfMtsUser::Ms,
        ..DeliveryReport::default()
    });
    assert_eq!(third.last_trace_information.report_type, delivery);
    // The report is a unit that others can read.
    let unit = Apdu::Report(Box::new(report));
    assert_eq!(Apdu::split(&unit.to_bytes()), Ok(unit));
}

#[test]
fn deliveries_are_reported_on_request_and_failures_always() {
    let none = PerRecipientIndicators::default();
    let mta = PerRecipientIndicators::ORIGINATING_MTA_REPORT;
    let mta_failures = PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT;
    let user = PerRecipientIndicators::ORIGINATOR_REPORT;
    let user_failures = PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT;
    for (bits, told) in [
        (none, false),
        (mta_failures, false),
        (user_failures, false),
        (mta, true),
        (user, true),
    ] {
        let mut message = stored();
        message.envelope.per_recipient_fields[0].per_recipient_indicators = bits;
        let report = write(message.clone(), &[(0, delivered())]);
        assert_eq!(report.is_some(), told, "{bits}");
        assert!(write(message, &[(0, FAILED)]).is_some());
    }
    assert_eq!(write(stored(), &[]), None);
    assert_eq!(write(stored(), &[(3, FAILED)]), None);
}

#[test]
fn nothing_is_reported_about_reports() {
    let about = Apdu::Report(Box::new(report(user("origin", "A"))));
    assert_eq!(site().report(about, &[(0, FAILED)], time(0), "r"), None);
}

#[test]
fn an_audited_report_has_the_trace() {
    let mut message = stored();
    let trace = message.envelope.trace_information.clone();
    message.envelope.per_recipient_fields[1].per_recipient_indicators =
        PerRecipientIndicators::ORIGINATING_MTA_REPORT
            .with(PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT);
    let traced = |report: Option<Report>| {
        report
            .unwrap()
            .content
            .subject_intermediate_trace_information
    };
    assert_eq!(
        traced(write(message.clone(), &[(0, FAILED), (1, FAILED)])),
        Some(trace)
    );
    assert_eq!(traced(write(message, &[(0, FAILED)])), None);
}

#[test]
fn content_is_returned_if_asked_for_and_not_too_long() {
    let returned = |site: &Site, indicators, fate: Fate| {
        let mut message = stored();
        message.envelope.per_message_indicators = indicators;
        message.envelope.per_recipient_fields[0].per_recipient_indicators =
            PerRecipientIndicators::ORIGINATOR_REPORT;
        let report = site.report(Apdu::Message(message), &[(0, fate)], time(0), "r");
        report.unwrap().content.returned_content
    };
    let asked = PerMessageIndicators::CONTENT_RETURN_REQUEST;
    let mut site = site();
    let content = Some(Bytes::from_static(b"the content"));
    assert_eq!(returned(&site, asked, FAILED), content);
    assert_eq!(
        returned(&site, PerMessageIndicators::default(), FAILED),
        None
    );
    assert_eq!(returned(&site, asked, delivered()), None);
    site.return_octets_max = 11;
    assert_eq!(returned(&site, asked, FAILED), content);
    site.return_octets_max = 10;
    assert_eq!(returned(&site, asked, FAILED), None);
    let mut empty = stored();
    empty.content = Content::default();
    empty.envelope.per_message_indicators = asked;
    site.return_octets_max = 0;
    let report = site.report(Apdu::Message(empty), &[(0, FAILED)], time(0), "r");
    assert_eq!(report.unwrap().content.returned_content, None);
    let mut probe = probe(&[user("x", "C")]);
    probe.per_message_indicators = asked;
    let report = Site::new(domain("B"), "b").unwrap().report(
        Apdu::Probe(probe),
        &[(0, FAILED)],
        time(0),
        "r",
    );
    assert_eq!(report.unwrap().content.returned_content, None);
}

#[test]
fn correlator_and_label_come_back_as_they_were() {
    let mut message = stored();
    let octets = ContentCorrelator::Octets(Bytes::from_static(&[1, 2]));
    let correlator = ExtensionValue::ContentCorrelator(octets);
    let label = ExtensionValue::MessageSecurityLabel(SecurityLabel::default());
    for value in [&correlator, &label] {
        message.envelope.extensions.set(value);
    }
    message.envelope.extensions.0[0].criticality = Criticality::FOR_SUBMISSION;
    let sent = message.envelope.extensions.0.clone();
    let report = write(message, &[(0, FAILED)]).unwrap();
    assert_eq!(report.content.extensions.0, sent[..1]);
    assert_eq!(report.envelope.extensions.0[0], sent[1]);
}

#[test]
fn a_message_of_a_list_is_reported_to_the_list() {
    let mut message = stored();
    let list = |name: &str, after| DlExpansion {
        dl: user(name, "C").into(),
        dl_expansion_time: time(after),
        ..Default::default()
    };
    let history = ExtensionValue::DlExpansionHistory(vec![list("list1", 1), list("list2", 2)]);
    message.envelope.extensions.set(&history);
    let report = write(message, &[(0, FAILED)]).unwrap();
    let destination = &report.envelope.report_destination_name;
    assert_eq!(destination.address, user("list2", "C"));
    let kind = StandardExtension::OriginatorAndDlExpansionHistory;
    let value = report.envelope.extensions.value(kind).unwrap();
    let Some(ExtensionValue::OriginatorAndDlExpansionHistory(history)) = value else {
        panic!("no history")
    };
    let names = history.iter().map(|one| {
        (
            one.originator_or_dl_name.to_string(),
            one.origination_or_expansion_time,
        )
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            (user("origin", "A").to_string(), Time::from_unix(NOW - 60)),
            (user("list1", "C").to_string(), time(1)),
            (user("list2", "C").to_string(), time(2)),
        ]
    );
}

#[test]
fn a_conversion_on_the_way_is_told() {
    let mut message = stored();
    let types = EncodedInformationTypes::built_in;
    let ia5 = types(BuiltInEncodedInformationTypes::IA5_TEXT);
    message.envelope.original_encoded_information_types =
        Some(types(BuiltInEncodedInformationTypes::TELEX));
    let first = &mut message.envelope.trace_information.0[0].domain_supplied_information;
    first.converted_encoded_information_types = Some(ia5.clone());
    let report = write(message, &[(0, FAILED)]).unwrap();
    let last = &report.content.per_recipient_fields[0].last_trace_information;
    assert_eq!(last.converted_encoded_information_types, Some(ia5));
}

#[test]
fn without_an_own_element_the_arrival_is_now() {
    let report = write(message(&[user("x", "C")]), &[(0, FAILED)]).unwrap();
    let last = &report.content.per_recipient_fields[0].last_trace_information;
    assert_eq!(last.arrival_time, time(900));
    let text = &report.content.per_recipient_fields[0].supplementary_information;
    assert_eq!(*text, None);
}

#[test]
fn texts_of_reports_have_bounds() {
    let long = Fate::of_status("5.0.0", &"ä".repeat(300));
    let report = site()
        .report(
            Apdu::Message(stored()),
            &[(0, long)],
            time(0),
            &"é1".repeat(40),
        )
        .unwrap();
    let text = report.content.per_recipient_fields[0]
        .supplementary_information
        .clone();
    assert_eq!(text.unwrap().text(), "?".repeat(256));
    let identifier = report.envelope.report_identifier.local_identifier;
    assert_eq!(identifier.text(), "?1".repeat(16));
}

#[test]
fn every_cause_has_codes_of_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for cause in Cause::ALL {
        let (reason, diagnostic) = cause.codes();
        let new = seen.insert((
            reason.code(),
            diagnostic.map(NonDeliveryDiagnosticCode::code),
        ));
        assert!(new && reason.name().is_some(), "{cause}");
        assert!(!cause.to_string().is_empty());
    }
    // The codes that others compare with.
    let code = |cause: Cause| {
        let (reason, diagnostic) = cause.codes();
        (
            reason.code(),
            diagnostic.map(NonDeliveryDiagnosticCode::code),
        )
    };
    assert_eq!(code(Cause::UnknownRecipient), (1, Some(0)));
    assert_eq!(code(Cause::Loop), (1, Some(3)));
    assert_eq!(code(Cause::Expired), (1, Some(5)));
    assert_eq!(code(Cause::CriticalExtension), (1, Some(18)));
    assert_eq!(code(Cause::Downgrade), (1, Some(47)));
    assert_eq!(code(Cause::Congestion), (0, Some(2)));
    assert_eq!(code(Cause::ConversionProhibited), (2, Some(9)));
}

#[test]
fn status_codes_of_the_queues_have_causes() {
    for (status, cause) in [
        ("5.1.1", Cause::UnknownRecipient),
        ("5.1.4", Cause::AmbiguousRecipient),
        ("5.2.1", Cause::Unavailable),
        ("4.2.2", Cause::Unavailable),
        ("5.2.3", Cause::ContentTooLong),
        ("5.3.4", Cause::ContentTooLong),
        ("4.3.1", Cause::Congestion),
        ("4.3.2", Cause::Congestion),
        ("5.3.3", Cause::Refused),
        ("4.4.1", Cause::TransferFailed),
        ("4.4.5", Cause::Congestion),
        ("5.4.6", Cause::Loop),
        ("5.4.7", Cause::Expired),
        ("5.5.3", Cause::TooManyRecipients),
        ("5.5.0", Cause::Refused),
        ("5.6.1", Cause::ContentType),
        ("5.6.2", Cause::ConversionProhibited),
        ("5.6.3", Cause::ConversionImpractical),
        ("5.7.1", Cause::Policy),
        ("", Cause::Refused),
        ("5", Cause::Refused),
    ] {
        assert_eq!(Cause::of_status(status), cause, "{status}");
        let said = "why".to_owned();
        assert_eq!(Fate::of_status(status, "why"), Fate::Failed { cause, said });
    }
}
