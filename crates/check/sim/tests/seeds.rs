//! Runs seeds: the fixed ones of the gate, or those that the environment asks for.
//!
//! `VERE_SIM_SEED=7` runs one with its trace; `VERE_SIM_SEEDS=5000` so many from a random one on,
//! `VERE_SIM_SEEDS=endless` until one fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use vere_sim::{Broken, Figures, Outcome, run, run_with_a_lame_node};

/// Seeds of the gate.
const SEEDS: u64 = 2_000;

fn fail(outcome: &Outcome) -> ! {
    let traced = run(outcome.seed, Broken::Nothing, true);
    for line in &traced.trace {
        eprintln!("{line}");
    }
    eprintln!("{}", traced.scenario);
    let seed = outcome.seed;
    let wrong = outcome.wrong.as_deref().unwrap_or("nothing");
    panic!(
        "seed {seed}: {wrong}\nreplay: VERE_SIM_SEED={seed} cargo test -p vere-sim --test seeds"
    );
}

/// Runs seeds on all processors until one fails; gives the failures in the order of their seeds.
fn run_seeds(first: u64, count: u64) -> (Figures, Vec<Outcome>) {
    let next = AtomicU64::new(0);
    let all = Mutex::new((Figures::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let outcome = run(first.wrapping_add(index), Broken::Nothing, false);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.0 = all.0.plus(outcome.figures);
                    if outcome.wrong.is_some() {
                        all.1.push(outcome);
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (figures, mut failed) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|outcome| outcome.seed);
    (figures, failed)
}

#[test]
fn seeds_hold() {
    let variable = |name| std::env::var(name).ok();
    if let Some(seed) = variable("VERE_SIM_SEED") {
        let seed = seed.parse().expect("VERE_SIM_SEED is a number");
        let outcome = run(seed, Broken::Nothing, true);
        if outcome.wrong.is_some() {
            fail(&outcome);
        }
        println!("seed {seed}: {:?}", outcome.figures);
        return;
    }
    let (first, count) = match variable("VERE_SIM_SEEDS").as_deref() {
        None => (0, SEEDS),
        Some("endless") => (random(), u64::MAX),
        Some(count) => (random(), count.parse().expect("VERE_SIM_SEEDS is a number")),
    };
    let mut done = 0;
    while done < count {
        let part = (count - done).min(SEEDS);
        let (figures, failed) = run_seeds(first.wrapping_add(done), part);
        done += part;
        println!("{done} seeds from {first}; the last {part}: {figures:?}");
        if let Some(outcome) = failed.first() {
            fail(outcome);
        }
        assert!(
            figures.acknowledged > part,
            "hardly anything was acknowledged"
        );
        assert!(
            figures.repaired > part / 100,
            "hardly any node was repaired"
        );
        assert!(
            figures.replaced > part / 200,
            "hardly any slow node was replaced"
        );
    }
}

/// Every change waits for the slowest member. One that is always slow is replaced where there is another
/// node, and nothing is lost by it.
#[test]
fn a_node_that_is_always_slow_is_replaced() {
    let mut replaced = 0;
    for seed in 0..60 {
        let outcome = run_with_a_lame_node(seed, false);
        if let Some(wrong) = outcome.wrong {
            let traced = run_with_a_lame_node(seed, true);
            for line in &traced.trace {
                eprintln!("{line}");
            }
            panic!("seed {seed}: {wrong}\n{}", outcome.scenario);
        }
        replaced += outcome.figures.replaced;
    }
    // Elsewhere it was none of the first members.
    assert!(replaced > 20, "{replaced} were replaced");
}

/// A number that nobody chose.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() >> 16
}
