//! A limit on reports per address and hour, so that forged senders and loops of robots cannot make this
//! system flood an address.

use std::collections::HashMap;

use vere_units::Timestamp;

/// Addresses counted at the same time. Further addresses get all their reports until the hour is over.
const ADDRESSES_MAX: usize = 65_536;
/// Milliseconds in an hour.
const HOUR: u64 = 3_600_000;

/// Counts reports by the address they go to, in hours of the clock.
#[derive(Debug, Default)]
pub struct ReportLimit {
    hour: u64,
    sent: HashMap<Box<str>, u32>,
}

impl ReportLimit {
    /// Whether an address may get another report now, of at most `max` in an hour; 0 for no limit. An
    /// allowed report is counted.
    pub fn may_send(&mut self, to: &str, max: u32, now: Timestamp) -> bool {
        if max == 0 {
            return true;
        }
        let hour = now.as_millis() / HOUR;
        if hour != self.hour {
            self.hour = hour;
            self.sent.clear();
        }
        // Domains are compared without case; the same comparison of local parts at worst counts two
        // addresses of a domain as one.
        let to = to.to_lowercase();
        let room = self.sent.len() < ADDRESSES_MAX;
        match self.sent.get_mut(to.as_str()) {
            Some(sent) if *sent >= max => return false,
            Some(sent) => *sent += 1,
            None if room => {
                self.sent.insert(to.into(), 1);
            }
            None => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_number_in_each_hour() {
        let mut limit = ReportLimit::default();
        let at = |minutes: u64| Timestamp::from_millis(minutes * 60_000);
        let mut may = |to: &str, minutes| limit.may_send(to, 2, at(minutes));
        assert!(may("a@b.example", 1) && may("A@B.example", 2));
        assert!(!may("a@b.example", 59) && may("c@b.example", 59));
        assert!(may("a@b.example", 60) && may("a@b.example", 61) && !may("a@b.example", 62));
        assert!((0..9).all(|_| limit.may_send("a@b.example", 0, at(63))));
    }

    #[test]
    fn memory_is_bounded_and_nobody_is_limited_for_that() {
        let mut limit = ReportLimit::default();
        for number in 0..=ADDRESSES_MAX {
            assert!(limit.may_send(&number.to_string(), 1, Timestamp::ZERO));
        }
        assert_eq!(limit.sent.len(), ADDRESSES_MAX);
        assert!(!limit.may_send("0", 1, Timestamp::ZERO));
        assert!(limit.may_send("beyond", 1, Timestamp::ZERO));
    }
}
