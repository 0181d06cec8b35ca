//! How much is measured.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::list::Shape;

/// A row of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Hits and queries of the cache, for traces with and without locality.
    Cache,
    /// Times of look-ups with the lists of the Internet.
    Lookup,
    /// CPU time of a query over UDP.
    Cpu,
    /// Memory and load time of 10,000,000 addresses.
    Memory,
    /// Missed answers while files are read again.
    Reload,
    /// Queries over TCP.
    Tcp,
    /// Octets to the victim of queries with a forged source.
    Flood,
    /// Mail of clients behind lists of the Internet.
    Mail,
}

impl Part {
    const ALL: [Self; 8] = [
        Self::Cache,
        Self::Lookup,
        Self::Cpu,
        Self::Memory,
        Self::Reload,
        Self::Tcp,
        Self::Flood,
        Self::Mail,
    ];
}

/// Seeds of the traces with bars.
pub(super) const SEEDS: RangeInclusive<u64> = 1..=10;

/// The seed of lists and questions.
pub(super) const DATA_SEED: u64 = 1;

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) rounds: usize,
    /// Queries of a round.
    pub(super) queries: u64,
    /// Listed addresses, where memory is no subject.
    pub(super) listed: usize,
    /// Lists of 10,000,000 addresses.
    pub(super) shapes: &'static [Shape],
    pub(super) reloads: u8,
    /// Time of a flood.
    pub(super) flood: Duration,
    /// Time of sending at each rate of mail.
    pub(super) mail: Duration,
}

impl Plan {
    /// The plan of a run: all parts, unless some are chosen.
    pub(super) fn new(quick: bool, parts: &[Part]) -> Self {
        let parts = match parts {
            [] => Part::ALL.to_vec(),
            some => some.to_vec(),
        };
        match quick {
            true => Self {
                parts,
                rounds: 3,
                queries: 200_000,
                listed: 200_000,
                shapes: &[Shape::Neighbours],
                reloads: 2,
                flood: Duration::from_secs(1),
                mail: Duration::from_secs(4),
            },
            false => Self {
                parts,
                rounds: 5,
                queries: 1_000_000,
                listed: 1_000_000,
                shapes: &[Shape::Neighbours, Shape::Uniform],
                reloads: 5,
                flood: Duration::from_secs(5),
                mail: Duration::from_secs(20),
            },
        }
    }
}
