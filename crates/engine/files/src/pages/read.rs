//! Reading the tree of pages.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use lru::LruCache;
use vere_ports::files::Errno;

use crate::format::page::Page;
use crate::format::{FormatError, Locator, MailId};

/// A page that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Missing(pub Locator);

impl From<Missing> for Errno {
    fn from(_: Missing) -> Self {
        Self::Io
    }
}

/// Sees the key and the value of a row.
pub type RowVisitor<'a, E> = dyn FnMut(&[u8], Bytes) -> Result<ControlFlow<()>, E> + 'a;

/// The tree of pages under a root.
#[derive(Debug, Clone)]
pub struct PageTree {
    root: Option<Locator>,
    cache: RefCell<Cache>,
}

/// Pages in memory.
#[derive(Debug, Clone)]
struct Cache {
    pages: LruCache<(MailId, u32), Arc<Page>>,
    octets: usize,
}

/// A page on the way to a key.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) page: Arc<Page>,
    /// The key above which all keys belong to other pages; none at the right edge of the tree.
    pub(super) end: Option<Vec<u8>>,
    /// The inner page above, and the row there; none for the root.
    pub(super) above: Option<(Arc<Page>, usize)>,
    /// The end of the page above.
    pub(super) end_above: Option<Vec<u8>>,
}

impl Default for PageTree {
    fn default() -> Self {
        Self {
            root: None,
            cache: RefCell::new(Cache {
                pages: LruCache::unbounded(),
                octets: 0,
            }),
        }
    }
}

impl PageTree {
    /// The root page; none for a tree without rows.
    #[must_use]
    pub const fn root(&self) -> Option<&Locator> {
        self.root.as_ref()
    }

    /// The tree has another root from now on. Pages in memory stay.
    pub fn set_root(&mut self, root: Option<Locator>) {
        self.root = root;
    }

    /// Octets of the pages in memory.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.cache.borrow().octets
    }

    /// Takes a page into memory.
    ///
    /// # Errors
    ///
    /// If the octets are no page.
    pub fn put(&self, at: &Locator, octets: Bytes) -> Result<(), FormatError> {
        let page = Page::decode(octets, at)?;
        let mut cache = self.cache.borrow_mut();
        cache.octets = cache.octets.saturating_add(page.weight());
        if let Some(old) = cache.pages.put((at.mail, at.at), Arc::new(page)) {
            cache.octets = cache.octets.saturating_sub(old.weight());
        }
        Ok(())
    }

    /// The pages below a page that is in memory.
    #[must_use]
    pub fn below(&self, at: &Locator) -> Vec<Locator> {
        let cache = self.cache.borrow();
        let page = cache.pages.peek(&(at.mail, at.at));
        page.map_or_else(Vec::new, |page| {
            let rows = 0..page.rows();
            rows.filter_map(|row| page.child(row))
                .map(|child| child.place)
                .collect()
        })
    }

    /// Forgets pages until at most so many octets are in memory, least recently used first.
    pub fn trim(&self, octets_max: usize) {
        let mut cache = self.cache.borrow_mut();
        while cache.octets > octets_max
            && let Some((_, old)) = cache.pages.pop_lru()
        {
            cache.octets = cache.octets.saturating_sub(old.weight());
        }
    }

    /// A page of this level; `level` is none for the root, which may have any.
    pub(super) fn page(&self, at: &Locator, level: Option<u8>) -> Result<Arc<Page>, Missing> {
        let mut cache = self.cache.borrow_mut();
        let page = cache.pages.get(&(at.mail, at.at));
        // A page of another level than its place demands would let a tree have circles.
        page.filter(|page| level.is_none_or(|level| page.level() == level))
            .cloned()
            .ok_or(Missing(*at))
    }

    /// The level of the root; none without a root.
    pub(super) fn top(&self) -> Result<Option<u8>, Missing> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        Ok(Some(self.page(root, None)?.level()))
    }

    /// The page of a level that has a key, or would have; none without a root, or with a root below the level.
    pub(super) fn find(&self, key: &[u8], level: u8) -> Result<Option<Found>, Missing> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        let mut found = Found {
            page: self.page(root, None)?,
            end: None,
            above: None,
            end_above: None,
        };
        while found.page.level() > level {
            let row = found.page.row_for(key);
            let Some(child) = found.page.child(row) else {
                break;
            };
            let below = found.page.level().saturating_sub(1);
            let page = self.page(&child.place, Some(below))?;
            let next = found.page.key(row.saturating_add(1));
            found = Found {
                page,
                end: next.or_else(|| found.end.clone()),
                end_above: found.end,
                above: Some((found.page, row)),
            };
        }
        Ok((found.page.level() == level).then_some(found))
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// The page that is not in memory.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Missing> {
        let found = self.find(key, 0)?;
        Ok(found.and_then(|found| {
            let row = found.page.search(key).ok()?;
            found.page.value(row)
        }))
    }

    /// Visits rows from a key on in order, until the visitor breaks.
    ///
    /// # Errors
    ///
    /// The visitor's errors, and the page that is not in memory.
    pub fn visit<E: From<Missing>>(
        &self,
        from: &[u8],
        visitor: &mut RowVisitor<'_, E>,
    ) -> Result<(), E> {
        let mut from = from.to_vec();
        while let Some(found) = self.find(&from, 0)? {
            let first = match found.page.search(&from) {
                Ok(row) | Err(row) => row,
            };
            for row in first..found.page.rows() {
                if let (Some(key), Some(value)) = (found.page.key(row), found.page.value(row))
                    && visitor(&key, value)?.is_break()
                {
                    return Ok(());
                }
            }
            match found.end {
                // The end of a page is beyond the page's own keys, so that the walk goes on.
                Some(end) if end > from => from = end,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// The inodes of the tree, and the octets of their files.
    ///
    /// # Errors
    ///
    /// The page that is not in memory.
    pub fn counts(&self) -> Result<(u64, u64), Missing> {
        let Some(root) = &self.root else {
            return Ok((0, 0));
        };
        let page = self.page(root, None)?;
        Ok(super::items::counts(&super::items::of_page(&page)))
    }
}
