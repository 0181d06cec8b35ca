mod replicas;

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use vere_spoolwire::{
    CloseReason, Grants, Greeting, Header, Incarnation, NodeRefusal, Op, QueueLimits, QueueStat,
    Right, VERSION, Welcome,
};

use vere_units::Secret;

use super::*;
use crate::node::NodeConfig;
use crate::testing::{LINK, MemoryLog, MemoryRegister, Pair, now, owner_config, secret};

fn pair() -> Pair {
    Pair::new(NodeConfig::new(secret()), None)
}

fn put(queue: QueueId, len: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(queue, Bytes::new(), Bytes::from(vec![1; len]));
    batch
}

fn queue(pair: &mut Pair) -> QueueId {
    let (queue, _) = pair
        .owner
        .create_queue("q", QueueLimits::UNLIMITED)
        .unwrap();
    pair.settle();
    queue
}

#[test]
fn nothing_is_taken_before_the_numbers_are_known() {
    let mut owner = Owner::new(owner_config(1));
    assert_eq!(owner.commit(put(QueueId(0), 1)), Err(SubmitError::Unknown));
    let refused = owner.create_queue("q", QueueLimits::UNLIMITED);
    assert_eq!(refused, Err(SubmitError::Unknown));
}

#[test]
fn what_breaks_a_limit_is_not_sent() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    let invalid = Err(SubmitError::Invalid);
    assert_eq!(pair.owner.commit(Batch::new()), invalid);
    let mut batch = Batch::new();
    batch.replace(
        queue,
        RecordId(1),
        Bytes::from(vec![0; vere_spoolwire::META_MAX + 1]),
    );
    assert_eq!(pair.owner.commit(batch), invalid);
    assert_eq!(
        pair.owner.commit(put(queue, 64 << 20)),
        invalid,
        "the node's longest frame"
    );
    let long = "x".repeat(256);
    assert!(
        pair.owner
            .create_queue(&long, QueueLimits::UNLIMITED)
            .is_err()
    );
    assert!(pair.owner.create_queue("", QueueLimits::UNLIMITED).is_err());
    assert_eq!(pair.owner.submitted(), pair.acked());
}

#[test]
fn the_window_bounds_what_is_in_flight_and_the_bound_what_waits() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    let mut config = owner_config(2);
    (config.window, config.pending_max) = (10_000, 50_000);
    pair.cut();
    pair.owner = Owner::new(config);
    pair.connect();
    pair.settle();
    let mut taken = 0;
    while pair.owner.commit(put(queue, 1_000)).is_ok() {
        taken += 1;
    }
    assert!((45..=50).contains(&taken), "{taken}");
    assert_eq!(pair.owner.commit(put(queue, 1_000)), Err(SubmitError::Busy));
    let mut batch = Batch::new();
    batch.delete(queue, RecordId(1));
    assert!(
        pair.owner.commit(batch).is_ok(),
        "ending a record is always taken"
    );
    let sent = pair.owner.output(LINK).len();
    assert!((9_000..=10_000).contains(&sent), "{sent} in one piece");
    pair.settle();
    assert_eq!(pair.owner.pending(), 0);
    assert_eq!(pair.acked(), pair.owner.submitted());
    // One change always goes, however long.
    pair.owner.commit(put(queue, 40_000)).unwrap();
    pair.settle();
    assert_eq!(pair.owner.pending(), 0);
}

/// A node that forgot what it acknowledged is damaged, not empty.
#[test]
fn a_node_behind_its_acknowledgements_is_not_used() {
    let log = MemoryLog::new(1 << 20);
    let mut pair = Pair::new(NodeConfig::new(secret()), Some(log.clone()));
    let queue = queue(&mut pair);
    let old = log.0.borrow().clone();
    pair.owner.commit(put(queue, 10)).unwrap();
    pair.settle();
    // The disk of yesterday under the same incarnation.
    *log.0.borrow_mut() = old;
    pair.cut();
    pair.reopen();
    pair.connect();
    pair.settle();
    assert_eq!(pair.error, Some(OwnerError::Behind));
    assert!(!pair.owner.is_open());
    let shut = OwnerEvent::Shut(ShutReason::NoFullReplica);
    assert!(pair.events.contains(&shut), "{:?}", pair.events);
}

/// Another owner wrote in between: its transactions must not be taken for acknowledgements.
#[test]
fn transactions_of_another_owner_are_not_taken_for_ours() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    pair.cut();
    for _ in 0..5 {
        pair.owner.commit(put(queue, 10)).unwrap();
    }
    let mut other = Owner::new(owner_config(2));
    std::mem::swap(&mut pair.owner, &mut other);
    pair.connect();
    pair.settle();
    for _ in 0..3 {
        pair.owner.commit(put(queue, 10)).unwrap();
    }
    pair.settle();
    pair.cut();
    std::mem::swap(&mut pair.owner, &mut other);
    let acked = pair.acked();
    pair.connect();
    pair.settle();
    let fenced = OwnerError::Closed(CloseReason::Fenced);
    assert_eq!(pair.error, Some(fenced));
    assert!(pair.events.contains(&OwnerEvent::Fenced));
    assert!(!pair.owner.wants(LINK));
    assert_eq!(pair.acked(), acked);
}

/// A crash may take with it that this owner came: until that lasts it does not open, for the node serves
/// the owner before again.
#[test]
fn an_owner_opens_when_no_crash_brings_back_the_one_before() {
    let log = MemoryLog::new(1 << 20);
    let mut pair = Pair::new(NodeConfig::new(secret()), Some(log));
    let queue = queue(&mut pair);
    pair.cut();
    pair.owner = Owner::new(owner_config(2));
    pair.events.clear();
    pair.connect();
    while pair.up(usize::MAX) + pair.down(usize::MAX) > 0 {}
    let epoch = pair.owner.membership().epoch;
    assert_eq!(pair.node.stats()[0].1.epoch, epoch);
    assert_eq!(pair.owner.commit(put(queue, 10)), Err(SubmitError::Unknown));
    assert!(!pair.owner.is_open() && !pair.owner.title().unwrap().fences);
    // It was not synced yet: the node knows the owner before, and would serve it.
    pair.crash(0);
    assert_eq!(pair.node.stats()[0].1.epoch, epoch - 1);
    pair.connect();
    pair.settle();
    assert!(pair.owner.is_open() && pair.owner.title().unwrap().fences);
    pair.crash(0);
    assert_eq!(pair.node.stats()[0].1.epoch, epoch);
    pair.connect();
    pair.owner.commit(put(queue, 10)).unwrap();
    pair.settle();
    assert_eq!(pair.error, None);
    assert_eq!(pair.acked(), pair.owner.submitted());
    assert_eq!(pair.node.queues("gateway")[0].length, 1);
}

#[test]
fn a_lost_memory_is_never_taken_for_empty_queues() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    pair.owner.commit(put(queue, 10)).unwrap();
    pair.settle();
    pair.cut();
    let txn = pair.owner.commit(put(queue, 10)).unwrap().txn;
    pair.node = crate::node::Node::new(pair.config.clone(), Incarnation(78), None);
    pair.connect();
    pair.settle();
    let shut = OwnerEvent::Shut(ShutReason::NoFullReplica);
    assert!(pair.events.contains(&shut), "{:?}", pair.events);
    assert!(pair.acked() < txn && !pair.owner.is_open());
    // Nor by the next owner.
    pair.cut();
    pair.owner = Owner::new(owner_config(2));
    pair.events.clear();
    pair.connect();
    pair.settle();
    assert!(!pair.owner.is_open());
    assert!(pair.events.contains(&shut), "{:?}", pair.events);
    assert_eq!(pair.owner.commit(put(queue, 10)), Err(SubmitError::Unknown));
}

#[test]
fn an_impostor_without_the_secret_is_not_believed() {
    let mut pair = pair();
    pair.cut();
    let config = NodeConfig::new(Secret::new([6; 32]));
    pair.node = crate::node::Node::new(config, crate::testing::INCARNATION, None);
    pair.connect();
    pair.settle();
    // A real one of another secret refuses; one that pretends cannot answer.
    assert_eq!(
        pair.error,
        Some(OwnerError::Closed(CloseReason::NotAuthenticated))
    );
    let mut owner = Owner::new(owner_config(1));
    owner.timed_out(now());
    MemoryRegister::default().serve(&mut owner, now());
    assert!(owner.wants(LINK));
    owner.connected(LINK, [1; 32], now());
    let mut octets = Vec::new();
    let greeting = Greeting {
        incarnation: Incarnation(1),
        version_min: VERSION,
        version_max: VERSION,
        challenge: [2; 32],
    };
    greeting.encode(&mut octets);
    owner.input(LINK, &octets, now()).unwrap();
    octets.clear();
    let welcome = Welcome {
        processed: Txn(0),
        acknowledged: Txn(0),
        owner: 0,
        epoch: 0,
        synced: false,
        syncing: false,
        frame_max: 1 << 20,
        proof: [3; 32],
        refused: vec![],
    };
    welcome.encode(&mut octets);
    let error = owner.input(LINK, &octets, now());
    assert_eq!(error, Err(OwnerError::NotTheNode));
}

#[test]
fn a_silent_node_is_asked_and_then_given_up() {
    let mut pair = pair();
    let beat = Duration::from_millis(300);
    assert_eq!(pair.owner.deadline(), now() + beat);
    pair.owner.timed_out(now() + beat);
    let header = Header::peek(pair.owner.output(LINK), 100).unwrap().unwrap();
    assert_eq!(header.op, Op::Heartbeat);
    pair.owner.timed_out(now() + beat * 2);
    pair.owner
        .timed_out(now() + (beat * 3 - Duration::from_millis(1)));
    assert_eq!(pair.owner.poll_drop(), None);
    pair.owner.timed_out(now() + beat * 3);
    assert_eq!(pair.owner.poll_drop(), Some((LINK, OwnerError::Silent)));
}

/// An owner that had no turn for 610 to 900 ms gave up idle links whose nodes it had not asked meanwhile.
#[test]
fn a_node_is_not_silent_because_its_owner_stood_still() {
    let beat = Duration::from_millis(300);
    for millis in [301, 310, 599, 600, 610, 750, 899, 900, 901, 5_000] {
        let mut pair = pair();
        let last = now() + (beat - Duration::from_millis(1));
        pair.owner.timed_out(last);
        let mut time = last + Duration::from_millis(millis);
        pair.owner.timed_out(time);
        assert_eq!(pair.owner.poll_drop(), None, "{millis} ms");
        let header = Header::peek(pair.owner.output(LINK), 100).unwrap().unwrap();
        assert_eq!(header.op, Op::Heartbeat);
        // Nor is it taken for one that lives: it has no longer than any other from here on.
        for _ in 0..3 {
            time = time + beat;
            pair.owner.timed_out(time);
        }
        let silent = Some((LINK, OwnerError::Silent));
        assert_eq!(pair.owner.poll_drop(), silent, "{millis} ms");
    }
}

/// On a slow line the answers wait for the end of a long frame.
#[test]
fn a_node_that_takes_in_a_long_frame_is_not_silent() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    let beat = Duration::from_millis(300);
    pair.owner.commit(put(queue, 500_000)).unwrap();
    let mut time = now();
    for _ in 0..20 {
        time = time + beat;
        pair.owner.timed_out(time);
        assert_eq!(pair.owner.poll_drop(), None);
        let mut left = 10_000;
        while left > 0 {
            let count = pair.owner.output(LINK).len().min(left);
            assert!(count > 0, "the frame is longer");
            pair.owner.sent(LINK, count);
            left -= count;
        }
    }
    // It goes no further.
    pair.owner.timed_out(time + beat);
    pair.owner.timed_out(time + beat * 2);
    pair.owner
        .timed_out(time + (beat * 3 - Duration::from_millis(1)));
    assert_eq!(pair.owner.poll_drop(), None);
    pair.owner.timed_out(time + beat * 3);
    assert_eq!(pair.owner.poll_drop(), Some((LINK, OwnerError::Silent)));
}

/// A node acknowledges the end of a record with the next change that somebody waits for: if a long change waited for that acknowledgement, each
/// would wait for the other.
#[test]
fn a_long_change_does_not_wait_for_the_acknowledgement_of_what_went_before() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    let long = 2 << 20;
    let sent = |pair: &mut Pair| {
        let mut all = 0;
        loop {
            let count = pair.owner.output(LINK).len();
            if count == 0 {
                return all;
            }
            pair.owner.sent(LINK, count);
            all += count;
        }
    };
    pair.owner.commit(put(queue, 10)).unwrap();
    pair.owner.commit(put(queue, long)).unwrap();
    assert!(sent(&mut pair) > long);
    // Eight changes are in flight whatever their length, and a further long one waits.
    for _ in 2..9 {
        pair.owner.commit(put(queue, long)).unwrap();
    }
    let octets = sent(&mut pair);
    assert!((6 * long..7 * long).contains(&octets), "{octets}");
}

#[test]
fn reads_are_asked_again_after_a_cut() {
    let mut pair = pair();
    let queue = queue(&mut pair);
    pair.owner.commit(put(queue, 10)).unwrap();
    pair.settle();
    let fetch = pair.owner.fetch(queue, RecordId(0), 1, 1);
    let stat = pair.owner.stat();
    let forgotten = pair.owner.stat();
    pair.owner.forget(forgotten);
    pair.up(usize::MAX);
    pair.connect();
    pair.settle();
    let answered = |event: &OwnerEvent| match event {
        OwnerEvent::Block { seq, .. } | OwnerEvent::Stat { seq, .. } => Some(*seq),
        _ => None,
    };
    let mut seqs: Vec<_> = pair.events.iter().filter_map(answered).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, [fetch, stat]);
}

#[test]
fn many_queues_are_learned_in_pieces() {
    let mut pair = pair();
    for number in 0..5_000 {
        let name = format!("destination-{number}.example.org");
        pair.owner
            .create_queue(&name, QueueLimits::UNLIMITED)
            .unwrap();
    }
    pair.owner.commit(put(QueueId(4_999), 1)).unwrap();
    pair.settle();
    pair.cut();
    pair.owner = Owner::new(owner_config(2));
    pair.connect();
    pair.settle();
    assert!(pair.owner.is_open());
    let again = pair
        .owner
        .create_queue("destination-4999.example.org", QueueLimits::UNLIMITED);
    assert_eq!(again.unwrap().0, QueueId(4_999));
    assert_eq!(
        pair.owner.commit(put(QueueId(4_999), 1)).unwrap().ids,
        [RecordId(2)]
    );
    let new = pair
        .owner
        .create_queue("new", QueueLimits::UNLIMITED)
        .unwrap()
        .0;
    assert_eq!(new, QueueId(5_000));
}

proptest! {
    /// Whatever a broken node says, the owner neither panics nor takes it for an acknowledgement of
    /// what was never sent.
    #[test]
    fn any_answer_is_survived(
        frames in proptest::collection::vec((0..0x62_u8, any::<u8>(), proptest::collection::vec(any::<u8>(), 0..120)), 1..8),
        damage in any::<prop::sample::Index>(),
        damaged in any::<bool>(),
    ) {
        let mut pair = pair();
        let queue = queue(&mut pair);
        pair.owner.commit(put(queue, 10)).unwrap();
        let before = pair.owner.submitted();
        let mut octets = Vec::new();
        for (op, number, payload) in frames {
            let len = (20 + payload.len()) as u32;
            let mut frame = len.to_le_bytes().to_vec();
            frame.extend_from_slice(&[op, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend_from_slice(&payload);
            let crc = vere_checksum::crc32c(&frame);
            frame.extend_from_slice(&crc.to_le_bytes());
            octets.extend_from_slice(&frame);
        }
        if damaged {
            let at = damage.index(octets.len());
            octets[at] ^= 4;
        }
        for piece in octets.chunks(7) {
            if pair.owner.input(LINK, piece, now()).is_err() {
                break;
            }
        }
        prop_assert!(pair.owner.acknowledged() <= before);
    }
}
