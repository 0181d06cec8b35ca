//! Files by chunks alone: content without a row in the tree and without a use in the past.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use vere_files::content::{Content, Piece, Source, Unsent, save};
use vere_ports::files::{Caller, Errno, FileKind, FileTime, Inode};

use super::found::{Chunk, Hint, Salvaged};
use super::restore::{Homes, Restore};
use crate::collection::rows::RowChange;
use crate::paths::visit_extents;
use crate::rows::{
    EntryRow, Extent, FILE_SIZE_MAX, Home, InodeRow, NAME_OCTETS_MAX, SLOT_MAX, encode_entry,
    entry_key, inode_key, inode_of, tree_prefix,
};
use crate::tree::Tree;

/// Permissions of files whose owners may be unknown.
const FILE_MODE: u16 = 0o600;

/// The content of a lost inode, and the sequence of its newest chunk.
#[derive(Debug, Default)]
struct Lost {
    content: Content,
    sequence: u64,
}

/// Lost files by the numbers of their inodes.
#[derive(Debug)]
pub struct LostFiles(BTreeMap<u64, Lost>);

impl LostFiles {
    /// The contents of inodes absent in the tree and in the past, the newest chunk on top.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn of(tree: &Tree, found: &Salvaged, plan: Option<&Restore>) -> Result<Self, Errno> {
        let mut known: HashSet<(u64, u32)> = HashSet::new();
        visit_extents(tree, |_, _, _, extent| {
            known.insert((extent.pack.0, extent.at));
        })?;
        let past = plan.zip(found.past.as_ref());
        if let Some((plan, past)) = past {
            plan.note_chunks(past, &mut known);
        }
        let is_known = |chunk: &&Chunk| {
            let (pack, at) = (chunk.pack.0, chunk.frame.entry.place.at);
            let entry = &chunk.frame.entry;
            let end = entry.offset.saturating_add(chunk.frame.length.into());
            match past {
                Some((plan, past)) => plan.is_known(past, &known, (pack, at), (entry.inode, end)),
                None => known.contains(&(pack, at)),
            }
        };
        let mut chunks: Vec<&Chunk> = found
            .chunks
            .iter()
            .filter(|chunk| !is_known(chunk))
            .collect();
        // Sequences of a writer rise; the order of two writers with the same sequence is arbitrary.
        chunks.sort_by_key(|chunk| {
            let place = chunk.frame.entry.place.at;
            (chunk.pack.sequence(), chunk.pack.writer(), place)
        });
        let mut files: BTreeMap<u64, Lost> = BTreeMap::new();
        // Chunks name no unsent octets, so that the store stays empty.
        let mut none = Unsent::default();
        for chunk in chunks {
            let entry = &chunk.frame.entry;
            let length = chunk.frame.length;
            if entry
                .offset
                .checked_add(length.into())
                .is_none_or(|end| end > FILE_SIZE_MAX)
            {
                continue;
            }
            let extent = Extent {
                pack: chunk.pack,
                at: entry.place.at,
                sealed_len: entry.place.sealed_len,
            };
            let source = Source::Chunk { extent, skip: 0 };
            let lost = files.entry(entry.inode).or_default();
            lost.content
                .put(entry.offset, Piece { length, source }, &mut none);
            lost.sequence = chunk.pack.sequence();
        }
        Ok(Self(files))
    }

    /// Whether nothing is lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files, and their octets outside holes.
    #[must_use]
    pub fn count(&self) -> (usize, u64) {
        let octets = self.0.values().map(|lost| lost.content.data_octets());
        (self.0.len(), octets.fold(0, u64::saturating_add))
    }

    /// Rows of the files, and of their entries in a home.
    ///
    /// # Errors
    /// Those of `homes`, and of contents beyond the bounds of rows.
    pub fn rows(
        &mut self,
        (found, plan): (&Salvaged, Option<&Restore>),
        (home, of): (Home, (Caller, FileTime)),
        homes: &mut Homes<'_>,
    ) -> Result<Vec<RowChange>, Errno> {
        let mut at: (Home, u32) = (0, SLOT_MAX);
        let (mut rows, mut entries) = (Vec::new(), Vec::new());
        for (inode, lost) in &mut self.0 {
            if at.1 >= SLOT_MAX {
                at = (homes()?, 0);
            }
            at.1 = at.1.saturating_add(1);
            let number = inode_of(at.0, at.1);
            let hint = found.hints.get(inode);
            rows_of(number, lost, hint, of, &mut rows)?;
            let entry = EntryRow {
                inode: number,
                kind: FileKind::File,
            };
            let known = hint.and_then(|hint| hint.name.as_ref());
            let known = known.map(|(_, name)| name.as_slice());
            let known = known.or_else(|| plan?.name_of(*inode));
            let name = name_of(*inode, known);
            entries.push((entry_key(home, &name), Some(encode_entry(entry))));
        }
        rows.append(&mut entries);
        Ok(rows)
    }
}

/// The row of a file known by content only.
#[must_use]
pub fn new_file((owner, now): (Caller, FileTime)) -> InodeRow {
    InodeRow {
        kind: FileKind::File,
        mode: FILE_MODE,
        links: 1,
        uid: owner.uid,
        gid: owner.gid,
        size: 0,
        home_or_device: 0,
        parent: 0,
        generation: 1,
        atime: now,
        mtime: now,
        ctime: now,
        btime: now,
        target: Vec::new(),
    }
}

/// Adds the rows of a file.
fn rows_of(
    number: Inode,
    lost: &mut Lost,
    hint: Option<&Hint>,
    of: (Caller, FileTime),
    rows: &mut Vec<RowChange>,
) -> Result<(), Errno> {
    let last = lost.content.pieces().last();
    let end = last.map_or(0, |(at, piece)| at.saturating_add(piece.length.into()));
    let known = hint.and_then(|hint| hint.row.as_ref());
    let known = known.and_then(|known| Some((known.sequence, known.row.clone()?)));
    let row = match known.filter(|(_, row)| row.kind == FileKind::File) {
        // Content goes before the row with the size: octets behind the size were cut away.
        Some((sequence, known)) if sequence >= lost.sequence => {
            let mut none = Unsent::default();
            lost.content.cut(known.size, u64::MAX, &mut none);
            InodeRow { links: 1, ..known }
        }
        Some((_, known)) => InodeRow {
            links: 1,
            size: known.size.max(end),
            ..known
        },
        None => InodeRow {
            size: end,
            ..new_file(of)
        },
    };
    rows.push((inode_key(number).to_vec(), Some(row.encode())));
    let mut tree = Tree::new();
    save(&lost.content, &mut tree, number)?;
    tree.visit(&tree_prefix(), None, &mut |key, value| {
        rows.push((key.to_vec(), Some(value.to_vec())));
        Ok(ControlFlow::Continue(()))
    })
}

/// The number of the lost inode, with its last known name.
fn name_of(inode: u64, known: Option<&[u8]>) -> Vec<u8> {
    let mut name = format!("inode-{inode:x}").into_bytes();
    if let Some(known) = known {
        name.push(b'-');
        name.extend_from_slice(known);
    }
    name.truncate(NAME_OCTETS_MAX);
    name
}
