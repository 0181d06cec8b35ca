//! How much is measured.

use super::accounts::Format;

/// A row of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Delay and throughput of the bundled relay.
    Relay,
    /// Bare IMAP: APPEND and FETCH by block size, accounts and connections (Figures 4.1 to 4.5). The limit for large files are their
    /// octets in mails of 1 MB with lines as long as encoded ones, one connection an account, through the same relay: the client
    /// neither makes the mails while the clock runs nor looks at what was received, but receives and counts every octet.
    Imap,
    /// Times of mounts, cold and with a cache.
    Mount,
    /// Files of 32 KB and 32 MB written durably and read cold (Figures 4.4 and 4.5), and octets on the wire.
    Files,
    /// A large file, written and read from its beginning to its end. The reader compares each read with what was written.
    Large,
    /// Many files of 4 KB, each synced, and none synced.
    Small,
    /// Postmark with the thesis's settings (Figures 4.6 and 4.7).
    Postmark,
    /// A file of 16 MB by the size of records (Figures 4.8 and 4.9).
    Records,
    /// A session with a document (Table 4.1).
    Office,
    /// Transactions of SQLite, with a rollback journal and with a log.
    Sqlite,
    /// A clone of a repository, and its check.
    Git,
    /// Memory with many files known.
    Known,
}

impl Part {
    pub(super) const ALL: [Self; 12] = [
        Self::Relay,
        Self::Imap,
        Self::Mount,
        Self::Files,
        Self::Large,
        Self::Small,
        Self::Postmark,
        Self::Records,
        Self::Office,
        Self::Sqlite,
        Self::Git,
        Self::Known,
    ];
}

impl Part {
    /// Whether a round repeats itself, or takes very long.
    pub(super) const fn is_once(self) -> bool {
        matches!(self, Self::Postmark | Self::Known)
    }

    /// Whether the row has the calls of a program that knows nothing of distances.
    pub(super) const fn runs_programs(self) -> bool {
        matches!(
            self,
            Self::Office | Self::Sqlite | Self::Git | Self::Postmark
        )
    }

    /// Whether a short run has one round.
    pub(super) const fn is_long(self) -> bool {
        matches!(
            self,
            Self::Large | Self::Records | Self::Office | Self::Sqlite | Self::Git
        )
    }
}

/// A run of Postmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) name: &'static str,
    pub(super) files: usize,
    /// Of ten: reads, the others append.
    pub(super) read: usize,
    /// Of ten: creations, the others delete.
    pub(super) create: usize,
}

const fn mark(name: &'static str, files: usize, read: usize, create: usize) -> Mark {
    Mark {
        name,
        files,
        read,
        create,
    }
}

/// The thesis's settings: numbers of files with equal bias, and three further biases with 200 files.
const MARKS: [Mark; 6] = [
    mark("equal bias, 50 files", 50, 5, 5),
    mark("equal bias, 100 files", 100, 5, 5),
    mark(MARK, 200, 5, 5),
    mark("read heavy", 200, 8, 5),
    mark("append heavy", 200, 2, 5),
    mark("create heavy", 200, 5, 8),
];

/// The run with a bar: 200 files in a whole run.
pub(super) const MARK: &str = "equal bias";

const MARKS_QUICK: [Mark; 1] = [mark(MARK, 20, 5, 5)];

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) is_quick: bool,
    pub(super) parts: Vec<Part>,
    /// Round trips in milliseconds.
    pub(super) round_trips: Vec<u64>,
    pub(super) format: Format,
    /// Whether mails are in base64.
    pub(super) base64: bool,
    pub(super) rounds: usize,
    /// Files of 32 KB in a round.
    pub(super) small: usize,
    /// Octets of the large file.
    pub(super) large: u64,
    /// Files of 4 KB in a round.
    pub(super) created: usize,
    pub(super) marks: &'static [Mark],
    pub(super) mark_transactions: usize,
    /// Largest file of Postmark, in octets.
    pub(super) mark_max: usize,
    /// Transactions of SQLite in a round.
    pub(super) transactions: usize,
    /// Files of the repository that is cloned.
    pub(super) cloned: usize,
    /// Files whose names a mount knows when its memory is read.
    pub(super) known: usize,
    /// The same for peers, whose creation of files takes long.
    pub(super) known_by_peers: usize,
}

/// Round trips of the issue, in milliseconds.
const ROUND_TRIPS: [u64; 3] = [0, 20, 50];

impl Plan {
    /// The plan of a run: all parts, unless some are chosen.
    pub(super) fn new(quick: bool, parts: &[Part], round_trips: &[u64], format: Format) -> Self {
        let or_all = |some: &[Part]| match some {
            [] => Part::ALL.to_vec(),
            some => some.to_vec(),
        };
        let round_trips = match round_trips {
            [] => ROUND_TRIPS.to_vec(),
            some => some.to_vec(),
        };
        let parts = or_all(parts);
        match quick {
            true => Self {
                is_quick: true,
                base64: false,
                parts,
                round_trips,
                format,
                rounds: 2,
                small: 5,
                large: 32_000_000,
                created: 10,
                marks: &MARKS_QUICK,
                mark_transactions: 20,
                mark_max: 1_000_000,
                transactions: 10,
                cloned: 10,
                known: 1_000,
                known_by_peers: 1_000,
            },
            false => Self {
                is_quick: false,
                base64: false,
                parts,
                round_trips,
                format,
                rounds: 3,
                small: 20,
                large: 256_000_000,
                created: 100,
                marks: &MARKS,
                mark_transactions: 200,
                mark_max: 16_000_000,
                transactions: 200,
                cloned: 100,
                known: 1_000_000,
                known_by_peers: 10_000,
            },
        }
    }

    /// Whether any row needs a mount.
    pub(super) fn has_mounts(&self) -> bool {
        let needs_none = |part: &Part| matches!(part, Part::Relay | Part::Imap);
        !self.parts.iter().all(needs_none)
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}
