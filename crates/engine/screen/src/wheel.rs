//! A timing wheel with one list a second: to set, to clear and to hand out a timer costs the same for any number of
//! timers.
//!
//! A slot of connections has one timer at most. Seconds beyond the turn of the wheel wait in its last list; the owner
//! sets such a timer anew when it comes out early.

use crate::chain::{Chain, Link};

/// Lists of the wheel, and thus seconds of a turn: 17 minutes.
const LISTS: u64 = 1_024;
/// The list of no timer.
const UNSET: u16 = u16::MAX;

/// Timers of slots, due at full seconds.
#[derive(Debug)]
pub(crate) struct Wheel {
    lists: Vec<Chain>,
    links: Vec<Link>,
    /// The list of each slot.
    timers: Vec<u16>,
    /// The wheel has handed out every list up to this second.
    second: u64,
}

/// Octets of a timer and its neighbours.
#[cfg(test)]
pub(crate) const TIMER_OCTETS: usize = size_of::<u16>() + size_of::<Link>();

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            lists: vec![Chain::EMPTY; LISTS as usize],
            links: Vec::new(),
            timers: Vec::new(),
            second: 0,
        }
    }

    /// Sets the timer of a slot to a second. A second of the past comes out with the next one.
    pub(crate) fn set(&mut self, slot: u32, second: u64) {
        self.clear(slot);
        let enough = self.timers.len().max(slot as usize + 1);
        self.timers.resize(enough, UNSET);
        self.links.resize(enough, Link::LOOSE);
        let second = second.clamp(self.second + 1, self.second + LISTS - 1);
        let list = second % LISTS;
        self.timers[slot as usize] = list as u16;
        self.lists[list as usize].push(&mut self.links, slot);
    }

    /// Takes back the timer of a slot.
    pub(crate) fn clear(&mut self, slot: u32) {
        let Some(timer) = self.timers.get_mut(slot as usize) else {
            return;
        };
        if let Some(list) = self.lists.get_mut(usize::from(*timer)) {
            list.remove(&mut self.links, slot);
            *timer = UNSET;
        }
    }

    /// Takes out a slot whose second is not after `now`, the earliest first.
    pub(crate) fn pop(&mut self, now: u64) -> Option<u32> {
        // A jump over more than a turn visits every list once.
        self.second = self.second.max(now.saturating_sub(LISTS));
        while self.second < now {
            let list = (self.second + 1) % LISTS;
            if let Some(slot) = self.lists[list as usize].first() {
                self.clear(slot);
                return Some(slot);
            }
            self.second += 1;
        }
        None
    }

    /// The second of the earliest timer.
    pub(crate) fn next(&self) -> Option<u64> {
        (1..LISTS)
            .map(|ahead| self.second + ahead)
            .find(|second| self.lists[(second % LISTS) as usize].first().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.pop(now)).collect()
    }

    #[test]
    fn timers_come_out_once_in_the_order_of_their_seconds() {
        let mut wheel = Wheel::new();
        for (slot, second) in [(4, 9), (0, 7), (1, 7), (2, 1_023), (3, 8)] {
            wheel.set(slot, second);
        }
        assert_eq!(wheel.next(), Some(7));
        assert_eq!(all(&mut wheel, 6), [0; 0]);
        assert_eq!(all(&mut wheel, 7), [0, 1]);
        wheel.clear(3);
        wheel.clear(3);
        wheel.clear(900);
        assert_eq!(all(&mut wheel, 9), [4]);
        assert_eq!(wheel.next(), Some(1_023));
        assert_eq!(all(&mut wheel, 1_022), [0; 0]);
        assert_eq!(all(&mut wheel, 1_023), [2]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_timer_is_moved_by_setting_it_again() {
        let mut wheel = Wheel::new();
        wheel.set(0, 5);
        wheel.set(0, 3);
        assert_eq!(all(&mut wheel, 3), [0]);
        assert_eq!(all(&mut wheel, 100), [0; 0]);
        wheel.set(0, 50);
        assert_eq!(wheel.next(), Some(101), "the past comes next");
        assert_eq!(all(&mut wheel, 101), [0]);
    }

    #[test]
    fn a_timer_beyond_the_turn_comes_out_early() {
        let mut wheel = Wheel::new();
        wheel.pop(10);
        wheel.set(0, 1_000_000);
        assert_eq!(wheel.next(), Some(1_033));
        assert_eq!(all(&mut wheel, 1_032), [0; 0]);
        assert_eq!(all(&mut wheel, 1_033), [0]);
    }

    #[test]
    fn a_jump_over_many_turns_hands_out_everything() {
        let mut wheel = Wheel::new();
        for slot in 0..1_023 {
            wheel.set(slot, u64::from(slot) + 1);
        }
        let mut out = all(&mut wheel, u64::MAX / 2);
        out.sort_unstable();
        assert_eq!(out, (0..1_023).collect::<Vec<_>>());
        wheel.set(7, 0);
        assert_eq!(all(&mut wheel, u64::MAX / 2 + 1), [7]);
    }
}
