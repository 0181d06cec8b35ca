//! Queues that wait for a connection when the total limit is reached.

use std::collections::VecDeque;

use vere_units::QueueId;

use crate::limits::Precedence;

/// Of this many connections, queues with high priority get the first four, ...
const TURNS: u8 = 7;
/// ... queues with normal priority the two from here on, and queues with low priority the last.
const NORMAL_FROM: u8 = 4;
const LOW_FROM: u8 = 6;

/// Waiting queues by priority; every queue gets a connection in the end.
#[derive(Debug, Default)]
pub(super) struct Starved {
    lists: [VecDeque<QueueId>; 3],
    /// Queues that wait until fewer connection attempts are in progress.
    probing: VecDeque<QueueId>,
    turn: u8,
}

impl Starved {
    pub(super) fn push(&mut self, number: QueueId, precedence: Precedence) {
        self.lists[precedence as usize].push_back(number);
    }

    /// Lets a queue wait until fewer connections are on the way.
    pub(super) fn push_probing(&mut self, number: QueueId) {
        self.probing.push_back(number);
    }

    /// Whether no queue waits for a connection in use.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of queues that wait for a connection in use.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(VecDeque::len).sum()
    }

    /// Number of queues that wait until fewer connection attempts are in progress.
    pub(super) fn probing(&self) -> usize {
        self.probing.len()
    }

    /// Takes a queue that waits until fewer connection attempts are in progress.
    pub(super) fn pop_probing(&mut self) -> Option<QueueId> {
        self.probing.pop_front()
    }

    /// Takes the queue whose turn has come.
    pub(super) fn pop(&mut self) -> Option<QueueId> {
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
            starved.push(QueueId(number), Precedence::High);
            starved.push(QueueId(100 + number), Precedence::Normal);
            starved.push(QueueId(200 + number), Precedence::Low);
        }
        let first: Vec<_> = std::iter::from_fn(|| starved.pop()).take(14).collect();
        assert_eq!(
            first,
            [0, 1, 2, 3, 100, 101, 200, 4, 5, 6, 7, 102, 103, 201].map(QueueId)
        );
        assert_eq!(std::iter::from_fn(|| starved.pop()).count(), 286);
        starved.push(QueueId(7), Precedence::Low);
        assert_eq!(
            (starved.pop(), starved.is_empty()),
            (Some(QueueId(7)), true)
        );
    }
}
