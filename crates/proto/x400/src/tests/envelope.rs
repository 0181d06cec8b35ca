//! Envelopes: every field, every form, one hop through an MTA, systems of 1984.

use bytes::Bytes;
use proptest::prelude::*;
use vere_ber::{Any, Ia5String, Unknown, decode, encode};

use super::sample::{
    self, ADDRESSES, Choices, FORMS, apdus, domain, extension_values, hex, message, time,
    unknown_element, varied_apdu, vary,
};
use crate::*;

#[test]
fn every_field_is_read_as_written() {
    for apdu in apdus() {
        let octets = apdu.to_bytes();
        let read = Apdu::split(&octets).unwrap();
        assert_eq!(read, apdu);
        assert_eq!(read.to_bytes(), octets);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_fields_are_read_as_written(which in 0_usize..3, bits in any::<u64>(), form in 0_usize..FORMS.len()) {
        let apdu = varied_apdu(which, &mut Choices::new(bits));
        let octets = apdu.to_bytes();
        let read = Apdu::split(&octets).unwrap();
        prop_assert_eq!(&read, &apdu);
        prop_assert_eq!(read.to_bytes(), octets.clone());
        let varied = Apdu::split(&vary(&octets, FORMS[form]).into()).unwrap();
        prop_assert_eq!(without_kept(&varied), without_kept(&apdu));
    }
}

/// The order of elements in SETs is not kept, that of SET OF is: extensions are compared by kind.
#[test]
fn every_form_of_ber_means_the_same() {
    for apdu in apdus() {
        let octets = apdu.to_bytes();
        for form in FORMS {
            let varied = Bytes::from(vary(&octets, form));
            assert_ne!(varied, octets, "{form:?}");
            let read = Apdu::split(&varied).unwrap_or_else(|error| panic!("{form:?}: {error}"));
            // Unknown elements keep their form, apart from indefinite lengths.
            if !form.segments && !form.reverse && !form.long {
                assert_eq!(read, apdu, "{form:?}");
            }
            assert_eq!(without_kept(&read), without_kept(&apdu), "{form:?}");
        }
    }
}

/// Octets in pieces of this length.
fn cut(octets: &Bytes, length: usize) -> Vec<Bytes> {
    let begins = (0..octets.len()).step_by(length);
    begins
        .map(|begin| octets.slice(begin..octets.len().min(begin + length)))
        .collect()
}

#[test]
fn a_unit_in_pieces_is_the_unit_in_one_piece() {
    let long = Message {
        content: Content::new((0..200_000_u32).map(|n| n as u8).collect::<Vec<_>>().into()),
        ..message()
    };
    let mut units: Vec<Bytes> = apdus().iter().map(Apdu::to_bytes).collect();
    units.push(Apdu::Message(long).to_bytes());
    let varied = |octets: &Bytes| FORMS.map(|form| Bytes::from(vary(octets, form)));
    units.extend(units.iter().flat_map(varied).collect::<Vec<_>>());
    for octets in &units {
        let whole = Apdu::split(octets).unwrap();
        for length in [1_000, 40_000, 65_530] {
            assert_eq!(
                Apdu::split_pieces(&cut(octets, length)).as_ref(),
                Ok(&whole)
            );
        }
        let mut more = cut(octets, 40_000);
        more.push(Bytes::from_static(b"x"));
        assert!(Apdu::split_pieces(&more).is_err(), "octets behind the unit");
        let short = cut(&octets.slice(..octets.len() - 1), 40_000);
        assert!(
            Apdu::split_pieces(&short).is_err(),
            "the last octet is missing"
        );
    }
}

/// The content of a usual message is not copied.
#[test]
fn the_content_of_a_message_stays_in_its_pieces() {
    let long = Message {
        content: Content::new(vec![7; 200_000].into()),
        ..message()
    };
    let octets = Apdu::Message(long).to_bytes();
    let Ok(Apdu::Message(read)) = Apdu::split_pieces(&cut(&octets, 40_000)) else {
        panic!("a message");
    };
    let pieces = read.content.pieces();
    assert_eq!(
        pieces.len(),
        6,
        "{:?}",
        pieces.iter().map(Bytes::len).collect::<Vec<_>>()
    );
    let place = |octets: &Bytes| octets.as_ptr() as usize;
    let inside = place(&octets)..place(&octets) + octets.len();
    assert!(pieces.iter().all(|piece| inside.contains(&place(piece))));
}

/// The text of an APDU without the fields kept as received.
fn without_kept(apdu: &Apdu) -> String {
    let text = apdu.to_string();
    let kept = |line: &&str| {
        !line.contains("unknown element")
            && !line.contains("originator-certificate")
            && !line.contains("4711")
            && !line.contains("extension 99")
    };
    let mut lines: Vec<&str> = text.lines().filter(kept).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn values_of_extensions_are_read_as_written() {
    for value in extension_values() {
        let field = ExtensionField::standard(&value);
        let read: ExtensionField = decode(&encode(&field)).unwrap();
        assert_eq!(read.decode().unwrap(), Some(value));
    }
}

#[test]
fn a_hop_changes_the_trace_and_nothing_else() {
    for form in FORMS {
        let arrived = Bytes::from(vary(&Apdu::Message(message()).to_bytes(), form));
        let Apdu::Message(mut passing) = Apdu::split(&arrived).unwrap() else {
            panic!()
        };
        let before = passing.envelope.clone();
        let content = passing.content.to_bytes();
        let element = TraceInformationElement::relayed(domain(), time("260504030300Z"));
        passing.envelope.push_trace(element.clone());
        let pieces = Apdu::Message(passing).to_pieces();

        let Apdu::Message(after) = Apdu::split(&pieces.concat().into()).unwrap() else {
            panic!()
        };
        assert_eq!(after.content.to_bytes(), content);
        let mut expected = before;
        expected.trace_information.0.push(element);
        assert_eq!(after.envelope, expected);
        // The content is the octets that arrived, not a copy.
        let range = arrived.as_ptr_range();
        assert!(
            pieces[1..]
                .iter()
                .all(|piece| range.contains(&piece.as_ptr()))
        );
    }
}

#[test]
fn unknown_elements_are_written_after_the_known_ones() {
    let octets = Apdu::Message(message()).to_bytes();
    let Apdu::Message(read) = Apdu::split(&octets).unwrap() else {
        panic!()
    };
    assert_eq!(read.envelope.unknown, unknown_element());
    assert_eq!(
        read.envelope.per_recipient_fields[0].unknown,
        unknown_element()
    );
    assert_eq!(read.envelope.extensions, sample::extensions());
}

#[test]
fn the_internal_trace_grows() {
    let mut envelope = MessageTransferEnvelope::default();
    assert!(envelope.internal_trace().unwrap().0.is_empty());
    for mta in ["a", "b"] {
        let mta = Ia5String::new(mta).unwrap();
        let element =
            InternalTraceInformationElement::relayed(domain(), mta, time("260504030300Z"));
        envelope.push_internal_trace(element).unwrap();
    }
    assert_eq!(envelope.internal_trace().unwrap().0.len(), 2);
    assert_eq!(envelope.extensions.0.len(), 1);
}

#[test]
fn content_in_segments_is_passed_on_in_pieces() {
    let apdu = Apdu::Message(message());
    let octets = apdu.to_bytes();
    let envelope = encode(&message().envelope);
    let mut cut = vec![0xA0, 0x80];
    cut.extend_from_slice(&envelope);
    cut.extend([0x24, 0x80]);
    for piece in message().content.to_bytes().chunks(100) {
        cut.extend([0x04, 100]);
        cut.extend_from_slice(piece);
    }
    cut.extend([0, 0, 0, 0]);
    let read = Apdu::split(&cut.into()).unwrap();
    let Apdu::Message(message) = &read else {
        panic!()
    };
    assert_eq!(message.content.pieces().len(), 3);
    assert_eq!(read, apdu);
    assert_eq!(read.to_bytes(), octets);
}

#[test]
fn an_empty_content_is_a_content() {
    let apdu = Apdu::Message(Message {
        content: Content::default(),
        ..message()
    });
    let read = Apdu::split(&apdu.to_bytes()).unwrap();
    assert_eq!(read, apdu);
}

#[test]
fn errors_name_the_field() {
    let text = |octets: &Bytes| Apdu::split(octets).unwrap_err().to_string();
    assert_eq!(text(&hex("30 00")), "expected MTS-APDU; found SEQUENCE");
    assert_eq!(
        text(&hex("a0 04 3100 0400")),
        "envelope: expected message_identifier; found the end"
    );
    assert_eq!(
        text(&hex("a0 02 3100")),
        "expected a whole value at octet 4; found the end"
    );
    assert_eq!(
        text(&hex("a2 02 6100")),
        "probe: expected probe_identifier; found the end"
    );
    let mut message = message();
    message.envelope.message_identifier.unknown = Unknown(vec![hex("1600")]);
    let octets = Apdu::Message(message).to_bytes();
    assert_eq!(
        text(&octets),
        "envelope: message_identifier: expected local_identifier once; found it twice"
    );
}

/// Source: SampleCaptures/x400-ping-success.pcap of the Wireshark wiki, user data of RTORQ and RTOAC.
#[test]
fn binds_of_another_system() {
    let argument =
        hex("b024a1228013706572636976616c2e736d68732e636f2e756ba10b1609657863616c69627572");
    let (bind, form) = MtaBindArgument::decode(&argument).unwrap();
    assert_eq!(form, BindForm::Tagged);
    assert_eq!(bind.encode(form), argument);
    let MtaBindArgument::Authenticated(initiator) = bind else {
        panic!()
    };
    assert_eq!(initiator.initiator_name.text(), "percival.smhs.co.uk");
    let Credentials::Simple(password) = initiator.initiator_credentials else {
        panic!()
    };
    assert!(password.is(b"excalibur") && !password.is(b"excalibuR"));
    assert!(!format!("{password:?}").contains("excalibur"));

    let result = hex("b122a12080146775696e65766572652e736d68732e636f2e756ba10816066d65726c696e");
    let (bind, form) = MtaBindResult::decode(&result).unwrap();
    assert_eq!(bind.encode(form), result);
    let MtaBindResult::Authenticated(responder) = bind else {
        panic!()
    };
    assert_eq!(responder.responder_name.text(), "guinevere.smhs.co.uk");
}

#[test]
fn binds_in_both_forms() {
    let plain = MtaBindArgument::default();
    assert_eq!(plain.encode(BindForm::Plain), hex("0500"));
    assert_eq!(plain.encode(BindForm::Tagged), hex("b0020500"));
    for form in [BindForm::Plain, BindForm::Tagged] {
        assert_eq!(
            MtaBindArgument::decode(&plain.encode(form)).unwrap(),
            (plain.clone(), form)
        );
        let error = MtaBindError::AuthenticationError;
        assert_eq!(
            MtaBindError::decode(&error.encode(form)).unwrap(),
            (error, form)
        );
    }
    assert_eq!(
        MtaBindError::Busy.encode(BindForm::Tagged),
        hex("b203020100")
    );
    // A password directly under the tag of the field, and a password of octets.
    let (bind, _) = MtaBindArgument::decode(&hex("a109 8003 6d7461 8102 7077")).unwrap();
    let MtaBindArgument::Authenticated(initiator) = bind else {
        panic!()
    };
    assert!(
        matches!(initiator.initiator_credentials, Credentials::Simple(password) if password.is(b"pw"))
    );
    let (bind, _) = MtaBindArgument::decode(&hex("a10b 8003 6d7461 a104 0402 7077")).unwrap();
    let MtaBindArgument::Authenticated(initiator) = bind else {
        panic!()
    };
    assert!(
        matches!(initiator.initiator_credentials, Credentials::Simple(password) if password.is(b"pw"))
    );
    assert!(MtaBindArgument::decode(&hex("0401 00")).is_err());
}

#[test]
fn domains_of_a_trace_are_compared_by_key() {
    let known = domain();
    let same = GlobalDomainIdentifier::new("234", "CARRIER", Some(" acme ")).unwrap();
    assert_eq!(known.key(), same.key());
    assert_ne!(
        known.key(),
        GlobalDomainIdentifier::new("GB", "Carrier", None)
            .unwrap()
            .key()
    );
    let address = sample::name(ADDRESSES[0]).address.key().unwrap();
    assert!(address.starts_with(&known.key()));
    for apdu in apdus() {
        assert_eq!(
            apdu.identifier().global_domain_identifier.key(),
            known.key()
        );
        assert_eq!(
            apdu.trace_information().0[0].global_domain_identifier,
            known
        );
    }
}

#[test]
fn indicators_have_eight_bits() {
    assert_eq!(encode(&PerRecipientIndicators::default()), hex("03020000"));
    assert_eq!(
        encode(&PerRecipientIndicators::RESPONSIBILITY),
        hex("03020080")
    );
    assert_eq!(
        encode(&PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED),
        hex("48020020")
    );
}

#[test]
fn critical_extensions_that_are_not_known_are_found() {
    let extensions = sample::extensions();
    let found = extensions
        .unknown_critical(Criticality::FOR_TRANSFER)
        .unwrap();
    assert_eq!(
        found.kind,
        ExtensionType::Standard(StandardExtension::Other(99))
    );
    assert!(
        extensions
            .unknown_critical(Criticality::FOR_DELIVERY)
            .is_none()
    );
}

fn plain_message() -> MessageTransferEnvelope {
    let recipient = |number, address: &str| PerRecipientMessageTransferFields {
        recipient_name: sample::name(address),
        originally_specified_recipient_number: number,
        ..Default::default()
    };
    MessageTransferEnvelope {
        message_identifier: sample::identifier("1"),
        originator_name: sample::name("CN=Desk;P=Acme;A=Carrier;C=GB"),
        content_type: ContentType::P22,
        per_recipient_fields: vec![recipient(1, ADDRESSES[0]), recipient(2, ADDRESSES[8])],
        trace_information: message().envelope.trace_information,
        ..Default::default()
    }
}

#[test]
fn envelopes_of_1984() {
    let envelope = plain_message();
    assert_eq!(
        downgrade_message(&envelope, false),
        Err(UnableToDowngrade::ContentType)
    );
    let down = downgrade_message(&envelope, true).unwrap();
    assert_eq!(down.envelope.content_type, ContentType::P2);
    assert_eq!(down.unable, vec![(2, UnableToDowngrade::Address)]);
    assert_eq!(down.envelope.per_recipient_fields.len(), 1);
    let originator = down.envelope.originator_name.to_string();
    assert_eq!(originator, "P=Acme;A=Carrier;C=GB;DDA:common=Desk");
    let second = &down.envelope.trace_information.0[1].domain_supplied_information;
    assert!(second.other_actions.is_empty());
    let types = second.converted_encoded_information_types.as_ref().unwrap();
    assert!(
        types.extended.is_none()
            && types
                .built_in
                .contains(BuiltInEncodedInformationTypes::UNKNOWN)
    );
    // An envelope of 1984 does not change.
    let again = downgrade_message(&down.envelope, false).unwrap();
    assert_eq!(again.envelope, down.envelope);

    let mut critical = plain_message();
    critical
        .extensions
        .set(&ExtensionValue::LatestDeliveryTime(time("260504030300Z")));
    assert_eq!(
        downgrade_message(&critical, true),
        Err(UnableToDowngrade::CriticalExtension)
    );
    let ReportType::NonDelivery(report) = UnableToDowngrade::Address.report_type() else {
        panic!()
    };
    assert_eq!(
        report.non_delivery_diagnostic_code,
        Some(NonDeliveryDiagnosticCode::UnableToDowngrade)
    );
}

#[test]
fn probes_and_reports_of_1984() {
    assert_eq!(
        downgrade_probe(&sample::probe()),
        Err(UnableToDowngrade::ContentType)
    );
    let report = downgrade_report(&sample::report()).unwrap();
    assert!(report.content.content_type.is_none() && report.content.extensions.0.is_empty());
    let ReportType::NonDelivery(last) = &report.content.per_recipient_fields[2]
        .last_trace_information
        .report_type
    else {
        panic!()
    };
    assert_eq!(
        last.non_delivery_reason_code,
        NonDeliveryReasonCode::UnableToTransfer
    );
    assert_eq!(last.non_delivery_diagnostic_code, None);
}

#[test]
fn envelopes_are_shown() {
    let text = Apdu::Message(message()).to_string();
    for line in [
        "  message-identifier: [/PRMD=Acme/ADMD=Carrier/C=GB/;260504.030201.1]",
        "  content-type: interpersonal-messaging-1988",
        "  priority: urgent",
        "    /ADMD= /C=DE/: 2026-05-04T04:32:00Z rerouted after /PRMD=Acme/ADMD=Carrier/C=GB/",
        "  recipient 2: O=AFTN;OU1=LEMGZPZX;P=EUROPE;A=ICAO;C=XX",
        "  extension latest-delivery-time (critical for-delivery): 2026-05-04T03:02:01Z",
        "  extension 99 (critical for-transfer): 8 octets",
        "  content: 300 octets",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let text = apdus()[2].to_string();
    assert!(text.contains("not delivered: unable-to-transfer"), "{text}");
    assert!(text.contains("diagnostic: maximum-time-expired"), "{text}");
}

#[test]
fn text_of_a_peer_cannot_control_a_terminal() {
    let mut message = message();
    message.envelope.message_identifier.local_identifier =
        Ia5String::from_octets(Bytes::from_static(b"a\x1b[2J\nb"));
    let text = Apdu::Message(message).to_string();
    assert!(text.contains("a\\u{1b}[2J\\nb"), "{text}");
    let probe = Apdu::Probe(ProbeTransferEnvelope {
        extensions: Extensions(vec![ExtensionField {
            kind: ExtensionType::Standard(StandardExtension::LatestDeliveryTime),
            value: Some(Any(hex("0400"))),
            ..Default::default()
        }]),
        ..sample::probe()
    });
    assert!(
        probe
            .to_string()
            .contains("(expected UTCTime; found OCTET STRING)")
    );
}

/// Rates of one thread: `cargo test --release -p vere-x400 how_fast -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn how_fast() {
    let rate = |name: &str, work: &dyn Fn()| {
        let start = std::time::Instant::now();
        let mut count = 0_u32;
        while start.elapsed().as_millis() < 1_000 {
            (0..100).for_each(|_| work());
            count += 100;
        }
        println!(
            "{name}: {:.0}/s",
            f64::from(count) / start.elapsed().as_secs_f64()
        );
    };
    let mut message = Message {
        envelope: plain_message(),
        content: Content::new(vec![7; 1_000].into()),
    };
    message.envelope.per_recipient_fields.truncate(1);
    let octets = Apdu::Message(message.clone()).to_bytes();
    let indefinite = Bytes::from(vary(&octets, FORMS[0]));
    println!(
        "{} octets, of them {} content",
        octets.len(),
        message.content.len()
    );
    rate("split", &|| drop(Apdu::split(&octets).unwrap()));
    rate("split, indefinite lengths", &|| {
        drop(Apdu::split(&indefinite).unwrap())
    });
    rate("split, trace, pieces", &|| {
        let Ok(Apdu::Message(mut message)) = Apdu::split(&octets) else {
            panic!()
        };
        message
            .envelope
            .push_trace(TraceInformationElement::relayed(
                domain(),
                time("260504030300Z"),
            ));
        assert_eq!(Apdu::Message(message).to_pieces().len(), 2);
    });
    rate("key of an address", &|| {
        drop(message.envelope.originator_name.address.key().unwrap())
    });
}

#[test]
fn content_types_have_short_texts() {
    for (text, short, shown) in [
        ("22", "22", "interpersonal-messaging-1988"),
        ("P22", "22", "interpersonal-messaging-1988"),
        ("p2", "2", "interpersonal-messaging-1984"),
        ("35", "35", "edi-messaging"),
        ("99", "99", "99"),
        ("2.6.1.10.0", "2.6.1.10.0", "2.6.1.10.0"),
    ] {
        let kind: ContentType = text.parse().unwrap();
        assert_eq!(
            (kind.short(), kind.to_string()),
            (short.to_owned(), shown.to_owned())
        );
        assert_eq!(kind.short().parse(), Ok(kind));
    }
    for text in ["", "p", "p1", "-1", "4294967296", "2.", "3.1", "2.6.x"] {
        assert!(text.parse::<ContentType>().is_err(), "{text}");
    }
}
