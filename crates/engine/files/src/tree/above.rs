//! The rows above the pages, in order.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::iter::Peekable;
use std::ops::Bound;

use bytes::Bytes;

use super::{ChainRow, Rows};

/// A row above the pages: no value for a removed row.
type Row<'a> = (&'a [u8], Option<&'a Bytes>);

/// Rows of this mount over rows of the chain, with a prefix.
pub(super) struct Above<'a> {
    local: Peekable<Range<'a, Vec<u8>, Option<Bytes>>>,
    chain: Peekable<Range<'a, Vec<u8>, ChainRow>>,
    prefix: &'a [u8],
}

impl<'a> Above<'a> {
    pub(super) fn new(
        local: &'a Rows,
        chain: &'a BTreeMap<Vec<u8>, ChainRow>,
        prefix: &'a [u8],
        behind: Option<&'a [u8]>,
    ) -> Self {
        let from = behind.map_or(Bound::Included(prefix), Bound::Excluded);
        let range = (from, Bound::Unbounded);
        Self {
            local: local.range::<[u8], _>(range).peekable(),
            chain: chain.range::<[u8], _>(range).peekable(),
            prefix,
        }
    }

    /// The key of the next row.
    fn peek(&mut self) -> Option<&'a [u8]> {
        let local = self.local.peek().map(|(key, _)| key.as_slice());
        let chain = self.chain.peek().map(|(key, _)| key.as_slice());
        let next = match (local, chain) {
            (Some(local), Some(chain)) => Some(local.min(chain)),
            (local, chain) => local.or(chain),
        };
        next.filter(|key| key.starts_with(self.prefix))
    }

    /// The next row before a key.
    pub(super) fn next_before(&mut self, key: &[u8]) -> Option<Row<'a>> {
        self.peek().filter(|next| *next < key)?;
        self.next()
    }

    /// The row of a key, if the next one has the key.
    pub(super) fn at(&mut self, key: &[u8]) -> Option<Option<&'a Bytes>> {
        self.peek().filter(|next| *next == key)?;
        self.next().map(|(_, value)| value)
    }
}

impl<'a> Iterator for Above<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let key = self.peek()?;
        let chain = self.chain.next_if(|(other, _)| other.as_slice() == key);
        let local = self.local.next_if(|(other, _)| other.as_slice() == key);
        let value = match (local, chain) {
            (Some((_, value)), _) => value.as_ref(),
            (None, chain) => chain.and_then(|(_, row)| row.value.as_ref()),
        };
        Some((key, value))
    }
}
