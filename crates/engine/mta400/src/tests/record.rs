use bytes::Bytes;
use vere_x400::*;

use super::sample::*;
use crate::*;

fn octets(outcome: &Outcome) -> Bytes {
    outcome.pieces().concat().into()
}

fn to(text: &str) -> Destination {
    text.parse().unwrap()
}

fn sent(mta: &Mta, stored: &Bytes, places: &[u32], destination: &str) -> MessageTransferEnvelope {
    let outgoing = mta.outgoing(stored, places, &to(destination)).unwrap();
    assert_eq!(outgoing.left_out, []);
    match outgoing.apdu {
        Some(Apdu::Message(message)) => message.envelope,
        other => panic!("no message: {other:?}"),
    }
}

fn responsible(envelope: &MessageTransferEnvelope) -> Vec<bool> {
    let fields = envelope.per_recipient_fields.iter();
    fields.map(crate::subject::is_responsible).collect()
}

#[test]
fn a_record_names_originator_and_recipients() {
    let mut message = message(&[user("smith", "B"), user("x", "C"), user("smith", "B")]);
    let recipients = &mut message.envelope.per_recipient_fields;
    for (place, bits) in [
        (0, PerRecipientIndicators::ORIGINATING_MTA_REPORT),
        (1, PerRecipientIndicators::ORIGINATOR_REPORT),
    ] {
        recipients[place].per_recipient_indicators =
            bits.with(PerRecipientIndicators::RESPONSIBILITY);
    }
    let content = message.content.to_bytes();
    let outcome = from_a(&middle(), message);
    let record = outcome.record(&outcome.onward[1]);
    assert_eq!(
        record.reverse_path.as_deref(),
        Some("S=origin;P=A;A=Carrier;C=GB")
    );
    let smith = |place, tell_success| RecordRecipient {
        address: "S=smith;P=B;A=Carrier;C=GB".to_owned(),
        place,
        tell_success,
        tell_failure: true,
    };
    assert_eq!(record.recipients, [smith(0, true), smith(2, false)]);
    // The content is the piece that came.
    let [_, piece] = outcome.pieces().try_into().unwrap();
    assert_eq!(piece, content);
    // A next MTA reports deliveries itself.
    let other = outcome.record(&outcome.onward[0]);
    assert_eq!(
        (other.recipients[0].place, other.recipients[0].tell_success),
        (1, false)
    );
}

#[test]
fn records_of_probes_and_reports() {
    let mta = middle();
    let apdu = Apdu::Probe(probe(&[user("x", "C")]));
    let outcome = mta.transfer(apdu, arrival(FROM_A)).unwrap();
    let record = outcome.record(&outcome.onward[0]);
    assert_eq!(
        record.reverse_path.as_deref(),
        Some("S=origin;P=A;A=Carrier;C=GB")
    );
    assert_eq!(record.recipients[0].address, "S=x;P=C;A=Carrier;C=GB");
    let outgoing = mta
        .outgoing(&octets(&outcome), &[0], &to("peer:c"))
        .unwrap();
    assert!(matches!(outgoing.apdu, Some(Apdu::Probe(_))));
    let apdu = Apdu::Report(Box::new(report(user("origin", "A"))));
    let outcome = mta.transfer(apdu, arrival(Source::Peer("c"))).unwrap();
    let record = outcome.record(&outcome.onward[0]);
    assert_eq!(record.reverse_path, None);
    let expected = RecordRecipient {
        address: "S=origin;P=A;A=Carrier;C=GB".to_owned(),
        place: 0,
        tell_success: false,
        tell_failure: false,
    };
    assert_eq!(record.recipients, [expected]);
    let outgoing = mta
        .outgoing(&octets(&outcome), &[0], &to("peer:a"))
        .unwrap();
    let Some(Apdu::Report(report)) = outgoing.apdu else {
        panic!("no report")
    };
    assert_eq!(report.envelope.trace_information.0.len(), 2);
    assert_eq!(report.envelope.internal_trace().unwrap().0, []);
    assert_eq!(outgoing.left_out, []);
}

#[test]
fn the_last_mta_tells_of_deliveries_by_gateways() {
    let mta = middle();
    let aftn: OrAddress = "OU1=EDDFYMYX;O=AFTN;A=ICAO;C=XX".parse().unwrap();
    let told = |apdu| {
        let outcome = mta.transfer(apdu, arrival(FROM_A)).unwrap();
        let part = &outcome.onward[0];
        assert_eq!(part.destination, to("gateway:aftn"));
        outcome.record(part).recipients[0].tell_success
    };
    for (bit, expected) in [
        (PerRecipientIndicators::ORIGINATOR_REPORT, true),
        (
            PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT,
            false,
        ),
    ] {
        let mut message = message(std::slice::from_ref(&aftn));
        message.envelope.per_recipient_fields[0].per_recipient_indicators =
            bit.with(PerRecipientIndicators::RESPONSIBILITY);
        assert_eq!(told(Apdu::Message(message)), expected);
    }
    assert!(told(Apdu::Probe(probe(std::slice::from_ref(&aftn)))));
}

#[test]
fn places_have_a_text() {
    let recipient = |place| RecordRecipient {
        address: String::new(),
        place,
        tell_success: false,
        tell_failure: false,
    };
    for place in [0, 17, u32::MAX] {
        let tag = recipient(place).tag();
        assert_eq!(RecordRecipient::place_of(&tag), Some(place));
    }
    assert_eq!(recipient(17).tag(), "x400;17");
    for tag in ["17", "x400;", "rfc822;17", "x400;-1"] {
        assert_eq!(RecordRecipient::place_of(tag), None);
    }
}

#[test]
fn a_retry_has_the_responsibility_for_what_remains() {
    let mta = middle();
    let outcome = from_a(
        &mta,
        message(&[
            user("x", "C"),
            user("y", "C"),
            user("smith", "B"),
            user("z", "C"),
        ]),
    );
    let stored = octets(&outcome);
    for (places, bits) in [
        (vec![0, 1, 3], [true, true, false, true]),
        (vec![3], [false, false, false, true]),
        (vec![1, 0], [true, true, false, false]),
    ] {
        let envelope = sent(&mta, &stored, &places, "peer:c");
        assert_eq!(responsible(&envelope), bits);
        assert_eq!(envelope.trace_information.0.len(), 2);
    }
    let none = mta.outgoing(&stored, &[], &to("peer:c")).unwrap();
    assert_eq!((none.apdu, none.left_out), (None, vec![]));
    let error = mta.outgoing(&stored, &[4], &to("peer:c")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a place of the 4 recipients; found 4"
    );
    assert!(matches!(
        mta.outgoing(&Bytes::from_static(b"x"), &[0], &to("peer:c")),
        Err(RecordError::Unit(_))
    ));
}

#[test]
fn the_internal_trace_stays_in_the_domain() {
    let mta = middle();
    let stored = octets(&from_a(&mta, message(&[user("x", "C")])));
    for (destination, elements) in [
        ("peer:c", 0),
        ("peer:b2", 1),
        ("store:smith", 0),
        ("gateway:aftn", 0),
        ("peer:lost", 0),
    ] {
        let envelope = sent(&mta, &stored, &[0], destination);
        let kind = StandardExtension::InternalTraceInformation;
        assert_eq!(envelope.extensions.find(kind).is_some(), elements > 0);
        assert_eq!(envelope.internal_trace().unwrap().0.len(), elements);
    }
}

#[test]
fn the_trace_says_redirected_for_redirected_recipients_alone() {
    let mut mta = middle();
    let smith = mta.site.users.entry("smith".to_owned()).or_default();
    smith.redirect_to = Some(user("second", "B"));
    let outcome = from_a(&mta, message(&[user("second", "B"), user("smith", "B")]));
    let stored = octets(&outcome);
    for (places, redirected) in [(vec![0], false), (vec![1], true), (vec![0, 1], true)] {
        let envelope = sent(&mta, &stored, &places, "peer:b2");
        let own = &envelope.trace_information.0[1].domain_supplied_information;
        assert_eq!(
            own.other_actions.contains(OtherActions::REDIRECTED),
            redirected
        );
        let internal = envelope.internal_trace().unwrap();
        let own = &internal.0[0].mta_supplied_information;
        assert_eq!(
            own.other_actions.contains(OtherActions::REDIRECTED),
            redirected
        );
        let first = &envelope.trace_information.0[0].domain_supplied_information;
        assert!(first.other_actions.is_empty());
    }
}

#[test]
fn a_redirection_of_before_is_not_one_of_here() {
    let mta = middle();
    let mut before = message(&[user("x", "C")]);
    let history = ExtensionValue::RedirectionHistory(vec![Redirection {
        intended_recipient_name: IntendedRecipientName {
            intended_recipient: user("first", "A").into(),
            redirection_time: Time::from_unix(NOW - 60),
            ..Default::default()
        },
        ..Default::default()
    }]);
    before.envelope.per_recipient_fields[0]
        .extensions
        .set(&history);
    let envelope = sent(&mta, &octets(&from_a(&mta, before)), &[0], "peer:c");
    let own = &envelope.trace_information.0[1].domain_supplied_information;
    assert!(own.other_actions.is_empty());
}

fn of_1984() -> Mta {
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
fn a_peer_of_1984_gets_an_envelope_of_1984() {
    // Stored while the peer was one of 1988. All recipients have one number, as after an expansion.
    let mut list = message(&[
        user("x", "C"),
        address("S=Größe;P=C;A=Carrier;C=GB"),
        user("z", "C"),
        address("S=Übel;P=C;A=Carrier;C=GB"),
    ]);
    for fields in &mut list.envelope.per_recipient_fields {
        fields.originally_specified_recipient_number = 7;
    }
    list.envelope
        .extensions
        .0
        .push(unknown_extension(Criticality::default()));
    let stored = octets(&from_a(&middle(), list));
    let mta = of_1984();
    let outgoing = mta.outgoing(&stored, &[1, 2], &to("peer:c")).unwrap();
    assert_eq!(outgoing.left_out, [1]);
    let Some(Apdu::Message(message)) = outgoing.apdu else {
        panic!("no message")
    };
    assert_eq!(message.envelope.extensions, Extensions::default());
    assert_eq!(responsible(&message.envelope), [false, true]);
    let numbers = message.envelope.per_recipient_fields.iter();
    assert!(
        numbers
            .clone()
            .all(|one| one.originally_specified_recipient_number == 7)
    );
    assert_eq!(
        message.content.to_bytes(),
        Bytes::from_static(b"the content")
    );
    let outgoing = mta.outgoing(&stored, &[1], &to("peer:c")).unwrap();
    assert_eq!((outgoing.apdu, outgoing.left_out), (None, vec![1]));
}

#[test]
fn a_message_that_does_not_fit_1984_leaves_all_out() {
    let mut critical = message(&[user("x", "C"), user("y", "C"), user("z", "C")]);
    critical
        .envelope
        .extensions
        .set(&ExtensionValue::LatestDeliveryTime(time(60)));
    let stored = octets(&from_a(&middle(), critical));
    let outgoing = of_1984().outgoing(&stored, &[0, 2], &to("peer:c")).unwrap();
    assert_eq!((outgoing.apdu, outgoing.left_out), (None, vec![0, 2]));
    let rich = Apdu::Report(Box::new(report(address("S=Größe;P=C;A=Carrier;C=GB"))));
    let outcome = middle().transfer(rich, arrival(FROM_A)).unwrap();
    let outgoing = of_1984()
        .outgoing(&octets(&outcome), &[0], &to("peer:c"))
        .unwrap();
    assert_eq!((outgoing.apdu, outgoing.left_out), (None, vec![0]));
    let plain = Apdu::Report(Box::new(report(user("x", "C"))));
    let outcome = middle().transfer(plain, arrival(FROM_A)).unwrap();
    let outgoing = of_1984()
        .outgoing(&octets(&outcome), &[0], &to("peer:c"))
        .unwrap();
    let Some(Apdu::Report(report)) = outgoing.apdu else {
        panic!("no report")
    };
    assert_eq!(report.envelope.extensions, Extensions::default());
}

#[test]
fn destinations_have_a_text() {
    for (text, user, peer) in [
        ("peer:a:b", None, Some("a:b")),
        ("file:x", Some("x"), None),
        ("store:x", Some("x"), None),
        ("gateway:x", None, None),
    ] {
        let destination = to(text);
        assert_eq!(destination.to_string(), text);
        assert_eq!((destination.user(), destination.peer()), (user, peer));
    }
    for text in ["", "peer", "peer:", "relay:x"] {
        assert!(text.parse::<Destination>().is_err());
    }
}
