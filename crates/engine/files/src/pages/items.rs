//! What pages are made of: rows, or pages below, with the changes that a new checkpoint makes.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use vere_ports::files::FileKind;

use crate::format::page::Page;
use crate::format::{Locator, Place};
use crate::rows::{InodeRow, Key};

/// Octets of rows in a page, but for a single longer row.
pub(super) const PAGE_OCTETS: usize = 32 << 10;
/// A changed page with less than this part of the octets takes the rows of the next page.
pub(super) const PAGE_OCTETS_SHARE: usize = 4;
/// Octets of an inner row besides its key: locator and counts.
const INNER_OCTETS: usize = Locator::OCTETS + 12;

/// A row, or a page below.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) key: Vec<u8>,
    pub(super) body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    /// The value of a row.
    Row(Bytes),
    /// A page.
    Node(Node),
}

/// A page, old or new.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) place: Spot,
    pub(super) inodes: u64,
    pub(super) octets: u64,
}

/// Where a page is, or will be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot {
    /// A page of an earlier checkpoint.
    Old(Locator),
    /// A leaf in a mail of this checkpoint: the number of the mail, and the place there.
    Leaf(usize, Place),
    /// An inner page that is not encoded yet.
    Inner(usize),
}

/// A change of a page.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// A row has this value, or none, from now on.
    Row(Option<Bytes>),
    /// These pages stand in place of one.
    Nodes(Vec<Item>),
}

/// Changes by key.
pub(super) type Edits = BTreeMap<Vec<u8>, Edit>;

impl Item {
    pub(super) fn octets(&self) -> usize {
        let body = match &self.body {
            Body::Row(value) => value.len().saturating_add(4),
            Body::Node(_) => INNER_OCTETS,
        };
        self.key.len().saturating_add(body)
    }
}

pub(super) fn octets(items: &[Item]) -> usize {
    let each = items.iter().map(Item::octets);
    each.fold(0, usize::saturating_add)
}

/// The items of a page.
pub(super) fn of_page(page: &Page) -> Vec<Item> {
    let item = |row| {
        let body = match page.child(row) {
            Some(child) => Body::Node(Node {
                place: Spot::Old(child.place),
                inodes: child.inodes,
                octets: child.octets,
            }),
            None => Body::Row(page.value(row)?),
        };
        Some(Item {
            key: page.key(row)?,
            body,
        })
    };
    (0..page.rows()).filter_map(item).collect()
}

/// The keys of changes up to the end of a page.
pub(super) fn keys_before(edits: &Edits, end: Option<&[u8]>) -> Vec<Vec<u8>> {
    let bound = end.map_or(Bound::Unbounded, Bound::Excluded);
    let range = edits.range::<[u8], _>((Bound::Unbounded, bound));
    range.map(|(key, _)| key.clone()).collect()
}

/// Applies changes to the items of a page. Returns whether any item differs from before.
pub(super) fn edit(items: &mut Vec<Item>, edits: &Edits, keys: &[Vec<u8>]) -> bool {
    let mut changed = false;
    let mut out = Vec::with_capacity(items.len());
    let mut before = std::mem::take(items).into_iter().peekable();
    for key in keys {
        while let Some(item) = before.next_if(|item| item.key < *key) {
            out.push(item);
        }
        let old = before.next_if(|item| item.key == *key);
        match (edits.get(key), old) {
            (Some(Edit::Row(Some(value))), old) => {
                let same = matches!(&old, Some(Item { body: Body::Row(old), .. }) if old == value);
                changed |= !same;
                out.push(Item {
                    key: key.clone(),
                    body: Body::Row(value.clone()),
                });
            }
            (Some(Edit::Row(None)), old) => changed |= old.is_some(),
            (Some(Edit::Nodes(nodes)), _) => {
                changed = true;
                out.extend(nodes.iter().cloned());
            }
            (None, old) => out.extend(old),
        }
    }
    out.extend(before);
    *items = out;
    changed
}

/// Cuts items into pages: full ones, and two of equal length at the end.
pub(super) fn cut(items: Vec<Item>, page_octets: usize) -> Vec<Vec<Item>> {
    let mut left = octets(&items);
    let mut pages = Vec::new();
    let mut page: Vec<Item> = Vec::new();
    let mut filled = 0_usize;
    for item in items {
        let more = item.octets();
        let rest = filled.saturating_add(left);
        let bound = if rest > page_octets && rest < page_octets.saturating_mul(2) {
            rest.div_ceil(2)
        } else {
            page_octets
        };
        // The item that crosses the half belongs to the first of two pages.
        let is_full = if bound < page_octets {
            filled >= bound || filled.saturating_add(more) > page_octets
        } else {
            filled.saturating_add(more) > bound
        };
        if is_full && !page.is_empty() {
            pages.push(std::mem::take(&mut page));
            filled = 0;
        }
        filled = filled.saturating_add(more);
        left = left.saturating_sub(more);
        page.push(item);
    }
    if !page.is_empty() {
        pages.push(page);
    }
    pages
}

/// The inodes of items, and the octets of their files.
pub(super) fn counts(items: &[Item]) -> (u64, u64) {
    let mut sum = (0_u64, 0_u64);
    for item in items {
        let (inodes, octets) = match &item.body {
            Body::Node(node) => (node.inodes, node.octets),
            Body::Row(value) => count_row(&item.key, value),
        };
        sum.0 = sum.0.saturating_add(inodes);
        sum.1 = sum.1.saturating_add(octets);
    }
    sum
}

fn count_row(key: &[u8], value: &[u8]) -> (u64, u64) {
    if !matches!(Key::decode(key), Ok(Key::Inode(_))) {
        return (0, 0);
    }
    match InodeRow::decode(value) {
        Ok(row) if row.kind == FileKind::File => (1, row.size),
        _ => (1, 0),
    }
}
