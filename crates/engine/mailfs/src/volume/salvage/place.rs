//! Salvaged content as files of a folder `lost+found`.

use std::collections::{BTreeMap, HashSet};

use vere_ports::files::{Caller, Errno, FileKind, FileTime, Inode};
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::super::step::Moment;
use super::super::upkeep::paths::visit_extents;
use crate::content::{Content, Piece, Source, Unsent, save};
use crate::rows::{
    EntryRow, Extent, FILE_SIZE_MAX, Home, InodeRow, Key, NAME_OCTETS_MAX, ROOT_HOME, RowValue,
    SLOT_MAX, WriterRow, encode_entry, entry_key, inode_key, inode_of, tree_prefix,
};
use crate::tree::Tree;
use vere_inventory::salvage::{Chunk, Hint, Salvaged};

/// The folder, as fsck names the like.
const FOLDER: &str = "lost+found";
/// Folders of earlier salvages before somebody has to look.
const FOLDERS_MAX: usize = 1_000;
/// Permissions of the folder and its files: the owners may be unknown.
const FOLDER_MODE: u16 = 0o700;
const FILE_MODE: u16 = 0o600;

/// What a salvage puts into a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placed {
    /// The folder in the root folder.
    pub folder: String,
    /// Files.
    pub files: usize,
    /// Octets outside holes.
    pub octets: u64,
}

/// The content of a lost inode, and the sequence of its newest chunk.
#[derive(Debug, Default)]
struct Lost {
    content: Content,
    sequence: u64,
}

/// Rows by key, in order.
type Rows = Vec<(Vec<u8>, Option<Vec<u8>>)>;

impl<S: Storage> Volume<S> {
    /// Puts content without a file in the tree into a folder `lost+found`. The rows go into commits; [`Self::take_upkept`] tells
    /// when all are there.
    ///
    /// # Errors
    /// Failures to read rows; EBUSY during a check or a collection; EAGAIN for a salvage that was broken off.
    pub fn salvage(
        &mut self,
        now: Moment,
        owner: Caller,
        found: &Salvaged,
    ) -> Result<Placed, Errno> {
        if !found.is_whole {
            return Err(Errno::Again);
        }
        let mut placed = Placed {
            folder: self.free_name()?,
            ..Placed::default()
        };
        let mut files = self.contents(found)?;
        if files.is_empty() {
            return Ok(placed);
        }
        for ((account, mailbox), number) in &found.validities {
            self.numbered(*account, *mailbox, *number);
        }
        let mut rows = self.pack_rows(found)?;
        let (own, home) = (self.take_home()?, self.take_home()?);
        let mut at: (Home, u32) = (own, 1);
        let folder = inode_of(own, 1);
        let mut entries = Vec::new();
        for (inode, lost) in &mut files {
            at.1 = at.1.saturating_add(1);
            if at.1 > SLOT_MAX {
                at = (self.take_home()?, 1);
            }
            let number = inode_of(at.0, at.1);
            let hint = found.hints.get(inode);
            rows_of(number, lost, hint, (owner, now.wall), &mut rows)?;
            placed.files = placed.files.saturating_add(1);
            placed.octets = placed.octets.saturating_add(lost.content.data_octets());
            let entry = EntryRow {
                inode: number,
                kind: FileKind::File,
            };
            let name = name_of(*inode, hint);
            entries.push((entry_key(home, &name), Some(encode_entry(entry))));
        }
        rows.extend(entries);
        self.folder_rows(&placed.folder, (folder, home), (owner, now.wall), &mut rows)?;
        if self.begin_rows(now, rows) {
            Ok(placed)
        } else {
            Err(Errno::Busy)
        }
    }

    fn take_home(&mut self) -> Result<Home, Errno> {
        self.reserve_homes();
        self.files.numbers().take().ok_or(Errno::NoSpc)
    }

    /// The contents of inodes absent in the tree, the newest chunk on top.
    fn contents(&self, found: &Salvaged) -> Result<BTreeMap<u64, Lost>, Errno> {
        let mut known: HashSet<(u64, u32)> = HashSet::new();
        visit_extents(self.files.tree(), |_, _, _, extent| {
            known.insert((extent.pack.0, extent.at));
        })?;
        let place = |chunk: &Chunk| (chunk.pack.0, chunk.frame.entry.place.at);
        let mut chunks: Vec<&Chunk> = found
            .chunks
            .iter()
            .filter(|chunk| !known.contains(&place(chunk)))
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
        Ok(files)
    }

    /// Rows of packs that the tree does not know.
    fn pack_rows(&self, found: &Salvaged) -> Result<Rows, Errno> {
        let mut rows = Rows::new();
        for (number, row) in &found.packs {
            let key = Key::Pack(*number).encode();
            if self.files.tree().get(&key)?.is_none() {
                rows.push((key, Some(row.encode())));
            }
        }
        Ok(rows)
    }

    /// A name that the root folder does not have.
    fn free_name(&mut self) -> Result<String, Errno> {
        for number in 1..=FOLDERS_MAX {
            let name = match number {
                1 => FOLDER.to_owned(),
                _ => format!("{FOLDER}-{number}"),
            };
            let key = entry_key(ROOT_HOME, name.as_bytes());
            if self.files.tree().get(&key)?.is_none() {
                return Ok(name);
            }
        }
        Err(Errno::Exist)
    }

    /// The folder with its entry, and the root folder, which has a link more.
    fn folder_rows(
        &self,
        name: &str,
        (folder, home): (Inode, Home),
        (owner, now): (Caller, FileTime),
        rows: &mut Rows,
    ) -> Result<(), Errno> {
        let own = InodeRow {
            kind: FileKind::Folder,
            mode: FOLDER_MODE,
            links: 2,
            home_or_device: home,
            parent: Inode::ROOT.0,
            ..new_file((owner, now))
        };
        rows.push((inode_key(folder).to_vec(), Some(own.encode())));
        let entry = EntryRow {
            inode: folder,
            kind: FileKind::Folder,
        };
        let key = entry_key(ROOT_HOME, name.as_bytes());
        rows.push((key, Some(encode_entry(entry))));
        let key = inode_key(Inode::ROOT).to_vec();
        let root = self.files.tree().get(&key)?.ok_or(Errno::Io)?;
        let mut root = InodeRow::decode(&root).map_err(|_| Errno::Io)?;
        root.links = root.links.saturating_add(1);
        root.mtime = now;
        root.ctime = now;
        rows.push((key, Some(root.encode())));
        Ok(())
    }

    /// Writers up to this number are those of a lost state.
    pub(crate) fn note_writer(&mut self, last: u16) -> Result<(), Errno> {
        if last > self.last_writer()? {
            let (key, value) = lost_writer(last);
            self.put_row(key, value);
        }
        Ok(())
    }
}

/// The row of the last writer of a lost state: later writers have higher numbers.
#[must_use]
pub fn lost_writer(number: u16) -> (Vec<u8>, Vec<u8>) {
    let row = WriterRow {
        machine: [0; 16],
        registered: 0,
        last_seen_ms: 0,
        name: "of a lost state".to_owned(),
    };
    (Key::Writer(number).encode(), row.encode())
}

fn new_file((owner, now): (Caller, FileTime)) -> InodeRow {
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
    rows: &mut Rows,
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
        Ok(std::ops::ControlFlow::Continue(()))
    })
}

/// The number of the lost inode, with the last name given by a commit.
fn name_of(inode: u64, hint: Option<&Hint>) -> Vec<u8> {
    let mut name = format!("inode-{inode:x}").into_bytes();
    if let Some((_, known)) = hint.and_then(|hint| hint.name.as_ref()) {
        name.push(b'-');
        name.extend_from_slice(known);
    }
    name.truncate(NAME_OCTETS_MAX);
    name
}
