//! tshark as a judge, which has to decode captures of whole associations without a complaint.

use bytes::Bytes;
use vere_ber::{Pieces, Tag, write};
use vere_capture::{Capture, Complaint};

use super::pair::{Pair, X410, accepting, request};
use crate::association::*;
use crate::names;
use crate::rtse::{ConnectionData, RefuseReason, wrapper};
use crate::session::Exception;
use crate::testing::hex;

fn value(tag: Tag, values: &[Bytes]) -> Bytes {
    write::constructed(tag, values.iter().map(|value| Pieces::from(value.clone()))).into_bytes()
}

/// A P1 message (X.411 Figure 2) with an interpersonal message of one IA5 text of this length.
fn message(length: usize) -> Bytes {
    let domain = hex("6104 13024e4f 6203 130120");
    let name = value(
        Tag::application(0),
        &[value(
            Tag::SEQUENCE,
            &[hex("610413024e4f 6203130120 830141")],
        )],
    );
    let identifier = value(
        Tag::application(4),
        &[
            value(Tag::application(3), std::slice::from_ref(&domain)),
            hex("1605 6d73672d31"),
        ],
    );
    let passed = value(Tag::SET, &[hex("800d 3236313132393139303030305a 820100")]);
    let trace = value(
        Tag::SEQUENCE,
        &[value(Tag::application(3), &[domain]), passed],
    );
    let trace = value(Tag::application(9), &[trace]);
    let recipient = value(Tag::SET, &[name.clone(), hex("800101 81020098")]);
    let recipients = value(Tag::context(2), &[recipient]);
    let envelope = value(
        Tag::SET,
        &[identifier, name, hex("460102"), trace, recipients],
    );
    let text = write::primitive(Tag::universal(22), &vec![b'x'; length]).into_bytes();
    let body = value(
        Tag::SEQUENCE,
        &[value(Tag::context(0), &[hex("3100"), text])],
    );
    let content = value(Tag::context(0), &[hex("3105 6b03 130131"), body]);
    let content = write::spliced(Tag::OCTET_STRING, Pieces::from(content)).into_bytes();
    value(Tag::context(0), &[envelope, content])
}

/// The APDU that carries a message.
fn wrapped(pair: &Pair, mode: Mode, message: &Bytes) -> Vec<u8> {
    let mut apdu = match mode {
        Mode::Normal => {
            let context = pair.a.association.context(&names::MTSE).unwrap();
            wrapper(context, u64::try_from(message.len()).unwrap()).to_vec()
        }
        Mode::X410(_) => Vec::new(),
    };
    apdu.extend_from_slice(message);
    apdu
}

fn bind(mode: Mode) -> OpenRequest {
    // MTABind without authentication: [16] NULL.
    let data = match mode {
        Mode::Normal => ConnectionData::Open(Some(hex("b002 0500"))),
        Mode::X410(_) => ConnectionData::Open(Some(hex("0500"))),
    };
    OpenRequest {
        data,
        ..request(mode)
    }
}

fn open(mode: Mode) -> Pair {
    let mut pair = Pair::plain(usize::MAX);
    pair.a.association.open(bind(mode)).unwrap();
    pair.run();
    pair.b.told();
    let user_data = Some(hex(if mode == Mode::Normal {
        "b102 0500"
    } else {
        "0500"
    }));
    pair.b
        .association
        .accept(AcceptRequest {
            user_data,
            ..accepting()
        })
        .unwrap();
    pair.run();
    assert!(matches!(&pair.a.told()[..], [Event::Opened(_)]));
    pair
}

/// Bind, transfers with checkpoints, turn, transfer back, release.
fn whole(mode: Mode) -> Pair {
    let mut pair = open(mode);
    for length in [5, 200, 5000] {
        let apdu = wrapped(&pair, mode, &message(length));
        pair.transfer(true, &apdu);
        assert_eq!(pair.b.received, apdu);
        pair.b.received.clear();
    }
    pair.b.association.please_turn(2).unwrap();
    pair.run();
    pair.a.association.give_turn().unwrap();
    pair.run();
    let apdu = wrapped(&pair, mode, &message(3000));
    pair.transfer(false, &apdu);
    pair.b.association.release().unwrap();
    pair.run();
    pair.a.association.accept_release().unwrap();
    pair.run();
    pair
}

/// A transfer that is interrupted and resumed, one that is discarded, and an abort.
fn broken_off(mode: Mode) -> Pair {
    let mut pair = open(mode);
    let apdu = wrapped(&pair, mode, &message(4000));
    pair.a
        .association
        .transfer(u64::try_from(apdu.len()).unwrap())
        .unwrap();
    pair.supply(true, &apdu[..2048]);
    pair.a.told();
    pair.a
        .association
        .interrupt(Exception::NonSpecific)
        .unwrap();
    pair.run();
    let [Event::NotTransferred(Some(left))] = &pair.a.told()[..] else {
        panic!("what can be resumed")
    };
    pair.a.association.resume(left).unwrap();
    pair.run();
    pair.b
        .association
        .continue_from(left.checkpoint.position)
        .unwrap();
    pair.supply(
        true,
        &apdu[usize::try_from(left.checkpoint.position).unwrap()..],
    );
    pair.a.association.transfer(9000).unwrap();
    pair.run();
    pair.a.association.discard(Exception::NonSpecific).unwrap();
    pair.run();
    pair.a.association.abort(None);
    pair.run();
    pair
}

fn refused(mode: Mode) -> Pair {
    let mut pair = Pair::plain(usize::MAX);
    pair.a.association.open(bind(mode)).unwrap();
    pair.run();
    // MTABindError busy: [18] 0.
    let user_data = Some(hex("b203 020100"));
    let request = RejectRequest {
        user_data,
        ..RejectRequest::because(RefuseReason::RtsBusy)
    };
    pair.b.association.reject(&request).unwrap();
    pair.run();
    pair
}

/// The complaint of tshark about every DATA TRANSFER SPDU in X.410 mode.
const NO_PRESENTATION: &str = "Internal error:can't get spdu type from session dissector";

#[test]
fn tshark_finds_no_fault() {
    for mode in [Mode::Normal, X410] {
        for (name, story) in [
            ("whole", whole as fn(Mode) -> Pair),
            ("broken off", broken_off),
            ("refused", refused),
        ] {
            let mut capture = Capture::new();
            capture.add(&story(mode).wire);
            let Some(complaints) = capture.complaints() else {
                return;
            };
            // In X.410 mode tshark takes user information for presentation data, of which there are none.
            let known = |complaint: &Complaint| {
                mode == Mode::Normal || complaint.message != NO_PRESENTATION
            };
            let complaints: Vec<_> = complaints.into_iter().filter(known).collect();
            assert!(complaints.is_empty(), "{mode:?}, {name}: {complaints:#?}");
        }
    }
}

/// An association with these sizes, and a bind of this length.
fn varied(tpdu_size: u32, checkpoint_size: u32, versions: u8, bind_length: usize) -> Pair {
    let limits = crate::Limits {
        tpdu_size,
        ..crate::Limits::default()
    };
    let config = ResponderConfig::new(Profile::mts_transfer());
    let mut pair = Pair::new(limits, config, usize::MAX);
    let name = write::primitive(Tag::context(0), &vec![b'a'; bind_length]).into_bytes();
    // MTABind with a name and a password: [16] [1] { [0] name, [1] credentials }.
    let bind = value(Tag::context(1), &[name, hex("a1041602 7077")]);
    let data = match bind_length {
        0 => hex("b002 0500"),
        _ => value(Tag::context(16), &[bind]),
    };
    pair.a
        .association
        .open(OpenRequest {
            session_versions: versions,
            checkpoint_size,
            data: ConnectionData::Open(Some(data)),
            ..request(Mode::Normal)
        })
        .unwrap();
    pair.run();
    let user_data = Some(hex("b102 0500"));
    pair.b
        .association
        .accept(AcceptRequest {
            user_data,
            checkpoint_size,
            ..accepting()
        })
        .unwrap();
    pair.run();
    for length in [0, 90, 1024, 9000] {
        let apdu = wrapped(&pair, Mode::Normal, &message(length));
        pair.transfer(true, &apdu);
    }
    pair.a.association.release().unwrap();
    pair.run();
    pair.b.association.accept_release().unwrap();
    pair.run();
    assert!(pair.a.closed && pair.b.closed);
    pair
}

#[test]
fn tshark_finds_no_fault_at_any_size() {
    let mut capture = Capture::new();
    for tpdu_size in [128, 1000, 2048, 65_531] {
        for checkpoint_size in [0, 1, 3] {
            for (versions, bind_length) in [(2, 0), (3, 60), (2, 700), (3, 9_000)] {
                let pair = varied(tpdu_size, checkpoint_size, versions, bind_length);
                capture.add(&pair.wire);
            }
        }
    }
    if let Some(mut complaints) = capture.complaints() {
        // The long binds have names that are longer than X.411 allows.
        complaints.retain(|complaint| !complaint.message.ends_with("(1 .. 32)"));
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}

#[test]
fn tshark_sees_what_was_sent() {
    let mut capture = Capture::new();
    capture.add(&whole(Mode::Normal).wire);
    let Some(lines) = capture.fields(&[], &["_ws.col.Protocol", "_ws.col.Info"]) else {
        return;
    };
    let lines = lines.concat().join("\n");
    for part in ["P1", "Turn-Please (2)", "Bind"] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
}

#[test]
fn tshark_finds_a_broken_envelope() {
    let mut pair = open(Mode::Normal);
    let mut broken = message(5).to_vec();
    // The length of the message identifier, in the envelope.
    let at = broken
        .windows(2)
        .position(|octets| octets == [0x64, 0x14])
        .unwrap();
    broken[at + 1] = 0x70;
    let apdu = wrapped(&pair, Mode::Normal, &broken.into());
    pair.transfer(true, &apdu);
    let mut capture = Capture::new();
    capture.add(&pair.wire);
    if let Some(complaints) = capture.complaints() {
        assert!(!complaints.is_empty());
    }
}
