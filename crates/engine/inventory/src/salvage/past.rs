//! A state of the volume by surviving pages and later commits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::choice::{Choice, Piece};
use super::pages::{At, Leaves, SealedPage};
use crate::format::Keys;
use crate::format::commit::Record;
use crate::rows::{packs_prefix, tree_prefix};

/// Octets of the rows of later commits; further rows are left out. A checkpoint comes after 4 MiB of commits, so that more
/// follow only where newer checkpoints are lost.
const LATER_OCTETS_MAX: usize = 128 << 20;
/// Octets of such a row in memory besides key and value.
const ROW_OCTETS: usize = 96;

/// The turn of a commit: the generation, and of an equal generation the later mail of the log first.
pub(super) type Turn = (u64, std::cmp::Reverse<u32>);

/// The newest value of a row in later commits.
#[derive(Debug)]
struct Later {
    turn: Turn,
    value: Option<Bytes>,
}

/// Rows of files and packs at a generation of a lost chain.
#[derive(Debug)]
pub struct Past {
    choice: Choice,
    leaves: Leaves,
    later: BTreeMap<Vec<u8>, Later>,
    later_octets: usize,
    generation: u64,
    keys: Arc<Keys>,
    /// The number of leaves without a second reading or without room.
    pub(super) unread: usize,
    /// Rows of later commits that have no room.
    pub(super) rows_left_out: usize,
}

/// Sees a row; breaks to stop.
pub type RowSight<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

impl Past {
    pub(super) fn new(choice: Choice, keys: Arc<Keys>) -> Self {
        Self {
            generation: choice.covers,
            choice,
            keys,
            leaves: Leaves::default(),
            later: BTreeMap::new(),
            later_octets: 0,
            unread: 0,
            rows_left_out: 0,
        }
    }

    /// The generation covered by the chosen pages.
    #[must_use]
    pub const fn covers(&self) -> u64 {
        self.choice.covers
    }

    /// The generation of the newest commit among the rows.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the root and all pages below were there.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.choice.is_whole && self.unread == 0
    }

    /// Lost pages below the chosen root.
    #[must_use]
    pub const fn missing(&self) -> usize {
        self.choice.missing
    }

    /// Leaves from further checkpoints, for missing keys.
    #[must_use]
    pub const fn spare(&self) -> usize {
        self.choice.spare
    }

    /// The needed leaves.
    pub(super) fn wanted(&self) -> impl Iterator<Item = At> + '_ {
        let pieces = self.choice.pieces.iter();
        pieces.filter(|piece| has_rows(piece)).map(|piece| piece.at)
    }

    /// Returns whether there was room.
    pub(super) fn put(&mut self, at: At, page: SealedPage) -> bool {
        self.leaves.put(at, page)
    }

    /// Takes the rows of a commit behind the pages.
    pub(super) fn take_later(&mut self, record: &Record, turn: Turn) {
        self.generation = self.generation.max(record.generation);
        for row in record.rows.iter().filter(|row| is_told(&row.key)) {
            if let Some(known) = self.later.get_mut(&row.key) {
                if known.turn < turn {
                    let value = row.value.as_deref().map(Bytes::copy_from_slice);
                    *known = Later { turn, value };
                }
                continue;
            }
            let value = row.value.as_ref().map_or(0, |value| value.len());
            let octets = row.key.len().saturating_add(value);
            let octets = octets.saturating_add(ROW_OCTETS);
            let all = self.later_octets.saturating_add(octets);
            if all > LATER_OCTETS_MAX {
                self.rows_left_out = self.rows_left_out.saturating_add(1);
                continue;
            }
            self.later_octets = all;
            let value = row.value.as_deref().map(Bytes::copy_from_slice);
            self.later.insert(row.key.clone(), Later { turn, value });
        }
    }

    /// Visits rows in the order of keys, behind a given key. A single leaf is open at a time.
    pub fn visit(&self, after: Option<&[u8]>, see: &mut RowSight<'_>) {
        let from = after.map_or_else(Vec::new, |after| [after, &[0]].concat());
        let mut later = self.later.range(from.clone()..).peekable();
        let pieces = &self.choice.pieces;
        let begin = pieces.partition_point(|piece| {
            let end = piece.range.1.as_ref();
            end.is_some_and(|end| *end <= from)
        });
        for piece in pieces.iter().skip(begin).filter(|piece| has_rows(piece)) {
            let Some(page) = self.leaves.open(piece.at, &self.keys) else {
                continue;
            };
            let first = from.as_slice().max(&piece.range.0);
            let (Ok(first) | Err(first)) = page.search(first);
            for row in first..page.rows() {
                let (Some(key), Some(value)) = (page.key(row), page.value(row)) else {
                    break;
                };
                if piece.range.1.as_ref().is_some_and(|end| key >= *end) {
                    break;
                }
                while let Some((above, of)) = later.next_if(|(above, _)| **above < key) {
                    if see_later(above, of, see).is_break() {
                        return;
                    }
                }
                let flow = match later.next_if(|(above, _)| **above == key) {
                    Some((_, of)) => see_later(&key, of, see),
                    None if is_told(&key) => see(&key, &value),
                    None => ControlFlow::Continue(()),
                };
                if flow.is_break() {
                    return;
                }
            }
        }
        for (key, of) in later {
            if see_later(key, of, see).is_break() {
                return;
            }
        }
    }
}

fn see_later(key: &[u8], of: &Later, see: &mut RowSight<'_>) -> ControlFlow<()> {
    match &of.value {
        Some(value) => see(key, value),
        None => ControlFlow::Continue(()),
    }
}

/// Whether rows of this table tell files and packs. Facts of the volume come from elsewhere.
fn is_told(key: &[u8]) -> bool {
    key.starts_with(&tree_prefix()) || key.starts_with(&packs_prefix())
}

/// Whether a piece may have rows of files or packs.
fn has_rows(piece: &Piece) -> bool {
    let (from, until) = &piece.range;
    let [last] = packs_prefix();
    let is_before = until
        .as_ref()
        .is_some_and(|until| until.as_slice() <= &tree_prefix()[..]);
    !is_before && from.first().is_none_or(|table| *table <= last)
}
