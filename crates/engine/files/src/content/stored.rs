//! Contents as rows of extents.

use std::ops::ControlFlow;

use vere_ports::files::{Errno, Inode};

use super::map::Content;
use super::piece::{Piece, Source, narrow};
use super::unsent::Unsent;
use crate::rows::{
    EXTENTS_PER_ROW, RowError, Run, decode_extents, encode_extents, extents_key, extents_prefix,
};
use crate::tree::Tree;

/// A content that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The row is wrong.
    #[error("extents at offset {offset}: {error}")]
    Row {
        /// Where the row's extents begin.
        offset: u64,
        /// The wrong field.
        error: RowError,
    },
    /// The row cannot be read.
    #[error(transparent)]
    Tree(#[from] Errno),
}

/// Visits the runs of a file in order.
fn runs(tree: &Tree, inode: Inode, visitor: &mut dyn FnMut(u64, Run)) -> Result<(), LoadError> {
    let prefix = extents_prefix(inode);
    let mut end = 0;
    let mut broken = None;
    tree.visit(&prefix, None, &mut |key, value| {
        let offset = key.get(prefix.len()..).unwrap_or_default();
        let offset = u64::from_be_bytes(offset.try_into().unwrap_or_default());
        let row = decode_extents(offset, value).and_then(|runs| {
            if offset < end {
                let found = format!("the offset {offset} before the end {end}");
                return Err(RowError::new("extents in order", found));
            }
            Ok(runs)
        });
        match row {
            Ok(runs) => {
                let mut at = offset;
                for run in runs {
                    visitor(at, run);
                    at = at.saturating_add(run.length);
                }
                end = at;
                Ok(ControlFlow::Continue(()))
            }
            Err(error) => {
                broken = Some(LoadError::Row { offset, error });
                Ok(ControlFlow::Break(()))
            }
        }
    })?;
    broken.map_or(Ok(()), Err)
}

/// Reads the content of a file; pieces behind the size do not count.
///
/// # Errors
///
/// Wrong rows, and failures to read rows.
pub fn load(tree: &Tree, inode: Inode, size: u64) -> Result<Content, LoadError> {
    let mut content = Content::new();
    // Rows name no unsent octets, so that the store stays empty.
    let mut none = Unsent::default();
    runs(tree, inode, &mut |at, run| {
        let length = narrow(run.length.min(size.saturating_sub(at)));
        if let Some(extent) = run.extent.filter(|_| length > 0) {
            let skip = run.skip;
            let source = Source::Chunk { extent, skip };
            content.put(at, Piece { length, source }, &mut none);
        }
    })?;
    Ok(content)
}

/// Octets of a stored file outside holes.
///
/// # Errors
///
/// Wrong rows, and failures to read rows.
pub fn allocated(tree: &Tree, inode: Inode) -> Result<u64, LoadError> {
    let mut octets = 0u64;
    runs(tree, inode, &mut |_, run| {
        if run.extent.is_some() {
            octets = octets.saturating_add(run.length);
        }
    })?;
    Ok(octets)
}

/// Writes the content into rows and tells whether a row has changed. Unsent pieces become holes; the caller has none.
///
/// # Errors
///
/// Failures to read rows.
pub fn save(content: &Content, tree: &mut Tree, inode: Inode) -> Result<bool, Errno> {
    let rows = encoded(content, inode);
    let mut stale = Vec::new();
    let mut kept = vec![false; rows.len()];
    tree.visit(&extents_prefix(inode), None, &mut |key, value| {
        let at = rows.binary_search_by(|(other, _)| other.as_slice().cmp(key));
        let same = at.ok().and_then(|at| {
            let (_, wanted) = rows.get(at)?;
            let kept = kept.get_mut(at)?;
            *kept = wanted == value;
            Some(())
        });
        if same.is_none() {
            stale.push(key.to_vec());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut changed = !stale.is_empty();
    for key in stale {
        tree.remove(&key)?;
    }
    for ((key, value), kept) in rows.into_iter().zip(kept) {
        if !kept {
            tree.put(&key, value)?;
            changed = true;
        }
    }
    Ok(changed)
}

/// The rows of a content, in order. Holes inside a row are runs, so that few rows serve a sparse file.
fn encoded(content: &Content, inode: Inode) -> Vec<([u8; 18], Vec<u8>)> {
    let mut rows = Vec::new();
    let mut begin = 0;
    let mut end = 0;
    let mut row: Vec<Run> = Vec::new();
    for (at, piece) in content.pieces() {
        let Source::Chunk { extent, skip } = piece.source else {
            continue;
        };
        let gap = at.saturating_sub(end);
        let places = if gap > 0 { 2 } else { 1 };
        if row.is_empty() || row.len().saturating_add(places) > EXTENTS_PER_ROW {
            if !row.is_empty() {
                rows.push((extents_key(inode, begin), encode_extents(&row)));
                row.clear();
            }
            begin = at;
        } else if gap > 0 {
            row.push(Run {
                length: gap,
                skip: 0,
                extent: None,
            });
        }
        row.push(Run {
            length: u64::from(piece.length),
            skip,
            extent: Some(extent),
        });
        end = at.saturating_add(u64::from(piece.length));
    }
    if !row.is_empty() {
        rows.push((extents_key(inode, begin), encode_extents(&row)));
    }
    rows
}
