//! The answers that were asked for last, in bounded memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

/// At most two halves of answers.
///
/// A full half becomes the older half, whose answers end unless they are asked for again: an attacker with very many
/// questions drives out the answers that nobody else needs.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    half_max: usize,
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// Keeps twice this number of answers at most.
    pub(super) fn new(half_max: usize) -> Self {
        Self {
            half_max,
            newer: HashMap::new(),
            older: HashMap::new(),
        }
    }

    /// Forgets all answers.
    pub(super) fn forget(&mut self) {
        self.newer.clear();
        self.older.clear();
    }

    /// Returns the answer to a question.
    pub(super) fn find<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.newer.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.older.remove_entry(key)?;
        self.keep(key, value.clone());
        Some(value)
    }

    /// Keeps an answer.
    pub(super) fn keep(&mut self, key: K, value: V) {
        if self.newer.len() >= self.half_max {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_asked_for_outlive_many_others() {
        const HALF: usize = 1_000;
        let mut recent = Recent::<Box<str>, u8>::new(HALF);
        recent.keep("ann".into(), 1);
        recent.keep("bob".into(), 2);
        for number in 0..3 * HALF {
            recent.keep(number.to_string().into(), 0);
            assert_eq!(recent.find("ann"), Some(1));
        }
        assert_eq!(recent.find("bob"), None);
        assert!(recent.newer.len() + recent.older.len() <= 2 * HALF);
        recent.forget();
        assert_eq!(recent.find("ann"), None);
    }
}
