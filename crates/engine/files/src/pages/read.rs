//! Reading the tree of pages.

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use lru::LruCache;

use crate::format::page::Page;
use crate::format::{FormatError, Locator, MailId};

/// A page that is not in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Missing(pub Locator);

/// Pages on the local disk.
pub trait LocalPages: fmt::Debug + Send {
    /// A page, verified.
    fn get(&mut self, at: &Locator) -> Option<Bytes>;

    /// Whether a page is there, perhaps damaged.
    fn has(&mut self, at: &Locator) -> bool;

    /// Keeps a page: the head of its mail, and the sealed frame.
    fn put(&mut self, at: &Locator, head: &[u8], frame: &[u8]);

    /// Keeps every page of a mail's body.
    fn put_mail(&mut self, mail: MailId, body: &[u8]);

    /// A page of the tree is lost: the next mount shall not trust the checkpoint.
    fn distrust(&mut self);
}

/// Sees the key and the value of a row.
pub type RowVisitor<'a, E> = dyn FnMut(&[u8], Bytes) -> Result<ControlFlow<()>, E> + 'a;

/// The tree of pages under a root.
#[derive(Debug)]
pub struct PageTree {
    root: Option<Locator>,
    /// Octets of pages in memory beyond which a walk over many rows forgets pages on the way.
    walk_octets: usize,
    cache: RefCell<Cache>,
}

/// Pages in memory, above the pages on the local disk.
#[derive(Debug)]
struct Cache {
    pages: LruCache<(MailId, u32), Arc<Page>>,
    octets: usize,
    local: Option<Box<dyn LocalPages>>,
}

/// A page on the way to a key.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) page: Arc<Page>,
    /// The key above which all keys belong to other pages; none at the right edge of the tree.
    pub(super) end: Option<Vec<u8>>,
    /// The inner page above, and the row there; absent for the root.
    pub(super) above: Option<(Arc<Page>, usize)>,
    /// The end of the page above.
    pub(super) end_above: Option<Vec<u8>>,
}

impl Default for PageTree {
    fn default() -> Self {
        Self {
            root: None,
            walk_octets: usize::MAX,
            cache: RefCell::new(Cache {
                pages: LruCache::unbounded(),
                octets: 0,
                local: None,
            }),
        }
    }
}

impl Cache {
    fn put(&mut self, at: &Locator, octets: Bytes) -> Result<Arc<Page>, FormatError> {
        let page = Arc::new(Page::decode(octets, at)?);
        self.octets = self.octets.saturating_add(page.weight());
        if let Some(old) = self.pages.put((at.mail, at.at), page.clone()) {
            self.octets = self.octets.saturating_sub(old.weight());
        }
        Ok(page)
    }

    /// A page in memory, or on the local disk.
    fn get(&mut self, at: &Locator) -> Option<Arc<Page>> {
        if let Some(page) = self.pages.get(&(at.mail, at.at)) {
            return Some(page.clone());
        }
        let octets = self.local.as_mut()?.get(at)?;
        self.put(at, octets).ok()
    }
}

impl PageTree {
    /// A tree without rows, whose pages may lie on the local disk. A walk over many rows forgets pages on the way while more
    /// than so many octets of pages are in memory.
    #[must_use]
    pub fn with_local(local: Box<dyn LocalPages>, walk_octets: usize) -> Self {
        let tree = Self {
            walk_octets,
            ..Self::default()
        };
        tree.cache.borrow_mut().local = Some(local);
        tree
    }

    /// The root page; absent for a tree without rows.
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
        self.cache.borrow_mut().put(at, octets).map(drop)
    }

    /// Keeps a page on the local disk: the head of its mail, and the sealed frame.
    pub fn keep(&self, at: &Locator, head: &[u8], frame: &[u8]) {
        if let Some(local) = &mut self.cache.borrow_mut().local {
            local.put(at, head, frame);
        }
    }

    /// Keeps every page of a mail's body on the local disk.
    pub fn keep_mail(&self, mail: MailId, body: &[u8]) {
        if let Some(local) = &mut self.cache.borrow_mut().local {
            local.put_mail(mail, body);
        }
    }

    /// A page of the tree is lost.
    pub fn distrust(&self) {
        if let Some(local) = &mut self.cache.borrow_mut().local {
            local.distrust();
        }
    }

    /// Whether a page is in memory, or on the local disk and now in memory.
    #[must_use]
    pub fn has(&self, at: &Locator) -> bool {
        self.cache.borrow_mut().get(at).is_some()
    }

    /// A page in memory, or on the local disk.
    #[must_use]
    pub fn read(&self, at: &Locator) -> Option<Arc<Page>> {
        self.cache.borrow_mut().get(at)
    }

    /// Whether a page is in memory or on the local disk. The page is not read.
    #[must_use]
    pub fn is_near(&self, at: &Locator) -> bool {
        let mut cache = self.cache.borrow_mut();
        cache.pages.contains(&(at.mail, at.at))
            || cache.local.as_mut().is_some_and(|local| local.has(at))
    }

    /// The pages below a page that is there, with their level. A page whose own level is 0 has none.
    #[must_use]
    pub fn below(&self, at: &Locator, level: Option<u8>) -> Vec<(Locator, Option<u8>)> {
        if level == Some(0) {
            return Vec::new();
        }
        let page = self.cache.borrow_mut().get(at);
        page.map_or_else(Vec::new, |page| {
            let below = page.level().checked_sub(1);
            let children = (0..page.rows()).filter_map(|row| page.child(row));
            children.map(|child| (child.place, below)).collect()
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
        let page = self.cache.borrow_mut().get(at);
        // A page of another level than its place demands would let a tree have circles.
        page.filter(|page| level.is_none_or(|level| page.level() == level))
            .ok_or(Missing(*at))
    }

    /// The level of the root; absent without a root.
    pub(super) fn top(&self) -> Result<Option<u8>, Missing> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        Ok(Some(self.page(root, None)?.level()))
    }

    /// The page of a level that has a key, or would have; absent without a root, or with a root below the level.
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
        let Some(root) = &self.root else {
            return Ok(None);
        };
        let mut page = self.page(root, None)?;
        while let Some(child) = page.child(page.row_for(key)) {
            let below = page.level().saturating_sub(1);
            let place = child.place;
            page = self.page(&place, Some(below))?;
        }
        Ok(page.search(key).ok().and_then(|row| page.value(row)))
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
        self.visit_prefix(from, &[], visitor)
    }

    /// Visits rows with a prefix from a key on in order, until the visitor breaks. Pages without such rows are not needed.
    ///
    /// # Errors
    ///
    /// As [`PageTree::visit`].
    pub fn visit_prefix<E: From<Missing>>(
        &self,
        from: &[u8],
        prefix: &[u8],
        visitor: &mut RowVisitor<'_, E>,
    ) -> Result<(), E> {
        let mut from = from.to_vec();
        while let Some(found) = self.find(&from, 0)? {
            let first = match found.page.search(&from) {
                Ok(row) | Err(row) => row,
            };
            for row in first..found.page.rows() {
                if let (Some(key), Some(value)) = (found.page.key(row), found.page.value(row))
                    && (!key.starts_with(prefix) || visitor(&key, value)?.is_break())
                {
                    return Ok(());
                }
            }
            match found.end {
                // The end of a page is beyond the page's own keys, so that the walk goes on.
                Some(end) if end > from && end.starts_with(prefix) => from = end,
                _ => return Ok(()),
            }
            self.trim(self.walk_octets);
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
