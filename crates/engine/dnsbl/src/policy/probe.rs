//! When a list is checked, and the knowledge of earlier checks.

use std::time::Duration;

use vere_units::Timestamp;

use super::check::{Check, Trust};

/// Time until a list that has answered is checked again: if a list dies or its maps end, clients may be refused or missed so long.
const LIFE: Duration = Duration::from_secs(600);
/// Time until a silent list is checked again.
const FAILED_LIFE: Duration = Duration::from_secs(60);
/// Time until a list without any check is checked again: none of its entries counts meanwhile. A failure is kept as long
/// (RFC 9520 section 3.2).
const UNCHECKED_LIFE: Duration = Duration::from_secs(5);

/// The knowledge of a list. A list counts as without maps until the first answer, and after a check without an answer about maps; whether its
/// entries count is known from the last check that found out.
#[derive(Debug, Clone)]
pub struct Probe {
    trust: Trust,
    serves: bool,
    lacks_test_entry: bool,
    due: Timestamp,
    is_open: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            trust: Trust::Unchecked,
            serves: false,
            lacks_test_entry: false,
            due: Timestamp::from_millis(0),
            is_open: false,
        }
    }
}

impl Probe {
    /// Whether the list has to be checked now; the check is then under way until [`ended`](Self::ended).
    pub fn begin(&mut self, now: Timestamp) -> bool {
        let begins = self.is_due(now);
        self.is_open |= begins;
        begins
    }

    /// Whether a check would begin now.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.is_open && now >= self.due
    }

    /// Whether a check is under way.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the entries of the list count, as far as is known.
    #[must_use]
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// Whether the list serves maps, as far as is known.
    #[must_use]
    pub const fn serves(&self) -> bool {
        self.serves
    }

    /// Whether the list does not have the entry that every list has, 127.0.0.2.
    #[must_use]
    pub const fn lacks_test_entry(&self) -> bool {
        self.lacks_test_entry
    }

    /// Takes what a check under way has found out already about trust. Returns the knowledge before.
    pub const fn learn(&mut self, check: &Check) -> Trust {
        let before = self.trust;
        match check.trust() {
            Trust::Unchecked => {}
            known => self.trust = known,
        }
        before
    }

    /// Forgets everything; a check under way goes on.
    pub fn restart(&mut self) {
        *self = Self {
            is_open: self.is_open,
            ..Self::default()
        };
    }

    /// The check has ended.
    pub fn ended(&mut self, now: Timestamp, check: &Check) {
        self.learn(check);
        self.serves = check.serves_maps() == Some(true);
        if let Some(has) = check.has_test_entry() {
            self.lacks_test_entry = !has;
        }
        let is_silent = check.trust() == Trust::Unchecked || check.is_silent_about_maps();
        let life = match self.trust {
            Trust::Unchecked => UNCHECKED_LIFE,
            _ if is_silent => FAILED_LIFE,
            _ => LIFE,
        };
        self.due = now + life;
        self.is_open = false;
    }

    /// A map has failed, or was none: the next question begins a check.
    pub fn doubt(&mut self, now: Timestamp) {
        self.due = self.due.min(now);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::super::check::{Scope, Step, Told};
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    /// A check of a list: whether it has 127.0.0.1, 127.0.0.2 and maps; `None` of a silent list.
    fn check(answers: Option<(bool, bool, bool)>) -> Check {
        let mut check = Check::new(Scope {
            addresses: true,
            maps: true,
        });
        let code = |has: bool| {
            let codes = has.then_some(Ipv4Addr::new(127, 0, 0, 2));
            Told::Codes(codes.into_iter().collect())
        };
        while let Some(step) = check.step() {
            let told = answers.map(|(outsider, entry, maps)| match step {
                Step::Outsider => code(outsider),
                Step::TestEntry => code(entry),
                Step::TestMap if maps => Told::Maps(vec![Ipv6Addr::from(1 << 125)]),
                Step::TestMap | Step::MapBehind => Told::Maps(Vec::new()),
            });
            check.answered(told);
        }
        check
    }

    #[test]
    fn a_list_is_checked_again_and_falls_back_to_addresses() {
        let mut probe = Probe::default();
        assert!(probe.begin(at(0)) && probe.is_open());
        assert!(!probe.begin(at(0)), "one check at a time");
        assert!(!probe.serves());
        probe.ended(at(1), &check(Some((false, true, true))));
        assert!(probe.serves() && !probe.begin(at(600)));
        assert!(probe.begin(at(601)));
        assert!(probe.serves(), "until the answer");
        probe.ended(at(602), &check(Some((false, true, false))));
        assert!(!probe.serves() && !probe.begin(at(1_201)));
        assert!(probe.begin(at(1_202)));
        probe.ended(at(1_203), &check(Some((false, true, true))));
        probe.doubt(at(1_300));
        assert!(probe.begin(at(1_300)));
        probe.ended(at(1_310), &check(None));
        assert!(!probe.serves(), "silence is no map");
        assert_eq!(probe.trust(), Trust::Good, "and no reason for distrust");
        assert!(!probe.begin(at(1_369)) && probe.begin(at(1_370)));
    }

    #[test]
    fn a_list_of_everybody_is_left_out_until_a_good_check() {
        let mut probe = Probe::default();
        assert_eq!(probe.trust(), Trust::Unchecked);
        assert!(probe.begin(at(0)));
        probe.ended(at(0), &check(None));
        assert_eq!(probe.trust(), Trust::Unchecked);
        assert!(!probe.begin(at(4)) && probe.begin(at(5)), "soon");
        let bad = check(Some((true, true, false)));
        assert_eq!(probe.learn(&bad), Trust::Unchecked);
        assert_eq!(probe.trust(), Trust::ListsEverybody, "before the end");
        probe.ended(at(5), &bad);
        assert!(!probe.begin(at(604)) && probe.begin(at(605)));
        probe.ended(at(605), &check(None));
        assert_eq!(
            probe.trust(),
            Trust::ListsEverybody,
            "silence proves nothing"
        );
        assert!(probe.begin(at(665)));
        probe.ended(at(665), &check(Some((false, false, false))));
        assert_eq!(probe.trust(), Trust::Good);
        assert!(probe.lacks_test_entry());
        probe.restart();
        assert_eq!(probe.trust(), Trust::Unchecked);
        assert!(!probe.lacks_test_entry() && probe.begin(at(665)));
    }
}
