//! The message numbers of one session (RFC 9051 section 2.3.1.2).

use crate::Uid;
use crate::set::UidSet;

/// The messages of a mailbox in order, as told to a client.
///
/// Kept as runs of UIDs without gaps, so that an idle session on a large mailbox stays small.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    runs: Vec<Run>,
    len: u32,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    first: Uid,
    last: Uid,
    /// Messages before it.
    before: u32,
}

impl View {
    pub(super) fn new(uids: &UidSet) -> Self {
        let mut view = Self::default();
        view.append(uids);
        view
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds messages behind the present messages.
    pub(super) fn append(&mut self, uids: &UidSet) {
        for (first, last) in uids.ranges() {
            let before = self.len;
            self.len = before
                .saturating_add(last.saturating_sub(first))
                .saturating_add(1);
            match self.runs.last_mut() {
                Some(run) if run.last.saturating_add(1) == first => run.last = last,
                _ => self.runs.push(Run {
                    first,
                    last,
                    before,
                }),
            }
        }
    }

    /// Takes messages out.
    pub(super) fn remove(&mut self, uids: &UidSet) {
        *self = Self::new(&self.uids().difference(uids));
    }

    pub(super) fn uids(&self) -> UidSet {
        let mut uids = UidSet::new();
        for run in &self.runs {
            uids.insert_range(run.first, run.last);
        }
        uids
    }

    pub(super) fn last(&self) -> Uid {
        self.runs.last().map_or(0, |run| run.last)
    }

    /// The number of a message.
    pub(super) fn number(&self, uid: Uid) -> Option<u32> {
        let behind = self.runs.partition_point(|run| run.first <= uid);
        let run = self.runs.get(behind.checked_sub(1)?)?;
        let place = uid.checked_sub(run.first).filter(|_| uid <= run.last)?;
        run.before.checked_add(place)?.checked_add(1)
    }

    /// The UIDs of messages by number; `None` when a number is unused.
    pub(super) fn of_numbers(&self, numbers: &UidSet) -> Option<UidSet> {
        if numbers.last().is_some_and(|last| last > self.len) {
            return None;
        }
        let mut uids = UidSet::new();
        let mut runs = self.runs.iter().peekable();
        for (first, last) in numbers.ranges() {
            // Numbers from zero, as `before` counts.
            let (mut from, last) = (first.saturating_sub(1), last.saturating_sub(1));
            while from <= last {
                let run = runs.peek()?;
                let end = run
                    .before
                    .saturating_add(run.last.saturating_sub(run.first));
                if end < from {
                    runs.next();
                    continue;
                }
                let uid = |number: u32| run.first.saturating_add(number.saturating_sub(run.before));
                let to = end.min(last);
                uids.insert_range(uid(from), uid(to));
                from = to.saturating_add(1);
            }
        }
        Some(uids)
    }

    /// The numbers of messages in view.
    pub(super) fn numbers(&self, uids: &UidSet) -> UidSet {
        let mut numbers = UidSet::new();
        for (first, last) in uids.intersection(&self.uids()).ranges() {
            if let (Some(first), Some(last)) = (self.number(first), self.number(last)) {
                numbers.insert_range(first, last);
            }
        }
        numbers
    }

    pub(super) fn memory(&self) -> usize {
        self.runs.capacity().saturating_mul(size_of::<Run>())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_list(
            uids in proptest::collection::btree_set(1..50u32, 0..40),
            gone in proptest::collection::btree_set(1..50u32, 0..20),
            more in proptest::collection::btree_set(50..80u32, 0..20),
            wanted in proptest::collection::btree_set(1..30u32, 0..20),
        ) {
            let set = |members: &BTreeSet<u32>| members.iter().copied().collect::<UidSet>();
            let mut view = View::new(&set(&uids));
            view.remove(&set(&gone));
            view.append(&set(&more));
            let list: Vec<u32> = uids.difference(&gone).chain(&more).copied().collect();
            prop_assert_eq!(view.len() as usize, list.len());
            prop_assert_eq!(view.last(), list.last().copied().unwrap_or(0));
            for (index, uid) in list.iter().enumerate() {
                prop_assert_eq!(view.number(*uid), Some(index as u32 + 1));
            }
            prop_assert!((1..90).filter(|uid| !list.contains(uid)).all(|uid| view.number(uid).is_none()));
            let found = view.of_numbers(&set(&wanted));
            let model: Option<UidSet> = wanted.iter().map(|n| list.get(*n as usize - 1).copied()).collect();
            prop_assert_eq!(found.clone(), model);
            if let Some(found) = found {
                prop_assert_eq!(view.numbers(&found), set(&wanted));
            }
        }
    }
}
