//! Surviving pages: levels, keys and places. Rows stay on the accounts until the choice of leaves.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::mark::begun;
use crate::format::page::Page;
use crate::format::{FormatError, HEAD_OCTETS, Keys, MailId, open_frame};
use crate::rows::{Key, writers_prefix};

/// Octets of keys and places in memory. Mails are read newest first, so the oldest pages are left out.
const OCTETS_MAX: usize = 256 << 20;
/// Octets of a page in memory without keys, and of a page below without the key.
const PAGE_OCTETS: usize = 160;
const BELOW_OCTETS: usize = 48;

/// The place of a page: mail and frame.
pub(super) type At = (MailId, u32);

/// A page below an inner page.
#[derive(Debug, Clone)]
pub(super) struct Below {
    /// The least key of the page.
    pub(super) key: Vec<u8>,
    pub(super) at: At,
}

/// A sound page.
#[derive(Debug, Clone)]
pub(super) struct PageSeen {
    pub(super) at: At,
    pub(super) level: u8,
    /// The generation covered by the page's checkpoint.
    pub(super) covers: u64,
    /// Whether the page ends the mail. A checkpoint writes the root last.
    pub(super) is_last: bool,
    /// The least and the highest key.
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    pub(super) below: Vec<Below>,
    /// The highest writer in the rows of a leaf.
    pub(super) writer: u16,
    /// The word of a leaf about a salvage: [`begun`].
    pub(super) mark: Option<Option<u64>>,
}

impl PageSeen {
    pub(super) fn of(page: &Page, at: At, covers: u64, is_last: bool) -> Self {
        let below = (0..page.rows()).filter_map(|row| {
            let place = &page.child(row)?.place;
            Some(Below {
                key: page.key(row)?,
                at: (place.mail, place.at),
            })
        });
        let end = page.rows().saturating_sub(1);
        let (writer, mark) = writers(page);
        Self {
            at,
            level: page.level(),
            covers,
            is_last,
            first: page.key(0).unwrap_or_default(),
            last: page.key(end).unwrap_or_default(),
            below: below.collect(),
            writer,
            mark,
        }
    }

    fn octets(&self) -> usize {
        let below = self.below.iter();
        let below = below.map(|below| below.key.len().saturating_add(BELOW_OCTETS));
        let keys = self.first.len().saturating_add(self.last.len());
        below.fold(keys.saturating_add(PAGE_OCTETS), usize::saturating_add)
    }
}

/// The highest number of a writer in the rows of a leaf, and the word of the last lost writer.
fn writers(page: &Page) -> (u16, Option<Option<u64>>) {
    let (mut highest, mut mark) = (0, None);
    if page.level() > 0 {
        return (highest, mark);
    }
    let (Ok(first) | Err(first)) = page.search(&writers_prefix());
    for row in first..page.rows() {
        let key = page.key(row).unwrap_or_default();
        let Ok(Key::Writer(writer)) = Key::decode(&key) else {
            break;
        };
        highest = writer.max(highest);
        let value = page.value(row).unwrap_or_default();
        mark = begun(&value).or(mark);
    }
    (highest, mark)
}

/// All sound pages.
#[derive(Debug, Default)]
pub(super) struct Pages {
    all: Vec<PageSeen>,
    by_place: HashMap<At, usize>,
    octets: usize,
    /// Pages beyond the bound.
    pub(super) left_out: usize,
}

impl Pages {
    /// Takes the pages of a mail. Returns the number of new pages.
    pub(super) fn take(&mut self, pages: Vec<PageSeen>) -> usize {
        let before = self.all.len();
        for page in pages {
            let octets = self.octets.saturating_add(page.octets());
            if octets > OCTETS_MAX {
                self.left_out = self.left_out.saturating_add(1);
            } else if !self.by_place.contains_key(&page.at) {
                self.octets = octets;
                self.by_place.insert(page.at, self.all.len());
                self.all.push(page);
            }
        }
        self.all.len().saturating_sub(before)
    }

    /// Forgets pages of newer checkpoints than this generation.
    pub(super) fn end_at(&mut self, generation: u64) {
        self.all.retain(|page| page.covers <= generation);
        let places = self.all.iter().enumerate();
        self.by_place = places.map(|(number, page)| (page.at, number)).collect();
    }

    pub(super) fn all(&self) -> &[PageSeen] {
        &self.all
    }

    pub(super) fn get(&self, number: usize) -> Option<&PageSeen> {
        self.all.get(number)
    }

    /// The page at a place, at the level demanded by the page above: a wrong level would let a tree have circles.
    pub(super) fn at(&self, at: At, level: u8) -> Option<usize> {
        let number = *self.by_place.get(&at)?;
        let page = self.all.get(number)?;
        (page.level == level).then_some(number)
    }

    /// The surviving pages below an inner page.
    pub(super) fn below<'a>(
        &'a self,
        page: &'a PageSeen,
    ) -> impl Iterator<Item = Option<usize>> + 'a {
        let level = page.level.checked_sub(1);
        let all = page.below.iter();
        all.map(move |below| self.at(below.at, level?))
    }
}

/// A sealed leaf: the frame, with the head of the mail.
#[derive(Debug)]
pub(super) struct SealedPage {
    head: [u8; HEAD_OCTETS],
    frame: Box<[u8]>,
}

impl SealedPage {
    pub(super) fn new(head: &[u8], frame: &[u8]) -> Self {
        Self {
            head: head.first_chunk().copied().unwrap_or([0; HEAD_OCTETS]),
            frame: frame.into(),
        }
    }

    pub(super) fn octets(&self) -> usize {
        self.frame.len().saturating_add(HEAD_OCTETS)
    }

    fn open(&self, at: At, keys: &Keys) -> Result<Bytes, FormatError> {
        open_frame(&self.head, &self.frame, at.1, keys, at.0)
    }
}

/// Leaves in memory, sealed and compressed as on the accounts.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    all: BTreeMap<At, SealedPage>,
    octets: usize,
}

impl Leaves {
    /// Octets of leaves in memory: names of about 3 million files.
    const OCTETS_MAX: usize = 256 << 20;

    /// Returns whether there was room.
    pub(super) fn put(&mut self, at: At, page: SealedPage) -> bool {
        let octets = self.octets.saturating_add(page.octets());
        if octets > Self::OCTETS_MAX {
            return false;
        }
        if self.all.insert(at, page).is_none() {
            self.octets = octets;
        }
        true
    }

    /// A leaf, opened anew each time, so that a single leaf lies open in memory.
    pub(super) fn open(&self, at: At, keys: &Keys) -> Option<Page> {
        let octets = self.all.get(&at)?.open(at, keys).ok()?;
        let here = crate::format::Locator {
            mail: at.0,
            at: at.1,
            ..Default::default()
        };
        Page::decode(octets, &here).ok()
    }
}
