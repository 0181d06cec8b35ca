//! Salvaged names and content as files of the tree.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use vere_ports::files::{Caller, Errno, FileKind, FileTime, Inode};
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::super::step::Moment;
use super::super::upkeep::paths::visit_extents;
use super::super::upkeep::rows::RowSource;
use crate::content::{Content, Piece, Source, Unsent, save};
use crate::rows::{
    EntryRow, Extent, FILE_SIZE_MAX, Home, InodeRow, Key, NAME_OCTETS_MAX, ROOT_HOME, RowValue,
    SLOT_MAX, encode_entry, entries_prefix, entry_key, inode_key, inode_of, tree_prefix,
    writers_prefix,
};
use crate::tree::Tree;
use vere_inventory::salvage::{
    Chunk, Count, Folder, Hint, Past, Restore, Restored, Salvaged, begun, lost_writer,
};

/// The folder, as fsck names the like.
const FOLDER: &str = "lost+found";
/// The folder there for a past tree, where the root folder has entries.
const TREE: &str = "tree";
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
    /// Files by their chunks alone, in the folder.
    pub files: usize,
    /// Octets of these outside holes.
    pub octets: u64,
    /// What surviving pages give names.
    pub restored: Count,
    /// Whether everything restored is in the place that it had. Else the tree had other entries, and everything that they lack
    /// is in a folder of its own.
    pub is_in_place: bool,
}

impl Placed {
    /// Whether rows are on the way into commits.
    #[must_use]
    pub const fn has_any(&self) -> bool {
        self.files > 0 || self.restored.files > 0 || self.restored.folders > 0
    }
}

/// The content of a lost inode, and the sequence of its newest chunk.
#[derive(Debug, Default)]
struct Lost {
    content: Content,
    sequence: u64,
}

/// Rows by key, in order.
type Rows = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The folders that a salvage fills.
#[derive(Debug, Clone, Copy)]
struct Targets {
    /// The folder for lost files.
    lost: Folder,
    /// The folder in the place of the past's root folder.
    root: Folder,
    is_in_place: bool,
}

impl<S: Storage> Volume<S> {
    /// Puts files and folders of surviving pages back, where the root folder is empty, or else into a folder `lost+found`; content
    /// without a file in the tree goes to `lost+found` too. `known` is the generation up to which the chain has everything. The rows
    /// go into commits; [`Self::take_upkept`] tells when all are there.
    ///
    /// # Errors
    /// Failures to read rows; EBUSY during a check or a collection; EAGAIN for a salvage that was broken off.
    pub fn salvage(
        &mut self,
        now: Moment,
        owner: Caller,
        found: &Arc<Salvaged>,
        known: u64,
    ) -> Result<Placed, Errno> {
        if !found.is_whole {
            return Err(Errno::Again);
        }
        let of = (owner, now.wall);
        let targets = self.targets()?;
        let plan = self.plan(found, targets, known)?;
        let mut placed = Placed {
            folder: self.free_name(plan.as_ref())?,
            restored: plan.as_ref().map(Restore::count).unwrap_or_default(),
            is_in_place: targets.is_in_place,
            ..Placed::default()
        };
        let mut files = self.contents(found, plan.as_ref())?;
        let mut ends = self.salvage_ends()?;
        if files.is_empty() && !placed.has_any() {
            for (key, value) in ends {
                self.change_row(key, value);
            }
            return Ok(placed);
        }
        for ((account, mailbox), number) in &found.validities {
            self.numbered(*account, *mailbox, *number);
        }
        let first = self.pack_rows(found)?;
        let home = targets.lost.home;
        let mut rows =
            self.lost_rows((found, plan.as_ref()), (home, of), &mut files, &mut placed)?;
        self.folder_rows(plan.as_ref(), targets, of, &placed, &mut rows)?;
        rows.append(&mut ends);
        let source: Box<dyn RowSource>;
        let all;
        match plan {
            Some(plan) => {
                let blank = new_file(of);
                let restored = Restored::new(found.clone(), plan, (&blank, first), rows);
                all = restored.rows();
                source = Box::new(restored);
            }
            None => {
                all = first.len().saturating_add(rows.len());
                source = Box::new(first.into_iter().chain(rows));
            }
        }
        if self.begin_rows(now, source, all) {
            Ok(placed)
        } else {
            Err(Errno::Busy)
        }
    }

    /// New folders, and the root folder where nothing is in there.
    fn targets(&mut self) -> Result<Targets, Errno> {
        let is_in_place = !self.files.tree().any(&entries_prefix(ROOT_HOME))?;
        let own = self.take_home()?;
        let mut folder = |slot| -> Result<Folder, Errno> {
            Ok(Folder {
                inode: inode_of(own, slot),
                home: self.take_home()?,
            })
        };
        let (lost, other) = (folder(1)?, folder(2)?);
        let root = Folder {
            inode: Inode::ROOT,
            home: ROOT_HOME,
        };
        Ok(Targets {
            lost,
            root: if is_in_place { root } else { other },
            is_in_place,
        })
    }

    /// What surviving pages put where; absent where the chain has all of that.
    fn plan(
        &mut self,
        found: &Salvaged,
        targets: Targets,
        known: u64,
    ) -> Result<Option<Restore>, Errno> {
        let is_new = |past: &&Past| targets.is_in_place || past.generation() > known;
        let Some(past) = found.past.as_ref().filter(is_new) else {
            return Ok(None);
        };
        let tree = self.files.tree();
        let is_wanted = |inode: Inode, row: &InodeRow| {
            if targets.is_in_place {
                return Ok(true);
            }
            let now = tree.get(&inode_key(inode))?;
            let now = now.and_then(|now| InodeRow::decode(&now).ok());
            let time = |row: &InodeRow| (row.ctime.seconds, row.ctime.nanoseconds);
            Ok(now.is_none_or(|now| time(&now) < time(row)))
        };
        let to = (targets.root, targets.lost, FOLDER.as_bytes());
        let mut plan = Restore::read(found, past, to, &is_wanted)?;
        plan.give_places(past, &mut || self.take_home())?;
        Ok(Some(plan))
    }

    fn take_home(&mut self) -> Result<Home, Errno> {
        self.reserve_homes();
        self.files.numbers().take().ok_or(Errno::NoSpc)
    }

    /// The contents of inodes absent in the tree and in the past, the newest chunk on top.
    fn contents(
        &self,
        found: &Salvaged,
        plan: Option<&Restore>,
    ) -> Result<BTreeMap<u64, Lost>, Errno> {
        let mut known: HashSet<(u64, u32)> = HashSet::new();
        visit_extents(self.files.tree(), |_, _, _, extent| {
            known.insert((extent.pack.0, extent.at));
        })?;
        let past = plan.zip(found.past.as_ref());
        if let Some((plan, past)) = past {
            plan.note_chunks(past, &mut known);
        }
        let is_known = |chunk: &&Chunk| {
            let (pack, at) = (chunk.pack.0, chunk.frame.entry.place.at);
            let inode = chunk.frame.entry.inode;
            match past {
                Some((plan, past)) => plan.is_known(past, &known, (pack, at, inode)),
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

    /// Rows of lost files, and of their entries.
    fn lost_rows(
        &mut self,
        (found, plan): (&Salvaged, Option<&Restore>),
        (home, of): (Home, (Caller, FileTime)),
        files: &mut BTreeMap<u64, Lost>,
        placed: &mut Placed,
    ) -> Result<Rows, Errno> {
        let mut at: (Home, u32) = (0, SLOT_MAX);
        let (mut rows, mut entries) = (Rows::new(), Rows::new());
        for (inode, lost) in files {
            if at.1 >= SLOT_MAX {
                at = (self.take_home()?, 0);
            }
            at.1 = at.1.saturating_add(1);
            let number = inode_of(at.0, at.1);
            let hint = found.hints.get(inode);
            rows_of(number, lost, hint, of, &mut rows)?;
            placed.files = placed.files.saturating_add(1);
            placed.octets = placed.octets.saturating_add(lost.content.data_octets());
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

    /// Rows that tell the end of a salvage: those of the lost writers whose salvage has begun.
    fn salvage_ends(&self) -> Result<Rows, Errno> {
        let mut ends = Rows::new();
        self.files
            .tree()
            .visit(&writers_prefix(), None, &mut |key, value| {
                if let (Ok(Key::Writer(number)), Some(Some(_))) = (Key::decode(key), begun(value)) {
                    let (key, value) = lost_writer(number);
                    ends.push((key, Some(value)));
                }
                Ok(ControlFlow::Continue(()))
            })?;
        Ok(ends)
    }

    /// A name that neither the root folder nor that of the past has.
    fn free_name(&self, plan: Option<&Restore>) -> Result<String, Errno> {
        for number in 1..=FOLDERS_MAX {
            let name = match number {
                1 => FOLDER.to_owned(),
                _ => format!("{FOLDER}-{number}"),
            };
            let key = entry_key(ROOT_HOME, name.as_bytes());
            let is_past = plan.is_some_and(|plan| plan.has_root_name(name.as_bytes()));
            if !is_past && self.files.tree().get(&key)?.is_none() {
                return Ok(name);
            }
        }
        Err(Errno::Exist)
    }

    /// The folder for lost files, that in the place of the past's root folder, and the root folder, with their entries.
    fn folder_rows(
        &self,
        plan: Option<&Restore>,
        targets: Targets,
        (owner, now): (Caller, FileTime),
        placed: &Placed,
        rows: &mut Rows,
    ) -> Result<(), Errno> {
        let count = placed.restored;
        let has_apart = !targets.is_in_place && (count.files > 0 || count.folders > 0);
        let has_lost = has_apart || placed.files > 0 || plan.is_some_and(|plan| plan.has_lost());
        let blank = InodeRow {
            kind: FileKind::Folder,
            mode: FOLDER_MODE,
            ..new_file((owner, now))
        };
        let links = |folders: u32| folders.saturating_add(2);
        let past = |default: InodeRow| plan.and_then(Restore::root).cloned().unwrap_or(default);
        let folders = plan.map_or(0, Restore::root_folders);
        if has_lost {
            let own = InodeRow {
                links: links(plan.map_or(0, Restore::lost_folders))
                    .saturating_add(u32::from(has_apart)),
                home_or_device: targets.lost.home,
                parent: Inode::ROOT.0,
                ..blank.clone()
            };
            rows.push((inode_key(targets.lost.inode).to_vec(), Some(own.encode())));
            let key = entry_key(ROOT_HOME, placed.folder.as_bytes());
            rows.push((key, Some(folder_entry(targets.lost.inode))));
        }
        if has_apart {
            let own = InodeRow {
                links: links(folders),
                home_or_device: targets.root.home,
                parent: targets.lost.inode.0,
                ..past(blank)
            };
            rows.push((inode_key(targets.root.inode).to_vec(), Some(own.encode())));
            let key = entry_key(targets.lost.home, TREE.as_bytes());
            rows.push((key, Some(folder_entry(targets.root.inode))));
        }
        let key = inode_key(Inode::ROOT).to_vec();
        let root = self.files.tree().get(&key)?.ok_or(Errno::Io)?;
        let root = InodeRow::decode(&root).map_err(|_| Errno::Io)?;
        let mut root = match (plan, targets.is_in_place) {
            (Some(_), true) => InodeRow {
                links: links(folders),
                home_or_device: ROOT_HOME,
                parent: Inode::ROOT.0,
                ..past(root)
            },
            _ => root,
        };
        root.links = root.links.saturating_add(u32::from(has_lost));
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

fn folder_entry(inode: Inode) -> Vec<u8> {
    encode_entry(EntryRow {
        inode,
        kind: FileKind::Folder,
    })
}
