//! The bounds of a new system on a small machine: by default all roles together may use more memory than such a machine has.

use std::fmt;

use vere_health::machine::Memory;
use vere_process::failure::Failure;
use vere_process::wording::size;

/// Share of the memory for all roles together, in quarters: the rest is for the kernel and other programs.
const QUARTERS: u64 = 3;
/// Shares of the defaults to try, from whole defaults down.
const STEPS: u64 = 64;

/// Floor and default of each bound: sizes in MiB, and numbers.
const SPOOL: (u64, u64) = (32, 1_024);
const BODIES: (u64, u64) = (50, 256);
const HEADS: (u64, u64) = (16, 256);
const FETCHED: (u64, u64) = (16, 64);
const CONNECTIONS: (u64, u64) = (1_000, 20_000);
const QUEUED: (u64, u64) = (500_000, 10_000_000);
/// The largest message by default, in MiB.
const MESSAGE: u64 = 50;

/// Bounds as lines of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    share: u64,
}

impl Bounds {
    /// The defaults, without a line.
    pub(super) const DEFAULT: Self = Self { share: STEPS };
    /// The least bounds.
    const FLOOR: Self = Self { share: 0 };

    /// The largest bounds within the memory, or else the least. `sum` is the memory of all roles with these bounds.
    ///
    /// # Errors
    /// The error of `sum`.
    pub(super) fn fitting(
        memory: &Memory,
        sum: impl Fn(Self) -> Result<u64, Failure>,
    ) -> Result<Self, Failure> {
        let budget = memory.all / 4 * QUARTERS;
        for share in (1..=STEPS).rev() {
            let bounds = Self { share };
            if sum(bounds)? <= budget {
                return Ok(bounds);
            }
        }
        Ok(Self::FLOOR)
    }

    /// A bound between floor and default, as a multiple of `unit`.
    fn scaled(self, (floor, most): (u64, u64), unit: u64) -> u64 {
        let share = most.saturating_mul(self.share) / STEPS;
        (share / unit).saturating_mul(unit).max(floor)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::DEFAULT {
            return Ok(());
        }
        let mib = |bound| self.scaled(bound, 1);
        let bodies = mib(BODIES);
        write!(
            f,
            "\n# By the memory of this machine, see: vere config memory\n\
             [spool]\nmemory_max = \"{} MiB\"\n\n\
             [limits]\nmessage_size_max = \"{} MiB\"\nbody_memory_max = \"{bodies} MiB\"\n\
             queue_memory_max = \"{} MiB\"\nfetch_memory_max = \"{} MiB\"\n\
             connections_max = {}\nqueued_messages_max = {}\n",
            mib(SPOOL),
            (bodies / 2).min(MESSAGE),
            mib(HEADS),
            mib(FETCHED),
            self.scaled(CONNECTIONS, 100),
            self.scaled(QUEUED, 100_000),
        )
    }
}

/// The note for a machine whose memory is too small for the roles even so.
pub(super) fn note(memory: &Memory, sum: u64) -> Option<String> {
    (!memory.holds(sum)).then(|| {
        format!(
            "this machine has {} of memory, and all parts of the system together may use up to {}: add swap space of \
             at least {}, or memory",
            size(memory.all),
            size(sum),
            size(sum.saturating_sub(memory.all).max(1 << 30))
        )
    })
}
