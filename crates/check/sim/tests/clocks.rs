//! Queues by a wall clock that is put ahead and back, while the gateway lives and while it is down.
//!
//! `VERE_SIM_SEED=7` runs one seed, `VERE_SIM_SEEDS=5000` so many from 0 on.

use vere_sim::{BrokenClock, ClockFigures, run_with_clocks};

/// Seeds of the gate.
const SEEDS: u64 = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_the_clock_does_mail_is_tried_and_expires_in_time() {
    let (first, count) = match number("VERE_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("VERE_SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let mut all = ClockFigures::default();
    for seed in first..first + count {
        let run = run_with_clocks(seed, BrokenClock::Nothing);
        let figures = run.unwrap_or_else(|wrong| {
            panic!("seed {seed}: {wrong}\nreplay: VERE_SIM_SEED={seed} cargo test -p vere-sim --test clocks")
        });
        all.attempts += figures.attempts;
        all.expired += figures.expired;
        all.steps += figures.steps;
        all.unseen += figures.unseen;
        all.starts += figures.starts;
    }
    eprintln!("{count} seeds from {first}: {all:?}");
    if count >= SEEDS {
        assert!(all.attempts > 10 * count && all.expired > count, "{all:?}");
        assert!(all.steps > count && all.unseen > count / 2, "{all:?}");
    }
}

fn is_found(broken: BrokenClock) {
    let found = (0..SEEDS).find_map(|seed| {
        let wrong = run_with_clocks(seed, broken).err()?;
        Some((seed, wrong))
    });
    let (seed, wrong) = found.unwrap_or_else(|| panic!("{broken:?}: {SEEDS} seeds saw nothing"));
    eprintln!("{broken:?}: seed {seed}: {wrong}");
}

#[test]
fn a_host_that_does_not_notice_steps_is_found() {
    is_found(BrokenClock::Unnoticed);
}

#[test]
fn a_start_that_spares_nothing_is_found() {
    is_found(BrokenClock::Hasty);
}

#[test]
fn messages_from_the_future_that_nobody_notes_are_found() {
    is_found(BrokenClock::Unseen);
}

#[test]
fn records_with_the_time_of_the_clock_as_it_was_are_found() {
    is_found(BrokenClock::Stale);
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in 0..20 {
        let run = || run_with_clocks(seed, BrokenClock::Nothing);
        assert_eq!(run(), run(), "seed {seed}");
    }
}
