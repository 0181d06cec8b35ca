//! Which addresses did not take mail a moment ago, so that not every worker waits for them anew.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use vere_units::Timestamp;

/// How long an address that failed is tried after the others.
const REMEMBERED: Duration = Duration::from_secs(120);
/// Addresses remembered at once.
const ADDRESSES_MAX: usize = 10_000;

/// Addresses that failed, each until it is forgotten.
#[derive(Debug, Default)]
pub(super) struct Failures {
    until: HashMap<SocketAddr, Timestamp>,
}

impl Failures {
    /// Notes that an address takes no mail now.
    pub(super) fn failed(&mut self, address: SocketAddr, now: Timestamp) {
        if self.until.len() >= ADDRESSES_MAX && !self.until.contains_key(&address) {
            self.until.retain(|_, until| *until > now);
            // What is not remembered costs a connection that fails, nothing else.
            if self.until.len() >= ADDRESSES_MAX {
                return;
            }
        }
        self.until.insert(address, now + REMEMBERED);
    }

    /// Notes that an address takes mail.
    pub(super) fn worked(&mut self, address: SocketAddr) {
        self.until.remove(&address);
    }

    /// Whether an address failed a moment ago.
    pub(super) fn is_failing(&self, address: SocketAddr, now: Timestamp) -> bool {
        self.until.get(&address).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> SocketAddr {
        SocketAddr::from((std::net::Ipv4Addr::from_bits(0x7f00_0000 + number), 25))
    }

    #[test]
    fn a_failure_is_forgotten_in_time_or_by_success() {
        let mut failures = Failures::default();
        let now = Timestamp::from_millis(1_000);
        failures.failed(address(1), now);
        failures.failed(address(2), now);
        assert!(failures.is_failing(address(1), now));
        assert!(!failures.is_failing(address(3), now));
        failures.worked(address(2));
        assert!(!failures.is_failing(address(2), now));
        assert!(!failures.is_failing(address(1), now + REMEMBERED));
    }

    #[test]
    fn memory_is_bounded_and_room_comes_back() {
        let mut failures = Failures::default();
        let now = Timestamp::from_millis(1_000);
        let many = u32::try_from(ADDRESSES_MAX).unwrap() + 5;
        for number in 0..many {
            failures.failed(address(number), now);
        }
        assert_eq!(failures.until.len(), ADDRESSES_MAX);
        assert!(!failures.is_failing(address(many - 1), now));
        failures.failed(address(many - 1), now + REMEMBERED);
        assert!(failures.is_failing(address(many - 1), now + REMEMBERED));
        assert_eq!(failures.until.len(), 1);
    }
}
