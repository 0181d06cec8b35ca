//! Whether entries are gathered before a write.
//!
//! Where callers wait for a sync, the sync gathers. Where callers wait for a write alone, a busy MTA paid for each entry a
//! write, and a wake-up of the thread and of the caller: more than the entry itself costs.

use std::time::Duration;

/// The time that entries are gathered for.
pub(super) const TIME: Duration = Duration::from_micros(300);
/// Gathering goes on while it brings this many entries: fewer callers would only wait longer.
const WORTH: usize = 4;
/// Writes without gathering behind one that brought fewer.
const PAUSE: u32 = 64;

/// The state between two writes.
#[derive(Debug)]
pub(super) struct Gathering {
    /// Writes until entries are gathered again; none with syncs.
    pause: Option<u32>,
}

impl Gathering {
    /// For callers that get their answer before the sync, which follows within a time; zero: after the sync.
    pub(super) fn of(sync_within: Duration) -> Self {
        Self {
            pause: (!sync_within.is_zero()).then_some(0),
        }
    }

    /// Whether entries are gathered before the next write.
    pub(super) fn is_due(&self) -> bool {
        self.pause == Some(0)
    }

    /// Records how many entries the next write has.
    pub(super) fn brought(&mut self, entries: usize) {
        if let Some(pause) = &mut self.pause {
            *pause = match pause.checked_sub(1) {
                Some(left) => left,
                None if entries < WORTH => PAUSE,
                None => 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_goes_on_while_it_brings_entries() {
        let mut gathering = Gathering::of(Duration::from_secs(1));
        for _ in 0..3 {
            assert!(gathering.is_due());
            gathering.brought(WORTH);
        }
        gathering.brought(WORTH - 1);
        for _ in 0..PAUSE {
            assert!(!gathering.is_due());
            // What comes together by chance does not end the pause.
            gathering.brought(WORTH);
        }
        assert!(gathering.is_due());
    }

    #[test]
    fn with_syncs_nothing_is_gathered() {
        let mut gathering = Gathering::of(Duration::ZERO);
        gathering.brought(100);
        assert!(!gathering.is_due());
    }
}
