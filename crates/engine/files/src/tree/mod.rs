//! The rows of a volume in the order of their keys, and the changes since they were last taken.
//!
//! Rows lie in three layers: the pages of the newest checkpoint, the rows that commits of the chain have changed since, and
//! the changes of this mount that the chain has not. A row of an upper layer hides a row below, also when the row is removed.
//! Pages are in memory or not: a reader that needs another page gets [`Errno::Again`], and the tree remembers the page
//! ([`Tree::take_missing`]).
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod above;
mod chain;
mod read;

pub use self::chain::Saved;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;
use vere_ports::files::Errno;

use crate::format::Locator;
use crate::pages::PageTree;

/// How many of the latest changes are compared with a new change of an equal key. Calls change few rows; further back a second
/// change costs octets only.
const JOINED: usize = 8;
/// Missing pages that are remembered; a reader that needs more asks again when these are there.
const MISSING_MAX: usize = 256;

/// Sees the key and the value of a row.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Errno> + 'a;

/// Rows by key; no value for a removed row.
type Rows = BTreeMap<Vec<u8>, Option<Bytes>>;

/// A changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Vec<u8>,
    /// The new value; absent for a removed row.
    pub value: Option<Vec<u8>>,
}

/// A row changed by a side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Side {
    /// The value before.
    pub base: Option<Bytes>,
    /// The value after.
    pub now: Option<Bytes>,
}

/// Rows changed by a side, by key.
pub type Sides = BTreeMap<Vec<u8>, Side>;

/// A row of the chain behind the checkpoint.
#[derive(Debug, Clone)]
struct ChainRow {
    value: Option<Bytes>,
    /// The commit that has changed the row last.
    generation: u64,
}

/// The rows.
#[derive(Debug, Default)]
pub struct Tree {
    /// The newest checkpoint.
    pages: PageTree,
    /// Rows of commits behind the checkpoint.
    chain: BTreeMap<Vec<u8>, ChainRow>,
    /// Changes of this mount that the chain has not.
    local: Rows,
    changes: Vec<Change>,
    /// Pages that readers have missed.
    missing: RefCell<Vec<Locator>>,
}

impl Tree {
    /// A tree without rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The rows of a checkpoint.
    #[must_use]
    pub fn over(pages: PageTree) -> Self {
        Self {
            pages,
            ..Self::default()
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// None today: a new value needs no page.
    pub fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Errno> {
        self.record(key, Some(value.clone()));
        self.set(key, Some(value.into()));
        Ok(())
    }

    /// Removes a key; an absent key is no change.
    ///
    /// # Errors
    ///
    /// Failures to read the row.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Errno> {
        let was_there = self.contains(key)?;
        if was_there {
            self.record(key, None);
            self.set(key, None);
        }
        Ok(was_there)
    }

    /// A change of this mount that [`Tree::take_changes`] does not tell.
    ///
    /// # Errors
    ///
    /// None today: a new value needs no page.
    pub fn change(&mut self, change: Change) -> Result<(), Errno> {
        self.local.insert(change.key, change.value.map(Bytes::from));
        Ok(())
    }

    /// The changes since the last take, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn set(&mut self, key: &[u8], value: Option<Bytes>) {
        // A changed row keeps its key, so that a write costs no second key.
        match self.local.get_mut(key) {
            Some(row) => *row = value,
            None => {
                self.local.insert(key.to_vec(), value);
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
mod tests;
