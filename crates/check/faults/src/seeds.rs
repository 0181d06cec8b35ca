//! The seeds of a test, by the environment.

use std::ops::Range;

/// The seeds of a run: `VERE_SIM_SEED=7` runs one, `VERE_SIM_SEEDS=5000` so many from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds {
    /// The seeds.
    pub range: Range<u64>,
    /// Whether a person wants to see one seed.
    pub is_one: bool,
}

impl Seeds {
    /// The seeds that the environment asks for, or else so many.
    #[must_use]
    pub fn or(count: u64) -> Self {
        let (range, is_one) = match number("VERE_SIM_SEED") {
            Some(seed) => (seed..seed.saturating_add(1), true),
            None => (0..number("VERE_SIM_SEEDS").unwrap_or(count), false),
        };
        Self { range, is_one }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
