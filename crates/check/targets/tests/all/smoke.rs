//! Every target with octets made of its dictionary and seeds, on a stable toolchain.
//!
//! `PROPTEST_CASES` makes it longer; a failure prints the octets that led to it.

use proptest::prelude::{any, prop, prop_oneof};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use vere_targets::{TARGETS, Target};

fn octets(target: &Target) -> impl Strategy<Value = Vec<u8>> + use<> {
    let words = target.words();
    assert!(!words.is_empty(), "{} has no dictionary", target.name);
    let seeds: Vec<Vec<u8>> = target.seeds.iter().map(|seed| seed.to_vec()).collect();
    let piece = prop_oneof![
        12 => prop::sample::select(words),
        3 => prop::collection::vec(any::<u8>(), 1..8),
        1 => (any::<u8>(), 1..600_usize).prop_map(|(octet, times)| vec![octet; times]),
    ];
    let pieces = prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    // A seed cut somewhere, with something else put in its place.
    let spliced = (
        prop::sample::select(seeds),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        pieces.clone(),
    )
        .prop_map(|(seed, from, to, pieces)| {
            let (from, to) = (from.index(seed.len() + 1), to.index(seed.len() + 1));
            [&seed[..from], &pieces, &seed[to..]].concat()
        });
    prop_oneof![
        1 => (any::<u8>(), pieces).prop_map(|(kind, pieces)| [&[kind], &pieces[..]].concat()),
        1 => spliced,
    ]
}

#[test]
fn seeds_pass() {
    for target in TARGETS {
        for seed in target.seeds {
            for cut in 0..=seed.len() {
                (target.run)(&seed[..cut]);
            }
        }
    }
}

#[test]
fn dictionaries_and_binaries_are_complete() {
    let fuzz = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz");
    for target in TARGETS {
        assert!(!target.words().is_empty());
        let body = std::fs::read_to_string(format!("{fuzz}/fuzz_targets/{}.rs", target.name));
        assert!(
            body.is_ok_and(|body| body.contains(&format!("\"{}\"", target.name))),
            "{}",
            target.name
        );
        let manifest = std::fs::read_to_string(format!("{fuzz}/Cargo.toml"));
        assert!(manifest.is_ok_and(|text| text.contains(&format!("name = \"{}\"", target.name))));
    }
}

#[test]
fn nothing_breaks_a_decoder() {
    for target in TARGETS {
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(cases())
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[17; 32]);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let result = runner.run(&octets(target), |octets| {
            (target.run)(&octets);
            Ok(())
        });
        assert!(result.is_ok(), "{}: {}", target.name, result.unwrap_err());
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(1500)
}
