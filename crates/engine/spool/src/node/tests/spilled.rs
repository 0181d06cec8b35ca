//! With a spill store: whatever is written out and comes back whenever, records are what was put.

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
    let (mut reads, mut writes) = (0, 0);
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
    }
    assert!(reads > 100 && writes > 100, "{reads} {writes}");
}

#[test]
fn busy_and_eager_in_memory() {
    busy(&tight(), || None);
}

#[test]
fn busy_and_eager_with_a_log() {
    busy(&tight(), || Some(MemoryLog::new(2 << 10)));
}

#[test]
fn busy_and_short_in_memory() {
    busy(&short(), || None);
}

#[test]
fn busy_and_short_with_a_log() {
    busy(&short(), || Some(MemoryLog::new(2 << 10)));
}
