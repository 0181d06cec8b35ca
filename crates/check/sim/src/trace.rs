//! The last events of a run, for the analysis of a failure.

use std::collections::VecDeque;

use crate::schedule::Micros;

/// Lines kept, unless a run is asked for all of them.
const KEPT: usize = 3_000;

/// A trace without cost while disabled.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    on: bool,
    lines: VecDeque<String>,
    /// A digest of everything that was noted: two runs of a seed must agree.
    digest: u64,
}

impl Trace {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Records an event; `what` is called only while the trace is enabled.
    pub(crate) fn note(&mut self, now: Micros, tag: u64, what: impl FnOnce() -> String) {
        self.digest = (self.digest ^ now ^ tag.rotate_left(32)).wrapping_mul(0x0000_0100_0000_01b3);
        if !self.on {
            return;
        }
        if self.lines.len() >= KEPT {
            self.lines.pop_front();
        }
        let line = format!("{:>6}.{:06} {}", now / 1_000_000, now % 1_000_000, what());
        self.lines.push_back(line);
    }

    pub(crate) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
