//! With a spill store: whatever is written out and comes back whenever, records are what was put.

use super::super::place::{Residence, SegmentKey};
use super::super::segment::Segment;
use super::busy::{Busy, seeds};
use super::*;

/// As little memory as there may be, and everything closed is written out as soon as it is.
fn tight() -> NodeConfig {
    NodeConfig {
        segment_len: SEGMENT_LEN_MIN,
        memory_max: 0,
        compact_above: Some(0),
        spill_above: Some(0),
        ..NodeConfig::new(secret())
    }
}

/// As little memory as there may be, and nothing moves before it is short.
fn short() -> NodeConfig {
    NodeConfig {
        compact_above: None,
        spill_above: None,
        ..tight()
    }
}

/// The same with room for the places of some thousand records in three queues.
fn with_queues(config: NodeConfig) -> NodeConfig {
    let memory_max = (16 * SEGMENT_LEN_MIN + 3 * (16 << 10)) as u64;
    NodeConfig {
        memory_max,
        ..config
    }
}

fn run(config: NodeConfig, log: Option<MemoryLog>, seed: u64) -> Run {
    let spill = Some(MemorySpill::new(seed));
    Run::with(Pair::with_spill(config, log, spill))
}

fn spill(run: &Run) -> &MemorySpill {
    run.pair.spill.as_ref().unwrap()
}

/// Used memory never exceeds its bound, and what is empty costs no room in the spill store.
fn assert_bounded(run: &Run) {
    let memory = &run.pair.node.memory;
    assert!(memory.used() <= memory.max(), "{}", memory.used());
    let slots: usize = (run.pair.node.groups.iter())
        .map(|group| group.store.segments.iter().count())
        .sum();
    assert!(spill(run).slots() <= slots + memory.dropped.len());
    assert_sorted_out(run);
}

/// What is kept beside the segments, so that nobody need look at all of them, is what one would find.
fn assert_sorted_out(run: &Run) {
    for group in &run.pair.node.groups {
        let segments = &group.store.segments;
        let found = |like: fn(&Segment) -> bool| -> Vec<SegmentKey> {
            let found = segments.iter().filter(|(_, segment)| like(segment));
            found.map(|(key, _)| key).collect()
        };
        let copied = |segment: &Segment| matches!(segment.residence, Residence::Copied(_));
        assert!(segments.copies.iter().copied().eq(found(copied)));
        let thin = segments.iter();
        let thin = thin.filter_map(|(key, segment)| Some((key, segment.thinness()?)));
        assert!(segments.thin().eq(thin));
        let away = found(|segment| !segment.is_resident());
        assert_eq!(segments.away, away.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 128 } else { 5000 }))]

    #[test]
    fn holds_what_the_model_holds(
        steps in proptest::collection::vec(step(), 1..60), seed in any::<u64>(),
    ) {
        let mut run = run(tight(), None, seed);
        for step in &steps {
            run.step(step);
            assert_bounded(&run);
        }
        run.finish();
    }

    #[test]
    fn survives_crashes(
        steps in proptest::collection::vec(step(), 1..60), seed in any::<u64>(),
    ) {
        let mut run = run(tight(), Some(MemoryLog::new(1 << 10)), seed);
        for step in &steps {
            run.step(step);
            assert_bounded(&run);
        }
        run.finish();
        run.pair.crash(0);
        run.pair.connect();
        run.finish();
    }
}

fn busy(config: &NodeConfig, log: fn() -> Option<MemoryLog>) {
    let (mut reads, mut writes, mut from_log) = (0, 0, 0);
    for seed in seeds() {
        let mut busy = Busy::with(seed, run(config.clone(), log(), seed));
        for _ in 0..6 {
            for _ in 0..60 {
                busy.round();
                assert_bounded(&busy.run);
            }
            busy.run.finish();
            if busy.run.pair.log.is_some() {
                busy.run.pair.crash(0);
                busy.run.pair.connect();
                busy.run.finish();
            }
        }
        let state = spill(&busy.run).0.borrow();
        (reads, writes) = (reads + state.reads, writes + state.writes);
        let log = busy.run.pair.log.as_ref();
        from_log += log.map_or(0, |log| log.0.borrow().read_back);
    }
    assert!(reads > 100 && writes > 100, "{reads} {writes}");
    let logged = log().is_some();
    assert!(from_log > 100 || !logged, "{from_log}");
}

#[test]
fn busy_and_eager_in_memory() {
    busy(&with_queues(tight()), || None);
}

#[test]
fn busy_and_eager_with_a_log() {
    busy(&with_queues(tight()), || Some(MemoryLog::new(2 << 10)));
}

#[test]
fn busy_and_short_in_memory() {
    busy(&with_queues(short()), || None);
}

#[test]
fn busy_and_short_with_a_log() {
    busy(&with_queues(short()), || Some(MemoryLog::new(2 << 10)));
}

const QUEUE: QueueId = QueueId(0);

/// A run with one queue and so many records of 1000 octets in it.
fn filled(mut run: Run, count: u64) -> Run {
    let limits = QueueLimits::UNLIMITED;
    let (queue, txn) = run.pair.owner.create_queue("queue-0", limits).unwrap();
    assert_eq!(queue, QUEUE);
    run.submit(txn, Submitted::Create(0, limits));
    put(&mut run, count);
    run
}

fn put(run: &mut Run, count: u64) {
    for _ in 0..count {
        let mut batch = Batch::new();
        batch.put(QUEUE, Bytes::new(), run.body.clone());
        let committed = run.pair.owner.commit(batch.clone()).unwrap();
        run.submit(committed.txn, Submitted::Batch(batch, committed.ids));
        run.pair.settle();
    }
}

fn refusals(run: &Run) -> Vec<NodeRefusal> {
    let refused = run.pair.refused().into_iter();
    refused.map(|(_, refusal)| refusal).collect()
}

#[test]
fn wrong_octets_are_never_given_out() {
    for log in [None, Some(MemoryLog::new(64 << 10))] {
        let mut run = filled(run(tight(), log.clone(), 1), 100);
        spill(&run).0.borrow_mut().damaged = true;
        run.pair.events.clear();
        run.pair.owner.fetch(QUEUE, RecordId(40), 100, 50_000);
        run.pair.settle();
        let failed = Some(crate::owner::OwnerError::Closed(CloseReason::LogFailed));
        assert_eq!(run.pair.error, failed);
        let is_block = |event: &OwnerEvent| matches!(event, OwnerEvent::Block { .. });
        assert!(!run.pair.events.iter().any(is_block));
        let reason = damage(&mut run);
        assert!(
            reason.contains("differ from the octets written"),
            "{reason}"
        );
        run.pair.connect();
        run.pair.settle();
        assert!(!run.pair.owner.is_open(), "it does not count any more");
        let shut = OwnerEvent::Shut(crate::owner::ShutReason::NoFullReplica);
        assert!(run.pair.events.contains(&shut), "{:?}", run.pair.events);

        // The log has it all.
        if log.is_some() {
            spill(&run).0.borrow_mut().damaged = false;
            run.pair.crash(0);
            run.pair.connect();
            run.finish();
        }
    }
}

/// Whole frames of the same lengths: what lay in the file before, when a write was lost.
#[test]
fn whole_frames_of_another_segment_are_never_given_out() {
    let mut run = filled(run(tight(), None, 1), 100);
    spill(&run).0.borrow_mut().stale = true;
    run.pair.events.clear();
    run.pair.owner.fetch(QUEUE, RecordId(40), 100, 50_000);
    run.pair.settle();
    let is_block = |event: &OwnerEvent| matches!(event, OwnerEvent::Block { .. });
    assert!(!run.pair.events.iter().any(is_block));
    let reason = damage(&mut run);
    assert!(
        reason.contains("differ from the octets written"),
        "{reason}"
    );
}

/// What was found to be damaged.
fn damage(run: &mut Run) -> String {
    match run.pair.node.take_notice() {
        Some(Notice::Damaged { group, reason }) if group == "gateway" => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_restart_leaves_to_the_log_what_that_holds() {
    let log = MemoryLog::new(20 << 10);
    let mut run = filled(run(tight(), Some(log.clone()), 1), 300);
    let live = run.pair.node.stats()[0].1.bytes;
    let writes = spill(&run).0.borrow().writes;
    run.pair.crash(0);
    assert_bounded(&run);
    let written = spill(&run).0.borrow().writes - writes;
    let segments = run.pair.node.groups[0].store.segments.iter();
    let left = segments.filter(|(_, segment)| segment.is_in_log());
    let left: usize = left.map(|(_, segment)| segment.fill).sum();
    assert!(left as u64 > live / 2, "{left} of {live}");
    assert!(written < 10, "{written} segments written out");
    run.pair.connect();
    run.finish();
    assert!(log.0.borrow().read_back > 0);
    // And once more, from a log in which some of it is written again.
    run.pair.crash(0);
    run.pair.connect();
    run.finish();
}

#[test]
fn what_a_log_does_not_give_back_is_told() {
    let log = MemoryLog::new(4 << 10);
    let mut run = filled(run(tight(), Some(log.clone()), 1), 100);
    run.pair.crash(0);
    run.pair.connect();
    run.pair.settle();
    log.0.borrow_mut().rotten = true;
    run.pair.events.clear();
    run.pair.owner.fetch(QUEUE, RecordId(1), 100, 50_000);
    run.pair.settle();
    let failed = Some(crate::owner::OwnerError::Closed(CloseReason::LogFailed));
    assert_eq!(run.pair.error, failed);
    let is_block = |event: &OwnerEvent| matches!(event, OwnerEvent::Block { .. });
    assert!(!run.pair.events.iter().any(is_block));
    let reason = damage(&mut run);
    assert!(reason.contains("it is damaged"), "{reason}");
}

#[test]
fn a_reader_hears_of_what_is_lost() {
    let mut run = filled(run(tight(), None, 1), 100);
    spill(&run).0.borrow_mut().damaged = true;
    let node = &mut run.pair.node;
    let mut reader = peer::Peer::new(node).unwrap();
    reader.say(node, peer::READER).unwrap();
    reader.send(node, &fetch_from(40));
    node.end_turn(now());
    while spill(&run).finish_all() {
        run.pair.node.end_turn(now());
    }
    let reason = reader.closed(&mut run.pair.node);
    assert_eq!(reason, Some(CloseReason::LogFailed));
}

fn fetch_from(id: u64) -> Vec<u8> {
    let fetch = Request::Fetch {
        queue: QUEUE,
        from: RecordId(id),
        records: 2,
        octets: 10_000,
    };
    peer::request(fetch, id)
}

#[test]
fn who_waits_for_the_disk_keeps_nobody_else_waiting() {
    let mut run = filled(run(tight(), None, 1), 100);
    let is_block = |answer: &Answer, at: u64| matches!(answer, Answer::Block { seq, head } if seq.0 == at && head.records > 0);
    let node = &mut run.pair.node;
    let mut readers = [(); 2].map(|()| peer::Peer::new(node).unwrap());
    for reader in &mut readers {
        reader.say(node, peer::READER).unwrap();
    }
    let [slow, other] = &mut readers;
    let mut octets = fetch_from(40);
    octets.extend(peer::request(Request::Heartbeat, 41));
    octets.extend(fetch_from(100));
    slow.send(node, &octets);
    node.end_turn(now());
    assert_eq!(slow.answers(node), [], "in its order");
    assert!(!node.takes_input(slow.id) && node.takes_input(other.id));
    other.send(node, &fetch_from(100));
    let answers = other.answers(node);
    assert!(is_block(&answers[0], 100), "{answers:?}");

    let mut answers = Vec::new();
    while spill(&run).finish_all() {
        let node = &mut run.pair.node;
        node.end_turn(now());
        answers.extend(slow.answers(node));
    }
    let blocks = |at| answers.iter().position(|answer| is_block(answer, at));
    let alive = |answer: &Answer| matches!(answer, Answer::Alive { seq, .. } if seq.0 == 41);
    let order = [blocks(40), answers.iter().position(alive), blocks(100)];
    assert!(
        order.iter().all(Option::is_some) && order.is_sorted(),
        "{answers:?}"
    );
}

#[test]
fn without_room_new_records_are_refused_and_old_ones_end() {
    for failing in [false, true] {
        let mut run = filled(run(short(), None, 1), 0);
        {
            let mut state = spill(&run).0.borrow_mut();
            state.failing = failing;
            state.capacity = 40_000;
        }
        let most = if failing { 64 } else { 64 + 40 };
        let mut fitted = 0;
        while refusals(&run).is_empty() {
            let mut batch = Batch::new();
            batch.put(QUEUE, Bytes::new(), run.body.clone());
            run.pair.owner.commit(batch).unwrap();
            run.pair.settle();
            fitted += 1;
            assert!(fitted < most, "they do not fit");
        }
        assert!(fitted > if failing { 30 } else { 70 }, "{fitted}");
        assert_eq!(refusals(&run), [NodeRefusal::NodeFull]);
        run.pair.events.clear();
        let seq = run.pair.owner.fetch(QUEUE, RecordId(10), 1, 1);
        let block = settle_block(&mut run.pair, seq);
        assert_eq!(block.records[0].body, run.body);
        let mut batch = Batch::new();
        (1..=20).for_each(|id| {
            batch.delete(QUEUE, RecordId(id));
        });
        run.pair.owner.commit(batch).unwrap();
        run.pair.settle();
        assert_eq!(refusals(&run), []);
        spill(&run).0.borrow_mut().failing = false;
        run.pair.node.tick(now());
        run.pair.settle();
        for _ in 0..10 {
            let mut batch = Batch::new();
            batch.put(QUEUE, Bytes::new(), run.body.clone());
            run.pair.owner.commit(batch).unwrap();
            run.pair.settle();
        }
        assert_eq!(refusals(&run), [], "taken again");
    }
}

#[test]
fn reading_on_finds_the_next_segments_in_memory() {
    let run = short();
    let mut run = filled(self::run(run, None, 1), 300);
    assert!(spill(&run).slots() > 40);
    let (mut from, mut waited, mut blocks) = (RecordId(40), 0, 0);
    while from.0 < 200 {
        run.pair.events.clear();
        let seq = run.pair.owner.fetch(QUEUE, from, 1, 1);
        run.pair.up(usize::MAX);
        run.pair.down(usize::MAX);
        let answered = |event: &OwnerEvent| matches!(event, OwnerEvent::Block { .. });
        waited += usize::from(!run.pair.events.iter().any(answered));
        from = settle_block(&mut run.pair, seq).next;
        blocks += 1;
    }
    assert_eq!((blocks, waited), (160, 1));
}

#[test]
fn more_is_read_ahead_for_who_reads_on() {
    let config = NodeConfig {
        memory_max: 256 * SEGMENT_LEN_MIN as u64,
        ..tight()
    };
    let mut run = filled(self::run(config, None, 1), 600);
    let mut read = |from: u64| {
        let before = spill(&run).0.borrow().reads;
        let seq = run.pair.owner.fetch(QUEUE, RecordId(from), 1, 1);
        let next = settle_block(&mut run.pair, seq).next;
        (next.0, spill(&run).0.borrow().reads - before)
    };
    let (next, first) = read(40);
    let (_, second) = read(next);
    let (_, elsewhere) = read(300);
    // About three segments, of which the first is begun in its middle, and about eight.
    let some = 1..=6;
    assert!(
        some.contains(&first) && some.contains(&elsewhere),
        "{first} {elsewhere}"
    );
    assert!((9..=16).contains(&(first + second)), "{first} {second}");
}

#[test]
fn a_record_takes_less_than_100_octets_beside_its_own() {
    use super::super::{queue::Slot, store::RECORD_OVERHEAD, store::Side};
    let (slot, side) = (size_of::<Slot>() as u64, size_of::<Side>() as u64);
    assert!(RECORD_OVERHEAD + slot <= 60);
    assert!(RECORD_OVERHEAD + slot + side <= 100);
}
