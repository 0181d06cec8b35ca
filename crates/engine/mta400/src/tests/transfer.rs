//! Recipients, parts, probes and reports of others.

use vere_x400::*;

use super::sample::*;
use crate::*;

#[test]
fn recipients_are_parted_by_destination() {
    let mut message = message(&[
        user("x", "C"),
        user("smith", "B"),
        user("y", "C"),
        user("nobody", "B"),
        address("O=AFTN;A=ICAO;C=XX;CN=LEMGZPZX"),
        user("x", "C"),
        address("S=far;A=Other;C=US"),
        user("jones", "B"),
    ]);
    let recipients = &mut message.envelope.per_recipient_fields;
    recipients[2].per_recipient_indicators = PerRecipientIndicators::ORIGINATOR_REPORT;
    let outcome = from_a(&middle(), message.clone());
    let expected = [
        ("peer:c", vec![0, 5]),
        ("file:jones", vec![7]),
        ("store:smith", vec![1]),
        ("gateway:aftn", vec![4]),
    ];
    let expected = expected.map(|(to, places)| (to.to_owned(), places));
    assert_eq!(parts(&outcome), expected);
    let unknown = Cause::UnknownRecipient.report_type();
    assert_eq!(reported(&outcome), [(4, unknown.clone()), (7, unknown)]);
    // Responsibility is left only for what goes on; the names and the other bits stay.
    let fields = &envelope(&outcome).per_recipient_fields;
    let responsible = fields
        .iter()
        .map(|one| {
            one.per_recipient_indicators
                .contains(PerRecipientIndicators::RESPONSIBILITY)
        })
        .collect::<Vec<_>>();
    assert_eq!(
        responsible,
        [true, true, false, false, true, true, false, true]
    );
    for (after, before) in fields.iter().zip(&message.envelope.per_recipient_fields) {
        assert_eq!(after.recipient_name, before.recipient_name);
        let bits = |one: &PerRecipientMessageTransferFields| {
            one.per_recipient_indicators
                .without(PerRecipientIndicators::RESPONSIBILITY)
        };
        assert_eq!(bits(after), bits(before));
    }
    let decisions = outcome.facts.recipients.iter();
    let decisions: Vec<_> = decisions.map(|one| &one.decision).collect();
    assert_eq!(decisions[2], &Decision::NotOurs);
    assert_eq!(decisions[3], &Decision::Failed(Cause::UnknownRecipient));
    let destination = Destination::Store("smith".to_owned());
    let onward = Decision::Onward {
        destination,
        redirected: false,
    };
    assert_eq!(decisions[1], &onward);
}

#[test]
fn the_audit_log_hears_what_arrived() {
    let facts = from_a(&middle(), message(&[user("x", "C")])).facts;
    assert_eq!(facts.kind, UnitKind::Message);
    assert_eq!(facts.identifier, "[/PRMD=A/ADMD=Carrier/C=GB/;m1]");
    assert_eq!(
        facts.originator.as_deref(),
        Some("S=origin;P=A;A=Carrier;C=GB")
    );
    assert_eq!(facts.content_type, Some(ContentType::P2));
    assert_eq!((facts.content_octets, facts.hops), (11, 1));
    assert_eq!(facts.priority, Priority::Normal);
    assert_eq!(facts.recipients[0].address, "S=x;P=C;A=Carrier;C=GB");
    assert_eq!(facts.recipients[0].number, 1);
    let probe = Apdu::Probe(probe(&[user("x", "C")]));
    let facts = middle().transfer(probe, arrival(FROM_A)).unwrap().facts;
    assert_eq!(
        (facts.kind, facts.content_octets),
        (UnitKind::Probe, 70_000)
    );
}

fn with_user(change: impl FnOnce(&mut User)) -> Mta {
    let mut mta = middle();
    change(mta.site.users.entry("smith".to_owned()).or_default());
    mta
}

#[test]
fn users_have_what_they_accept() {
    let to_smith = || message(&[user("smith", "B")]);
    let short = with_user(|user| user.content_octets_max = Some(10));
    assert_failed(&from_a(&short, to_smith()), Cause::ContentTooLong);
    let enough = with_user(|user| user.content_octets_max = Some(11));
    assert_eq!(from_a(&enough, to_smith()).report, None);
    let other = with_user(|user| user.content_types = Some(vec![ContentType::P22]));
    assert_failed(&from_a(&other, to_smith()), Cause::ContentType);
    let mut explicit = to_smith();
    explicit.envelope.per_recipient_fields[0].explicit_conversion =
        Some(ExplicitConversion::Ia5TextToTeletex);
    assert_failed(
        &from_a(&middle(), explicit.clone()),
        Cause::ConversionImpractical,
    );
    explicit.envelope.per_recipient_fields[0].recipient_name = user("x", "C").into();
    assert_eq!(from_a(&middle(), explicit).report, None);
}

#[test]
fn users_have_the_information_types_that_they_accept() {
    use BuiltInEncodedInformationTypes as BuiltIn;
    let types = EncodedInformationTypes::built_in;
    let extended = |base: BuiltIn, text: &str| EncodedInformationTypes {
        extended: Some(vec![text.parse().unwrap()]),
        ..types(base)
    };
    let ia5 = types(BuiltIn::IA5_TEXT);
    let fax = types(BuiltIn::G3_FACSIMILE);
    let both = types(BuiltIn::IA5_TEXT.with(BuiltIn::G3_FACSIMILE));
    for (accepted, offered, fits) in [
        (ia5.clone(), Some(ia5.clone()), true),
        (ia5.clone(), Some(both.clone()), false),
        (both, Some(ia5.clone()), true),
        (ia5.clone(), Some(fax.clone()), false),
        (ia5.clone(), None, true),
        (types(BuiltIn::UNKNOWN), Some(fax.clone()), true),
        (
            ia5.clone(),
            Some(extended(BuiltIn::IA5_TEXT, "1.2.3")),
            false,
        ),
        (
            extended(BuiltIn::IA5_TEXT, "1.2.3"),
            Some(extended(BuiltIn::IA5_TEXT, "1.2.3")),
            true,
        ),
        (
            extended(BuiltIn::IA5_TEXT, "1.2.4"),
            Some(extended(BuiltIn::IA5_TEXT, "1.2.3")),
            false,
        ),
    ] {
        let mta = with_user(|user| user.types = Some(accepted));
        let mut message = message(&[user("smith", "B")]);
        message.envelope.original_encoded_information_types = offered;
        let outcome = from_a(&mta, message.clone());
        if fits {
            assert_eq!(outcome.report, None);
            continue;
        }
        assert_failed(&outcome, Cause::InformationTypes);
        message.envelope.per_message_indicators =
            PerMessageIndicators::IMPLICIT_CONVERSION_PROHIBITED;
        assert_failed(&from_a(&mta, message), Cause::ConversionProhibited);
    }
    // A conversion on the way counts.
    let mta = with_user(|user| user.types = Some(ia5.clone()));
    let mut message = message(&[user("smith", "B")]);
    message.envelope.original_encoded_information_types = Some(fax);
    let first = &mut message.envelope.trace_information.0[0].domain_supplied_information;
    first.converted_encoded_information_types = Some(ia5);
    assert_eq!(from_a(&mta, message).report, None);
}

#[test]
fn probes_are_answered_for_users_and_asked_on_for_others() {
    let apdu = Apdu::Probe(probe(&[
        user("smith", "B"),
        user("nobody", "B"),
        user("x", "C"),
        address("O=AFTN;A=ICAO;C=XX;CN=LEMGZPZX"),
        user("jones", "B"),
    ]));
    let outcome = middle().transfer(apdu, arrival(FROM_A)).unwrap();
    let gateway = ("gateway:aftn".to_owned(), vec![3]);
    assert_eq!(parts(&outcome), [("peer:c".to_owned(), vec![2]), gateway]);
    let delivered = ReportType::Delivery(DeliveryReport {
        message_delivery_time: time(0),
        ..DeliveryReport::default()
    });
    assert_eq!(
        reported(&outcome),
        [
            (1, delivered.clone()),
            (2, Cause::UnknownRecipient.report_type()),
            (5, delivered),
        ]
    );
    let smith = Destination::Store("smith".to_owned());
    assert_eq!(
        outcome.facts.recipients[0].decision,
        Decision::Answered(smith)
    );
    let Apdu::Probe(sent) = &outcome.apdu else {
        panic!("no probe")
    };
    assert_eq!(sent.content_length, Some(70_000));
    assert_eq!(sent.trace_information.0.len(), 2);
    // The length that a probe asks for is checked as a content is.
    let short = with_user(|user| user.content_octets_max = Some(69_999));
    let apdu = Apdu::Probe(probe(&[user("smith", "B")]));
    let outcome = short.transfer(apdu, arrival(FROM_A)).unwrap();
    assert_failed(&outcome, Cause::ContentTooLong);
}

#[test]
fn messages_for_users_are_not_reported_before_their_delivery() {
    let mut message = message(&[user("smith", "B")]);
    message.envelope.per_recipient_fields[0].per_recipient_indicators =
        PerRecipientIndicators::RESPONSIBILITY.with(PerRecipientIndicators::ORIGINATOR_REPORT);
    let outcome = from_a(&middle(), message);
    assert_eq!(outcome.report, None);
    assert_eq!(parts(&outcome), [("store:smith".to_owned(), vec![0])]);
}

fn of_report(mta: &Mta, report: Report, source: Source<'_>) -> Outcome {
    let apdu = Apdu::Report(Box::new(report));
    mta.transfer(apdu, arrival(source)).unwrap()
}

#[test]
fn reports_of_others_are_passed_on() {
    let sent = report(user("origin", "A"));
    let outcome = of_report(&middle(), sent.clone(), Source::Peer("c"));
    assert_eq!(parts(&outcome), [("peer:a".to_owned(), vec![0])]);
    assert_eq!(outcome.onward[0].expires, time(24 * 3_600));
    let Apdu::Report(passed) = &outcome.apdu else {
        panic!("no report")
    };
    assert_eq!(passed.content, sent.content);
    let trace = &passed.envelope.trace_information.0;
    assert_eq!(
        trace[1],
        TraceInformationElement::relayed(domain("B"), time(0))
    );
    assert_eq!(
        passed.envelope.internal_trace().unwrap().0,
        [internal("mta-b")]
    );
    assert_eq!(outcome.facts.kind, UnitKind::Report);
    let about = outcome.facts.about.as_deref();
    assert_eq!(about, Some("[/PRMD=A/ADMD=Carrier/C=GB/;m1]"));
    assert_eq!(
        outcome.facts.recipients[0].address,
        "S=origin;P=A;A=Carrier;C=GB"
    );
}

#[test]
fn reports_end_without_reports() {
    let end = |mta: &Mta, report: Report, cause| {
        let outcome = of_report(mta, report, Source::Peer("c"));
        assert_eq!(outcome.onward, []);
        assert_eq!(outcome.report, None);
        assert_eq!(
            outcome.facts.recipients[0].decision,
            Decision::Failed(cause)
        );
    };
    let mta = middle();
    end(&mta, report(user("nobody", "B")), Cause::UnknownRecipient);
    end(
        &mta,
        report(address("S=x;A=Far;C=US")),
        Cause::UnknownRecipient,
    );
    let mut looping = report(user("origin", "A"));
    looping
        .envelope
        .push_trace(TraceInformationElement::relayed(domain("B"), time(0)));
    end(&mta, looping, Cause::Loop);
    let mut critical = report(user("origin", "A"));
    critical
        .envelope
        .extensions
        .0
        .push(unknown_extension(Criticality::FOR_TRANSFER));
    end(&mta, critical, Cause::CriticalExtension);
    let to_a = || report(user("origin", "A"));
    for (inbound, outbound) in [(true, false), (false, true)] {
        let mut mta = middle();
        let list = mta.peers.iter().cloned().map(|mut terms| {
            let denied = || AddressRange::new(&[], &["P=A;A=Carrier;C=GB"]).unwrap();
            if inbound && terms.name == "c" {
                terms.inbound.recipients = denied();
            }
            if outbound && terms.name == "a" {
                terms.outbound.recipients = denied();
            }
            terms
        });
        mta.peers = Peers::new(list.collect()).unwrap();
        end(&mta, to_a(), Cause::Recipient);
    }
}

#[test]
fn users_get_the_reports_that_they_asked_for() {
    let with = |bits: PerRecipientIndicators, delivered: bool| {
        let mut report = report(user("smith", "B"));
        let fields = &mut report.content.per_recipient_fields[0];
        fields.per_recipient_indicators = bits;
        if delivered {
            let delivery = ReportType::Delivery(DeliveryReport::default());
            fields.last_trace_information.report_type = delivery;
        }
        let outcome = of_report(&middle(), report, Source::Peer("c"));
        match outcome.facts.recipients[0].decision {
            Decision::Consumed => {
                assert_eq!(outcome.onward, []);
                false
            }
            _ => {
                assert_eq!(parts(&outcome), [("store:smith".to_owned(), vec![0])]);
                true
            }
        }
    };
    let mta = PerRecipientIndicators::ORIGINATING_MTA_REPORT;
    let all = PerRecipientIndicators::ORIGINATOR_REPORT;
    let failures = PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT;
    assert!(!with(mta, true) && !with(mta, false));
    assert!(!with(failures, true) && with(failures, false));
    assert!(with(all, true) && with(all, false));
}

/// The middle, with a peer of 1984 in place of C.
fn with_1984() -> Mta {
    let mut mta = middle();
    let list = mta.peers.iter().cloned().map(|mut terms| {
        if terms.name == "c" {
            terms.profile = Profile::Y1984;
        }
        terms
    });
    mta.peers = Peers::new(list.collect()).unwrap();
    mta
}

#[test]
fn a_peer_of_1984_gets_what_fits() {
    let mta = with_1984();
    assert_eq!(from_a(&mta, message(&[user("x", "C")])).report, None);
    let mut mixed = message(&[
        user("x", "C"),
        address("S=Größe;P=C;A=Carrier;C=GB"),
        user("smith", "B"),
    ]);
    let outcome = from_a(&mta, mixed.clone());
    let smith = ("store:smith".to_owned(), vec![2]);
    assert_eq!(
        parts(&outcome),
        [("peer:c".to_owned(), vec![0]), smith.clone()]
    );
    assert_eq!(reported(&outcome), [(2, Cause::Downgrade.report_type())]);
    // A content of 1988 does not fit, unless it uses nothing of 1988.
    mixed.envelope.content_type = ContentType::P22;
    let outcome = from_a(&mta, mixed.clone());
    assert_eq!(parts(&outcome), [smith]);
    let submission = Submission {
        originator: user("origin", "A"),
        recipients: vec![user("x", "C")],
        ..Submission::default()
    };
    let plain = mta.site.compose(&submission, "Plain", "Text", "1").unwrap();
    mixed.content = plain.content;
    assert_eq!(parts(&from_a(&mta, mixed))[0].1, [0]);
    let mut critical = message(&[user("x", "C")]);
    critical
        .envelope
        .extensions
        .set(&ExtensionValue::LatestDeliveryTime(time(60)));
    assert_failed(&from_a(&mta, critical), Cause::Downgrade);
    let mut rich = report(address("S=Größe;P=C;A=Carrier;C=GB"));
    rich.envelope.trace_information.0.clear();
    let outcome = of_report(&mta, rich, Source::Local);
    assert_eq!(
        outcome.facts.recipients[0].decision,
        Decision::Failed(Cause::Downgrade)
    );
    let fits = of_report(&mta, report(user("x", "C")), FROM_A);
    assert_eq!(parts(&fits), [("peer:c".to_owned(), vec![0])]);
}

#[test]
fn a_peer_that_the_settings_lost_is_a_failed_transfer() {
    let mut mta = middle();
    mta.peers = Peers::new(vec![terms("a", "A")]).unwrap();
    assert_failed(
        &from_a(&mta, message(&[user("x", "C")])),
        Cause::TransferFailed,
    );
    let outcome = of_report(&mta, report(user("x", "C")), FROM_A);
    assert_eq!(
        outcome.facts.recipients[0].decision,
        Decision::Failed(Cause::TransferFailed)
    );
}
