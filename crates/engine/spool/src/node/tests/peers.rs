//! Who connects, and what they may send.

use vere_spoolwire::{Change, DEFAULT_ACCOUNT, Hello, Role, Txn, encode_change, encode_create};

use super::peer::{HELLO, Peer, Site, encoded};
use super::*;
use crate::testing::node_output;

fn node() -> Node<MemoryLog> {
    Node::new(NodeConfig::new(secret()), crate::testing::INCARNATION, None)
}

fn put(txn: u64, id: u64) -> Vec<u8> {
    let (queue, id) = (QueueId(0), RecordId(id));
    let change = Change::Put {
        queue,
        id,
        meta: b"m",
        body: Some(b"body"),
    };
    encoded(|out| encode_change(out, Txn(txn), &change, 0))
}

fn create(txn: u64) -> Vec<u8> {
    encoded(|out| encode_create(out, Txn(txn), QueueId(0), "q", QueueLimits::UNLIMITED))
}

fn owner(node: &mut Node<MemoryLog>) -> Peer {
    let mut peer = Peer::new(node).unwrap();
    assert!(peer.hello(node, Role::Owner, "gateway").is_some());
    peer
}

#[test]
fn strangers_get_nowhere() {
    let other = encoded(|out| Request::Stat.encode(out, Seq(1)));
    let forged = encoded(|out| {
        let hello = Hello {
            proof: [2; 32],
            ..HELLO
        };
        hello.encode(out);
    });
    let mut long = forged.clone();
    long[0..4].copy_from_slice(&1200_u32.to_le_bytes());
    let mut damaged = forged.clone();
    damaged[40] ^= 1;
    for (octets, reason) in [
        (other, CloseReason::Malformed),
        (forged, CloseReason::NotAuthenticated),
        (long, CloseReason::TooLong),
        (damaged, CloseReason::Checksum),
        (vec![0; 40], CloseReason::TooLong),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), CloseReason::TooLong),
    ] {
        let mut node = node();
        let mut peer = Peer::new(&mut node).unwrap();
        peer.send(&mut node, &octets);
        assert_eq!(peer.closed(&mut node), Some(reason), "{octets:?}");
        assert!(node.stats().is_empty(), "no group came of it");
    }
}

#[test]
fn strangers_are_few_and_do_not_stay() {
    let config = NodeConfig {
        strangers_max: 3,
        connections_max: 5,
        ..NodeConfig::new(secret())
    };
    let mut node: Node<MemoryLog> = Node::new(config, crate::testing::INCARNATION, None);
    let mut strangers: Vec<_> = (0..4).map(|_| Peer::new(&mut node).unwrap()).collect();
    assert_eq!(
        strangers[0].closed(&mut node),
        Some(CloseReason::TooMany),
        "the oldest goes"
    );
    node.closed(strangers[0].id);
    let mut peer = Peer::new(&mut node).unwrap();
    assert_eq!(strangers[1].closed(&mut node), Some(CloseReason::TooMany));
    assert!(peer.hello(&mut node, Role::Owner, "gateway").is_some());
    let _fifth = Peer::new(&mut node).unwrap();
    assert!(Peer::new(&mut node).is_none(), "five in all");
    node.tick(now() + Duration::from_secs(6));
    assert_eq!(strangers[2].closed(&mut node), Some(CloseReason::Timeout));
    assert_eq!(peer.closed(&mut node), None, "whoever is known has longer");
    node.tick(now() + Duration::from_secs(61));
    assert_eq!(peer.closed(&mut node), Some(CloseReason::Timeout));
}

/// An octet now and then keeps no place; a proof counts from when it came.
#[test]
fn strangers_have_so_long_however_much_they_send() {
    let mut node = node();
    let mut slow = Peer::new(&mut node).unwrap();
    let mut late = Peer::new(&mut node).unwrap();
    slow.frames(&mut node);
    let greeting = late.greeting(&mut node);
    let hello = encoded(|out| HELLO.sign(&greeting, &secret()).encode(out));
    // The beginning of a frame that is whole only after a minute.
    for (second, octet) in hello[..4].iter().enumerate() {
        let then = now() + Duration::from_secs(second as u64 + 1);
        node.buffer(slow.id)[0] = *octet;
        node.received(slow.id, 1, then);
        node.tick(then);
    }
    let then = now() + Duration::from_millis(4_900);
    node.buffer(late.id)[..hello.len()].copy_from_slice(&hello);
    node.received(late.id, hello.len(), then);
    assert_eq!(slow.closed(&mut node), None);
    node.tick(now() + Duration::from_secs(5));
    assert_eq!(slow.closed(&mut node), Some(CloseReason::Timeout));
    node.tick(then + Duration::from_secs(59));
    assert!(!node.is_finished(late.id), "a minute since its proof");
    node.tick(then + Duration::from_secs(60));
    assert_eq!(late.closed(&mut node), Some(CloseReason::Timeout));
}

/// Who reads takes no place of an owner, and one account not all those of others.
#[test]
fn readers_leave_places_to_owners() {
    let names = [DEFAULT_ACCOUNT, "other"];
    for accounts in [1, 2] {
        let account = |name: &&str| Account {
            name: (*name).to_owned(),
            ..Account::default_with(secret())
        };
        let config = NodeConfig {
            accounts: names[..accounts].iter().map(account).collect(),
            connections_max: 12,
            strangers_max: 2,
            groups_max: 2,
            ..NodeConfig::new(secret())
        };
        let mut site = Site::with(config, None);
        let hello = |name: &'static str, role| Hello {
            account: name,
            group: name,
            role,
            ..HELLO
        };
        let mut there = Vec::new();
        for name in &names[..accounts] {
            let (owner, _) = site.welcomed(hello(name, Role::Owner));
            // It goes, and its place is not taken.
            site.node.closed(owner.id);
            for place in 0..8 / accounts {
                let role = [Role::Reader, Role::Standby][place % 2];
                there.push(site.welcomed(hello(name, role)).0);
            }
            for role in [Role::Reader, Role::Standby] {
                let reason = site.rejected(hello(name, role));
                assert_eq!(reason, CloseReason::TooMany, "{name}");
            }
        }
        let strangers = [(); 2].map(|()| Peer::new(&mut site.node).unwrap());
        for name in &names[..accounts] {
            there.push(site.welcomed(hello(name, Role::Owner)).0);
        }
        for peer in &strangers {
            site.node.closed(peer.id);
        }
        // Whoever goes leaves a place.
        site.node.closed(there[0].id);
        site.welcomed(hello(DEFAULT_ACCOUNT, Role::Reader));
    }
}

#[test]
fn a_new_connection_of_the_owner_takes_over() {
    let mut node = node();
    let mut first = owner(&mut node);
    first.send(&mut node, &create(1));
    // Half a frame stays behind and must not be taken for the beginning of the next.
    first.send(&mut node, &put(2, 1)[..20]);
    let mut second = Peer::new(&mut node).unwrap();
    let welcome = second.hello(&mut node, Role::Owner, "gateway").unwrap();
    assert_eq!((welcome.processed, welcome.owner), (Txn(1), 1));
    assert_eq!(first.closed(&mut node), Some(CloseReason::TakenOver));
    second.send(&mut node, &put(2, 1));
    assert_eq!(node.queues("gateway")[0].length, 1);
    node.closed(first.id);
    second.send(&mut node, &put(3, 2));
    assert_eq!(
        node.queues("gateway")[0].length,
        2,
        "the old one's end changes nothing"
    );
}

#[test]
fn repeated_transactions_do_nothing_and_gaps_end_the_connection() {
    let mut node = node();
    let mut peer = owner(&mut node);
    let refused = put(2, 0);
    peer.send(&mut node, &[create(1), refused.clone(), put(3, 1)].concat());
    let why = vec![(Txn(2), NodeRefusal::RecordOrder)];
    let ack = Answer::Ack {
        through: Txn(3),
        refused: why.clone(),
    };
    // Numbers begin at the queue's first: 0 is below it.
    assert_eq!(peer.answers(&mut node), std::slice::from_ref(&ack));
    peer.send(&mut node, &[refused, put(3, 1)].concat());
    assert_eq!(peer.answers(&mut node), [ack], "told again");
    assert_eq!(node.queues("gateway")[0].length, 1);
    peer.send(&mut node, &put(5, 2));
    assert_eq!(peer.closed(&mut node), Some(CloseReason::TxnGap));
    assert_eq!(node.queues("gateway")[0].length, 1);
}

#[test]
fn damaged_frames_end_the_connection_and_what_came_before_stands() {
    for (at, reason) in [(30, CloseReason::Checksum), (3, CloseReason::TooLong)] {
        let mut node = node();
        let mut peer = owner(&mut node);
        let mut bad = put(3, 2);
        bad[at] ^= 0x40;
        peer.send(&mut node, &[create(1), put(2, 1), bad].concat());
        let answers = peer.answers(&mut node);
        assert_eq!(
            answers,
            [
                Answer::Ack {
                    through: Txn(2),
                    refused: vec![]
                },
                Answer::Close(reason)
            ]
        );
        assert_eq!(node.queues("gateway")[0].length, 1);
    }
}

#[test]
fn a_reader_reads_beside_the_owner_and_changes_nothing() {
    let mut node = node();
    let mut stranger = Peer::new(&mut node).unwrap();
    assert!(stranger.hello(&mut node, Role::Reader, "gateway").is_none());
    assert_eq!(stranger.closed(&mut node), Some(CloseReason::NoGroup));
    let mut owner = owner(&mut node);
    owner.send(&mut node, &[create(1), put(2, 1)].concat());
    let mut reader = Peer::new(&mut node).unwrap();
    assert!(reader.hello(&mut node, Role::Reader, "gateway").is_some());
    let fetch = Request::Fetch {
        queue: QueueId(0),
        from: RecordId(0),
        records: 9,
        octets: 9_999,
    };
    reader.send(&mut node, &encoded(|out| fetch.encode(out, Seq(5))));
    let frames = reader.frames(&mut node);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1], put(2, 1), "the very octets that came");
    reader.send(&mut node, &put(3, 2));
    assert_eq!(reader.closed(&mut node), Some(CloseReason::Malformed));
    assert_eq!(owner.closed(&mut node), None);
    assert_eq!(node.queues("gateway")[0].length, 1);
}

/// Whoever asks for much and reads nothing costs nothing: his next requests wait.
#[test]
fn a_peer_that_does_not_read_is_stopped() {
    let mut node = node();
    let mut peer = owner(&mut node);
    let mut octets = create(1);
    let body = vec![7; 100_000];
    for id in 1..=50 {
        let change = Change::Put {
            queue: QueueId(0),
            id: RecordId(id),
            meta: b"",
            body: Some(&body),
        };
        encode_change(&mut octets, Txn(id + 1), &change, 0);
    }
    peer.send(&mut node, &octets);
    peer.answers(&mut node);
    let used = node.memory.used();
    let all = Request::Fetch {
        queue: QueueId(0),
        from: RecordId(0),
        records: u32::MAX,
        octets: u32::MAX,
    };
    let many = encoded(|out| (0..200).for_each(|seq| all.encode(out, Seq(seq))));
    peer.send(&mut node, &many);
    assert!(!node.takes_input(peer.id));
    assert!(node.memory.used() <= used + (4 << 20));
    // Each block is read and forgotten.
    let mut carried = 0;
    loop {
        let octets = node_output(&node, peer.id, usize::MAX);
        if octets.is_empty() {
            break;
        }
        node.sent(peer.id, octets.len());
        carried += octets.len();
    }
    assert!(
        carried > 200 * 4_000_000,
        "every request was answered: {carried}"
    );
    assert!(node.takes_input(peer.id), "it goes on when it reads");
    assert_eq!(peer.closed(&mut node), None);
}

#[test]
fn stopping_tells_everybody() {
    let mut node = node();
    let mut owner = owner(&mut node);
    let mut stranger = Peer::new(&mut node).unwrap();
    node.shut_down();
    assert_eq!(owner.closed(&mut node), Some(CloseReason::ShuttingDown));
    assert_eq!(stranger.closed(&mut node), Some(CloseReason::ShuttingDown));
    assert!(Peer::new(&mut node).is_none());
    node.closed(owner.id);
    node.closed(stranger.id);
    assert!(node.is_idle());
}

proptest! {
    /// Whatever an owner sends, in whatever pieces, the node neither panics nor grows, and stays good
    /// for the next one.
    #[test]
    fn any_frames_of_an_owner_are_survived(
        frames in proptest::collection::vec(
            (0x1f..0x62_u8, 0..4_u8, 0..9_u8, proptest::collection::vec(0..5_u8, 0..90)),
            1..20,
        ),
        piece in 1..60_usize,
    ) {
        let mut node = node();
        let mut peer = owner(&mut node);
        let mut octets = [create(1), put(2, 1)].concat();
        for (op, flags, number, payload) in frames {
            let mut frame = (20 + payload.len() as u32).to_le_bytes().to_vec();
            frame.extend_from_slice(&[op, flags, 0, 0, number, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend_from_slice(&payload);
            let crc = vere_checksum::crc32c(&frame);
            frame.extend_from_slice(&crc.to_le_bytes());
            octets.extend_from_slice(&frame);
        }
        for piece in octets.chunks(piece) {
            peer.send(&mut node, piece);
            node.end_turn(now());
        }
        prop_assert!(node.memory.used() < 9 << 20);
        peer.frames(&mut node);
        let processed = node.stats()[0].1.processed.0;
        let mut second = owner(&mut node);
        second.send(&mut node, &create(processed + 1));
        prop_assert_eq!(second.closed(&mut node), None);
    }
}
