//! Hostile octets: no panic, no hang, no memory without bound.

use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use vere_ber::{ELEMENTS_MAX, Fault};

use super::sample::{FORMS, apdus, message, vary};
use crate::ipm::InformationObject;
use crate::*;

/// All readers of octets from peers, and the printing of results.
fn read_all(octets: &Bytes) {
    if let Ok(apdu) = Apdu::split(octets) {
        let again =
            Apdu::split(&apdu.to_bytes()).expect("what was read is written so that it is read");
        assert_eq!(again, apdu);
        let _ = apdu.to_string();
        if let Apdu::Message(message) = &apdu {
            let _ = downgrade_message(&message.envelope, true);
        }
    }
    if let Ok(content) = InformationObject::decode(octets) {
        assert_eq!(
            InformationObject::decode(&content.encode()),
            Ok(content.clone())
        );
        let _ = content.to_string();
    }
    let _ = MtaBindArgument::decode(octets);
    let _ = MtaBindResult::decode(octets);
    let _ = MtaBindError::decode(octets);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_octets(
        which in 0_usize..3,
        form in 0_usize..FORMS.len() + 1,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let octets = apdus()[which].to_bytes();
        let mut octets = FORMS.get(form).map_or_else(|| octets.to_vec(), |form| vary(&octets, *form));
        for (place, octet) in changes {
            let place = place.index(octets.len());
            octets[place] = octet;
        }
        read_all(&octets.clone().into());
        let end = cut.index(octets.len());
        octets.truncate(end);
        read_all(&octets.into());
    }

    #[test]
    fn removed_and_repeated_octets(
        which in 0_usize..3,
        start in any::<prop::sample::Index>(),
        length in 0_usize..64,
        repeat in any::<bool>(),
    ) {
        let mut octets = apdus()[which].to_bytes().to_vec();
        let start = start.index(octets.len());
        let end = (start + length).min(octets.len());
        if repeat {
            let part = octets[start..end].to_vec();
            octets.splice(start..start, part);
        } else {
            octets.drain(start..end);
        }
        read_all(&octets.into());
    }

    #[test]
    fn any_octets(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&octets.into());
    }
}

#[expect(clippy::disallowed_methods, reason = "a hang is seen by the clock")]
fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    result
}

#[test]
fn deep_nesting_is_refused_at_once() {
    for unit in [&[0xA0, 0x80][..], &[0x31, 0x80], &[0x24, 0x80]] {
        let octets = Bytes::from(unit.repeat(1 << 20));
        let fault = quickly(|| vere_ber::normalise(&octets)).unwrap_err().fault;
        assert_eq!(fault, Fault::Depth);
        quickly(|| read_all(&octets));
    }
    // Definite lengths: each value contains all that follows.
    let mut octets = Vec::new();
    for depth in 0..4_096_usize {
        octets.extend([0xA0, 0x83]);
        octets.extend(&u32::try_from(5 * (4_095 - depth)).unwrap().to_be_bytes()[1..]);
    }
    quickly(|| read_all(&octets.into()));
}

/// Each element of the envelope is skipped once for each container, not once for each depth.
#[test]
fn many_open_lengths_are_read_in_linear_time() {
    let mut octets = vec![0xA0, 0x80, 0x31, 0x80];
    for _ in 0..200_000 {
        octets.extend([0xA7, 0x80, 0x05, 0x00, 0x00, 0x00]);
    }
    octets.extend([0, 0, 0x04, 0, 0, 0]);
    quickly(|| read_all(&octets.into()));
}

#[test]
fn a_length_that_is_not_there_reserves_nothing() {
    for octets in ["a0847fffffff31", "a0887fffffffffffffff", "a0803184fffffff0"] {
        read_all(&super::sample::hex(octets));
    }
}

#[test]
fn the_recipients_of_a_message_are_bounded() {
    let mut message = message();
    let recipient = PerRecipientMessageTransferFields {
        recipient_name: super::sample::name("C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX"),
        ..PerRecipientMessageTransferFields::default()
    };
    message.envelope.per_recipient_fields = vec![recipient.clone(); ELEMENTS_MAX];
    let apdu = Apdu::Message(message.clone());
    let octets = quickly(|| apdu.to_bytes());
    let read = quickly(|| Apdu::split(&octets)).unwrap();
    assert_eq!(read, apdu);

    message.envelope.per_recipient_fields.push(recipient);
    let octets = Apdu::Message(message).to_bytes();
    let Err(ApduError::Ber(error)) = Apdu::split(&octets) else {
        panic!()
    };
    assert_eq!(error.fault, Fault::Elements(ELEMENTS_MAX));
}

#[test]
fn a_content_in_many_segments_is_joined() {
    let mut octets = vec![0xA0, 0x80];
    octets.extend(vere_ber::encode(&message().envelope));
    octets.extend([0x24, 0x80]);
    octets.extend([0x04, 0x01, 0x41].repeat(100_000));
    octets.extend([0, 0, 0, 0]);
    let Apdu::Message(message) = quickly(|| Apdu::split(&octets.into())).unwrap() else {
        panic!()
    };
    assert_eq!(message.content.pieces().len(), 1);
    assert_eq!(message.content.len(), 100_000);
}
