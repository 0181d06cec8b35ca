use super::*;
use crate::testing::hex;
use bytes::Bytes;
use vere_ber::External;

fn identifier() -> SessionConnectionIdentifier {
    SessionConnectionIdentifier {
        calling: Bytes::from_static(b"mta.example"),
        common: Bytes::from_static(b"261129190000Z"),
        additional: Some(Bytes::from_static(b"1")),
    }
}

#[test]
fn requests_have_the_octets_of_the_recommendation() {
    // X.228 clause 9: defaults are left out, absent user data are [0] IMPLICIT NULL.
    let mut rtorq = Rtorq {
        checkpoint_size: 0,
        window_size: 3,
        dialogue_mode: DialogueMode::Monologue,
        connection_data: ConnectionData::Open(None),
        application_protocol: None,
    };
    assert_eq!(rtorq.write(), hex("b004 a302 8000"));
    assert_eq!(Rtorq::read(&rtorq.write()).unwrap(), rtorq);
    rtorq.checkpoint_size = 64;
    rtorq.window_size = 8;
    rtorq.dialogue_mode = DialogueMode::TwoWayAlternate;
    rtorq.connection_data = ConnectionData::Open(Some(hex("b003020105")));
    assert_eq!(
        rtorq.write(),
        hex("b012 800140 810108 820101 a307 a005 b003020105")
    );
    assert_eq!(Rtorq::read(&rtorq.write()).unwrap(), rtorq);
    rtorq.application_protocol = Some(12);
    assert_eq!(
        rtorq.components(),
        hex("800140 810108 820101 a307 a005 b003020105 84010c")
    );
    assert_eq!(Rtorq::from_components(&rtorq.components()).unwrap(), rtorq);
}

#[test]
fn answers_are_read_back() {
    for connection_data in [
        ConnectionData::Open(None),
        ConnectionData::Open(Some(hex("020105"))),
        ConnectionData::Recover(identifier()),
    ] {
        let rtoac = Rtoac {
            checkpoint_size: 2,
            window_size: 3,
            connection_data,
        };
        assert_eq!(Rtoac::read(&rtoac.write()).unwrap(), rtoac);
        assert_eq!(
            Rtoac::from_components(&rtoac.components(true)).unwrap(),
            rtoac
        );
    }
    let busy = Rtorj {
        reason: Some(RefuseReason::RtsBusy),
        user_data: None,
    };
    assert_eq!(busy.components(), hex("800100"));
    assert_eq!(Rtorj::from_components(&busy.components()).unwrap(), busy);
    let refused = Rtorj {
        reason: None,
        user_data: Some(hex("b203020101")),
    };
    assert_eq!(refused.write(), hex("b207 a105 b203020101"));
    assert_eq!(Rtorj::read(&refused.write()).unwrap(), refused);
    let abort = Rtab {
        reason: Some(AbortReason::UserError),
        user_data: Some(hex("0500")),
    };
    assert_eq!(abort.write(), hex("b607 800106 a2020500"));
    assert_eq!(Rtab::read(&abort.write()).unwrap(), abort);
    assert_eq!(apdu::write_priority(5), hex("020105"));
    assert_eq!(apdu::read_priority(&hex("0201ff")).ok(), None);
    assert_eq!(apdu::read_priority(&hex("020107")), Ok(7));
}

#[test]
fn other_apdus_are_refused() {
    for octets in [
        "",
        "b000",
        "b004 a302 8100",
        "b006 a304 a302 8000",
        "b104 a202 8000",
        "b008 820102 a3028000",
        "b00a 8004ffffffff a3028000",
    ] {
        assert!(Rtorq::read(&hex(octets)).is_err(), "{octets}");
    }
    assert!(Rtorq::from_components(&hex("a308 a106 020101 170161")).is_err());
    assert!(Rtoac::read(&hex("b100")).is_err());
    assert!(apdu::read_priority(&hex("0401 61")).is_err());
}

#[test]
fn an_identifier_goes_through_the_session() {
    for x410 in [false, true] {
        let session = identifier().to_session(x410);
        let lead = if x410 { 0x14 } else { 0x04 };
        assert_eq!(session.user.as_ref().unwrap()[0], lead);
        assert_eq!(
            SessionConnectionIdentifier::from_session(&session),
            Some(identifier())
        );
    }
    let plain = crate::session::ConnectionIdentifier {
        user: Some(hex("ff")),
        common: Some(hex("aa")),
        additional: None,
    };
    assert_eq!(
        SessionConnectionIdentifier::from_session(&plain)
            .unwrap()
            .calling,
        hex("ff")
    );
}

#[test]
fn segments_have_the_checkpoint_size_and_the_window_holds() {
    let mut outgoing = Outgoing::new(1, 2500, 1024, 1);
    assert_eq!((outgoing.begins(), outgoing.begins()), (Some(1024), None));
    assert_eq!(outgoing.advance(1000), Segment::Open);
    assert_eq!(outgoing.room(), 24);
    assert_eq!(outgoing.advance(24), Segment::Checkpoint);
    outgoing.checkpoint(1);
    assert_eq!(outgoing.room(), 0);
    outgoing.confirm(1);
    assert_eq!((outgoing.room(), outgoing.begins()), (1024, Some(1024)));
    assert_eq!(outgoing.advance(1024), Segment::Checkpoint);
    outgoing.checkpoint(2);
    let broken = outgoing.broken(&identifier());
    assert_eq!(
        broken.checkpoint,
        Checkpoint {
            serial: 1,
            position: 1024
        }
    );
    assert!(broken.is_resumable() && !broken.ended);
    let mut resumed = Outgoing::resumed(2, &broken, 0, 3);
    assert_eq!((resumed.room(), resumed.begins()), (1476, Some(1476)));
    assert_eq!(resumed.advance(1476), Segment::Last);
    assert!(resumed.broken(&identifier()).ended);
}

#[test]
fn a_receiver_secures_checkpoints_in_order() {
    let mut incoming = Incoming::new(
        hex("020101"),
        Checkpoint::default(),
        IncomingState::Receiving,
    );
    incoming.advance(10);
    incoming.checkpoint(1);
    incoming.advance(10);
    incoming.checkpoint(2);
    assert_eq!(incoming.unsecured(), 2);
    assert!(!incoming.secure(3));
    assert!(incoming.secure(2));
    assert_eq!(
        incoming.secured(),
        Checkpoint {
            serial: 2,
            position: 20
        }
    );
    assert!(!incoming.secure(1));
}

#[test]
fn the_wrapper_is_an_external() {
    for length in [2, 110, 118, 119, 127, 128, 70_000] {
        let value =
            vere_ber::write::primitive(vere_ber::Tag::OCTET_STRING, &vec![1; length]).into_bytes();
        let mut whole = wrapper(5, u64::try_from(value.len()).unwrap()).to_vec();
        whole.extend_from_slice(&value);
        assert_eq!(
            Bytes::from(whole),
            vere_ber::encode(&External::of_context(5, value))
        );
    }
}

#[test]
fn a_wrapper_of_every_form_is_taken_off() {
    for octets in [
        "2808 020105 a003 040161",
        "2880 020105 a080 040161 0000 0000",
        "2880 06025101 020105 070141 a003 040161 0000",
        "2808 020105 8103 040161",
    ] {
        let octets = hex(octets);
        for chunk in 1..octets.len() {
            let mut unwrapper = Unwrapper::new();
            let mut value = Vec::new();
            for piece in octets.chunks(chunk) {
                assert!(unwrapper.end().is_err());
                unwrapper.push(Bytes::copy_from_slice(piece));
                while let Some(octets) = unwrapper.read().unwrap() {
                    value.extend_from_slice(&octets);
                }
            }
            assert_eq!(
                (value.as_slice(), unwrapper.context()),
                (&hex("040161")[..], Some(5))
            );
            unwrapper.end().unwrap();
        }
    }
    for octets in [
        "3003 020105",
        "2806 020105 820161",
        "2808 020105 a003 040161 2800",
    ] {
        let mut unwrapper = Unwrapper::new();
        unwrapper.push(hex(octets));
        let read = std::iter::from_fn(|| unwrapper.read().transpose()).find(Result::is_err);
        assert!(read.is_some(), "{octets}");
    }
}
