//! The layers of the OSI stack: each machine says the same to octets in any pieces, answers a bounded number of octets,
//! and ends.

mod association;

use bytes::Bytes;
use vere_osi::Pieces;
use vere_osi::session::{
    Accepting, Connecting, Session, SessionConfig, SessionEvent, SessionTimer, Spdu,
};
use vere_osi::transport::{Tpdu, Transport, TransportConfig, TransportEvent};

use super::choice::choice;

pub(super) use association::{SEEDS as ASSOCIATION_SEEDS, association};

/// A request and data; a confirm and data; an error; a request with all parameters.
pub(super) const TRANSPORT_SEEDS: &[&[u8]] = &[
    b"\x00\x03\x00\x00\x16\x11\xe0\x00\x00\x00\x01\x00\xc0\x01\x0d\xc2\x02\x00\x01\xc1\x02\x00\x01\x03\x00\x00\x08\x02\xf0\x00a\x03\x00\x00\x08\x02\xf0\x80b",
    b"\x01\x03\x00\x00\x0b\x06\xd0\x00\x01\x00\x02\x00\x03\x00\x00\x09\x02\xf0\x80ab",
    b"\x01\x03\x00\x00\x09\x04\x70\x00\x01\x01",
    b"\x00\x03\x00\x00\x19\x14\xe0\x00\x00\x00\x01\x00\xc0\x01\x07\xf0\x02\x01\xff\xc7\x01\x00\xc1\x01a\xc2\x01b",
];

/// TSDUs behind their lengths: a connection, an activity and a release; a connection that is accepted and aborted.
pub(super) const SESSION_SEEDS: &[&[u8]] = &[
    b"\x00\x11\x0d\x0f\x05\x06\x13\x01\x00\x16\x01\x03\x14\x02\x03\x49\xc1\x01a\
      \x07\x01\x00\x2d\x03\x29\x01\x01\x06\x01\x00\x01\x00ab\x07\x01\x00\x31\x03\x2a\x01\x31\
      \x07\x01\x00\x29\x03\x2a\x01\x32\x02\x09\x00",
    b"\x01\x0e\x0e\x0c\x05\x06\x13\x01\x00\x16\x01\x02\x14\x02\x03\x49\x05\x02\x03\x10\x01\x01\x05\x19\x03\x11\x01\x0b",
    b"\x00\x11\x0d\x0f\x05\x06\x13\x01\x00\x16\x01\x02\x14\x02\x03\x49\xc1\x01a\
      \x0f\x01\x00\x1d\x0b\x21\x06\x29\x01\x01\x2a\x01\x31\x29\x01\x02\x07\x01\x00\x39\x03\x32\x01\x00",
];

/// The largest TPDU of the machines under test.
const TPDU_SIZE: u32 = 2048;
/// Octets that a machine writes for octets of a peer, at most: an answer for each, and its own beginning and end.
const WRITTEN_FACTOR: usize = 64;

/// Takes packets as the side that the first octet selects.
pub(super) fn transport(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    let whole = talk(choice, rest, usize::MAX);
    assert_eq!(talk(choice, rest, 1), whole, "the same, octet by octet");
    assert!(whole.1.len() <= (rest.len() + 10) * WRITTEN_FACTOR);
    if let Ok(tpdu) = Tpdu::read(&Bytes::copy_from_slice(rest)) {
        let packet = tpdu.write();
        let length = packet.get(2..4).and_then(|octets| octets.try_into().ok());
        assert_eq!(
            length.map(u16::from_be_bytes).map(usize::from),
            Some(packet.len())
        );
        assert_eq!(Tpdu::read(&packet.slice(4..)), Ok(tpdu));
    }
}

/// Events with pieces of data joined, and the octets that were written.
fn talk(choice: u8, octets: &[u8], chunk: usize) -> (Vec<TransportEvent>, Vec<u8>) {
    let mut machine = Transport::new(TransportConfig {
        tpdu_size: TPDU_SIZE,
        ..TransportConfig::default()
    });
    if choice & 1 != 0 {
        machine.connect(None, Some(Bytes::from_static(b"mta")));
    }
    let mut events = Vec::new();
    for piece in octets.chunks(chunk) {
        machine.receive(Bytes::copy_from_slice(piece));
        transport_events(&mut machine, &mut events);
    }
    machine.ended();
    transport_events(&mut machine, &mut events);
    let written = machine.take_output().into_bytes().to_vec();
    (events, written)
}

fn transport_events(machine: &mut Transport, events: &mut Vec<TransportEvent>) {
    while let Some(event) = machine.poll() {
        match (event, events.last_mut()) {
            (
                TransportEvent::Data { octets: more, end },
                Some(TransportEvent::Data {
                    octets,
                    end: last @ false,
                }),
            ) => {
                *octets = [&octets[..], &more[..]].concat().into();
                *last = end;
            }
            (event, _) => {
                if matches!(event, TransportEvent::ConnectIndication(_)) {
                    machine.accept();
                    machine.send(Pieces::from(vec![7; 100]), true);
                }
                events.push(event);
            }
        }
    }
}

/// Takes TSDUs, each behind an octet with its length, as the side that the first octet selects.
pub(super) fn session(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    let whole = converse(choice, rest, usize::MAX);
    assert_eq!(converse(choice, rest, 1), whole, "the same, octet by octet");
    for tsdu in tsdus(rest) {
        for second in [false, true] {
            spdu(tsdu, second);
        }
    }
}

fn spdu(octets: &[u8], second: bool) {
    let Ok(spdu) = Spdu::read(&Bytes::copy_from_slice(octets), second) else {
        return;
    };
    // A token SPDU goes before an SPDU of category 2.
    let token = match spdu.kind().category() {
        2 => 2,
        _ => 0,
    };
    let written = spdu.write().slice(token..);
    assert_eq!(Spdu::read(&written, second), Ok(spdu));
}

fn tsdus(octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first()?;
        let (tsdu, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        Some(tsdu)
    })
}

fn converse(choice: u8, octets: &[u8], chunk: usize) -> (Vec<SessionEvent>, Vec<u8>) {
    let config = SessionConfig::default();
    let mut machine = if choice & 1 == 0 {
        Session::responder(config)
    } else {
        let mut session = Session::initiator(config);
        assert!(session.connect(Connecting::default()).is_ok());
        session
    };
    machine.transport_connected();
    let mut events = Vec::new();
    let mut written = Vec::new();
    for tsdu in tsdus(octets) {
        let mut pieces = tsdu.chunks(chunk).peekable();
        while let Some(piece) = pieces.next() {
            machine.receive(Bytes::copy_from_slice(piece), pieces.peek().is_none());
            session_events(&mut machine, &mut events, &mut written);
        }
    }
    if machine.timer() == Some(SessionTimer::Tim) {
        machine.expired(SessionTimer::Tim);
    }
    machine.transport_disconnected();
    session_events(&mut machine, &mut events, &mut written);
    assert_eq!(machine.timer(), None, "a timer after the end");
    (events, written)
}

fn session_events(machine: &mut Session, events: &mut Vec<SessionEvent>, written: &mut Vec<u8>) {
    loop {
        while let Some((octets, _)) = machine.take_output() {
            written.extend_from_slice(&octets.into_bytes());
        }
        let Some(event) = machine.poll() else {
            return;
        };
        answer(machine, &event);
        match (event, events.last_mut()) {
            (SessionEvent::Data(more, end), Some(SessionEvent::Data(octets, last @ false))) => {
                *octets = [&octets[..], &more[..]].concat().into();
                *last = end;
            }
            (event, _) => events.push(event),
        }
    }
}

/// Answers as a user of the service who agrees to everything. A request without a place is refused, which is none of the
/// peer's business.
fn answer(machine: &mut Session, event: &SessionEvent) {
    let _done = match event {
        SessionEvent::ConnectIndication(_) => machine.accept(Accepting::default()),
        SessionEvent::ConnectConfirm(_) => {
            machine.activity_start(Bytes::from_static(b"\x02\x01\x01"))
        }
        SessionEvent::SyncMinor(serial, true) => machine.sync_minor_response(*serial),
        SessionEvent::ActivityEnd(_) => machine.activity_end_response(),
        SessionEvent::ActivityInterrupt(_) => machine.activity_interrupt_response(),
        SessionEvent::ActivityDiscard(_) => machine.activity_discard_response(),
        SessionEvent::TokenPlease(..) => machine.control_give(),
        SessionEvent::Release(_) => machine.release_response(Bytes::new()),
        _ => Ok(()),
    };
}
