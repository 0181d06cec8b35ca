//! The order in which the records of waiting keys are looked up: at once, then after pauses that double.
//!
//! The order is kept in memory only: after a restart every record is looked up at once.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// The pause after the first look; every further pause is twice as long.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
/// The longest pause between two looks. Name servers keep the absence of a name for minutes, too.
const PAUSE_MAX: Duration = Duration::from_secs(10 * 60);
/// The longest pause of the gateway: a new key is noticed within this time.
const IDLE: Duration = Duration::from_secs(5);

/// Domain and selector of a key.
type Name = (String, String);

/// The next step of a gateway.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Ask again later.
    Pause(Duration),
    /// Look up the record of this key.
    Look {
        domain: String,
        selector: String,
        looks: u32,
    },
}

/// The waiting keys.
#[derive(Debug, Default)]
pub(super) struct Queue {
    looks: HashMap<Name, u32>,
    due: BTreeSet<(Instant, Name)>,
}

impl Queue {
    /// Takes over the keys that wait now, and returns their number. Keys that waited before keep their turn.
    pub(super) fn set(&mut self, waiting: impl Iterator<Item = Name>, now: Instant) -> usize {
        let before = std::mem::take(&mut self.looks);
        for name in waiting {
            if let Some(looks) = before.get(&name) {
                self.looks.insert(name, *looks);
            } else {
                self.due.insert((now, name.clone()));
                self.looks.insert(name, 0);
            }
        }
        let looks = &self.looks;
        self.due.retain(|(_, name)| looks.contains_key(name));
        looks.len()
    }

    /// Returns the number of waiting keys, and the next step. A look that is never answered costs its pause.
    pub(super) fn next(&mut self, now: Instant) -> (usize, Turn) {
        let count = self.looks.len();
        let turn = match self.due.first() {
            None => Turn::Pause(IDLE),
            Some((due, _)) if *due > now => Turn::Pause((*due - now).min(IDLE)),
            Some(_) => self.take(now),
        };
        (count, turn)
    }

    fn take(&mut self, now: Instant) -> Turn {
        let Some((_, name)) = self.due.pop_first() else {
            return Turn::Pause(IDLE);
        };
        let known = self.looks.entry(name.clone()).or_default();
        let looks = *known;
        *known = known.saturating_add(1);
        let factor = 1_u32.checked_shl(looks).unwrap_or(u32::MAX);
        let pause = PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX);
        self.due.insert((now + pause, name.clone()));
        let (domain, selector) = name;
        Turn::Look {
            domain,
            selector,
            looks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(selectors: &[&str]) -> Vec<Name> {
        let name = |selector: &&str| ("a.b".to_owned(), (*selector).to_owned());
        selectors.iter().map(name).collect()
    }

    fn look(turn: (usize, Turn)) -> (usize, String, u32) {
        match turn {
            (
                count,
                Turn::Look {
                    selector, looks, ..
                },
            ) => (count, selector, looks),
            other => panic!("expected a look; found {other:?}"),
        }
    }

    #[test]
    fn keys_take_turns_and_pauses_double_up_to_a_bound() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        assert_eq!(queue.next(now), (0, Turn::Pause(IDLE)));
        assert_eq!(queue.set(names(&["a", "b"]).into_iter(), now), 2);
        assert_eq!(look(queue.next(now)), (2, "a".to_owned(), 0));
        assert_eq!(look(queue.next(now)), (2, "b".to_owned(), 0));
        assert_eq!(queue.next(now), (2, Turn::Pause(PAUSE_FIRST)));
        now += PAUSE_FIRST;
        assert_eq!(look(queue.next(now)), (2, "a".to_owned(), 1));
        // A key is activated or removed, another one comes, and the rest keeps its turn.
        assert_eq!(queue.set(names(&["b", "c"]).into_iter(), now), 2);
        assert_eq!(look(queue.next(now)), (2, "b".to_owned(), 1));
        assert_eq!(look(queue.next(now)), (2, "c".to_owned(), 0));
        assert_eq!(queue.set(names(&["b"]).into_iter(), now), 1);
        for looks in 2..100 {
            assert!(matches!(queue.next(now), (1, Turn::Pause(_))));
            now += PAUSE_MAX;
            assert_eq!(look(queue.next(now)), (1, "b".to_owned(), looks));
        }
        assert_eq!(queue.set(std::iter::empty(), now), 0);
        assert_eq!(queue.next(now + PAUSE_MAX), (0, Turn::Pause(IDLE)));
    }
}
