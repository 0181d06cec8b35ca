//! The choice among surviving pages: a root with leaves, and further leaves for missing keys.
//!
//! A checkpoint writes the root as the last page of the last mail, and only later commits name the root; all of them may be
//! gone. So a root is a page named by a surviving commit, or a page without a page above that ends a mail and begins at
//! or before the root folder. The newest root with every page below counts. Where no root is whole, the page with most leaves
//! below counts. Keys without a leaf then come from leaves without a root: a leaf has every row from the least key to the
//! highest key at the time of the checkpoint, so the newest leaf counts, and an older leaf tells no row between both keys.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use vere_ports::files::Inode;

use super::pages::{At, PageSeen, Pages};
use crate::rows::inode_key;

/// Keys from a key on, up to an end; without an end all further keys.
pub(super) type Range = (Vec<u8>, Option<Vec<u8>>);

/// A leaf, and the keys for which the leaf counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) range: Range,
    pub(super) at: At,
}

/// The chosen pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Choice {
    /// The generation of the rows, but for spare leaves.
    pub(super) covers: u64,
    /// Whether a root has every page below.
    pub(super) is_whole: bool,
    /// Lost pages below the root.
    pub(super) missing: usize,
    /// Leaves without a root.
    pub(super) spare: usize,
    /// In the order of keys; no two pieces share a key.
    pub(super) pieces: Vec<Piece>,
}

/// The pages below a page.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    leaves: usize,
    is_whole: bool,
}

/// Chooses; absent without any leaf. `named` are roots named by surviving commits.
pub(super) fn choose(pages: &Pages, named: &HashSet<At>) -> Option<Choice> {
    let reach = reaches(pages);
    let mut choice = Choice::default();
    let mut gaps = Gaps::all();
    let mut reached = HashSet::new();
    if let Some((root, is_root)) = root_of(pages, named, &reach) {
        let page = pages.get(root)?;
        choice.covers = page.covers;
        choice.is_whole = is_root && reach.get(root).is_some_and(|reach| reach.is_whole);
        let range = match is_root {
            true => (Vec::new(), None),
            false => (page.first.clone(), Some(end_of(pages, page))),
        };
        gaps = Gaps::outside(&range);
        descend(pages, (root, range), &mut choice, &mut gaps, &mut reached);
    }
    let mut spare: Vec<(usize, &PageSeen)> = pages.all().iter().enumerate().collect();
    spare.retain(|(number, page)| page.level == 0 && !reached.contains(number));
    spare.sort_by(|(_, a), (_, b)| b.covers.cmp(&a.covers).then(a.first.cmp(&b.first)));
    for (_, page) in spare {
        let ranges = gaps.fill(&page.first, &behind(&page.last));
        choice.spare = choice.spare.saturating_add(ranges.len().min(1));
        let at = page.at;
        let pieces = ranges.into_iter().map(|range| Piece { range, at });
        choice.pieces.extend(pieces);
        if choice.pieces.len() == 1 && choice.covers == 0 {
            // The newest leaf of all.
            choice.covers = page.covers;
        }
    }
    choice.pieces.sort_by(|a, b| a.range.0.cmp(&b.range.0));
    (!choice.pieces.is_empty()).then_some(choice)
}

/// The least key behind a key.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The reach of each page: lower levels first.
fn reaches(pages: &Pages) -> Vec<Reach> {
    let mut order: Vec<usize> = (0..pages.all().len()).collect();
    order.sort_by_key(|number| pages.get(*number).map_or(0, |page| page.level));
    let mut reach = vec![Reach::default(); order.len()];
    for number in order {
        let Some(page) = pages.get(number) else {
            continue;
        };
        let mut own = Reach {
            leaves: usize::from(page.level == 0),
            is_whole: true,
        };
        for below in pages.below(page) {
            match below.and_then(|below| reach.get(below)) {
                Some(below) => {
                    own.leaves = own.leaves.saturating_add(below.leaves);
                    own.is_whole &= below.is_whole;
                }
                None => own.is_whole = false,
            }
        }
        if let Some(slot) = reach.get_mut(number) {
            *slot = own;
        }
    }
    reach
}

/// The chosen page, and whether the page is a root.
fn root_of(pages: &Pages, named: &HashSet<At>, reach: &[Reach]) -> Option<(usize, bool)> {
    let mut has_above = HashSet::new();
    for page in pages.all() {
        has_above.extend(pages.below(page).flatten());
    }
    let begin = inode_key(Inode::ROOT);
    let is_root = |number: usize, page: &PageSeen| {
        let ends = page.is_last && page.first.as_slice() <= begin.as_slice();
        named.contains(&page.at) || ends && !has_above.contains(&number)
    };
    let all = pages.all().iter().zip(reach).enumerate();
    let tops =
        all.filter(|(number, (page, _))| named.contains(&page.at) || !has_above.contains(number));
    let most = reach.iter().map(|of| of.leaves).max().unwrap_or(0);
    let key = |(number, (page, reach)): (usize, (&PageSeen, &Reach))| {
        let is_root = is_root(number, page);
        let whole = (is_root && reach.is_whole).then_some(page.covers);
        // A newer root with most of its leaves is worth more than an older one with some more: removed files would return. Spare
        // leaves fill gaps.
        let newest = (is_root && reach.leaves.saturating_mul(2) > most).then_some(page.covers);
        (whole, newest, reach.leaves, page.covers, is_root, number)
    };
    let best = tops.map(key).max()?;
    let (whole, _, _, _, is_root, number) = best;
    // A lone leaf without a root is a spare leaf.
    let is_leaf = pages.get(number)?.level == 0;
    (whole.is_some() || !is_leaf).then_some((number, is_root))
}

/// The end of the keys known to a page below a lost root.
fn end_of(pages: &Pages, page: &PageSeen) -> Vec<u8> {
    let mut page = page;
    while let Some(below) = pages.below(page).last().flatten() {
        match pages.get(below) {
            Some(below) => page = below,
            None => break,
        }
    }
    behind(&page.last)
}

/// Takes the leaves below a page; a lost page becomes a gap.
fn descend(
    pages: &Pages,
    top: (usize, Range),
    choice: &mut Choice,
    gaps: &mut Gaps,
    reached: &mut HashSet<usize>,
) {
    let mut left = vec![top];
    while let Some((number, range)) = left.pop() {
        let Some(page) = pages.get(number) else {
            continue;
        };
        if page.level == 0 {
            reached.insert(number);
            let at = page.at;
            choice.pieces.push(Piece { range, at });
            continue;
        }
        let (mut from, end) = range;
        let mut next = page.below.iter().skip(1);
        for below in pages.below(page) {
            let until = next.next().map(|below| below.key.clone());
            let until = until.or_else(|| end.clone());
            let range = (from, until.clone());
            match below {
                Some(below) => left.push((below, range)),
                None => {
                    choice.missing = choice.missing.saturating_add(1);
                    gaps.add(range);
                }
            }
            from = until.unwrap_or_default();
        }
    }
}

/// Ranges of keys without a leaf.
#[derive(Debug, Default)]
struct Gaps(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Gaps {
    fn all() -> Self {
        Self(BTreeMap::from([(Vec::new(), None)]))
    }

    /// Everything but a range.
    fn outside(range: &Range) -> Self {
        let mut gaps = Self::default();
        if !range.0.is_empty() {
            gaps.add((Vec::new(), Some(range.0.clone())));
        }
        if let Some(end) = &range.1 {
            gaps.add((end.clone(), None));
        }
        gaps
    }

    fn add(&mut self, (from, until): Range) {
        if until.as_ref().is_none_or(|until| *until > from) {
            self.0.insert(from, until);
        }
    }

    /// Closes the gaps between two keys. Returns the closed ranges.
    fn fill(&mut self, from: &[u8], until: &[u8]) -> Vec<Range> {
        let mut before = self
            .0
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(from)));
        let first = before.next_back().map(|(key, _)| key.clone());
        let start = first.unwrap_or_else(|| from.to_vec());
        let reach = (Bound::Included(start.as_slice()), Bound::Excluded(until));
        let open: Vec<Range> = match start.as_slice() < until {
            true => self.0.range::<[u8], _>(reach).map(own).collect(),
            false => Vec::new(),
        };
        let mut filled = Vec::new();
        for (begin, end) in open {
            if end.as_ref().is_some_and(|end| end.as_slice() <= from) {
                continue;
            }
            self.0.remove(&begin);
            if begin.as_slice() < from {
                self.add((begin.clone(), Some(from.to_vec())));
            }
            let is_within = end.as_ref().is_some_and(|end| end.as_slice() <= until);
            if !is_within {
                self.add((until.to_vec(), end.clone()));
            }
            let stop = if is_within { end } else { Some(until.to_vec()) };
            filled.push((begin.max(from.to_vec()), stop));
        }
        filled
    }
}

fn own((from, until): (&Vec<u8>, &Option<Vec<u8>>)) -> Range {
    (from.clone(), until.clone())
}
