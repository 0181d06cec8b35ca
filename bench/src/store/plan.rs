//! The size of a measurement, and the time of each part.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::systems::SystemName;
use crate::output::Common;

/// Measures the mail store over IMAP and LMTP, beside Dovecot, Cyrus and Courier.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// What all benchmarks take.
    #[command(flatten)]
    pub common: Common,
    /// The mail: an mbox (mboxrd, lines ended by LF), compressed by zstd where its name ends in `.zst`.
    #[arg(long, value_name = "FILE")]
    pub mail: PathBuf,
    /// So many messages; beyond those of the file copies that differ in words, ids and dates.
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<usize>,
    /// Only these systems, separated by commas; without it all, and with `--quick` the first three.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub system: Vec<SystemName>,
    /// Only tasks whose names begin so; for a profile.
    #[arg(long, value_name = "TASK")]
    pub only: Option<String>,
    /// How figures grow with the mailbox, up to 200,000 messages or `--messages`; of ours alone unless other
    /// systems are named.
    #[arg(long, conflicts_with = "only")]
    pub growth: bool,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All systems take the mail.
    Fill,
    /// The first SELECT after a start.
    Select,
    /// Ten clients at once.
    Clients,
    /// Questions to systems with files outside of memory.
    Cold,
    /// The questions.
    Read,
    /// Expunging, adding, notification, delivery.
    Change,
    /// Deliveries beside Postfix.
    Offices,
    /// Memory of connections.
    Memory,
}

/// The time of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) part: Part,
    /// Rounds at most.
    pub(super) rounds: usize,
    /// No round begins that would end later than this, if the round took as long as the round before; the first round
    /// always begins.
    pub(super) budget: Duration,
    /// The usual time with all systems, for the forecast.
    pub(super) usual: Duration,
}

const fn share(part: Part, rounds: usize, budget: u64, usual: u64) -> Share {
    Share {
        part,
        rounds,
        budget: Duration::from_secs(budget),
        usual: Duration::from_secs(usual),
    }
}

/// The parts in their order, in seconds with all six systems and 21,000 messages.
const FULL: &[Share] = &[
    share(Part::Fill, 1, 0, 150),
    share(Part::Select, 3, 20, 15),
    share(Part::Clients, 2, 75, 60),
    share(Part::Cold, 2, 100, 70),
    share(Part::Read, 5, 0, 260),
    share(Part::Change, 3, 160, 120),
    share(Part::Offices, 2, 75, 70),
    share(Part::Memory, 1, 0, 60),
];

/// The parts with three systems and 2,000 messages.
const QUICK: &[Share] = &[
    share(Part::Fill, 1, 0, 6),
    share(Part::Select, 1, 0, 3),
    share(Part::Clients, 1, 0, 9),
    share(Part::Cold, 1, 0, 10),
    share(Part::Read, 2, 0, 10),
    share(Part::Change, 2, 14, 12),
    share(Part::Offices, 2, 8, 8),
    share(Part::Memory, 1, 0, 20),
];

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Messages of the mailbox for reading.
    pub(super) messages: usize,
    /// Messages of the mailbox of systems that are slow to fill.
    pub(super) few: usize,
    /// Messages of the small account.
    pub(super) small: usize,
    pub(super) appends: usize,
    pub(super) notices: usize,
    pub(super) deliveries: usize,
    /// Messages for the deliveries to fifteen mailboxes beside Postfix.
    pub(super) spread: usize,
    /// Whether files are read from the disk, for which the kernel drops the caches of the whole machine.
    pub(super) cold: bool,
    /// How long ten clients go on at once.
    pub(super) clients: Duration,
    /// Idle connections; only our store gets this many.
    pub(super) idlers: usize,
    /// Prefix of the names of wanted tasks.
    pub(super) only: String,
    /// Limit of a system's first round of questions, after which the round ends early.
    pub(super) questions_max: Duration,
    /// Time of a system for questions of all further rounds together; the cheapest questions come first.
    pub(super) again_max: Duration,
    /// No further round of any task begins after this time.
    pub(super) budget: Duration,
    pub(super) parts: &'static [Share],
}

impl Plan {
    pub(super) fn of(args: &StoreArgs) -> Self {
        let plan = match args.common.quick {
            true => Self::quick(),
            false => Self::full(),
        };
        Self {
            messages: args.messages.unwrap_or(plan.messages),
            cold: match &args.only {
                Some(only) => "cold".starts_with(&**only),
                None => plan.cold,
            },
            only: args.only.clone().unwrap_or_default(),
            ..plan
        }
    }

    fn quick() -> Self {
        Self {
            messages: 2_000,
            few: 2_000,
            small: 100,
            appends: 100,
            notices: 5,
            deliveries: 50,
            spread: 20,
            cold: false,
            clients: Duration::from_secs(2),
            idlers: 200,
            only: String::new(),
            questions_max: Duration::from_secs(20),
            again_max: Duration::from_secs(2),
            budget: Duration::from_secs(45),
            parts: QUICK,
        }
    }

    fn full() -> Self {
        Self {
            messages: 21_000,
            few: 4_000,
            small: 1_000,
            appends: 500,
            notices: 10,
            deliveries: 300,
            spread: 200,
            cold: true,
            clients: Duration::from_secs(4),
            idlers: 10_000,
            only: String::new(),
            questions_max: Duration::from_secs(90),
            again_max: Duration::from_secs(25),
            budget: Duration::from_secs(780),
            parts: FULL,
        }
    }

    /// Whether at least a single task of these is wanted.
    pub(super) fn wants(&self, tasks: &[&str]) -> bool {
        tasks.iter().any(|task| task.starts_with(&self.only))
    }

    /// The time of a part.
    pub(super) fn share(&self, part: Part) -> Share {
        let own = self.parts.iter().find(|share| share.part == part);
        own.copied().unwrap_or(share(part, 1, 0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_together_stay_below_a_quarter_of_an_hour() {
        let seconds = |parts: &[Share], of: fn(&Share) -> Duration| {
            parts.iter().map(of).sum::<Duration>().as_secs()
        };
        assert!(seconds(FULL, |share| share.usual.max(share.budget)) <= 900);
        assert!(seconds(QUICK, |share| share.usual.max(share.budget)) <= 90);
        for parts in [FULL, QUICK] {
            assert!(parts.iter().all(|share| share.rounds > 0));
        }
    }
}
