//! How much is measured.

use std::time::Duration;

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The limits of the machine: one raw stream, associations without an MTA, a sync of the disk.
    Bare,
    /// Full transfers, by the number of sources and the size of messages.
    Rates,
    /// Full transfers to two sinks.
    Sinks,
    /// Full transfers with the archive.
    Archive,
    /// One association.
    One,
    /// Long messages.
    Large,
    /// A queue of a million messages: filled with the output off, started with, drained.
    Full,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::Bare,
        Self::Rates,
        Self::Sinks,
        Self::Archive,
        Self::One,
        Self::Large,
        Self::Full,
    ];
}

/// When a message is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// On the disks of two nodes.
    Synced,
    /// In the memory of two nodes.
    Replicated,
}

impl Durability {
    pub(super) const ALL: [Self; 2] = [Self::Synced, Self::Replicated];

    /// The word of the settings.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Synced => "synced",
            Self::Replicated => "replicated",
        }
    }
}

/// Sources whose rates have bars.
pub(super) const SOURCES: usize = 10;
/// Associations of each source.
pub(super) const ASSOCIATIONS: usize = 4;

/// Short messages: their rates have bars.
pub(super) const SHORT: [usize; 2] = [1_000, 10_000];
/// Long messages, whose throughput has bars beside the raw stream.
pub(super) const LONG: [usize; 2] = [1_000_000, 10_000_000];
/// Between both.
pub(super) const MIDDLE: usize = 100_000;

/// The queue is kept between so many messages: sources pause above, and go on below.
const QUEUE: (u64, u64) = (500, 5_000);
/// Octets of a queue of long messages.
const QUEUE_OCTETS: u64 = 256 << 20;

/// Sizes and times of a run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) durabilities: Vec<Durability>,
    /// Time before a measurement, and of a measurement.
    pub(super) warm: Duration,
    pub(super) time: Duration,
    pub(super) rounds: usize,
    /// Numbers of sources.
    pub(super) sources: &'static [usize],
    /// Messages of the long queue.
    pub(super) queued: u64,
}

impl Plan {
    /// The plan of a run: everything, unless parts are chosen.
    pub(super) fn new(
        quick: bool,
        parts: &[Part],
        durabilities: &[Durability],
        queued: Option<u64>,
    ) -> Self {
        let parts = chosen(parts, &Part::ALL);
        let durabilities = chosen(durabilities, &Durability::ALL);
        match quick {
            true => Self {
                parts,
                durabilities,
                warm: Duration::from_secs(1),
                time: Duration::from_secs(2),
                rounds: 1,
                sources: &[SOURCES],
                queued: queued.unwrap_or(20_000),
            },
            false => Self {
                parts,
                durabilities,
                warm: Duration::from_secs(4),
                time: Duration::from_secs(12),
                rounds: 3,
                sources: &[1, 2, 4, 6, 8, SOURCES],
                queued: queued.unwrap_or(1_000_000),
            },
        }
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

fn chosen<T: Copy>(some: &[T], all: &[T]) -> Vec<T> {
    match some {
        [] => all.to_vec(),
        some => some.to_vec(),
    }
}

/// A load of the sources.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) sources: usize,
    pub(super) associations: usize,
    pub(super) sinks: usize,
    /// Octets of a content.
    pub(super) size: usize,
}

impl Case {
    /// All sources and one sink.
    pub(super) const fn of(size: usize) -> Self {
        Self {
            sources: SOURCES,
            associations: ASSOCIATIONS,
            sinks: 1,
            size,
        }
    }

    /// The name of the load in the results.
    pub(super) fn name(&self) -> String {
        let Self {
            sources,
            associations,
            sinks,
            size,
        } = *self;
        let source = if sources == 1 { "source" } else { "sources" };
        let mut name = format!("{sources} {source}, {}", sized(size));
        if associations != ASSOCIATIONS {
            let association = if associations == 1 {
                "association"
            } else {
                "associations"
            };
            name = format!("{name}, {associations} {association}");
        }
        if sinks > 1 {
            name = format!("{name}, {sinks} sinks");
        }
        name
    }

    /// The least and the most messages of the queue.
    pub(super) fn queue(&self) -> (u64, u64) {
        let size = u64::try_from(self.size).unwrap_or(u64::MAX).max(1);
        let most = QUEUE.1.min(QUEUE_OCTETS / size).max(4);
        (QUEUE.0.min(most / 10).max(1), most)
    }
}

/// A size as people write it.
pub(super) fn sized(octets: usize) -> String {
    match octets {
        octets if octets >= 1_000_000 => format!("{} MB", octets / 1_000_000),
        octets => format!("{} KB", octets / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_long_messages_is_short() {
        assert_eq!(Case::of(1_000).queue(), (500, 5_000));
        assert_eq!(Case::of(1_000_000).queue(), (26, 268));
        assert_eq!(Case::of(10_000_000).queue(), (2, 26));
        assert_eq!(Case::of(usize::MAX).queue(), (1, 4));
    }

    #[test]
    fn loads_have_names() {
        assert_eq!(Case::of(10_000).name(), "10 sources, 10 KB");
        let one = Case {
            sources: 1,
            associations: 1,
            sinks: 2,
            size: 1_000_000,
        };
        assert_eq!(one.name(), "1 source, 1 MB, 1 association, 2 sinks");
    }

    #[test]
    fn parts_are_all_unless_some_are_chosen() {
        let plan = Plan::new(true, &[], &[], None);
        assert!(plan.has(Part::Full) && plan.durabilities.len() == 2);
        let plan = Plan::new(false, &[Part::One], &[Durability::Synced], Some(7));
        assert!(!plan.has(Part::Full) && plan.has(Part::One));
        assert_eq!((plan.durabilities.len(), plan.queued), (1, 7));
    }
}
