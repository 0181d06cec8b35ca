//! Progress of a server with a command under way. A single octet is no progress: a server that trickles would hold a
//! connection, and the requests on it, for ever.

use std::time::Duration;

/// Octets that count as progress: with [`Times::POOL`], 68 octets per second at least.
const FLOOR_OCTETS: usize = 4_096;

/// How long a request waits for a connection, and a server with a command under way may take.
///
/// A request without a change is tried twice where a connection ends. So the answer comes within `wait` and two times `longest`,
/// and the time in which the octets of the request travel at the floor of [`Times::patience`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// For a connection.
    pub wait: Duration,
    /// Without an octet, before the account is tried by a further connection.
    pub silence: Duration,
    /// Without progress: 4 KiB in either direction, a whole response, or the end of a command.
    pub patience: Duration,
    /// With nothing that a request asked for, such as `* OK Hang in there` or slices of a mailbox without a mail: a server may
    /// search a large mailbox.
    pub longest: Duration,
}

impl Times {
    /// For the connections of a pool: programs wait for the answers.
    pub const POOL: Self = Self {
        wait: Duration::from_secs(10),
        silence: Duration::from_secs(10),
        patience: Duration::from_secs(60),
        longest: Duration::from_secs(10 * 60),
    };

    /// For a program with a single account, such as an import, which has nothing else to try.
    pub(crate) const LINK: Self = Self {
        wait: Duration::from_secs(300),
        silence: Duration::from_secs(300),
        patience: Duration::from_secs(300),
        longest: Duration::from_secs(30 * 60),
    };
}

/// The time since the last progress. Time is given by the caller, so that a caller's own work does not count.
#[derive(Debug)]
pub(crate) struct Progress {
    times: Times,
    /// Since the last octet.
    still: Duration,
    /// Since the last whole response, the last floor of octets, or better.
    slow: Duration,
    /// Since the last end of a command, or the last floor of octets of use.
    long: Duration,
    /// Octets since the last floor.
    moved: usize,
    /// Octets of use since the last floor of such octets.
    useful: usize,
}

impl Progress {
    pub(crate) const fn new(times: Times) -> Self {
        Self {
            times,
            still: Duration::ZERO,
            slow: Duration::ZERO,
            long: Duration::ZERO,
            moved: 0,
            useful: 0,
        }
    }

    /// A command has ended, a request has got something, or the first command was given.
    pub(crate) const fn restart(&mut self) {
        *self = Self::new(self.times);
    }

    /// Time has passed while the server owed something.
    pub(crate) const fn spent(&mut self, time: Duration) {
        self.still = self.still.saturating_add(time);
        self.slow = self.slow.saturating_add(time);
        self.long = self.long.saturating_add(time);
    }

    /// Octets went to the server or came from there, for a request or for no use that is known yet.
    pub(crate) const fn moved(&mut self, octets: usize, is_useful: bool) {
        if octets == 0 {
            return;
        }
        self.still = Duration::ZERO;
        self.moved = self.moved.saturating_add(octets);
        if is_useful {
            self.useful = self.useful.saturating_add(octets);
        }
        if self.useful >= FLOOR_OCTETS {
            self.restart();
        } else if self.moved >= FLOOR_OCTETS {
            self.slow = Duration::ZERO;
            self.moved = 0;
        }
    }

    /// The server gave a whole response.
    pub(crate) const fn said(&mut self) {
        self.slow = Duration::ZERO;
    }

    /// The time until the server is silent.
    pub(crate) const fn until_silent(&self) -> Duration {
        self.times.silence.saturating_sub(self.still)
    }

    /// The time until the server is given up.
    pub(crate) fn left(&self) -> Duration {
        let patience = self.times.patience.saturating_sub(self.slow);
        patience.min(self.times.longest.saturating_sub(self.long))
    }

    /// Why the server is given up.
    pub(crate) fn reason(&self) -> String {
        let (patience, longest) = (self.times.patience, self.times.longest);
        match self.moved {
            _ if self.slow < patience => {
                format!("expected the end of a command within {longest:?}; found none")
            }
            0 => format!("no answer within {patience:?}"),
            moved => format!(
                "too slow: expected {FLOOR_OCTETS} octets or the end of a response within {patience:?}; found {moved} octets"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lasts(mut each_second: impl FnMut(&mut Progress)) -> u64 {
        let mut progress = Progress::new(Times::POOL);
        for second in 0..2_000 {
            if progress.left().is_zero() {
                return second;
            }
            progress.spent(SECOND);
            each_second(&mut progress);
        }
        u64::MAX
    }

    #[test]
    fn octets_without_a_rate_are_no_progress() {
        assert_eq!(lasts(|_| ()), 60);
        assert_eq!(lasts(|progress| progress.moved(1, true)), 60);
        assert_eq!(lasts(|progress| progress.moved(68, true)), 60);
        assert_eq!(lasts(|progress| progress.moved(69, true)), u64::MAX);
        assert_eq!(lasts(Progress::said), 600);
        // However much a server says that nobody asked for.
        assert_eq!(lasts(|progress| progress.moved(1 << 20, false)), 600);
        assert_eq!(lasts(Progress::restart), u64::MAX);
    }

    #[test]
    fn silence_is_noticed_before_patience_ends() {
        let mut progress = Progress::new(Times::POOL);
        progress.spent(SECOND * 8);
        progress.moved(1, true);
        progress.spent(SECOND * 4);
        assert_eq!(progress.until_silent(), SECOND * 6);
        assert_eq!(progress.left(), SECOND * 48);
        progress.spent(SECOND * 60);
        assert!(progress.reason().contains("found 1 octets"));
        assert!(progress.until_silent().is_zero());
    }
}
