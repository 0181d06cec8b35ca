//! MTAs of X.400 in a row: cut at each protocol data unit, and under cuts and deaths as a seed says.
//!
//! `VERE_SIM_SEED=7` runs one seed with its trace, `VERE_SIM_SEEDS=5000` so many from 0 on.

use vere_sim::{
    BrokenSwitching, Cut, Post, Row, Switched, SwitchingFigures, cuts, run_with_cut,
    run_with_switches,
};

/// Seeds of the gate.
const SEEDS: u64 = 200;
/// So many seeds are tried at most until a broken promise is seen.
const BROKEN_SEEDS: u64 = 400;
/// Orders of tasks for each row: even numbers have the normal mode, odd ones that of X.410.
const ORDERS: u64 = 2;

const PAIRS: [Row; 3] = rows(2);
const CHAINS: [Row; 3] = rows(3);

const fn rows(mtas: usize) -> [Row; 3] {
    [
        Row {
            mtas,
            post: Post::Short,
        },
        Row {
            mtas,
            post: Post::Long,
        },
        Row {
            mtas,
            post: Post::Several,
        },
    ]
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs on all processors.
fn run_all<T: Sync>(of: &[T], run: impl Fn(&T) -> SwitchingFigures + Sync) -> SwitchingFigures {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let run = &run;
        let part = |thread| {
            let mine = of.iter().skip(thread).step_by(threads);
            scope.spawn(move || {
                mine.map(run)
                    .fold(SwitchingFigures::default(), SwitchingFigures::plus)
            })
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        let sums = parts.into_iter().map(|part| match part.join() {
            Ok(sum) => sum,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        sums.fold(SwitchingFigures::default(), SwitchingFigures::plus)
    })
}

/// The figures of a run, which ends with its trace otherwise.
fn judged(name: &str, run: impl Fn(bool) -> Switched) -> SwitchingFigures {
    run(false).0.unwrap_or_else(|wrong| {
        for line in run(true).1 {
            eprintln!("{line}");
        }
        panic!("{name}: {wrong}")
    })
}

const NOTHING: BrokenSwitching = BrokenSwitching::Nothing;

fn every_cut(rows: &[Row]) -> (u64, SwitchingFigures) {
    let orders = rows
        .iter()
        .flat_map(|row| (0..ORDERS).map(move |order| (*row, order)));
    let runs: Vec<(Row, u64, Cut)> = orders
        .flat_map(|(row, order)| {
            let cuts = cuts(row, order).unwrap_or_else(|wrong| panic!("{row:?}: {wrong}"));
            cuts.into_iter().map(move |cut| (row, order, cut))
        })
        .collect();
    let sum = run_all(&runs, |(row, order, cut)| {
        judged(&format!("{row:?}, {order}, {cut:?}"), |traced| {
            run_with_cut(*row, Some(*cut), (*order, NOTHING), traced)
        })
    });
    let count = runs.len() as u64;
    eprintln!("{count} cuts: {sum:?}");
    (count, sum)
}

#[test]
fn a_pair_loses_and_doubles_nothing_at_any_cut() {
    let (count, all) = every_cut(&PAIRS);
    assert_eq!((all.cuts, all.accepted), (count, count));
    assert!(all.again == 0 && all.kills == 0, "{all:?}");
    assert!(
        all.doubts > 20 && all.resumed > 20 && all.reconfirmed > 5,
        "{all:?}"
    );
}

#[test]
fn a_chain_of_three_loses_and_doubles_nothing_at_any_cut() {
    let (count, all) = every_cut(&CHAINS);
    assert_eq!((all.cuts, all.accepted), (count, count));
    assert!(all.again == 0 && all.kills == 0, "{all:?}");
    assert!(
        all.doubts > 40 && all.resumed > 40 && all.reconfirmed > 10,
        "{all:?}"
    );
}

fn run(seed: u64) -> SwitchingFigures {
    judged(
        &format!(
            "seed {seed}, replay: VERE_SIM_SEED={seed} cargo test -p vere-sim --test switching"
        ),
        |traced| run_with_switches(seed, NOTHING, traced),
    )
}

#[test]
fn every_message_ends_and_twice_only_for_a_reason() {
    let (first, count) = match number("VERE_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("VERE_SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let seeds: Vec<u64> = (first..first + count).collect();
    let all = run_all(&seeds, |seed| run(*seed));
    eprintln!("{count} seeds from {first}: {all:?}");
    if count >= SEEDS {
        assert!(all.accepted > count && all.delivered > count, "{all:?}");
        assert!(all.cuts > count && all.kills > count / 2, "{all:?}");
        assert!(all.doubts > count / 4 && all.resumed > count / 4, "{all:?}");
        assert!(all.reconfirmed > count / 20 && all.busy > 0, "{all:?}");
        assert!(all.failed > count / 4 && all.again > 0, "{all:?}");
    }
}

fn is_found(broken: BrokenSwitching) {
    let found = (0..BROKEN_SEEDS).find_map(|seed| {
        let wrong = run_with_switches(seed, broken, false).0.err()?;
        Some((seed, wrong))
    });
    let (seed, wrong) =
        found.unwrap_or_else(|| panic!("{broken:?}: {BROKEN_SEEDS} seeds saw nothing"));
    eprintln!("{broken:?}: seed {seed}: {wrong}");
}

#[test]
fn a_confirmation_before_the_unit_is_stored_is_found() {
    is_found(BrokenSwitching::EarlyConfirmation);
}

#[test]
fn a_receiver_without_a_history_is_found() {
    is_found(BrokenSwitching::ForgetfulHistory);
}

#[test]
fn a_receiver_that_answers_while_it_stores_is_found() {
    is_found(BrokenSwitching::BlindHistory);
}

#[test]
fn a_sender_that_trusts_a_transfer_in_doubt_is_found() {
    is_found(BrokenSwitching::TrustingSender);
}

#[test]
fn a_sender_that_does_not_ask_is_found() {
    is_found(BrokenSwitching::HastySender);
}

#[test]
fn a_sender_that_begins_anew_behind_a_checkpoint_is_found() {
    is_found(BrokenSwitching::WastefulSender);
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in 0..20 {
        let run = || run_with_switches(seed, NOTHING, false).0;
        assert_eq!(run(), run(), "seed {seed}");
    }
}
