//! The attempts of a mount to open its volume anew, and the pauses between the attempts.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use vere_disk::log::Directory;
use vere_mailfs::volume::{Create, Opening, Reopen, Stranded, Terms};
use vere_ports::files::Errno;
use vere_units::Timestamp;

/// The pause behind an attempt; each further one doubles the pause.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause: 96 attempts a day are no load for an account.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// A volume that has worked for so long has nothing to do with the stop before.
const CALM: Duration = Duration::from_secs(15 * 60);
/// Attempts in a row that end by a refusal, before the mount stays as it is: about four minutes.
const REFUSALS_MAX: u32 = 8;
/// What a mount opens its volume anew with.
pub(crate) struct Means {
    /// The folder of the journal.
    pub(crate) journal: PathBuf,
    /// The terms of the next opening: accounts and lead may be others than at the start.
    pub(crate) terms: Box<dyn FnMut() -> Terms + Send>,
}

/// The attempts of a mount.
pub(crate) struct Reopening {
    pub(crate) means: Means,
    pub(crate) pauses: Pauses,
    /// The number of the last opening.
    pub(crate) last: u64,
    pub(crate) attempt: Option<Attempt>,
    /// Why the volume was opened anew last.
    pub(crate) reopened: Option<Reopen>,
    /// Who waits for the end of the mount, behind the attempt under way.
    pub(crate) finishing: Vec<Sender<Result<(), Errno>>>,
}

/// An attempt under way.
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) reason: Reopen,
    pub(crate) of: (Terms, Create),
    /// The way to a journal whose base is gone.
    pub(crate) stranded: Option<Stranded>,
    /// Absent until the local disk is read.
    pub(crate) opening: Option<Opening<Directory>>,
    /// The last answer.
    pub(crate) heard: Timestamp,
}

/// Pauses between attempts.
#[derive(Debug)]
pub(crate) struct Pauses {
    pub(crate) next: Duration,
    /// No attempt begins before.
    pub(crate) until: Timestamp,
    /// When the volume was opened anew last.
    pub(crate) opened: Option<Timestamp>,
    /// Attempts in a row that a refusal has ended.
    pub(crate) refusals: u32,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            next: PAUSE_MIN,
            until: Timestamp::from_millis(0),
            opened: None,
            refusals: 0,
        }
    }
}

impl Pauses {
    /// The volume has stopped: a stop behind a long calm has no past.
    pub(crate) fn stopped(&mut self, now: Timestamp) {
        if self.opened.is_some_and(|at| at + CALM <= now) {
            *self = Self::default();
        }
    }

    /// An attempt has failed. Returns the pause before the next one; none after too many refusals.
    pub(crate) fn failed(&mut self, now: Timestamp, is_outage: bool) -> Option<Duration> {
        let pause = self.rest(now);
        self.opened = None;
        self.refusals = match is_outage {
            true => self.refusals,
            false => self.refusals.saturating_add(1),
        };
        (self.refusals < REFUSALS_MAX).then_some(pause)
    }

    /// The volume is open: a further stop soon has its attempt behind a pause.
    pub(crate) fn opened(&mut self, now: Timestamp) {
        self.rest(now);
        self.opened = Some(now);
        self.refusals = 0;
    }

    fn rest(&mut self, now: Timestamp) -> Duration {
        let pause = self.next;
        self.until = now + pause;
        self.next = pause.saturating_mul(2).min(PAUSE_MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let mut pauses = Pauses::default();
        assert_eq!(pauses.failed(at(0), true), Some(PAUSE_MIN));
        assert_eq!(pauses.until, at(0) + PAUSE_MIN);
        let mut last = PAUSE_MIN;
        for _ in 0..20 {
            let pause = pauses.failed(at(0), true).unwrap();
            assert_eq!(pause, (last * 2).min(PAUSE_MAX));
            last = pause;
        }
        // An outage may last; refusals may not.
        let refusals = (0..100).take_while(|_| pauses.failed(at(0), false).is_some());
        assert_eq!(refusals.count(), REFUSALS_MAX as usize - 1);
    }

    #[test]
    fn a_stop_soon_behind_another_has_a_pause() {
        let mut pauses = Pauses::default();
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        pauses.opened(at(100));
        pauses.stopped(at(100));
        assert_eq!(pauses.until, at(100) + PAUSE_MIN);
        pauses.opened(at(110));
        assert_eq!(pauses.until, at(110) + PAUSE_MIN * 2);
        pauses.stopped(at(110) + CALM);
        assert_eq!(pauses.until, at(0));
    }
}
