//! Limits and faults, in turn.

use super::*;

const MIB: usize = 1 << 20;

const MEMORY_MIN: u64 = 64 << 20;

fn small_memory() -> NodeConfig {
    NodeConfig {
        memory_max: MEMORY_MIN,
        ..NodeConfig::new(secret())
    }
}

fn small_segments() -> NodeConfig {
    let segment_len = SEGMENT_LEN_MIN;
    NodeConfig {
        segment_len,
        compact_above: Some(0),
        ..NodeConfig::new(secret())
    }
}

/// Puts and deletes so many octets.
fn churn(pair: &mut Pair, queue: QueueId, octets: usize) {
    for _ in 0..octets / 500 {
        let id = pair.owner.commit(put(queue, &body(500))).unwrap().ids[0];
        pair.owner.commit(delete(queue, id)).unwrap();
        pair.settle();
    }
}

fn queue_of(pair: &mut Pair) -> QueueId {
    let (queue, _) = pair
        .owner
        .create_queue("q", QueueLimits::UNLIMITED)
        .unwrap();
    pair.settle();
    queue
}

fn put(queue: QueueId, body: &Bytes) -> Batch {
    let mut batch = Batch::new();
    batch.put(queue, Bytes::from_static(b"meta"), body.clone());
    batch
}

fn delete(queue: QueueId, id: RecordId) -> Batch {
    let mut batch = Batch::new();
    batch.delete(queue, id);
    batch
}

fn body(len: usize) -> Bytes {
    Bytes::from((0..len).map(|at| at as u8).collect::<Vec<_>>())
}

/// Puts records until one is refused; gives those that were taken.
fn fill(pair: &mut Pair, queue: QueueId, body: &Bytes) -> Vec<RecordId> {
    let mut taken = Vec::new();
    loop {
        let before = pair.refused().len();
        let committed = pair.owner.commit(put(queue, body)).unwrap();
        pair.settle();
        if pair.refused().len() > before {
            return taken;
        }
        taken.push(committed.ids[0]);
    }
}

#[test]
fn a_full_node_refuses_records_and_still_ends_and_changes_them() {
    let mut pair = Pair::new(small_memory(), None);
    let queue = queue_of(&mut pair);
    let body = body(100_000);
    let taken = fill(&mut pair, queue, &body);
    assert_eq!(pair.refused().last().unwrap().1, NodeRefusal::NodeFull);
    assert!(taken.len() > 450, "{}", taken.len());
    let refused = pair.refused().len();
    // Many times the memory in replacements and refusals.
    for round in 0..2_000 {
        let mut batch = Batch::new();
        let meta = Bytes::from(vec![b'm'; 50_000]);
        batch.replace(queue, taken[round % 7], meta);
        pair.owner.commit(batch).unwrap();
        pair.owner.commit(put(queue, &body)).unwrap();
        pair.settle();
        let used = pair.node.memory.used();
        assert!(used <= MEMORY_MIN, "{used} after {round}");
    }
    assert_eq!(
        pair.refused().len(),
        refused + 2_000,
        "only the new records"
    );
    for id in &taken[..taken.len() / 2] {
        pair.owner.commit(delete(queue, *id)).unwrap();
    }
    pair.settle();
    assert_eq!(pair.refused().len(), refused + 2_000);
    assert!(fill(&mut pair, queue, &body).len() > 200, "room again");
}

/// Records of a quarter of a segment leave a quarter of it free, since the frame around them does not
/// fit; there is nothing to be gained by writing them again and again.
#[test]
fn a_node_full_of_long_records_comes_to_rest() {
    let mut pair = Pair::new(small_memory(), None);
    let queue = queue_of(&mut pair);
    let quarter = pair.node.memory.segment_len / 4;
    let taken = fill(&mut pair, queue, &body(quarter));
    assert!(taken.len() > 20, "{}", taken.len());
    for _ in 0..1_000 {
        if !pair.node.is_busy() {
            return;
        }
        pair.node.end_turn(now());
    }
    panic!("it is busy for ever");
}

#[test]
fn holes_are_closed() {
    let mut pair = Pair::new(small_memory(), None);
    let queue = queue_of(&mut pair);
    let body = body(10_000);
    let mut kept = Vec::new();
    for _ in 0..20 {
        let taken: Vec<_> = (0..1_000)
            .map(|_| pair.owner.commit(put(queue, &body)).unwrap().ids[0])
            .collect();
        pair.settle();
        for (index, id) in taken.into_iter().enumerate() {
            if index % 10 == 0 {
                kept.push(id);
            } else {
                pair.owner.commit(delete(queue, id)).unwrap();
            }
        }
        pair.settle();
    }
    assert_eq!(pair.refused(), []);
    let living = kept.len() as u64 * 10_000;
    let used = pair.node.memory.used();
    assert!(used < living * 2 + (16 << 20), "{used} for {living}");
    let ids: Vec<_> = contents(&mut pair, 1000)[&queue.0]
        .iter()
        .map(|record| record.id)
        .collect();
    assert_eq!(ids, kept);
}

/// Gateways take no more mail from less than all of the room on, and count what is dead in it: two thirds of
/// each segment lived, which was left as it is until the node was full.
#[test]
fn a_node_that_is_nearly_full_gives_back_what_is_dead_in_segments_that_mostly_live() {
    let config = NodeConfig {
        segment_len: SEGMENT_LEN_MIN,
        memory_max: 256 * SEGMENT_LEN_MIN as u64,
        ..NodeConfig::new(secret())
    };
    let mut pair = Pair::new(config, None);
    let queue = queue_of(&mut pair);
    let fill = |pair: &Pair| pair.node.stats()[0].1.fill;
    let mut ids = Vec::new();
    while fill(&pair) < 950 {
        ids.extend(pair.owner.commit(put(queue, &body(300))).unwrap().ids);
        pair.settle();
    }
    assert_eq!(pair.refused(), [], "it is not full");
    for id in ids.iter().step_by(3) {
        pair.owner.commit(delete(queue, *id)).unwrap();
    }
    pair.settle();
    while pair.node.is_busy() {
        pair.node.end_turn(now());
    }
    let left = fill(&pair);
    assert!(
        left < 860,
        "{left} thousandths for two thirds of the records"
    );
    let lives = ids.len() - ids.len().div_ceil(3);
    assert_eq!(contents(&mut pair, 1_000)[&queue.0].len(), lives);
}

#[test]
fn records_longer_than_a_segment() {
    let mut pair = Pair::new(small_memory(), Some(MemoryLog::new(1 << 20)));
    let queue = queue_of(&mut pair);
    let long = body(9 * MIB);
    let first = pair.owner.commit(put(queue, &long)).unwrap().ids[0];
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.settle();
    let seq = pair.owner.fetch(queue, first, 1, 1);
    let block = settle_block(&mut pair, seq);
    assert_eq!(block.records[0].body, long);
    pair.crash(0);
    pair.connect();
    let records = &contents(&mut pair, 9)[&queue.0];
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].body, long);
}

/// A record for which there is no room is read over without being kept, in any pieces, and what follows
/// is heard.
#[test]
fn a_long_record_without_room_is_read_over() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let mut pair = Pair::new(small_memory(), log);
        let queue = queue_of(&mut pair);
        let large = fill(&mut pair, queue, &body(5 * MIB));
        assert!(large.len() > 5);
        let used = pair.node.memory.used();
        let before = pair.refused().len();
        pair.owner.commit(put(queue, &body(30 * MIB))).unwrap();
        pair.owner.commit(delete(queue, large[0])).unwrap();
        while pair.up(77_777) > 0 {
            pair.sync();
            pair.down(usize::MAX);
            assert!(pair.node.memory.used() <= used + (4 << 20));
        }
        pair.settle();
        assert_eq!(pair.refused().len(), before + 1);
        assert_eq!(pair.refused().last().unwrap().1, NodeRefusal::NodeFull);
        assert_eq!(
            pair.node.queues("gateway")[0].length,
            large.len() as u64 - 1
        );
        if pair.log.is_some() {
            pair.crash(0);
            pair.connect();
            pair.settle();
            assert_eq!(
                pair.node.queues("gateway")[0].length,
                large.len() as u64 - 1
            );
            assert_eq!(pair.error, None);
        }
    }
}

#[test]
fn a_body_lies_once_however_many_records_share_it() {
    let mut pair = Pair::new(small_memory(), Some(MemoryLog::new(1 << 20)));
    let queue = queue_of(&mut pair);
    let shared = body(MIB);
    let mut batch = Batch::new();
    for _ in 0..500 {
        batch.put(queue, Bytes::from_static(b"m"), shared.clone());
    }
    let ids = pair.owner.commit(batch).unwrap().ids;
    pair.settle();
    assert!(pair.node.memory.used() < 10 << 20);
    // Written again by compaction it still lies once: what came with it is mostly dead.
    for id in ids.iter().step_by(2) {
        pair.owner.commit(delete(queue, *id)).unwrap();
    }
    for _ in 0..40 {
        let id = pair.owner.commit(put(queue, &shared)).unwrap().ids[0];
        pair.owner.commit(delete(queue, id)).unwrap();
        pair.settle();
    }
    let log = pair.log.clone().unwrap();
    assert!(log.0.borrow().removed > 10);
    assert!(log.0.borrow().octets() < 12 << 20);
    pair.crash(0);
    pair.connect();
    pair.settle();
    let records = &contents(&mut pair, 100)[&queue.0];
    assert_eq!(records.len(), 250);
    assert!(records.iter().all(|record| record.body == shared));
    assert!(pair.node.memory.used() < 20 << 20);
}

/// One old record does not keep the log from shrinking, nor is it lost.
#[test]
fn the_log_is_bounded_by_what_lives() {
    let mut pair = Pair::new(small_memory(), Some(MemoryLog::new(100_000)));
    let queue = queue_of(&mut pair);
    let (other, _) = pair
        .owner
        .create_queue("other", QueueLimits::UNLIMITED)
        .unwrap();
    let body = body(1000);
    let ids: Vec<_> = (0..3)
        .map(|_| pair.owner.commit(put(queue, &body)).unwrap().ids[0])
        .collect();
    let mut batch = Batch::new();
    batch.replace(queue, ids[1], Bytes::from_static(b"replaced"));
    batch.move_to(queue, ids[2], other, None);
    pair.owner.commit(batch).unwrap();
    for _ in 0..100 {
        for _ in 0..100 {
            let id = pair.owner.commit(put(queue, &body)).unwrap().ids[0];
            pair.owner.commit(delete(queue, id)).unwrap();
        }
        pair.settle();
    }
    let log = pair.log.clone().unwrap();
    assert!(log.0.borrow().removed > 50, "{}", log.0.borrow().removed);
    // A segment of memory is what may lag behind.
    assert!(
        log.0.borrow().octets() < 6 << 20,
        "{}",
        log.0.borrow().octets()
    );
    for _ in 0..2 {
        let all = contents(&mut pair, 10);
        let metas = |queue: QueueId| {
            all[&queue.0]
                .iter()
                .map(|record| record.meta.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(metas(queue), [&b"meta"[..], b"replaced"]);
        assert_eq!(metas(other), [&b"meta"[..]]);
        pair.crash(0);
        pair.connect();
        pair.settle();
    }
}

/// A few records that stay do not make memory grow, however much there is of it.
#[test]
fn segments_in_which_little_lives_are_used_again_before_fresh_ones() {
    for log in [None, Some(MemoryLog::new(1 << 20))] {
        let config = NodeConfig {
            compact_above: None,
            ..small_segments()
        };
        let mut pair = Pair::new(config, log);
        let queue = queue_of(&mut pair);
        let mut stay = Vec::new();
        for _ in 0..100 {
            stay.extend(pair.owner.commit(put(queue, &body(100))).unwrap().ids);
            churn(&mut pair, queue, SEGMENT_LEN_MIN);
        }
        let used = pair.node.memory.used();
        assert!(used < 12 * SEGMENT_LEN_MIN as u64, "{used}");
        if pair.log.is_some() {
            pair.crash(0);
            pair.connect();
            pair.settle();
        }
        let records = &contents(&mut pair, 1000)[&queue.0];
        let ids: Vec<_> = records.iter().map(|record| record.id).collect();
        assert_eq!(ids, stay);
        assert!(records.iter().all(|record| record.body == body(100)));
    }
}

/// Metadata that lies apart from its record, and records under other names, move on as well: nothing
/// is left behind in segments where all else is dead.
#[test]
fn what_little_lives_in_a_segment_moves_on() {
    for log in [None, Some(MemoryLog::new(1 << 10))] {
        let mut pair = Pair::new(small_segments(), log);
        let queue = queue_of(&mut pair);
        let (other, _) = pair
            .owner
            .create_queue("other", QueueLimits::UNLIMITED)
            .unwrap();
        let mut ids = Vec::new();
        for _ in 0..90 {
            ids.extend(pair.owner.commit(put(queue, &body(10))).unwrap().ids);
            churn(&mut pair, queue, 1000);
        }
        for (index, id) in ids.into_iter().enumerate() {
            let meta = Bytes::from(format!("meta {index}"));
            let mut batch = Batch::new();
            match index % 3 {
                0 => batch.replace(queue, id, meta),
                1 => batch.move_to(queue, id, other, Some(meta)),
                _ => {
                    let mut before = Batch::new();
                    before.replace(queue, id, meta);
                    pair.owner.commit(before).unwrap();
                    churn(&mut pair, queue, SEGMENT_LEN_MIN);
                    batch.move_to(queue, id, other, None)
                }
            };
            let made = pair.owner.commit(batch).unwrap().ids;
            if index % 2 == 0 {
                let (queue, id) = made.first().map_or((queue, id), |id| (other, *id));
                let mut batch = Batch::new();
                batch.replace(queue, id, Bytes::from(format!("again {index}")));
                pair.owner.commit(batch).unwrap();
            }
            churn(&mut pair, queue, SEGMENT_LEN_MIN);
        }
        for _ in 0..200 {
            pair.node.tick(now());
            pair.sync();
        }
        assert_eq!(pair.refused(), []);
        let segments = pair.node.groups[0].store.segments.iter().count();
        assert!(segments <= 6, "{segments} segments for 90 records");
        for _ in 0..2 {
            let all = contents(&mut pair, 100);
            assert_eq!((all[&queue.0].len(), all[&other.0].len()), (30, 60));
            let meta = all[&queue.0][1].meta.clone();
            assert_eq!(meta.as_ref(), b"meta 3");
            assert_eq!(all[&other.0][1].meta.as_ref(), b"again 2");
            assert_eq!(all[&other.0][3].meta.as_ref(), b"meta 5");
            if pair.log.is_some() {
                pair.crash(0);
                pair.connect();
            }
        }
    }
}

/// Its PUT is gone from the log, its MOVE is not: the number it had is not given out again.
#[test]
fn numbers_of_moved_records_are_not_used_twice() {
    let log = MemoryLog::new(1 << 10);
    let mut pair = Pair::new(small_segments(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    let (other, _) = pair
        .owner
        .create_queue("other", QueueLimits::UNLIMITED)
        .unwrap();
    let moved = pair.owner.commit(put(queue, &body(10))).unwrap().ids[0];
    churn(&mut pair, queue, 3 * SEGMENT_LEN_MIN);
    let removed = log.0.borrow().removed;
    // Keeps the log from here on.
    pair.owner.commit(put(queue, &body(10))).unwrap();
    let mut batch = Batch::new();
    batch.move_to(queue, moved, other, None);
    let moved = pair.owner.commit(batch).unwrap().ids[0];
    pair.owner.commit(delete(other, moved)).unwrap();
    pair.settle();
    churn(&mut pair, queue, 1_500);
    pair.node.tick(now());
    pair.sync();
    assert!(log.0.borrow().removed > removed);
    pair.crash(0);
    assert_eq!(pair.node.queues("gateway")[1].next, moved.next());
}

#[test]
fn nothing_is_acknowledged_before_it_is_synced() {
    let log = MemoryLog::new(1 << 20);
    let mut pair = Pair::new(small_memory(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    let acked = pair.acked();
    for _ in 0..10 {
        pair.owner.commit(put(queue, &body(10))).unwrap();
    }
    pair.up(usize::MAX);
    pair.node.end_turn(now());
    assert_eq!(pair.down(usize::MAX), 0);
    log.0.borrow_mut().sync();
    pair.node.end_turn(now());
    pair.down(usize::MAX);
    assert_eq!(pair.acked().0, acked.0 + 10);
    let acks = pair
        .events
        .iter()
        .filter(|event| matches!(event, OwnerEvent::Acked { .. }))
        .count();
    assert!(acks <= 3, "one for all: {acks}");
}

#[test]
fn a_log_on_its_reserve_refuses_records_only() {
    let log = MemoryLog::new(1 << 20);
    let mut pair = Pair::new(small_memory(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    let id = pair.owner.commit(put(queue, &body(10))).unwrap().ids[0];
    pair.settle();
    log.0.borrow_mut().reserve = true;
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.owner.commit(delete(queue, id)).unwrap();
    pair.settle();
    assert_eq!(
        pair.refused()
            .iter()
            .map(|(_, why)| *why)
            .collect::<Vec<_>>(),
        [NodeRefusal::NodeFull]
    );
    assert_eq!(pair.node.queues("gateway")[0].length, 0);
    let stat = pair.node.stats();
    assert!(stat[0].1.full);
    log.0.borrow_mut().reserve = false;
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.settle();
    assert_eq!(pair.node.queues("gateway")[0].length, 1);
}

/// Without any room nothing is acknowledged and nothing more is read, and nothing is lost: with room it
/// goes on, also from the disk.
#[test]
fn a_log_without_room_holds_everything_up() {
    let log = MemoryLog::new(1 << 10);
    let mut pair = Pair::new(small_memory(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    let full = log.0.borrow().octets() + 100;
    log.0.borrow_mut().capacity = full;
    let acked = pair.acked();
    for _ in 0..20 {
        pair.owner.commit(put(queue, &body(1000))).unwrap();
        pair.up(usize::MAX);
    }
    pair.sync();
    pair.node.tick(now());
    pair.down(usize::MAX);
    assert_eq!(pair.acked(), acked);
    assert!(!pair.node.takes_input(pair.connection.unwrap()));
    log.0.borrow_mut().capacity = u64::MAX;
    pair.settle();
    assert_eq!(pair.acked().0, acked.0 + 20);
    assert_eq!(pair.node.queues("gateway")[0].length, 20);
    pair.crash(0);
    assert_eq!(pair.node.queues("gateway")[0].length, 20);
}

/// What ended a record is not in the log yet: then its segment must not go either.
#[test]
fn a_log_without_room_keeps_what_is_replaced() {
    let log = MemoryLog::new(1 << 10);
    let mut pair = Pair::new(small_segments(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    // Long enough that compaction leaves it where it is.
    let old = pair.owner.commit(put(queue, &body(3500))).unwrap().ids[0];
    churn(&mut pair, queue, SEGMENT_LEN_MIN);
    let full = log.0.borrow().octets() + 100;
    log.0.borrow_mut().capacity = full;
    let mut batch = put(queue, &body(1000));
    batch.delete(queue, old);
    pair.owner.commit(batch).unwrap();
    pair.up(usize::MAX);
    pair.node.tick(now());
    log.0.borrow_mut().sync();
    pair.crash(0);
    assert_eq!(pair.node.queues("gateway")[0].length, 1, "the old one");
    log.0.borrow_mut().capacity = u64::MAX;
    pair.connect();
    pair.settle();
    let records = &contents(&mut pair, 10)[&queue.0];
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].body.len(), 1000);
}

#[test]
fn a_failed_log_ends_its_owner_and_takes_no_other() {
    let log = MemoryLog::new(1 << 20);
    let mut pair = Pair::new(small_memory(), Some(log.clone()));
    let queue = queue_of(&mut pair);
    let acked = pair.acked();
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.up(usize::MAX);
    log.0.borrow_mut().failed = true;
    pair.settle();
    assert_eq!(pair.acked(), acked, "4xx for the sender");
    let failed = Some(crate::owner::OwnerError::Closed(CloseReason::LogFailed));
    assert_eq!(pair.error, failed);
    assert_eq!(pair.node.failure().unwrap().0, "gateway");
    pair.connect();
    pair.settle();
    assert_eq!(pair.error, failed);
}

#[test]
fn limits_of_queues_and_their_number() {
    let config = NodeConfig {
        queues_max: 2,
        ..small_memory()
    };
    let mut pair = Pair::new(config, None);
    let limits = QueueLimits {
        length_max: 2,
        bytes_max: 100,
    };
    let (queue, _) = pair.owner.create_queue("a", limits).unwrap();
    pair.owner.create_queue("b", limits).unwrap();
    let (third, _) = pair.owner.create_queue("c", limits).unwrap();
    pair.owner.commit(put(third, &body(1))).unwrap();
    pair.settle();
    let refusals = |pair: &Pair| {
        pair.refused()
            .iter()
            .map(|(_, why)| *why)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        refusals(&pair),
        [NodeRefusal::TooManyQueues, NodeRefusal::NoQueue]
    );
    pair.events.clear();
    pair.owner.commit(put(queue, &body(97))).unwrap();
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.owner.commit(put(queue, &body(10))).unwrap();
    pair.owner.commit(put(queue, &body(1))).unwrap();
    pair.settle();
    assert_eq!(
        refusals(&pair),
        [NodeRefusal::QueueFull, NodeRefusal::QueueFull]
    );
    // Wider limits by creating it again; dropped only when empty.
    pair.events.clear();
    pair.owner
        .create_queue("a", QueueLimits::UNLIMITED)
        .unwrap();
    pair.owner.commit(put(queue, &body(97))).unwrap();
    pair.owner.purge(queue, RecordId(1), true).unwrap();
    pair.owner
        .purge(queue, RecordId(u64::MAX - 1), true)
        .unwrap();
    pair.settle();
    assert_eq!(refusals(&pair), [NodeRefusal::QueueNotEmpty]);
    assert_eq!(pair.node.queues("gateway").len(), 1);
}

/// A record that is named twice gives no space twice: the batch conflicts, full queue or not.
#[test]
fn a_record_named_twice_conflicts_before_a_queue_is_full() {
    let mut pair = Pair::new(small_memory(), None);
    pair.connect();
    let limits = QueueLimits {
        length_max: 2,
        bytes_max: 100,
    };
    let (queue, _) = pair.owner.create_queue("a", limits).unwrap();
    for _ in 0..2 {
        pair.owner.commit(put(queue, &body(1))).unwrap();
    }
    for (deleted, added) in [(1, 2), (2, 1), (2, 2), (2, 3)] {
        let mut batch = Batch::new();
        for _ in 0..deleted {
            batch.delete(queue, RecordId(1));
        }
        for _ in 0..added {
            batch.put(queue, Bytes::new(), body(1));
        }
        pair.owner.commit(batch).unwrap();
    }
    pair.settle();
    let refusals: Vec<_> = pair.refused().iter().map(|(_, why)| *why).collect();
    let conflict = NodeRefusal::BatchConflict;
    assert_eq!(
        refusals,
        [NodeRefusal::QueueFull, conflict, conflict, conflict]
    );
}
