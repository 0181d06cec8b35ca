//! Peers that send anything.

use bytes::Bytes;
use proptest::prelude::*;
use vere_ber::{Reader, Walker};

use super::pair::{Pair, X410, accepting, apdu, request};
use crate::association::*;
use crate::presentation::{self, DataReader, UserData};
use crate::rtse::{Rtab, Rtoac, Rtorj, Rtorq, Unwrapper, apdu as rtse_apdu};
use crate::session::{Exception, Spdu};
use crate::transport::Tpdu;
use crate::{Limits, acse};

/// The octets of a whole conversation, of the initiator and of the responder.
fn conversation(mode: Mode) -> (Vec<u8>, Vec<u8>) {
    let mut pair = Pair::open(mode, usize::MAX);
    pair.transfer(true, &apdu(2500));
    pair.b.association.please_turn(3).unwrap();
    pair.run();
    pair.a.association.transfer(4000).unwrap();
    pair.supply(true, &apdu(3000));
    pair.a
        .association
        .interrupt(Exception::NonSpecific)
        .unwrap();
    pair.run();
    pair.a.association.give_turn().unwrap();
    pair.run();
    pair.transfer(false, b"back");
    pair.b.association.release().unwrap();
    pair.run();
    pair.a.association.accept_release().unwrap();
    pair.run();
    let of = |from_a: bool| {
        let all = pair.wire.iter().filter(|(from, _)| *from == from_a);
        all.flat_map(|(_, octets)| octets.to_vec()).collect()
    };
    (of(true), of(false))
}

/// An obedient host. Returns the most octets held at once.
fn host(mut association: Association, octets: &[u8], chunk: usize) -> usize {
    let mut most = 0;
    for piece in octets.chunks(chunk) {
        association.receive(Bytes::copy_from_slice(piece));
        obey(&mut association);
        most = most.max(association.unwritten());
    }
    association.ended();
    obey(&mut association);
    for timer in [
        Timer::Association,
        Timer::Transfer,
        Timer::Turn,
        Timer::Release,
        Timer::Tim,
    ] {
        association.expired(timer);
    }
    obey(&mut association);
    assert!(association.poll().is_none());
    most
}

fn obey(association: &mut Association) {
    while let Some(output) = association.poll() {
        let Output::Event(event) = output else {
            continue;
        };
        // A request that has no place is refused, which is none of the peer's business.
        let _done = match event {
            Event::OpenIndication(_) => association.accept(accepting()).is_ok(),
            Event::Checkpoint(point) => association.secured(point.serial).is_ok(),
            Event::Received(_) => association.confirm().is_ok(),
            Event::ResumeIndication(_) => association.continue_from(0).is_ok(),
            Event::ReleaseIndication => association.accept_release().is_ok(),
            Event::Opened(_) | Event::TurnGiven => {
                let begun = association.transfer(3000).is_ok();
                let _supplied = association.supply(&mut Bytes::from(vec![1; 3000]));
                begun
            }
            _ => true,
        };
    }
}

fn responder() -> Association {
    Association::responder(
        Limits::default(),
        ResponderConfig::new(Profile::mts_transfer()),
    )
}

fn initiator(mode: Mode) -> Association {
    let mut association = Association::initiator(Limits::default());
    association.open(request(mode)).unwrap();
    association
}

/// Changes octets of a conversation.
fn damage(octets: &[u8], changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    let mut damaged = octets.to_vec();
    for (place, kind, value) in changes {
        if damaged.is_empty() {
            damaged.push(0);
        }
        let at = place.index(damaged.len());
        match kind % 5 {
            0 => damaged[at] = *value,
            1 => damaged[at] ^= 1 << (value % 8),
            2 => damaged.insert(at, *value),
            3 => {
                damaged.remove(at);
            }
            _ => damaged.truncate(at.max(1)),
        }
    }
    damaged
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Normal), Just(X410)]
}

type Changes = Vec<(prop::sample::Index, u8, u8)>;

fn changes() -> impl Strategy<Value = Changes> {
    prop::collection::vec(any::<(prop::sample::Index, u8, u8)>(), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_conversations_do_no_harm(mode in modes(), from_a: bool, changes in changes(), chunk in 1_usize..200) {
        let (a, b) = conversation(mode);
        let held = match from_a {
            true => host(responder(), &damage(&a, &changes), chunk),
            false => host(initiator(mode), &damage(&b, &changes), chunk),
        };
        prop_assert!(held < 300_000);
    }

    #[test]
    fn any_octets_do_no_harm(octets in prop::collection::vec(any::<u8>(), 0..400), chunk in 1_usize..64) {
        host(responder(), &octets, chunk);
        host(initiator(X410), &octets, chunk);
        let mut framed = Vec::new();
        for part in octets.chunks(chunk) {
            let total = u16::try_from(part.len() + 7).unwrap().to_be_bytes();
            framed.extend_from_slice(&[3, 0, total[0], total[1], 2, 0xf0, 0x80]);
            framed.extend_from_slice(part);
        }
        let connect = crate::testing::hex("0300000b06e00000000100");
        host(responder(), &[&connect[..], &framed].concat(), 50);
    }

    #[test]
    fn decoders_take_any_octets(octets in prop::collection::vec(any::<u8>(), 0..120), second: bool) {
        let octets = Bytes::from(octets);
        let _read = Tpdu::read(&octets).is_ok();
        let _read = Spdu::read(&octets, second).is_ok();
        let _read = presentation::Connect::read(&octets).is_ok() || presentation::Accept::read(&octets).is_ok();
        let _read = presentation::Reject::read(&octets).is_ok() || presentation::Abort::read(&octets).is_ok();
        let _read = UserData::read(&octets).is_ok() || acse::Apdu::read(&octets).is_ok();
        let _read = Rtorq::read(&octets).is_ok() || Rtoac::read(&octets).is_ok();
        let _read = Rtorj::read(&octets).is_ok() || Rtab::read(&octets).is_ok();
        let _read = Rtorq::from_components(&octets).is_ok() || rtse_apdu::read_priority(&octets).is_ok();
        let mut data = DataReader::new(3, true);
        data.push(octets.clone());
        while let Ok(Some(_)) = data.read() {}
        let mut unwrapper = Unwrapper::new();
        unwrapper.push(octets.clone());
        while let Ok(Some(_)) = unwrapper.read() {}
        let mut walker = Walker::new();
        walker.push(octets.clone());
        while let Ok(Some(_)) = walker.step() {}
        let mut reader = Reader::new(&octets);
        while let Ok(Some(element)) = reader.read() {
            let _read = element.bytes().is_ok() || element.bit_string().is_ok();
        }
    }

    #[test]
    fn values_are_walked_as_they_are_read(octets in prop::collection::vec(any::<u8>(), 0..60)) {
        let octets = Bytes::from(octets);
        let mut walker = Walker::new();
        walker.push(octets.clone());
        let mut walked = true;
        loop {
            match walker.step() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    walked = false;
                    break;
                }
            }
        }
        let whole = walked && walker.depth() == 0 && walker.waiting() == 0;
        prop_assert_eq!(whole, reads(Reader::new(&octets)));
    }
}

/// Whether the reader takes the octets as values of values.
fn reads(mut reader: Reader<'_>) -> bool {
    loop {
        match reader.read() {
            Ok(None) => return true,
            Err(_) => return false,
            Ok(Some(element)) if element.constructed => {
                if !element.reader().is_ok_and(reads) {
                    return false;
                }
            }
            Ok(Some(_)) => {}
        }
    }
}

#[test]
fn an_undamaged_conversation_is_obeyed() {
    for mode in [Mode::Normal, X410] {
        let (a, b) = conversation(mode);
        host(responder(), &a, 100);
        host(initiator(mode), &b, 100);
    }
}

#[test]
fn a_tsdu_without_end_is_not_collected() {
    let mut association = responder();
    association.receive(crate::testing::hex("0300000b06e00000000100"));
    obey(&mut association);
    // CONNECT with the longest length, and TPDUs without the end mark.
    let mut first = crate::testing::hex("0300ffff 02f000 0dffffff").to_vec();
    first.resize(65_535, 0);
    for _ in 0..100 {
        association.receive(Bytes::from(first.clone()));
        obey(&mut association);
    }
    assert_eq!(association.timer(), None);
    assert!(!association.wants_octets());
}

#[test]
fn tpdus_without_data_are_swallowed() {
    let mut association = responder();
    association.receive(crate::testing::hex("0300000b06e00000000100"));
    obey(&mut association);
    for _ in 0..10_000 {
        association.receive(crate::testing::hex("03000007 02f000"));
    }
    obey(&mut association);
    assert!(association.wants_octets());
}
