//! The pages that kept checkpoints and snapshots reach, and the packs that snapshots need.
//!
//! Inner pages name the mails of the pages below, so that the leaves of checkpoints need no reading. Of a snapshot every leaf
//! is read: files of a snapshot may need packs that no file of today needs.

use std::collections::{BTreeSet, HashSet};

use crate::format::page::Page;
use crate::format::{Locator, MailId};
use crate::rows::{Key, decode_extents};

/// A walk through pages.
#[derive(Debug, Default)]
pub struct Walk {
    /// Pages to be read, whether each belongs to a snapshot, and the level demanded of the page.
    pub left: Vec<(Locator, bool, Option<u8>)>,
    /// Pages seen, for checkpoints and for snapshots.
    pub seen: HashSet<(MailId, u32, bool)>,
    /// The page that an account is asked for.
    pub reading: Option<Locator>,
    /// Why the page cannot be read.
    pub failed: Option<String>,
    /// Mails that are reached.
    pub mails: HashSet<MailId>,
    /// Packs that snapshots need.
    pub packs: BTreeSet<u64>,
    /// A page of a checkpoint cannot be read: no page may go.
    pub is_broken: bool,
    /// More pages of the local disk follow in the next slice.
    pub is_hungry: bool,
    /// Pages read.
    pub done: usize,
}

impl Walk {
    /// Begins at the roots of checkpoints and of snapshots.
    pub fn new(
        checkpoints: impl IntoIterator<Item = Locator>,
        snapshots: impl IntoIterator<Item = Locator>,
    ) -> Self {
        let states = checkpoints.into_iter().map(|root| (root, false, None));
        let left = states.chain(snapshots.into_iter().map(|root| (root, true, None)));
        Self {
            left: left.collect(),
            ..Self::default()
        }
    }

    /// Pages read, and pages known.
    pub fn progress(&self) -> (usize, usize) {
        (self.done, self.done.saturating_add(self.left.len()))
    }

    /// Takes a page: the pages below are next.
    ///
    /// # Errors
    /// The page has another level than its place demands.
    pub fn take(
        &mut self,
        (is_snapshot, level): (bool, Option<u8>),
        page: &Page,
    ) -> Result<(), String> {
        if level.is_some_and(|level| level != page.level()) {
            return Err("a page has another level than its place".to_owned());
        }
        for row in 0..page.rows() {
            if let Some(child) = page.child(row) {
                let level = page.level().saturating_sub(1);
                self.mails.insert(child.place.mail);
                // The leaves of a checkpoint name nothing else.
                if level > 0 || is_snapshot {
                    self.left.push((child.place, is_snapshot, Some(level)));
                }
            } else if is_snapshot && let (Some(key), Some(value)) = (page.key(row), page.value(row))
            {
                self.take_row(&key, &value);
            }
        }
        Ok(())
    }

    fn take_row(&mut self, key: &[u8], value: &[u8]) {
        if let Ok(Key::Extents { offset, .. }) = Key::decode(key)
            && let Ok(runs) = decode_extents(offset, value)
        {
            let extents = runs.iter().filter_map(|run| run.extent);
            self.packs.extend(extents.map(|extent| extent.pack.0));
        }
    }
}
