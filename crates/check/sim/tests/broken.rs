//! Does the checker bite? In a world in which a promise to the spool is broken something must be found
//! wrong, and soon.

use vere_sim::{Broken, run};

/// So many seeds are tried at most.
const SEEDS: u64 = 400;

fn is_found(broken: Broken) {
    let found = (0..SEEDS).find_map(|seed| {
        let wrong = run(seed, broken, false).wrong?;
        Some((seed, wrong))
    });
    let (seed, wrong) = found.unwrap_or_else(|| panic!("{broken:?}: {SEEDS} seeds saw nothing"));
    eprintln!("{broken:?}: seed {seed}: {wrong}");
}

#[test]
fn disks_that_lie_are_found() {
    is_found(Broken::LyingDisk);
}

#[test]
fn a_register_that_does_not_compare_is_found() {
    is_found(Broken::BlindRegister);
}

#[test]
fn a_register_that_forgets_is_found() {
    is_found(Broken::ForgetfulRegister);
}

#[test]
fn a_network_with_holes_is_found() {
    is_found(Broken::HoleyNetwork);
}

#[test]
fn owners_that_do_not_wait_for_a_lease_are_found() {
    is_found(Broken::HastySuccessor);
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in 0..20 {
        let (once, twice) = (
            run(seed, Broken::Nothing, false),
            run(seed, Broken::Nothing, true),
        );
        assert_eq!(once.digest, twice.digest, "seed {seed}");
        assert_eq!(once.figures, twice.figures, "seed {seed}");
        assert_eq!(once.wrong, twice.wrong, "seed {seed}");
    }
}
