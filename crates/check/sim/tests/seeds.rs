//! Runs seeds: the fixed ones of the gate, or those that the environment asks for.
//!
//! `VERE_SIM_SEED=7` runs one with its trace; `VERE_SIM_SEEDS=5000` so many from a random one on,
//! `VERE_SIM_SEEDS=endless` until one fails. Each holds for the test that it is given to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use vere_sim::{Broken, Figures, Outcome, run, run_with_a_lame_node, run_with_absences};

/// Seeds of the gate.
const SEEDS: u64 = 2_000;

/// Makes the run of a seed, traced or not.
type Run = fn(u64, bool) -> Outcome;

fn any(seed: u64, traced: bool) -> Outcome {
    run(seed, Broken::Nothing, traced)
}

fn fail(outcome: &Outcome, run: Run) -> ! {
    let traced = run(outcome.seed, true);
    for line in &traced.trace {
        eprintln!("{line}");
    }
    eprintln!("{}", traced.scenario);
    let seed = outcome.seed;
    let wrong = outcome.wrong.as_deref().unwrap_or("nothing");
    let test = std::thread::current().name().unwrap_or("").to_owned();
    panic!(
        "seed {seed}: {wrong}\nreplay: VERE_SIM_SEED={seed} cargo test -p vere-sim --test seeds {test}"
    );
}

/// Runs seeds on all processors until one fails; gives the failures in the order of their seeds.
fn run_seeds(run: Run, first: u64, count: u64) -> (Figures, Vec<Outcome>) {
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
                    let outcome = run(first.wrapping_add(index), false);
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

/// Runs the seeds that the environment asks for, or so many; `enough` looks at the figures of each part.
fn hold(run: Run, seeds: u64, enough: impl Fn(&Figures, u64)) {
    let variable = |name| std::env::var(name).ok();
    if let Some(seed) = variable("VERE_SIM_SEED") {
        let seed = number(&seed);
        let outcome = run(seed, true);
        if outcome.wrong.is_some() {
            fail(&outcome, run);
        }
        eprintln!("seed {seed}: {:?}", outcome.figures);
        return;
    }
    let (first, count) = match variable("VERE_SIM_SEEDS").as_deref() {
        None => (0, seeds),
        Some("endless") => (random(), u64::MAX),
        Some(count) => (random(), number(count)),
    };
    let mut done = 0;
    while done < count {
        let part = (count - done).min(SEEDS);
        let (figures, failed) = run_seeds(run, first.wrapping_add(done), part);
        done += part;
        eprintln!("{done} seeds from {first}; the last {part}: {figures:?}");
        if let Some(outcome) = failed.first() {
            fail(outcome, run);
        }
        assert!(
            figures.acknowledged > part,
            "hardly anything was acknowledged"
        );
        enough(&figures, part);
    }
}

#[test]
fn seeds_hold() {
    hold(any, SEEDS, |figures, part| {
        assert!(
            figures.repaired > part / 100,
            "hardly any node was repaired"
        );
        assert!(
            figures.replaced > part / 200,
            "hardly any slow node was replaced"
        );
        assert!(figures.caught_up > part / 500, "hardly any node caught up");
    });
}

/// A full member that was away is given what it missed, whatever else happens to it.
#[test]
fn nodes_that_were_away_catch_up() {
    hold(run_with_absences, SEEDS / 5, |figures, part| {
        assert!(figures.caught_up > part / 10, "hardly any node caught up");
    });
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

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

/// A number that nobody chose.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() >> 16
}
