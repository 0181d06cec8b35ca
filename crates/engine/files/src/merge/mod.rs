//! The changes of two sides on one tree, merged (docs/internals/mailfs.md, "Several mounts").
//!
//! The tree comes in with the winner's state. The loser's changes are done once more on top: rows of inodes first (`inodes`),
//! then names (`entries`), then what follows from names: links, parents and the end of inodes (`links`).
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod entries;
mod facts;
mod folders;
mod inodes;
mod label;
mod links;
mod relocation;
mod settle;
mod strays;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use bytes::Bytes;
use vere_ports::files::{Errno, FileKind, Inode};

use crate::rows::{
    EntryRow, Home, InodeRow, Key, ROOT_HOME, decode_entry, encode_entry, entry_key, inode_key,
};
use crate::tree::{Sides, Tree};

pub use label::Label;
pub use relocation::Places;
pub use strays::{Coverage, Stray, Strays};

/// What became of the loser's changes of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The changes stand, alone or with the winner's.
    Kept,
    /// The winner had removed the inode; the loser's version is there again.
    Back,
    /// The loser has removed the inode: the end of the last name is the end of the inode.
    Removed,
    /// The loser has removed what the winner has changed: the inode stays.
    Spared,
    /// The winner's version stands; changes of the loser are void.
    Void,
}

/// A conflict, as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What was done.
    pub kind: ConflictKind,
    /// The file or folder.
    pub inode: Inode,
    /// The name concerned, where one is.
    pub name: Vec<u8>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, inode, name } = self;
        write!(formatter, "conflict of mounts: inode {}", inode.0)?;
        if !name.is_empty() {
            write!(
                formatter,
                ", {}",
                String::from_utf8_lossy(name).escape_debug()
            )?;
        }
        write!(formatter, ": {}", kind.text())
    }
}

impl ConflictKind {
    const fn text(self) -> &'static str {
        match self {
            Self::Content => "content changed by both: the later version is a file of its own",
            Self::Name => "name given by both: the later file has another name",
            Self::Returned => "removed there and changed here: the version of here is back",
            Self::Spared => "changed there and removed here: nothing is removed",
            Self::Renamed => "renamed by both: the earlier name counts",
            Self::Parts => {
                "the content before is not known: the changed ranges are there, and zeros elsewhere"
            }
            Self::Attributes => {
                "attributes or name changed on an earlier state: the newest state counts"
            }
            Self::Recovered => "the folder for what has no folder any more",
            Self::Circle => "the rename would put a folder into itself: the rename is void",
        }
    }
}

/// Kinds of conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConflictKind {
    /// Both sides changed the content: the loser's is a file of its own.
    Content,
    /// Both sides gave the same name: the loser's has another one.
    Name,
    /// The winner removed what the loser changed: the loser's version is there again.
    Returned,
    /// The loser removed what the winner changed: nothing is removed.
    Spared,
    /// Both sides renamed: the winner's name counts.
    Renamed,
    /// A rename would have put a folder into itself: the rename is void.
    Circle,
    /// The content below the changes is not known.
    Parts,
    /// Attributes and names changed on a state that is gone: the changes are void.
    Attributes,
    /// A folder was made for what has no folder any more.
    Recovered,
}

/// The result of a merge.
#[derive(Debug, Default)]
pub struct Merged {
    /// Contents that go on with another inode, or end.
    pub moves: Vec<(Inode, Option<Inode>)>,
    /// Conflicts, for people.
    pub conflicts: Vec<Conflict>,
    /// Inodes whose rows are all new: the extents too.
    pub rewritten: BTreeSet<Inode>,
    /// Where the winner has moved chunks.
    pub places: Places,
}

/// A merge under way.
struct Merge<'a> {
    /// The winner's state, and what of the loser's changes is done so far.
    tree: &'a mut Tree,
    ours: &'a Sides,
    theirs: &'a Sides,
    /// Files with octets of the loser's that no row tells.
    dirty: &'a BTreeSet<Inode>,
    new_inode: &'a mut dyn FnMut() -> Option<Inode>,
    label: &'a Label,
    /// The folder of each home that either side has touched.
    folders: HashMap<Home, Inode>,
    fates: BTreeMap<Inode, Fate>,
    /// Homes of the loser's folders that are one with a folder of the winner's.
    united: HashMap<Home, Home>,
    /// Inodes of the loser's whose number the winner uses for another file.
    renumbered: HashMap<Inode, Inode>,
    /// What is known of changes whose base is gone.
    strays: Option<&'a Strays>,
    /// The home of the folder of recovered files.
    recovered: Option<Home>,
    out: Merged,
}

/// Merges `ours` onto a tree that has `theirs`.
///
/// # Errors
/// Failures to read or write rows.
pub fn merge(
    tree: &mut Tree,
    (ours, theirs): (&Sides, &Sides),
    dirty: &BTreeSet<Inode>,
    new_inode: &mut dyn FnMut() -> Option<Inode>,
    label: &Label,
) -> Result<Merged, Errno> {
    run(tree, (ours, theirs, None), dirty, new_inode, label)
}

/// As [`merge`], for changes whose base is gone.
pub(crate) fn merge_strays(
    tree: &mut Tree,
    (ours, theirs, strays): (&Sides, &Sides, &Strays),
    dirty: &BTreeSet<Inode>,
    new_inode: &mut dyn FnMut() -> Option<Inode>,
    label: &Label,
) -> Result<Merged, Errno> {
    run(tree, (ours, theirs, Some(strays)), dirty, new_inode, label)
}

fn run(
    tree: &mut Tree,
    (ours, theirs, strays): (&Sides, &Sides, Option<&Strays>),
    dirty: &BTreeSet<Inode>,
    new_inode: &mut dyn FnMut() -> Option<Inode>,
    label: &Label,
) -> Result<Merged, Errno> {
    let content = relocation::Content::of(ours, theirs, dirty);
    for (key, value) in &content.restored {
        match value {
            Some(value) => tree.put(key, value.to_vec())?,
            None => {
                tree.remove(key)?;
            }
        }
    }
    let mut merge = Merge {
        tree,
        ours: &content.ours,
        theirs: &content.theirs,
        dirty,
        new_inode,
        label,
        folders: HashMap::from([(ROOT_HOME, Inode::ROOT)]),
        fates: BTreeMap::new(),
        united: HashMap::new(),
        renumbered: HashMap::new(),
        strays,
        recovered: None,
        out: Merged::default(),
    };
    merge.find_folders()?;
    merge.merge_facts()?;
    merge.merge_inodes()?;
    merge.merge_entries()?;
    merge.settle_strays()?;
    merge.settle_links()?;
    let mut out = merge.out;
    out.places = content.places;
    Ok(out)
}

impl Merge<'_> {
    fn find_folders(&mut self) -> Result<(), Errno> {
        for (key, side) in self.ours.iter().chain(self.theirs) {
            let Ok(Key::Inode(inode)) = Key::decode(key) else {
                continue;
            };
            for row in [&side.base, &side.now].into_iter().flatten() {
                if let Some(row) = decode(row).filter(InodeRow::is_folder) {
                    self.folders.insert(row.home_or_device, inode);
                }
            }
        }
        let sides = self.ours.iter().chain(self.theirs);
        let entries = sides.flat_map(|(key, side)| [(key, &side.base), (key, &side.now)]);
        let mut found = Vec::new();
        for (key, value) in entries {
            let (Ok(Key::Entry { home, .. }), Some(value)) = (Key::decode(key), value) else {
                continue;
            };
            if let Ok(entry) = decode_entry(value)
                && entry.kind == FileKind::Folder
                && !self.folders.contains_key(&home)
            {
                found.extend(self.folder_above(entry.inode, home)?);
            }
        }
        self.folders.extend(found);
        Ok(())
    }

    /// The folder with a home, as the parent of a folder that lies or lay there: neither side may have changed its row.
    fn folder_above(&self, child: Inode, home: Home) -> Result<Option<(Home, Inode)>, Errno> {
        let key = inode_key(child);
        let sides = [self.ours, self.theirs].map(|sides| sides.get(&key[..]));
        let rows = sides.into_iter().flatten();
        let rows = rows.flat_map(|side| [side.now.clone(), side.base.clone()]);
        for row in rows.chain([self.tree.get(&key)?]).flatten() {
            let Some(parent) = decode(&row).map(|row| Inode(row.parent)) else {
                continue;
            };
            if self
                .inode(parent)?
                .is_some_and(|row| row.is_folder() && row.home_or_device == home)
            {
                return Ok(Some((home, parent)));
            }
        }
        Ok(None)
    }

    /// The row of an inode, as the merge stands.
    fn inode(&self, inode: Inode) -> Result<Option<InodeRow>, Errno> {
        Ok(self
            .tree
            .get(&inode_key(inode))?
            .as_deref()
            .and_then(decode))
    }

    fn put_inode(&mut self, inode: Inode, row: &InodeRow) -> Result<(), Errno> {
        let row = row.encode();
        let key = inode_key(inode);
        if self.tree.get(&key)?.as_deref() == Some(&row[..]) {
            return Ok(());
        }
        self.tree.put(&key, row)
    }

    /// The entry of a name, as the merge stands.
    fn entry(&self, home: Home, name: &[u8]) -> Result<Option<EntryRow>, Errno> {
        let row = self.tree.get(&entry_key(home, name))?;
        Ok(row.and_then(|row| decode_entry(&row).ok()))
    }

    fn put_entry(&mut self, home: Home, name: &[u8], entry: EntryRow) -> Result<(), Errno> {
        self.tree.put(&entry_key(home, name), encode_entry(entry))
    }

    /// The loser's row of an inode before and after; the winner's base where the loser has changed other rows only.
    fn ours_of(&self, inode: Inode) -> Result<(Option<InodeRow>, Option<InodeRow>), Errno> {
        let key = inode_key(inode);
        if let Some(side) = self.ours.get(&key[..]) {
            let of = |row: &Option<Bytes>| row.as_deref().and_then(decode);
            return Ok((of(&side.base), of(&side.now)));
        }
        let base = match self.theirs.get(&key[..]) {
            Some(side) => side.base.clone(),
            None => self.tree.get(&key)?,
        };
        let base = base.as_deref().and_then(decode);
        Ok((base.clone(), base))
    }

    fn conflict(&mut self, kind: ConflictKind, inode: Inode, name: &[u8]) {
        self.out.conflicts.push(Conflict {
            kind,
            inode,
            name: name.to_vec(),
        });
    }
}

fn decode(row: &[u8]) -> Option<InodeRow> {
    InodeRow::decode(row).ok()
}

/// Whether an inode is there and has a name.
fn is_alive(row: Option<&InodeRow>) -> bool {
    row.is_some_and(|row| row.links > 0)
}
