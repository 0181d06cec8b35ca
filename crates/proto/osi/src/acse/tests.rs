use super::*;
use crate::names;
use crate::testing::hex;
use bytes::Bytes;
use vere_ber::{External, ObjectIdentifier};

fn round(apdu: &Apdu) -> Bytes {
    let octets = apdu.write().into_bytes();
    assert_eq!(&Apdu::read(&octets).unwrap(), apdu);
    octets
}

#[test]
fn an_aarq_of_another_stack_is_read() {
    // The association of libiec61850's MMS client, in many public captures.
    let octets = hex(
        "6055 a107060528ca220203 a20706052901876701 a30302010c a606060429018767 a70302010c be2f 282d 020103 a028 a826 800300fde8 810105 820105 83010a a416 800101 810305f100 820c03ee1c00000408000079ef18",
    );
    let Apdu::Aarq(aarq) = Apdu::read(&octets).unwrap() else {
        panic!("an AARQ")
    };
    assert_eq!(aarq.application_context.to_string(), "1.0.9506.2.3");
    assert_eq!(aarq.called.ap_title.clone().unwrap(), hex("06052901876701"));
    assert_eq!(aarq.calling.ae_qualifier.clone().unwrap(), hex("02010c"));
    assert_eq!(aarq.user_information[0].indirect_reference, Some(3));
    assert_eq!(Apdu::Aarq(aarq).write().into_bytes(), octets);
}

#[test]
fn a_version_and_unknown_fields_are_skipped() {
    // The beginning of an ICCP association, in a public test of protocol replies, with a further field.
    let octets = hex("6017 80020780 a107060528ca220101 a206 06042902 0101 9f32 00");
    assert!(Apdu::read(&octets).is_err(), "the lengths are wrong");
    let octets = hex("6016 80020780 a107060528ca220101 a204 06022902 9f32 00");
    let Apdu::Aarq(aarq) = Apdu::read(&octets).unwrap() else {
        panic!("an AARQ")
    };
    assert_eq!(aarq.called.ap_title, Some(hex("06022902")));
}

#[test]
fn associations_are_read_back() {
    let values = [
        AuthenticationValue::Characters(Bytes::from_static(b"secret")),
        AuthenticationValue::Bits(vere_ber::BitString {
            unused: 1,
            octets: hex("fe"),
        }),
        AuthenticationValue::External(External::of_context(9, hex("020101"))),
        AuthenticationValue::Other(hex("3003020101")),
    ];
    for value in values {
        let authentication = Authentication {
            mechanism: ObjectIdentifier::new(&[2, 2, 3, 1]),
            value: Some(value),
        };
        let aarq = Aarq {
            application_context: names::MTS_TRANSFER,
            called: EntityTitle {
                ap_title: Some(hex("06022902")),
                ..EntityTitle::default()
            },
            calling: EntityTitle {
                ap_invocation: Some(7),
                ae_invocation: Some(-1),
                ..EntityTitle::default()
            },
            authentication: authentication.clone(),
            user_information: vec![External::of_context(3, hex("b000"))],
        };
        assert!(!format!("{aarq:?}").contains("secret"));
        round(&Apdu::Aarq(aarq));
        let aare = Aare {
            application_context: names::MTS_TRANSFER,
            result: AssociateResult::RejectedTransient,
            diagnostic: Diagnostic::User(UserDiagnostic::AuthenticationFailure),
            responding: EntityTitle {
                ae_qualifier: Some(hex("020101")),
                ..EntityTitle::default()
            },
            authentication,
            user_information: Vec::new(),
        };
        round(&Apdu::Aare(aare));
    }
}

#[test]
fn ends_have_the_octets_of_the_recommendation() {
    assert_eq!(round(&Apdu::Rlrq(Some(0), Vec::new())), hex("6203 800100"));
    assert_eq!(round(&Apdu::Rlre(Some(0), Vec::new())), hex("6303 800100"));
    assert_eq!(round(&Apdu::Rlrq(None, Vec::new())), hex("6200"));
    assert_eq!(
        round(&Apdu::Abrt(Source::Provider, Vec::new())),
        hex("6403 800101")
    );
    let rtab = vec![External::of_context(3, hex("b603800106"))];
    let octets = hex("6411 800100 be0c 280a 020103 a005 b603800106");
    assert_eq!(round(&Apdu::Abrt(Source::User, rtab)), octets);
}

#[test]
fn what_is_no_apdu_is_refused() {
    for octets in [
        "",
        "6000",
        "6009 a107 0605 28ca2202",
        "6100",
        "7000",
        "6403 8003aabbcc ff",
        "6102 a200",
    ] {
        assert!(Apdu::read(&hex(octets)).is_err(), "{octets}");
    }
    let aare = "6115 a106 0604 56000106 a203 020103 a305 a103 020100";
    assert!(Apdu::read(&hex(aare)).is_err(), "result 3");
}
