//! The rows of a volume in the order of their keys, and the changes since they were last taken.
//!
//! All access goes through fallible functions, so that rows may lie in pages that have to be fetched.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use vere_ports::files::Errno;

/// How many of the latest changes are compared with a new change of an equal key. Calls change few rows; further back a second
/// change costs octets only.
const JOINED: usize = 8;

/// Sees the key and the value of a row.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Errno> + 'a;

/// A changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Vec<u8>,
    /// The new value; none for a removed row.
    pub value: Option<Vec<u8>>,
}

/// The rows.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    changes: Vec<Change>,
}

impl Tree {
    /// A tree without rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// Failures to read the row.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, Errno> {
        Ok(self.rows.get(key).map(Vec::as_slice))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    ///
    /// Failures to read the row.
    pub fn contains(&self, key: &[u8]) -> Result<bool, Errno> {
        Ok(self.rows.contains_key(key))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Failures to read the row's page.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Errno> {
        self.record(key, Some(value.clone()));
        self.put_quietly(key, value);
        Ok(())
    }

    /// Removes a key; an absent key is no change.
    ///
    /// # Errors
    ///
    /// Failures to read the row's page.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Errno> {
        let was_there = self.rows.remove(key).is_some();
        if was_there {
            self.record(key, None);
        }
        Ok(was_there)
    }

    /// Applies a change from the journal or from a commit; [`Tree::take_changes`] does not tell of the change.
    ///
    /// # Errors
    ///
    /// Failures to read the row's page.
    pub fn apply(&mut self, change: Change) -> Result<(), Errno> {
        match change.value {
            Some(value) => self.put_quietly(&change.key, value),
            None => {
                self.rows.remove(&change.key);
            }
        }
        Ok(())
    }

    /// The changes since the last take, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Visits rows with a prefix in order, behind a key if one is given, until the visitor breaks.
    ///
    /// # Errors
    ///
    /// The visitor's errors, and failures to read rows.
    pub fn visit(
        &self,
        prefix: &[u8],
        behind: Option<&[u8]>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), Errno> {
        let from = behind.map_or(Bound::Included(prefix), Bound::Excluded);
        let rows = self.rows.range::<[u8], _>((from, Bound::Unbounded));
        for (key, value) in rows {
            if !key.starts_with(prefix) || visitor(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The keys of all rows with a prefix, in order.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let mut keys = Vec::new();
        self.visit(prefix, None, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(keys)
    }

    /// Whether a row has a prefix.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn any(&self, prefix: &[u8]) -> Result<bool, Errno> {
        let mut found = false;
        self.visit(prefix, None, &mut |_, _| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn put_quietly(&mut self, key: &[u8], value: Vec<u8>) {
        // A changed row keeps its key, so that a write costs no second key.
        match self.rows.get_mut(key) {
            Some(row) => *row = value,
            None => {
                self.rows.insert(key.to_vec(), value);
            }
        }
    }

    fn record(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let mut latest = self.changes.iter_mut().rev().take(JOINED);
        match latest.find(|change| change.key == key) {
            Some(change) => change.value = value,
            None => {
                let key = key.to_vec();
                self.changes.push(Change { key, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &[u8], value: &[u8]) -> Change {
        Change {
            key: key.to_vec(),
            value: Some(value.to_vec()),
        }
    }

    #[test]
    fn changes_come_in_order_and_once() {
        let mut tree = Tree::new();
        tree.put(b"b", b"1".to_vec()).unwrap();
        tree.put(b"a", b"2".to_vec()).unwrap();
        tree.put(b"b", b"3".to_vec()).unwrap();
        assert_eq!(tree.take_changes(), [put(b"b", b"3"), put(b"a", b"2")]);
        assert!(tree.remove(b"a").unwrap());
        assert!(!tree.remove(b"a").unwrap());
        let gone = Change {
            key: b"a".to_vec(),
            value: None,
        };
        assert_eq!(tree.take_changes(), [gone]);
        assert_eq!(tree.get(b"b"), Ok(Some(&b"3"[..])));
        tree.apply(put(b"c", b"4")).unwrap();
        assert!(tree.take_changes().is_empty());
    }

    #[test]
    fn a_prefix_bounds_a_visit() {
        let mut tree = Tree::new();
        for key in [&b"a"[..], b"ab", b"ac", b"b"] {
            tree.put(key, Vec::new()).unwrap();
        }
        assert_eq!(tree.keys(b"a").unwrap(), [&b"a"[..], b"ab", b"ac"]);
        let mut behind = Vec::new();
        tree.visit(b"a", Some(b"ab"), &mut |key, _| {
            behind.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert_eq!(behind, [b"ac"]);
        assert!(tree.any(b"b").unwrap() && !tree.any(b"c").unwrap());
    }
}
