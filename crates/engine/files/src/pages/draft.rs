//! A new checkpoint: the pages that changes touch are written again, level by level, and every other page stays.
//!
//! Pages name the pages below by place, so mails with leaves are stored before inner pages in other mails can be written. A
//! small checkpoint is a single mail.

use std::mem;

use bytes::Bytes;

use super::items::{
    Body, Edit, Edits, Item, Node, PAGE_OCTETS, PAGE_OCTETS_SHARE, Spot, counts, cut, edit,
    keys_before, octets, of_page,
};
use super::mails::{Lot, Mails, PageMail};
use super::read::{Found, Missing, PageTree};
use crate::format::page::{Child, LEVELS_MAX, encode_inner, encode_leaf};
use crate::format::{FormatError, Locator, MailCopy, Place};

/// A checkpoint that is being written.
#[derive(Debug)]
pub struct Draft {
    /// The level that is being written.
    level: u8,
    /// Changes of this level that are left.
    edits: Edits,
    /// Changes of the level above.
    above: Edits,
    /// The new top of the tree, once known.
    tops: Option<Vec<Item>>,
    /// Inner pages, lowest level first.
    inners: Vec<Inner>,
    /// The places of the first of them.
    places: Vec<(usize, Place)>,
    mails: Mails,
    is_written: bool,
    leaf_octets: usize,
}

/// An inner page to be written.
#[derive(Debug)]
struct Inner {
    level: u8,
    items: Vec<Item>,
}

/// How far a draft is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Mails have to be stored before the draft goes on: [`Draft::unstored`].
    Stores,
    /// Every page is stored. The root; absent if no row is left.
    Done(Option<Locator>),
}

/// Why a draft stands still.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// A page has to be brought into memory first.
    #[error("a page is not in memory")]
    Missing(Locator),
    /// A page or mail is beyond a bound.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl From<Missing> for DraftError {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing.0)
    }
}

impl Draft {
    /// Begins a checkpoint that covers the commits up to a generation. Changes are final values: one for each key.
    #[must_use]
    pub fn new(covers: u64, changes: impl IntoIterator<Item = (Vec<u8>, Option<Bytes>)>) -> Self {
        let edits = changes.into_iter();
        let edits = edits.map(|(key, value)| (key, Edit::Row(value)));
        Self {
            level: 0,
            edits: edits.collect(),
            above: Edits::new(),
            leaf_octets: PAGE_OCTETS,
            tops: None,
            inners: Vec::new(),
            places: Vec::new(),
            mails: Mails::new(covers),
            is_written: false,
        }
    }

    /// Leaves have about so many octets of rows, instead of the 32 KiB that a reader expects.
    #[must_use]
    pub fn with_leaves(mut self, octets: usize) -> Self {
        self.leaf_octets = octets;
        self
    }

    /// Octets of rows in a page of a level, but for a single longer row.
    const fn page_octets(&self, level: u8) -> usize {
        if level == 0 {
            self.leaf_octets
        } else {
            PAGE_OCTETS
        }
    }

    /// Goes on. An error for a missing page leaves the draft as far as it was.
    ///
    /// # Errors
    ///
    /// [`DraftError`].
    pub fn advance(&mut self, old: &PageTree, lot: &mut Lot<'_>) -> Result<Progress, DraftError> {
        while self.tops.is_none() {
            self.rewrite(old, lot)?;
        }
        if !self.is_written && !self.write_inners(lot)? {
            return Ok(Progress::Stores);
        }
        if self.mails.closed.iter().any(|mail| mail.copy.is_none()) {
            return Ok(Progress::Stores);
        }
        let root = self.tops.iter().flatten().next();
        Ok(Progress::Done(root.and_then(|root| match &root.body {
            Body::Node(node) => self.mails.of_spot(node.place, &self.places),
            Body::Row(_) => None,
        })))
    }

    /// Pages that the draft needs next and that are not in memory, so that they can be fetched at once.
    #[must_use]
    pub fn missing(&self, old: &PageTree, most: usize) -> Vec<Locator> {
        let mut missing = Vec::new();
        for key in self.edits.keys().take(most) {
            if let Err(Missing(at)) = old.find(key, self.level)
                && !missing.contains(&at)
            {
                missing.push(at);
            }
        }
        missing
    }

    /// Mails that are not stored yet, by number.
    pub fn unstored(&self) -> impl Iterator<Item = (usize, &PageMail)> {
        let mails = self.mails.closed.iter().enumerate();
        mails.filter(|(_, mail)| mail.copy.is_none())
    }

    /// All mails so far.
    #[must_use]
    pub fn mails(&self) -> &[PageMail] {
        &self.mails.closed
    }

    /// Takes the pages of a draft that is done, with their places, for a cache; a long draft keeps the first ones only.
    pub fn take_written(&mut self) -> Vec<(Locator, Bytes)> {
        self.mails.take_written()
    }

    /// A mail is stored here.
    pub fn stored(&mut self, number: usize, copy: MailCopy) {
        if let Some(mail) = self.mails.closed.get_mut(number) {
            mail.copy = Some(copy);
            mail.body = Bytes::new();
        }
    }

    /// Writes the pages of a level that changes touch, and goes to the level above.
    fn rewrite(&mut self, old: &PageTree, lot: &mut Lot<'_>) -> Result<(), DraftError> {
        let top = old.top()?;
        while let Some(key) = self.edits.keys().next().cloned() {
            match old.find(&key, self.level)? {
                Some(found) => self.rewrite_pages(&found, old, lot)?,
                // A tree without rows so far.
                None => {
                    let mut items = Vec::new();
                    let keys = keys_before(&self.edits, None);
                    edit(&mut items, &self.edits, &keys);
                    self.tops = Some(self.flush(items, self.level, lot)?);
                    self.edits.clear();
                }
            }
        }
        if let Some(tops) = &mut self.tops {
            let mut tops = mem::take(tops);
            while tops.len() > 1 {
                self.level = self.level.saturating_add(1);
                tops = self.flush(tops, self.level, lot)?;
            }
            self.tops = Some(tops);
            return Ok(());
        }
        if self.above.is_empty() {
            // Nothing has changed.
            let root = old.root().map(|root| Item {
                key: Vec::new(),
                body: Body::Node(Node {
                    place: Spot::Old(*root),
                    inodes: 0,
                    octets: 0,
                }),
            });
            self.tops = Some(root.into_iter().collect());
            return Ok(());
        }
        self.edits = mem::take(&mut self.above);
        self.level = self.level.saturating_add(1).min(top.unwrap_or(0));
        Ok(())
    }

    /// Writes the page that has the first change again, with further pages while the new one is short.
    fn rewrite_pages(
        &mut self,
        found: &Found,
        old: &PageTree,
        lot: &mut Lot<'_>,
    ) -> Result<(), DraftError> {
        let mut items = of_page(&found.page);
        let mut keys = keys_before(&self.edits, found.end.as_deref());
        let changed = edit(&mut items, &self.edits, &keys);
        let mut taken = Vec::new();
        let least = self.page_octets(self.level) / PAGE_OCTETS_SHARE;
        if let Some((above, row)) = &found.above {
            taken.extend(above.key(*row));
            let mut next = row.saturating_add(1);
            while changed && !items.is_empty() && octets(&items) < least {
                let (Some(child), Some(name)) = (above.child(next), above.key(next)) else {
                    break;
                };
                let page = old.page(&child.place, Some(self.level))?;
                let mut more = of_page(&page);
                next = next.saturating_add(1);
                let end = above.key(next).or_else(|| found.end_above.clone());
                let all = keys_before(&self.edits, end.as_deref());
                edit(
                    &mut more,
                    &self.edits,
                    all.get(keys.len()..).unwrap_or_default(),
                );
                items.append(&mut more);
                keys = all;
                taken.push(name);
            }
        }
        if changed {
            self.replace(found, items, taken, lot)?;
        }
        for key in keys {
            self.edits.remove(&key);
        }
        Ok(())
    }

    fn replace(
        &mut self,
        found: &Found,
        items: Vec<Item>,
        taken: Vec<Vec<u8>>,
        lot: &mut Lot<'_>,
    ) -> Result<(), DraftError> {
        if found.above.is_none() {
            // An inner page over a single page is no use as the top.
            let tops = if self.level > 0 && items.len() < 2 {
                items
            } else {
                self.flush(items, self.level, lot)?
            };
            self.tops = Some(tops);
            return Ok(());
        }
        let mut nodes = self.flush(items, self.level, lot)?;
        for name in taken {
            self.above.insert(name, Edit::Nodes(mem::take(&mut nodes)));
        }
        Ok(())
    }

    /// Cuts items into pages of a level. Leaves are written at once, inner pages when the places of their pages are known.
    fn flush(
        &mut self,
        items: Vec<Item>,
        level: u8,
        lot: &mut Lot<'_>,
    ) -> Result<Vec<Item>, FormatError> {
        if level >= LEVELS_MAX {
            return Err(FormatError::Above {
                what: "levels of a tree",
                max: LEVELS_MAX.into(),
                found: u64::from(level).saturating_add(1),
            });
        }
        let mut nodes = Vec::new();
        for items in cut(items, self.page_octets(level)) {
            let (inodes, octets) = counts(&items);
            let key = items.first().map_or_else(Vec::new, |item| item.key.clone());
            let place = if level == 0 {
                let page = leaf(&items);
                self.mails.make_room(page.len(), lot)?;
                let (mail, place) = self.mails.push(page, lot)?;
                Spot::Leaf(mail, place)
            } else {
                self.inners.push(Inner { level, items });
                Spot::Inner(self.inners.len().saturating_sub(1))
            };
            let node = Node {
                place,
                inodes,
                octets,
            };
            let body = Body::Node(node);
            nodes.push(Item { key, body });
        }
        Ok(nodes)
    }

    /// Writes inner pages. Returns whether all are written; else mails below have to be stored first.
    fn write_inners(&mut self, lot: &mut Lot<'_>) -> Result<bool, FormatError> {
        while let Some(inner) = self.inners.get(self.places.len()) {
            let length = inner.items.iter().map(Item::octets).sum::<usize>();
            self.mails.make_room(length, lot)?;
            let mut rows = Vec::with_capacity(inner.items.len());
            for item in &inner.items {
                let Body::Node(node) = &item.body else {
                    continue;
                };
                let Some(place) = self.mails.of_spot(node.place, &self.places) else {
                    return Ok(false);
                };
                let child = Child {
                    place,
                    inodes: node.inodes,
                    octets: node.octets,
                };
                rows.push((item.key.as_slice(), child));
            }
            let place = self.mails.push(encode_inner(inner.level, &rows), lot)?;
            self.places.push(place);
        }
        self.mails.close(lot)?;
        self.is_written = true;
        Ok(true)
    }
}

fn leaf(items: &[Item]) -> Vec<u8> {
    let rows = items.iter().filter_map(|item| match &item.body {
        Body::Row(value) => Some((item.key.as_slice(), &value[..])),
        Body::Node(_) => None,
    });
    encode_leaf(&rows.collect::<Vec<_>>())
}
