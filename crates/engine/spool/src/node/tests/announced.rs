//! What is announced takes nothing: memory is taken as octets come, and given back with the connection.

use vere_spoolwire::{Change, FRAME_MIN, Hello, encode_change, encode_create};

use super::peer::{HELLO, Peer, Site, encoded};
use super::*;

const QUEUE: QueueId = QueueId(3);
const MIB: usize = 1 << 20;

fn create() -> Vec<u8> {
    encoded(|out| encode_create(out, Txn(1), QUEUE, "q", QueueLimits::UNLIMITED))
}

fn put(txn: u64, body: &[u8]) -> Vec<u8> {
    let put = Change::Put {
        queue: QUEUE,
        id: RecordId(txn),
        meta: b"meta",
        body: Some(body),
    };
    encoded(|out| encode_change(out, Txn(txn), &put, 0))
}

/// The head of a PUT as long as one may be.
fn head(config: &NodeConfig, txn: u64) -> Vec<u8> {
    let mut head = put(txn, b"");
    head.truncate(FRAME_MIN - 4);
    head[..4].copy_from_slice(&config.frame_max.to_le_bytes());
    head
}

fn roomy() -> NodeConfig {
    NodeConfig {
        memory_max: 256 * MIB as u64,
        ..NodeConfig::new(secret())
    }
}

fn used(site: &Site) -> u64 {
    site.node.memory.used()
}

fn leave(site: &mut Site, peer: &Peer) {
    site.node.closed(peer.id);
    site.settle();
}

#[test]
fn heads_of_long_frames_take_nothing_from_others() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let mut site = Site::with(roomy(), log);
        let mut owners = Vec::new();
        // A MemoryLog is that of one group.
        let groups = if site.log.is_some() { 1 } else { 19 };
        for group in 0..groups {
            let group = format!("group {group}");
            let (owner, _) = site.welcomed(Hello {
                group: &group,
                ..HELLO
            });
            owners.push(owner);
        }
        let before = used(&site);
        for owner in &owners {
            owner.send(&mut site.node, &head(&site.config, 1));
        }
        site.settle();
        assert_eq!(used(&site), before, "sixteen octets each");
        for owner in &owners {
            // The next read is when memory would be taken.
            assert!(!site.node.buffer(owner.id).is_empty());
        }
        assert_eq!(used(&site), before);
    }
}

#[test]
fn what_came_of_a_long_frame_goes_with_its_connection() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let mut site = Site::with(roomy(), log);
        let (owner, _) = site.welcomed(HELLO);
        owner.send(&mut site.node, &create());
        site.settle();
        let before = used(&site);
        let mut part = head(&site.config, 2);
        part.resize(20 * MIB, 7);
        owner.send(&mut site.node, &part);
        let meanwhile = used(&site) - before;
        assert!(meanwhile >= 16 * MIB as u64, "{meanwhile} of 20 MiB");
        assert!(meanwhile <= 40 * MIB as u64, "twice what came: {meanwhile}");
        leave(&mut site, &owner);
        assert!(used(&site) <= before, "{} after {before}", used(&site));
        let (owner, welcome) = site.welcomed(Hello { owner: 2, ..HELLO });
        assert_eq!(welcome.processed, Txn(1), "nothing of it was done");
        owner.send(&mut site.node, &put(2, b"body"));
        site.settle();
        assert_eq!(site.stat().records, 1);
    }
}

#[test]
fn a_long_record_that_ended_keeps_no_memory() {
    for log in [None, Some(MemoryLog::new(64 << 20))] {
        let mut site = Site::with(roomy(), log);
        let (owner, _) = site.welcomed(HELLO);
        owner.send(&mut site.node, &create());
        site.settle();
        let before = used(&site);
        let body: Vec<u8> = (0..30 * MIB).map(|at| (at / 7) as u8).collect();
        owner.send(&mut site.node, &put(2, &body));
        site.settle();
        assert_eq!(site.contents()[0].1[0].2, body, "as it was sent");
        let end = Change::Delete {
            queue: QUEUE,
            id: RecordId(2),
        };
        owner.send(
            &mut site.node,
            &encoded(|out| encode_change(out, Txn(3), &end, 0)),
        );
        site.settle();
        owner.send(&mut site.node, &put(4, b"body"));
        site.settle();
        let more = used(&site) - before;
        assert!(more <= site.node.memory.segment_len as u64, "{more}");
    }
}

/// The owner of a long record may go before the log has it, and come back to it.
#[test]
fn a_long_record_outlives_its_connection() {
    for log in [None, Some(MemoryLog::new(64 << 20))] {
        let mut site = Site::with(roomy(), log);
        let (owner, _) = site.welcomed(HELLO);
        let body: Vec<u8> = (0..30 * MIB).map(|at| (at / 5) as u8).collect();
        owner.send(&mut site.node, &create());
        owner.send(&mut site.node, &put(2, &body));
        owner.send(&mut site.node, &head(&site.config, 3));
        leave(&mut site, &owner);
        assert_eq!(site.contents()[0].1[0].2, body);
        if site.log.is_some() {
            site.crash(0);
            assert_eq!(site.contents()[0].1[0].2, body, "as the log has it");
        }
        let (owner, welcome) = site.welcomed(HELLO);
        assert_eq!(welcome.processed, Txn(2));
        owner.send(&mut site.node, &put(3, b"body"));
        site.settle();
        assert_eq!(site.stat().records, 2);
    }
}

/// One that takes more than half of all memory fits as well as any other.
#[test]
fn a_frame_of_more_than_half_of_memory_is_taken() {
    let config = NodeConfig {
        memory_max: 64 * MIB as u64,
        ..roomy()
    };
    let mut site = Site::with(config, None);
    let (mut owner, _) = site.welcomed(HELLO);
    owner.send(&mut site.node, &create());
    owner.send(&mut site.node, &put(2, &vec![3; 40 * MIB]));
    owner.send(&mut site.node, &put(3, &vec![3; 40 * MIB]));
    site.settle();
    assert_eq!(site.stat().records, 1);
    let answers = owner.answers(&mut site.node);
    let refused = answers.iter().filter_map(|answer| match answer {
        Answer::Ack { refused, .. } => Some(refused.clone()),
        _ => None,
    });
    let refused: Vec<_> = refused.flatten().collect();
    assert_eq!(
        refused,
        [(Txn(3), NodeRefusal::NodeFull)],
        "no room for two"
    );
}
