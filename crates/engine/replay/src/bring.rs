//! Changes whose base is gone come onto the newest state of a volume.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use vere_files::bring::bring;
use vere_files::content::{Content, Piece, Source, Unsent};
use vere_files::merge::{Coverage, Label, Merged, Stray, Strays};
use vere_files::posix::{ContentChange, Numbers, inode_for_copy};
use vere_files::tree::{Change, Tree};
use vere_keep::record::{Part, Won};
use vere_ports::files::{Errno, Inode};

use crate::bases::{bases, has_base};
use crate::replay::{Pending, Records, Replay};
use crate::rows::{InodeRow, Key, decode_extents, inode_key};

/// Blocks of homes that are reserved for copies.
const RESERVED: u32 = 1_024;

/// Which journals whose base is gone are brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranded {
    /// The volume has gone on.
    Overtaken,
    /// The volume may be an older one.
    SetBack,
}

/// Merges the changes of a journal whose base is gone with a tree that has the newest state, all of whose pages are there. Returns
/// the record for the journal; the tree is as before. `newest` is the newest commit, `writer` the journal's writer with the next
/// sequence of a mail and the next block of homes.
///
/// # Errors
/// Failures to read or write rows.
pub fn bring_in(
    tree: &mut Tree,
    (records, replay): (&Records, &Replay),
    (stranded, newest): (Stranded, Won),
    (writer, sequence, block): (u16, u64, u32),
    label: &Label,
) -> Result<(Vec<Part>, Merged), Errno> {
    let pending = replay.pending(records);
    let bases = bases(records, |key| replay.since_of(key));
    let gathered = Gathered::of(tree, &pending, bases, stranded)?;
    let reserved = block.saturating_add(RESERVED);
    let mut numbers = Numbers::new(writer, block, reserved);
    let mut last = None;
    let mut new_inode = || inode_for_copy(&mut numbers, &mut last);
    let merged = bring(tree, &gathered.strays, &mut new_inode, label)?;
    let mut parts = parts_of(tree, (&gathered, &pending), &merged)?;
    parts.push(Part::Reserved {
        writer,
        sequence,
        block: reserved,
    });
    parts.push(Part::Brought(replay.brought(newest)));
    tree.take_local()?;
    tree.take_changes();
    Ok((parts, merged))
}

/// The changes of a journal, as a merge takes them.
struct Gathered {
    strays: Strays,
    /// Octets in packs that no account has.
    lost: Vec<(Inode, u64, u64)>,
}

impl Gathered {
    fn of(
        tree: &Tree,
        pending: &Pending,
        mut bases: crate::bases::Bases,
        stranded: Stranded,
    ) -> Result<Self, Errno> {
        let mut strays = Strays {
            is_set_back: stranded == Stranded::SetBack,
            ..Strays::default()
        };
        for (key, (_, value)) in &pending.rows {
            let mut now = value.clone();
            match Key::decode(key) {
                Ok(Key::Extents { inode, offset }) => {
                    let is_lost = match &now {
                        Some(row) => !has_packs(tree, offset, row)?,
                        None => false,
                    };
                    now = now.filter(|_| !is_lost);
                    let coverage = if is_lost {
                        Coverage::Lost
                    } else {
                        Coverage::Parts
                    };
                    let of = strays.contents.entry(inode).or_insert(coverage);
                    if is_lost {
                        *of = coverage;
                    }
                }
                Ok(Key::Inode(_) | Key::Entry { .. } | Key::Xattr { .. }) => {}
                _ => continue,
            }
            let base = bases.remove(key);
            let stray = Stray {
                now: now.map(Bytes::from),
                base: base.map(|base| base.map(Bytes::from)),
            };
            strays.rows.insert(key.clone(), stray);
        }
        let mut contents: BTreeMap<Inode, Scratch> = BTreeMap::new();
        for (_, change) in &pending.contents {
            contents.entry(change.inode()).or_default().take(change);
        }
        let mut lost = Vec::new();
        for (inode, scratch) in &contents {
            let before = lost.len();
            for (at, piece) in scratch.content.pieces() {
                if let Source::Chunk { extent, .. } = piece.source
                    && !tree.contains(&Key::Pack(extent.pack.0).encode())?
                {
                    lost.push((*inode, at, at.saturating_add(piece.length.into())));
                }
            }
            let coverage = if lost.len() > before {
                Coverage::Lost
            } else if scratch.is_whole(strays.rows.get(&inode_key(*inode)[..])) {
                Coverage::Whole
            } else {
                Coverage::Parts
            };
            let of = strays.contents.entry(*inode).or_insert(coverage);
            if *of != Coverage::Lost {
                *of = coverage;
            }
        }
        Ok(Self { strays, lost })
    }
}

/// Whether every pack of a row of extents is there.
fn has_packs(tree: &Tree, offset: u64, row: &[u8]) -> Result<bool, Errno> {
    let runs = decode_extents(offset, row).unwrap_or_default();
    for extent in runs.into_iter().filter_map(|run| run.extent) {
        if !tree.contains(&Key::Pack(extent.pack.0).encode())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The content of a file as far as changes tell.
#[derive(Default)]
struct Scratch {
    content: Content,
    /// Ranges that changes have, in order and apart.
    ranges: BTreeMap<u64, u64>,
}

impl Scratch {
    fn take(&mut self, change: &ContentChange) {
        // No octets are kept: the store stays empty.
        let mut none = Unsent::default();
        match change {
            ContentChange::Write {
                offset, id, data, ..
            } => {
                if data.is_empty() {
                    return;
                }
                let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
                let source = Source::Unsent { id: *id, skip: 0 };
                self.content
                    .put(*offset, Piece { length, source }, &mut none);
                self.cover(*offset, offset.saturating_add(length.into()));
            }
            ContentChange::Cut { from, to, .. } => {
                self.content.cut(*from, *to, &mut none);
                self.cover(*from, *to);
            }
            ContentChange::Chunk {
                offset,
                length,
                extent,
                skip,
                ..
            } => {
                let source = Source::Chunk {
                    extent: *extent,
                    skip: *skip,
                };
                let length = *length;
                self.content
                    .put(*offset, Piece { length, source }, &mut none);
                self.cover(*offset, offset.saturating_add(length.into()));
            }
        }
    }

    fn cover(&mut self, mut from: u64, mut to: u64) {
        while let Some((begin, end)) = self.ranges.range(..=to).next_back().map(|(b, e)| (*b, *e))
            && end >= from
        {
            self.ranges.remove(&begin);
            from = from.min(begin);
            to = to.max(end);
        }
        self.ranges.insert(from, to);
    }

    /// Whether the changes have every octet of the file.
    fn is_whole(&self, row: Option<&Stray>) -> bool {
        let Some(row) = row else {
            return false;
        };
        let size = |row: &Bytes| InodeRow::decode(row).map(|row| row.size);
        if let Some(base) = &row.base
            && base.as_ref().is_none_or(|base| size(base) == Ok(0))
        {
            // A new file, or one without content.
            return true;
        }
        let size = row.now.as_ref().map_or(Ok(0), size).unwrap_or(u64::MAX);
        size == 0 || self.ranges.get(&0).is_some_and(|end| *end >= size)
    }
}

/// The record of the journal about a merge.
fn parts_of(
    tree: &Tree,
    (gathered, pending): (&Gathered, &Pending),
    merged: &Merged,
) -> Result<Vec<Part>, Errno> {
    let mut parts: Vec<Part> = Vec::new();
    let mut moved = HashMap::new();
    for (from, to) in &merged.moves {
        parts.push(Part::Moved(*from, *to));
        moved.insert(*from, *to);
    }
    let mut kept = HashSet::new();
    for key in tree.local_keys() {
        let (now, chain) = (tree.get(key)?, tree.in_chain(key)?);
        if chain == now {
            continue;
        }
        kept.insert(key.to_vec());
        if has_base(key) {
            let (key, value) = (key.to_vec(), chain.map(Vec::from));
            parts.push(Part::Base(Change { key, value }));
        }
        let value = now.map(Vec::from);
        if pending.rows.get(key).map(|(_, value)| value) != Some(&value) {
            let key = key.to_vec();
            parts.push(Part::Row(Change { key, value }));
        }
    }
    let void = pending.rows.keys().filter(|key| !kept.contains(*key));
    parts.extend(void.cloned().map(Part::Drop));
    for (inode, from, to) in &gathered.lost {
        if let Some(inode) = moved.get(inode).copied().unwrap_or(Some(*inode)) {
            let (from, to) = (*from, *to);
            parts.push(Part::Content(ContentChange::Cut { inode, from, to }));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PackNumber;
    use crate::rows::Extent;
    use vere_files::content::UnsentId;
    use vere_ports::files::{FileKind, FileTime};

    fn write(offset: u64, octets: usize) -> ContentChange {
        ContentChange::Write {
            inode: Inode(2),
            offset,
            id: UnsentId(1),
            skip: 0,
            data: vec![1; octets].into(),
        }
    }

    const fn cut(from: u64, to: u64) -> ContentChange {
        ContentChange::Cut {
            inode: Inode(2),
            from,
            to,
        }
    }

    const fn chunk(offset: u64, length: u32) -> ContentChange {
        ContentChange::Chunk {
            inode: Inode(2),
            offset,
            length,
            extent: Extent {
                pack: PackNumber(5),
                at: 68,
                sealed_len: 30,
            },
            skip: 0,
        }
    }

    fn ranges(changes: &[ContentChange]) -> Vec<(u64, u64)> {
        let mut scratch = Scratch::default();
        changes.iter().for_each(|change| scratch.take(change));
        scratch.ranges.into_iter().collect()
    }

    #[test]
    fn changed_ranges_are_joined_where_they_meet() {
        assert_eq!(
            ranges(&[write(5, 3), chunk(20, 4), cut(30, 40)]),
            [(5, 8), (20, 24), (30, 40)]
        );
        assert_eq!(ranges(&[write(5, 3), write(8, 2)]), [(5, 10)]);
        assert_eq!(ranges(&[write(8, 2), chunk(5, 3)]), [(5, 10)]);
        assert_eq!(ranges(&[write(5, 3), write(9, 1)]), [(5, 8), (9, 10)]);
        assert_eq!(ranges(&[write(0, 9), cut(2, 4)]), [(0, 9)]);
        assert_eq!(ranges(&[write(0, 2), write(6, 2), cut(1, 7)]), [(0, 8)]);
        assert!(ranges(&[write(5, 0)]).is_empty());
    }

    fn row(size: u64) -> Bytes {
        let time = FileTime::default();
        let row = InodeRow {
            kind: FileKind::File,
            mode: 0o644,
            links: 1,
            uid: 0,
            gid: 0,
            size,
            home_or_device: 0,
            parent: 0,
            generation: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
            target: Vec::new(),
        };
        row.encode().into()
    }

    #[test]
    fn a_file_is_whole_where_every_octet_was_changed() {
        let is_whole = |changes: &[ContentChange], now: Option<u64>, base: Option<Option<u64>>| {
            let mut scratch = Scratch::default();
            changes.iter().for_each(|change| scratch.take(change));
            let stray = Stray {
                now: now.map(row),
                base: base.map(|base| base.map(row)),
            };
            scratch.is_whole(Some(&stray))
        };
        let part = [write(0, 5)];
        assert!(is_whole(&part, Some(5), None));
        assert!(is_whole(&part, Some(4), Some(Some(9))));
        assert!(!is_whole(&part, Some(6), None));
        assert!(!is_whole(&part, Some(6), Some(Some(9))));
        assert!(!is_whole(&[write(1, 5)], Some(6), None));
        // A new file, one that was empty, and one that is.
        assert!(is_whole(&part, Some(6), Some(None)));
        assert!(is_whole(&part, Some(6), Some(Some(0))));
        assert!(is_whole(&[], Some(0), Some(Some(9))));
        assert!(is_whole(&[], None, Some(Some(9))));
        assert!(!Scratch::default().is_whole(None));
        let damaged = Stray {
            now: Some(Bytes::from_static(b"none")),
            base: None,
        };
        let mut scratch = Scratch::default();
        scratch.take(&write(0, 5));
        assert!(!scratch.is_whole(Some(&damaged)));
    }
}
