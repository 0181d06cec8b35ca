//! The pause of a copy: an account that refuses mails is not tried without end, though the account answers everything else.

use std::time::Duration;

use vere_ports::mail_accounts::Fault;
use vere_units::Timestamp;

/// The first pause, and the longest one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(900);

/// How long a copy rests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    length: Duration,
    until: Option<Timestamp>,
}

impl Pause {
    /// A mail was not taken: the copy rests for twice as long as the last time.
    pub(crate) fn lengthen(&mut self, now: Timestamp) {
        let length = self.length.saturating_mul(2);
        self.length = length.clamp(PAUSE_MIN, PAUSE_MAX);
        self.until = Some(now + self.length);
    }

    /// A mail was taken.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// The next trial is at once, and a further failure counts as before.
    pub(crate) const fn skip(&mut self) {
        self.until = None;
    }

    /// The end of the pause, while the pause lasts.
    pub(crate) fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| *until > now)
    }
}

/// Whether an account tells by a fault how long to wait, so that the copy need not guess.
pub(crate) const fn tells_time(fault: &Fault) -> bool {
    matches!(fault, Fault::Throttled(..) | Fault::Scarce(..))
}

#[cfg(test)]
mod tests {
    use super::{PAUSE_MAX, Pause};
    use std::time::Duration;
    use vere_units::Timestamp;

    #[test]
    fn pauses_grow_until_a_mail_is_taken() {
        let mut pause = Pause::default();
        let mut now = Timestamp::from_millis(5_000);
        assert_eq!(pause.until(now), None);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            pause.lengthen(now);
            let until = now + Duration::from_secs(seconds);
            assert_eq!(pause.until(now), Some(until));
            assert_eq!(pause.until(until), None);
            now = until;
        }
        pause.lengthen(now);
        pause.skip();
        assert_eq!(pause.until(now), None);
        pause.lengthen(now);
        assert_eq!(pause.until(now), Some(now + PAUSE_MAX));
        pause.end();
        pause.lengthen(now);
        assert_eq!(pause.until(now), Some(now + Duration::from_secs(1)));
    }
}
