//! Queues that wait for one of the connections that all share.

use std::collections::VecDeque;

use super::QueueNumber;
use crate::limits::Precedence;

/// Of so many that get a connection, those with precedence get the first four, ...
const TURNS: u8 = 7;
/// ... normal ones the two from here on, and the last one goes to those that stand back.
const NORMAL_FROM: u8 = 4;
const LOW_FROM: u8 = 6;

/// They wait by precedence; nobody waits for ever.
#[derive(Debug, Default)]
pub(super) struct Starved {
    lists: [VecDeque<QueueNumber>; 3],
    /// Those that wait until fewer connections are on their way.
    probing: VecDeque<QueueNumber>,
    turn: u8,
}

impl Starved {
    pub(super) fn push(&mut self, number: QueueNumber, precedence: Precedence) {
        self.lists[precedence as usize].push_back(number);
    }

    /// Lets a queue wait until fewer connections are on their way.
    pub(super) fn push_probing(&mut self, number: QueueNumber) {
        self.probing.push_back(number);
    }

    /// Whether nobody waits for a connection that others have.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait for a connection that others have.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(VecDeque::len).sum()
    }

    /// How many wait until fewer connections are on their way.
    pub(super) fn probing(&self) -> usize {
        self.probing.len()
    }

    /// Takes out who waits until fewer connections are on their way.
    pub(super) fn pop_probing(&mut self) -> Option<QueueNumber> {
        self.probing.pop_front()
    }

    /// Takes out whose turn it is.
    pub(super) fn pop(&mut self) -> Option<QueueNumber> {
        let favoured = match self.turn {
            LOW_FROM.. => Precedence::Low,
            NORMAL_FROM.. => Precedence::Normal,
            _ => Precedence::High,
        };
        let favoured = self.lists[favoured as usize].pop_front();
        let next = favoured.or_else(|| self.lists.iter_mut().find_map(VecDeque::pop_front))?;
        self.turn = (self.turn + 1) % TURNS;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_precedence_come_first_and_nobody_waits_for_ever() {
        let mut starved = Starved::default();
        for number in 0..100 {
            starved.push(number, Precedence::High);
            starved.push(100 + number, Precedence::Normal);
            starved.push(200 + number, Precedence::Low);
        }
        let first: Vec<_> = std::iter::from_fn(|| starved.pop()).take(14).collect();
        assert_eq!(
            first,
            [0, 1, 2, 3, 100, 101, 200, 4, 5, 6, 7, 102, 103, 201]
        );
        assert_eq!(std::iter::from_fn(|| starved.pop()).count(), 286);
        starved.push(7, Precedence::Low);
        assert_eq!((starved.pop(), starved.is_empty()), (Some(7), true));
    }
}
