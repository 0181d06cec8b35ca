//! Reading rows: the uppermost layer counts.

use std::ops::ControlFlow;

use bytes::Bytes;
use vere_ports::files::Errno;

use super::above::Above;
use super::{MISSING_MAX, Tree, Visitor};
use crate::format::Locator;
use crate::pages::Missing;

/// Why a visit of pages ended early.
enum Stop {
    Missing(Missing),
    Visitor(Errno),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl Tree {
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] for a page that is not in memory.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Errno> {
        match self.local.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.in_chain(key),
        }
    }

    /// What the chain has for a key.
    ///
    /// # Errors
    ///
    /// As [`Tree::get`].
    pub fn in_chain(&self, key: &[u8]) -> Result<Option<Bytes>, Errno> {
        match self.chain.get(key) {
            Some(row) => Ok(row.value.clone()),
            None => self.pages.get(key).map_err(|missing| self.lacks(missing)),
        }
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    ///
    /// As [`Tree::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool, Errno> {
        Ok(self.get(key)?.is_some())
    }

    /// Visits rows with a prefix in order, behind a key if one is given, until the visitor breaks.
    ///
    /// # Errors
    ///
    /// The visitor's errors, and [`Errno::Again`] for a page that is not in memory.
    pub fn visit(
        &self,
        prefix: &[u8],
        behind: Option<&[u8]>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), Errno> {
        let mut above = Above::new(&self.local, &self.chain, prefix, behind);
        let mut is_over = false;
        let mut see = |key: &[u8], value: &[u8]| -> Result<ControlFlow<()>, Stop> {
            let flow = visitor(key, value).map_err(Stop::Visitor)?;
            is_over |= flow.is_break();
            Ok(flow)
        };
        // The least key behind a key has a zero octet more.
        let from = behind.map_or_else(|| prefix.to_vec(), |behind| [behind, &[0]].concat());
        let walk = self
            .pages
            .visit_prefix::<Stop>(&from, prefix, &mut |key, value| {
                while let Some((upper, now)) = above.next_before(key) {
                    if let Some(now) = now
                        && see(upper, now)?.is_break()
                    {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                match above.at(key) {
                    Some(Some(now)) => see(key, now),
                    Some(None) => Ok(ControlFlow::Continue(())),
                    None => see(key, &value),
                }
            });
        let rest = walk.and_then(|()| {
            if is_over {
                return Ok(());
            }
            for (key, now) in above {
                if let Some(now) = now
                    && visitor(key, now).map_err(Stop::Visitor)?.is_break()
                {
                    break;
                }
            }
            Ok(())
        });
        rest.map_err(|stop| match stop {
            Stop::Missing(missing) => self.lacks(missing),
            Stop::Visitor(errno) => errno,
        })
    }

    /// The keys of all rows with a prefix, in order.
    ///
    /// # Errors
    ///
    /// As [`Tree::visit`].
    pub fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let mut keys = Vec::new();
        self.visit(prefix, None, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(keys)
    }

    /// Whether a row has a prefix.
    ///
    /// # Errors
    ///
    /// As [`Tree::visit`].
    pub fn any(&self, prefix: &[u8]) -> Result<bool, Errno> {
        let mut found = false;
        self.visit(prefix, None, &mut |_, _| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Takes the pages that readers have missed since the last take. None were missed: every row was there.
    pub fn take_missing(&self) -> Vec<Locator> {
        std::mem::take(&mut *self.missing.borrow_mut())
    }

    /// Whether readers have missed no page since the last [`Tree::take_missing`].
    #[must_use]
    pub fn has_all(&self) -> bool {
        self.missing.borrow().is_empty()
    }

    fn lacks(&self, Missing(at): Missing) -> Errno {
        if self.pages.has(&at) {
            // The page is of another level than its place demands: no further try finds another one.
            return Errno::Io;
        }
        let mut missing = self.missing.borrow_mut();
        if missing.len() < MISSING_MAX && !missing.contains(&at) {
            missing.push(at);
        }
        Errno::Again
    }
}
