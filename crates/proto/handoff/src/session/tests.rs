use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

const TASK: Task<'_> = Task {
    number: 0x0807_0605_0403_0201,
    state: b"state",
    unread: b"DATA\r\n",
};

fn packet(tasks: &[Task<'_>]) -> Vec<u8> {
    let mut packet = SESSIONS.to_vec();
    for task in tasks {
        task.encode(&mut packet);
    }
    packet
}

fn progress(begun: &[u64], done: &[(u64, u32)]) -> Notice {
    let done = done
        .iter()
        .map(|&(number, refused)| Done { number, refused });
    Notice::Progress {
        begun: begun.to_vec(),
        done: done.collect(),
    }
}

fn said(notice: &Notice) -> Vec<u8> {
    let mut packet = Vec::new();
    notice.encode(&mut packet);
    packet
}

#[test]
fn golden_octets_of_version_1() {
    let one = b"\x01\x02\x03\x04\x05\x06\x07\x08\x05\0\0\0\x06\0\0\0stateDATA\r\n";
    let expected = [&b"\x01\x01"[..], one].concat();
    assert_eq!(packet(&[TASK]), expected);
    assert_eq!(Task::decode_all(&expected), Ok(vec![TASK]));
    let expected = [&expected[..], one].concat();
    assert_eq!(packet(&[TASK; 2]), expected);
    assert_eq!(Task::decode_all(&expected), Ok(vec![TASK; 2]));
    let both = progress(&[1, 0x0200], &[(1, 0), (0x0200, 0x0304)]);
    let begun = b"\x02\0\0\0\x01\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0";
    let done = b"\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x04\x03\0\0";
    assert_eq!(said(&both), [&b"\x01\x02"[..], begun, done].concat());
    assert_eq!(said(&progress(&[], &[])), b"\x01\x02\0\0\0\0\0\0\0\0");
    assert_eq!(said(&Notice::Last), b"\x01\x04");
    assert_eq!(said(&Notice::Confined(0x7f)), b"\x01\x07\x7f");
    for notice in [both, Notice::Confined(3), Notice::Last] {
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
    assert_eq!(packet(&[task]).len(), PACKET_OCTETS_MAX);
    assert_eq!(Task::decode_all(&packet(&[task])), Ok(vec![task]));
    let longer = [&octets[..], b"."].concat();
    let task = Task {
        state: &longer,
        ..task
    };
    let found = STATE_OCTETS_MAX + 1;
    let (field, max) = ("length of the state", STATE_OCTETS_MAX);
    let packet = packet(&[task]);
    let error = Task::decode_all(&packet);
    assert_eq!(error, Err(HandoffError::TooMuch { field, max, found }));
}

#[test]
fn a_packet_has_a_session_and_sixteen_at_most() {
    let most = [TASK; SESSIONS_MAX];
    assert_eq!(Task::decode_all(&packet(&most)), Ok(most.to_vec()));
    assert!(Task::decode_all(&packet(&[])).is_err());
    let more = packet(&[TASK; SESSIONS_MAX + 1]);
    assert_eq!(Task::decode_all(&more), Err(HandoffError::Trailing(27)));
}

#[test]
fn a_notice_has_a_bound() {
    let begun: Vec<u64> = (0..1_024).collect();
    let done: Vec<_> = begun.iter().map(|number| (*number, 7)).collect();
    let most = progress(&begun, &done);
    assert_eq!(Notice::decode(&said(&most)), Ok(most));
    for more in [progress(&[0; 1_025], &[]), progress(&[], &[(0, 0); 1_025])] {
        let error = Notice::decode(&said(&more)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected at most 1024 in number of sessions; found 1025"
        );
    }
}

#[test]
fn every_cut_and_every_more_is_an_error() {
    let packets = [
        packet(&[TASK]),
        said(&progress(&[1, 2], &[])),
        said(&progress(&[1], &[(1, 2), (3, 4)])),
        said(&Notice::Confined(1)),
        said(&Notice::Last),
    ];
    for packet in packets {
        for end in 0..packet.len() {
            assert!(Task::decode_all(&packet[..end]).is_err());
            assert!(Notice::decode(&packet[..end]).is_err());
        }
        let longer = [&packet[..], b"."].concat();
        assert!(Task::decode_all(&longer).is_err());
        assert!(Notice::decode(&longer).is_err());
    }
    // A packet that ends behind a session is a shorter packet.
    let two = packet(&[TASK; 2]);
    let one = packet(&[TASK]).len();
    for end in (0..two.len()).filter(|end| *end != one) {
        assert!(Task::decode_all(&two[..end]).is_err());
    }
}

#[test]
fn packets_for_the_other_side_and_of_other_versions_are_refused() {
    assert_eq!(Task::decode_all(b"\x01\x03"), Err(HandoffError::Kind(3)));
    assert_eq!(Notice::decode(&packet(&[TASK])), Err(HandoffError::Kind(1)));
    let error = Notice::decode(b"\x02\x04").unwrap_err();
    assert_eq!(error.to_string(), "expected version 1; found version 2");
}

proptest! {
    #[test]
    fn what_is_decoded_has_one_form(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(tasks) = Task::decode_all(&octets) {
            prop_assert_eq!(packet(&tasks), octets.clone());
        }
        if let Ok(notice) = Notice::decode(&octets) {
            prop_assert_eq!(said(&notice), octets);
        }
    }

    #[test]
    fn one_other_bit_is_an_error_or_another_packet(place in 0_usize..56, bit in 0_u8..8) {
        let mut other = packet(&[TASK; 2]);
        other[place] ^= 1 << bit;
        if let Ok(tasks) = Task::decode_all(&other) {
            prop_assert_eq!(packet(&tasks), other);
        }
    }
}
