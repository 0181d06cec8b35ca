use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

const TASK: Task<'_> = Task {
    number: 0x0807_0605_0403_0201,
    state: b"state",
    unread: b"DATA\r\n",
};

fn packet(task: &Task<'_>) -> Vec<u8> {
    let mut packet = Vec::new();
    task.encode(&mut packet);
    packet
}

const fn done(number: u64, refused: u32) -> Done {
    Done { number, refused }
}

fn said(notice: &Notice) -> Vec<u8> {
    let mut packet = Vec::new();
    notice.encode(&mut packet);
    packet
}

#[test]
fn golden_octets_of_version_1() {
    let expected = b"\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\x05\0\0\0\x06\0\0\0stateDATA\r\n";
    assert_eq!(packet(&TASK), expected);
    assert_eq!(Task::decode(expected), Ok(TASK));
    let begun = Notice::Begun(vec![1, 0x0200]);
    let expected = b"\x01\x02\x02\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0";
    assert_eq!(said(&begun), expected);
    let ended = Notice::Done(vec![done(1, 0), done(0x0200, 0x0304)]);
    let expected = b"\x01\x03\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x04\x03\0\0";
    assert_eq!(said(&ended), expected);
    assert_eq!(said(&Notice::Done(Vec::new())), b"\x01\x03\0\0\0\0");
    assert_eq!(said(&Notice::Last), b"\x01\x04");
    assert_eq!(said(&Notice::Confined(0x7f)), b"\x01\x07\x7f");
    for notice in [begun, ended, Notice::Confined(3), Notice::Last] {
        assert_eq!(Notice::decode(&said(&notice)), Ok(notice));
    }
}

#[test]
fn the_longest_packet_fits() {
    let octets = vec![7; STATE_OCTETS_MAX];
    let task = Task {
        number: 1,
        state: &octets,
        unread: &octets,
    };
    assert_eq!(packet(&task).len(), PACKET_OCTETS_MAX);
    assert_eq!(Task::decode(&packet(&task)), Ok(task));
    let longer = [&octets[..], b"."].concat();
    let task = Task {
        state: &longer,
        ..task
    };
    let found = STATE_OCTETS_MAX + 1;
    let (field, max) = ("length of the state", STATE_OCTETS_MAX);
    let packet = packet(&task);
    let error = Task::decode(&packet);
    assert_eq!(error, Err(HandoffError::TooMuch { field, max, found }));
}

#[test]
fn a_notice_has_a_bound() {
    let most = Notice::Done((0..1_024).map(|number| done(number, 7)).collect());
    assert_eq!(Notice::decode(&said(&most)), Ok(most));
    let error = Notice::decode(&said(&Notice::Done(vec![done(0, 0); 1_025]))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected at most 1024 in number of sessions; found 1025"
    );
}

#[test]
fn every_cut_and_every_more_is_an_error() {
    let packets = [
        packet(&TASK),
        said(&Notice::Begun(vec![1, 2])),
        said(&Notice::Done(vec![done(1, 2), done(3, 4)])),
        said(&Notice::Confined(1)),
        said(&Notice::Last),
    ];
    for packet in packets {
        for end in 0..packet.len() {
            assert!(Task::decode(&packet[..end]).is_err());
            assert!(Notice::decode(&packet[..end]).is_err());
        }
        let longer = [&packet[..], b"."].concat();
        assert!(Task::decode(&longer).is_err());
        assert!(Notice::decode(&longer).is_err());
    }
}

#[test]
fn packets_for_the_other_side_and_of_other_versions_are_refused() {
    assert_eq!(Task::decode(b"\x01\x03"), Err(HandoffError::Kind(3)));
    assert_eq!(Notice::decode(&packet(&TASK)), Err(HandoffError::Kind(1)));
    let error = Notice::decode(b"\x02\x04").unwrap_err();
    assert_eq!(error.to_string(), "expected version 1; found version 2");
}

proptest! {
    #[test]
    fn what_is_decoded_has_one_form(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(task) = Task::decode(&octets) {
            prop_assert_eq!(packet(&task), octets.clone());
        }
        if let Ok(notice) = Notice::decode(&octets) {
            prop_assert_eq!(said(&notice), octets);
        }
    }

    #[test]
    fn one_other_bit_is_an_error_or_another_packet(place in 0_usize..29, bit in 0_u8..8) {
        let mut other = packet(&TASK);
        other[place] ^= 1 << bit;
        if let Ok(task) = Task::decode(&other) {
            prop_assert_eq!(packet(&task), other);
        }
    }
}
