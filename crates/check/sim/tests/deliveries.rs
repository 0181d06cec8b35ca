//! Deliveries under kills, takeovers and operators.
//!
//! `VERE_SIM_SEED=7` runs one seed with its trace, `VERE_SIM_SEEDS=5000` so many from 0 on.

use vere_sim::{BrokenDelivery, DeliveryFigures, run_with_deliveries, trace_deliveries};

/// Seeds of the gate.
const SEEDS: u64 = 2_000;
/// So many seeds are tried at most until a broken promise is seen.
const BROKEN_SEEDS: u64 = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64) -> DeliveryFigures {
    run_with_deliveries(seed, BrokenDelivery::Nothing).unwrap_or_else(|wrong| {
        for line in trace_deliveries(seed, BrokenDelivery::Nothing).1 {
            eprintln!("{line}");
        }
        panic!("seed {seed}: {wrong}\nreplay: VERE_SIM_SEED={seed} cargo test -p vere-sim --test deliveries")
    })
}

/// Runs seeds on all processors.
fn run_all(first: u64, count: u64) -> DeliveryFigures {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        let part = |thread| {
            let seeds = (first + thread..first + count).step_by(threads as usize);
            scope.spawn(|| seeds.fold(DeliveryFigures::default(), |all, seed| all.plus(run(seed))))
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        let sums = parts.into_iter().map(|part| match part.join() {
            Ok(sum) => sum,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        sums.fold(DeliveryFigures::default(), DeliveryFigures::plus)
    })
}

#[test]
fn every_message_ends_and_twice_only_for_a_reason() {
    let (first, count) = match number("VERE_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("VERE_SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let all = run_all(first, count);
    eprintln!("{count} seeds from {first}: {all:?}");
    if count >= SEEDS {
        assert!(all.accepted > 5 * count && all.taken > 5 * count, "{all:?}");
        assert!(all.kills > count && all.takeovers > count, "{all:?}");
        assert!(all.failed > count && all.delayed > count / 10, "{all:?}");
        assert!(all.held > count / 2 && all.ordered > count, "{all:?}");
        assert!(all.overdue > count / 2, "{all:?}");
        assert!(
            all.again > count / 20 && all.released > count / 20,
            "{all:?}"
        );
    }
}

fn is_found(broken: BrokenDelivery) {
    let found = (0..BROKEN_SEEDS).find_map(|seed| {
        let wrong = run_with_deliveries(seed, broken).err()?;
        Some((seed, wrong))
    });
    let (seed, wrong) =
        found.unwrap_or_else(|| panic!("{broken:?}: {BROKEN_SEEDS} seeds saw nothing"));
    eprintln!("{broken:?}: seed {seed}: {wrong}");
}

#[test]
fn a_spool_that_forgets_changes_is_found() {
    is_found(BrokenDelivery::ForgetfulSpool);
}

#[test]
fn a_spool_that_forgets_new_metadata_is_found() {
    is_found(BrokenDelivery::ForgetfulReplace);
}

#[test]
fn batches_done_by_half_are_found() {
    is_found(BrokenDelivery::TornBatch);
}

#[test]
fn records_that_end_before_their_delivery_are_found() {
    is_found(BrokenDelivery::EagerEnd);
}

#[test]
fn deliveries_without_the_lease_are_found() {
    is_found(BrokenDelivery::LyingLease);
}

#[test]
fn acknowledgements_before_the_change_are_found() {
    is_found(BrokenDelivery::EarlyAcknowledgement);
}

#[test]
fn ends_without_their_lines_are_found() {
    is_found(BrokenDelivery::LostLines);
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in 0..20 {
        let run = || run_with_deliveries(seed, BrokenDelivery::Nothing);
        assert_eq!(run(), run(), "seed {seed}");
    }
}
