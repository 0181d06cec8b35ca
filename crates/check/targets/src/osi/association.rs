//! Whole associations, in both roles and both modes.

use bytes::Bytes;
use vere_osi::Limits;
use vere_osi::association::{
    AcceptRequest, Addresses, Association, Event, Mode, OpenRequest, Output, Profile,
    ResponderConfig, Timer,
};
use vere_osi::rtse::SessionConnectionIdentifier;

use crate::choice::choice;

/// The responder of an association in normal mode with a transfer, the initiator of one; both in X.410 mode.
pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x00\x03\x00\x00\x12\r\xe0\x00\x00\x00\x01\x00\xc0\x01\r\xf0\x02\x01\xff\
      \x03\x00\x00\xa2\x02\xf0\x80\r\x99\x01 \n\r\x04\x0bmta.example\x0b\x0f\x17\r261129190000Z\x05\t\x13\x01\x00\
      \x16\x01\x03\x1a\x01\x00\x14\x02\x02I\xc1f1d\xa0\x03\x80\x01\x01\xa2]\xa430\x0f\x02\x01\x01\x06\x04R\x01\x00\
      \x010\x04\x06\x02Q\x010\x0f\x02\x01\x03\x06\x04V\x00\x02\x0c0\x04\x06\x02Q\x010\x0f\x02\x01\x05\x06\x04V\x00\
      \x02\x070\x04\x06\x02Q\x01a&0$\x02\x01\x01\xa0\x1f`\x1d\xa1\x06\x06\x04V\x00\x01\x06\xbe\x13(\x11\x02\x01\x03\
      \xa0\x0c\xb0\n\x80\x01\x01\x82\x01\x01\xa3\x02\x80\x00\
      \x03\x00\x00\x10\x02\xf0\x80\x01\x00-\x05)\x03\x02\x01\x01\
      \x03\x00\x00*\x02\xf0\x80\x01\x00\x01\x00a\x1d0\x1b\x02\x01\x03\xa0\x16\x04\x14UUUUUUUUUUUUUUUUUUUU\
      \x03\x00\x00\x0e\x02\xf0\x80\x01\x00)\x03*\x011\
      \x03\x00\x00\x1c\x02\xf0\x80\t\x13\x11\x01\x01\xc1\x0ea\x0c0\n\x02\x01\x01\xa0\x05b\x03\x80\x01\x00",
    b"\x01\x03\x00\x00\x0f\n\xd0\x00\x01\x00\x01\x00\xf0\x02\x01\xff\
      \x03\x00\x00\x93\x02\xf0\x80\x0e\x8a\x01 \t\r\x04\x0bmta.example\x0b\x0f\x17\r261129190000Z\x05\t\x13\x01\x00\
      \x16\x01\x02\x1a\x01\x00\x14\x02\x02I\xc1W1U\xa0\x03\x80\x01\x01\xa2N\xa5\x1b0\x07\x80\x01\x00\x81\x02Q\x010\
      \x07\x80\x01\x00\x81\x02Q\x010\x07\x80\x01\x00\x81\x02Q\x01a/0-\x02\x01\x01\xa0(a&\xa1\x06\x06\x04V\x00\x01\
      \x06\xa2\x03\x02\x01\x00\xa3\x05\xa1\x03\x02\x01\x00\xbe\x10(\x0e\x02\x01\x03\xa0\t\xb1\x07\x80\x01\x01\xa2\
      \x02\x80\x00\
      \x03\x00\x00\x0e\x02\xf0\x80\x02\x002\x03*\x011\x03\x00\x00\x0e\x02\xf0\x80\x02\x00*\x03*\x012\
      \x03\x00\x00\x19\x02\xf0\x80\n\x10\xc1\x0ea\x0c0\n\x02\x01\x01\xa0\x05c\x03\x80\x01\x00",
    b"\x00\x03\x00\x00\x12\r\xe0\x00\x00\x00\x01\x00\xc0\x01\r\xf0\x02\x01\xff\
      \x03\x00\x00R\x02\xf0\x80\rI\x01 \n\r\x14\x0bmta.example\x0b\x0f\x17\r261129190000Z\x05\t\x13\x01\x00\x16\x01\
      \x01\x1a\x01\x00\x14\x02\x02I\xc1\x161\x14\xa0\x03\x80\x01\x00\xa1\r\x80\x01\x01\x82\x01\x01\xa3\x02\x80\x00\
      \x84\x01\x0c\
      \x03\x00\x00\x10\x02\xf0\x80\x01\x00-\x05)\x03\x02\x01\x01\
      \x03\x00\x00\x1f\x02\xf0\x80\x01\x00\x01\x00UUUUUUUUUUUUUUUUUUUU\
      \x03\x00\x00\x0e\x02\xf0\x80\x01\x00)\x03*\x011\x03\x00\x00\x0c\x02\xf0\x80\t\x03\x11\x01\x01",
    b"\x03\x03\x00\x00\x0f\n\xd0\x00\x01\x00\x01\x00\xf0\x02\x01\xff\
      \x03\x00\x00L\x02\xf0\x80\x0eC\x01 \t\r\x14\x0bmta.example\x0b\x0f\x17\r261129190000Z\x05\t\x13\x01\x00\x16\
      \x01\x01\x1a\x01\x00\x14\x02\x02I\xc1\x101\x0e\xa0\x03\x80\x01\x00\xa1\x07\x80\x01\x01\xa2\x02\x80\x00\
      \x03\x00\x00\x0e\x02\xf0\x80\x02\x002\x03*\x011\x03\x00\x00\x0e\x02\xf0\x80\x02\x00*\x03*\x012\
      \x03\x00\x00\t\x02\xf0\x80\n\x00",
];

/// Octets to write that an association holds, at most, beyond its limit: an SPDU, and the end of a segment.
const UNWRITTEN_MAX: usize = 300_000;
/// The APDU that this side sends.
const APDU: [u8; 1500] = [0x55; 1500];

/// Takes octets as the side, and in the mode, that the first octet selects.
pub(crate) fn association(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    let whole = talk(choice, rest, usize::MAX);
    let single = talk(choice, rest, 1);
    assert_eq!(single.events, whole.events, "the same, octet by octet");
    // Octets behind an abort are looked at where the abort came with them, and may get an answer of the transport.
    assert!(
        whole.written.starts_with(&single.written),
        "{single:?} {whole:?}"
    );
}

/// Begins an association: bit 0 of the choice is the role, bit 1 the mode.
fn begin(choice: u8) -> Association {
    if choice & 1 == 0 {
        let config = ResponderConfig::new(Profile::mts_transfer());
        return Association::responder(Limits::default(), config);
    }
    let mut association = Association::initiator(Limits::default());
    let identifier = SessionConnectionIdentifier {
        calling: Bytes::from_static(b"mta.example"),
        common: Bytes::from_static(b"261129190000Z"),
        additional: None,
    };
    let request = OpenRequest {
        mode: match choice & 2 {
            0 => Mode::Normal,
            _ => Mode::X410(12),
        },
        checkpoint_size: 1,
        ..OpenRequest::new(Addresses::default(), identifier)
    };
    assert!(association.open(request).is_ok());
    association
}

/// Events with pieces of APDUs joined, and the octets that were written.
#[derive(Debug, Default)]
struct Story {
    events: Vec<Event>,
    written: Vec<u8>,
    closed: bool,
}

fn talk(choice: u8, octets: &[u8], chunk: usize) -> Story {
    let mut association = begin(choice);
    let mut story = Story::default();
    obey(&mut association, &mut story);
    for piece in octets.chunks(chunk) {
        association.receive(Bytes::copy_from_slice(piece));
        obey(&mut association, &mut story);
    }
    association.ended();
    obey(&mut association, &mut story);
    for timer in [
        Timer::Association,
        Timer::Transfer,
        Timer::Turn,
        Timer::Release,
        Timer::Tim,
    ] {
        association.expired(timer);
    }
    obey(&mut association, &mut story);
    assert_eq!(association.timer(), None, "a timer after the end");
    assert!(story.closed, "an association without an end");
    story
}

fn obey(association: &mut Association, story: &mut Story) {
    while let Some(output) = association.poll() {
        assert!(association.unwritten() < UNWRITTEN_MAX);
        match output {
            Output::Write(pieces) => story.written.extend_from_slice(&pieces.into_bytes()),
            Output::Close => story.closed = true,
            Output::Event(event) => {
                answer(association, &event);
                match (event, story.events.last_mut()) {
                    (Event::Apdu(more), Some(Event::Apdu(octets))) => {
                        *octets = [&octets[..], &more[..]].concat().into();
                    }
                    (event, _) => story.events.push(event),
                }
            }
        }
    }
}

/// Answers as a host that agrees to everything. A request without a place is refused, which is none of the peer's
/// business.
fn answer(association: &mut Association, event: &Event) {
    let _done = match event {
        Event::OpenIndication(_) => association.accept(AcceptRequest {
            checkpoint_size: 1,
            window_size: 3,
            ..AcceptRequest::default()
        }),
        Event::Checkpoint(point) => association.secured(point.serial),
        Event::Received(_) => association.confirm(),
        Event::ResumeIndication(_) => association.continue_from(0),
        Event::ReleaseIndication => association.accept_release(),
        Event::TurnPlease(_) => association.give_turn(),
        Event::Opened(_) | Event::TurnGiven => {
            let begun = association.transfer(1500).map(drop);
            let _supplied = association.supply(&mut Bytes::from_static(&APDU));
            begun
        }
        Event::Transferred(_) => association.release(),
        Event::NotTransferred(Some(broken)) => association.resume(broken).map(drop),
        _ => Ok(()),
    };
}
