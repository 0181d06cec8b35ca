//! The chain below the changes of the mount: commits come above the checkpoint, and checkpoints take their rows.

use bytes::Bytes;
use vere_ports::files::Errno;

use super::{ChainRow, Change, Rows, Side, Sides, Tree};
use crate::format::Locator;
use crate::pages::PageTree;

/// The rows of a merge as they were before.
#[derive(Debug)]
pub struct Saved {
    local: Rows,
    chain: Vec<(Vec<u8>, Option<ChainRow>)>,
    changes: Vec<Change>,
}

impl Tree {
    /// The changes of the mount, and the chain's rows of some keys: a merge that misses a page is undone.
    pub fn save<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Saved {
        let chain = keys.map(|key| (key.to_vec(), self.chain.get(key).cloned()));
        Saved {
            local: self.local.clone(),
            chain: chain.collect(),
            changes: self.changes.clone(),
        }
    }

    /// Undoes every change of the mount, and of the chain's rows of the saved keys.
    pub fn restore(&mut self, saved: Saved) {
        self.local = saved.local;
        self.changes = saved.changes;
        for (key, row) in saved.chain {
            match row {
                Some(row) => {
                    self.chain.insert(key, row);
                }
                None => {
                    self.chain.remove(&key);
                }
            }
        }
    }

    /// The chain has this value for a key from the commit of a generation on. A change of the mount to another value stays
    /// above.
    ///
    /// # Errors
    ///
    /// None today: a new value needs no page.
    pub fn apply(&mut self, change: Change, generation: u64) -> Result<(), Errno> {
        let Change { key, value } = change;
        let value = value.map(Bytes::from);
        if self.local.get(&key) == Some(&value) {
            self.local.remove(&key);
        }
        self.chain.insert(key, ChainRow { value, generation });
        Ok(())
    }

    /// As [`Tree::apply`]; returns what the chain had before.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] for a page that is not in memory; nothing has changed then.
    pub fn confirm(&mut self, change: Change, generation: u64) -> Result<Option<Bytes>, Errno> {
        let old = self.in_chain(&change.key)?;
        self.apply(change, generation)?;
        Ok(old)
    }

    /// The keys of rows that the mount has changed and the chain has not.
    pub fn local_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.local.keys().map(Vec::as_slice)
    }

    /// The keys of rows that commits have changed since the checkpoint.
    pub fn chain_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.keys().map(Vec::as_slice)
    }

    /// Takes every change of the mount back, and returns them.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] for a page that is not in memory; nothing has changed then.
    pub fn take_local(&mut self) -> Result<Sides, Errno> {
        let mut sides = Sides::new();
        for (key, now) in &self.local {
            let base = self.in_chain(key)?;
            if base != *now {
                let now = now.clone();
                sides.insert(key.clone(), Side { base, now });
            }
        }
        self.local.clear();
        Ok(sides)
    }

    /// The pages of the newest checkpoint.
    #[must_use]
    pub fn pages(&self) -> &PageTree {
        &self.pages
    }

    /// The pages of the newest checkpoint, to take pages into memory.
    pub fn pages_mut(&mut self) -> &mut PageTree {
        &mut self.pages
    }

    /// The rows of the chain for a new checkpoint. They stay in the chain until [`Tree::covered`].
    #[must_use]
    pub fn cover(&self) -> Vec<(Vec<u8>, Option<Bytes>)> {
        let rows = self.chain.iter();
        rows.map(|(key, row)| (key.clone(), row.value.clone()))
            .collect()
    }

    /// A checkpoint of this mount or of another one is complete, and covers the commits up to a generation: its root takes
    /// the place of the rows that have not changed since. Returns how many rows stay.
    pub fn covered(&mut self, root: Option<Locator>, covers: u64) -> usize {
        self.pages.set_root(root);
        self.chain.retain(|_, row| row.generation > covers);
        self.chain.len()
    }
}
