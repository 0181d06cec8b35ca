//! Whether a list serves maps: the test entries tell, again and again.

use std::time::Duration;

use vere_units::Timestamp;

/// Time until a list with maps is probed again: after an end of the maps, clients may be missed so long.
const SERVES_LIFE: Duration = Duration::from_secs(600);
/// Time until a list without maps is probed again.
const LACKS_LIFE: Duration = Duration::from_secs(3_600);
/// Time until a silent list is probed again.
const FAILED_LIFE: Duration = Duration::from_secs(60);

/// The knowledge of a list. A list counts as without maps until the first answer, and after a failed probe.
#[derive(Debug, Clone)]
pub struct Probe {
    serves: bool,
    due: Timestamp,
    is_open: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            serves: false,
            due: Timestamp::from_millis(0),
            is_open: false,
        }
    }
}

impl Probe {
    /// Whether the list has to be probed now; the probe is then under way until [`ended`](Self::ended).
    pub fn begin(&mut self, now: Timestamp) -> bool {
        let begins = self.is_due(now);
        self.is_open |= begins;
        begins
    }

    /// Whether a probe would begin now.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.is_open && now >= self.due
    }

    /// Whether the list serves maps, as far as is known.
    #[must_use]
    pub const fn serves(&self) -> bool {
        self.serves
    }

    /// The probe has ended: the list serves maps or not, or does not answer (`None`).
    pub fn ended(&mut self, now: Timestamp, serves: Option<bool>) {
        let life = match serves {
            Some(true) => SERVES_LIFE,
            Some(false) => LACKS_LIFE,
            None => FAILED_LIFE,
        };
        self.serves = serves == Some(true);
        self.due = now + life;
        self.is_open = false;
    }

    /// A map has failed, or was none: the next question probes the list.
    pub fn doubt(&mut self, now: Timestamp) {
        self.due = self.due.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_list_is_probed_again_and_falls_back() {
        let mut probe = Probe::default();
        assert!(probe.begin(at(0)));
        assert!(!probe.begin(at(0)), "one probe at a time");
        assert!(!probe.serves());
        probe.ended(at(1), Some(true));
        assert!(probe.serves() && !probe.begin(at(600)));
        assert!(probe.begin(at(601)));
        assert!(probe.serves(), "until the answer");
        probe.ended(at(602), Some(false));
        assert!(!probe.serves() && !probe.begin(at(4_201)));
        assert!(probe.begin(at(4_202)));
        probe.ended(at(4_203), Some(true));
        probe.doubt(at(4_300));
        assert!(probe.begin(at(4_300)));
        probe.ended(at(4_310), None);
        assert!(!probe.serves(), "silence is no map");
        assert!(!probe.begin(at(4_369)) && probe.begin(at(4_370)));
    }
}
