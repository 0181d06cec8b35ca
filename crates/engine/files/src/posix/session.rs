//! What programs and the kernel have of a tree: open files, look-ups, files without rows. All of it goes over to the tree that
//! is opened in place of the present one.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use vere_ports::files::{Errno, FileTime, Handle, Inode, Statistics};

use super::lookups::Lookups;
use super::state::{Files, Open};
use crate::content::{Content, Piece, Source};
use crate::rows::{Extent, Home, InodeRow, ROOT_HOME};

/// What programs and the kernel have of a tree.
#[derive(Debug, Default)]
pub struct Session {
    lookups: Lookups,
    opens: HashMap<Inode, u32>,
    handles: HashMap<Handle, Open>,
    next_handle: u64,
    ghosts: Vec<Ghost>,
    atimes: BTreeMap<Inode, FileTime>,
    room: Statistics,
}

/// An inode without rows.
#[derive(Debug)]
struct Ghost {
    inode: Inode,
    row: InodeRow,
    /// Absent for anything but a file with content.
    pieces: Option<Vec<(u64, Part)>>,
}

/// Octets of a file without rows.
#[derive(Debug)]
enum Part {
    /// On the servers.
    Stored(Piece),
    /// In memory alone.
    Here(Bytes),
}

impl Files {
    /// Takes what programs and the kernel have. `held` has octets of chunks that are in memory: those of a file without rows go
    /// along, since accounts need not keep them.
    pub fn suspend(&mut self, held: &mut dyn FnMut(&Extent) -> Option<Bytes>) -> Session {
        let mut ghosts = Vec::new();
        for (inode, row) in std::mem::take(&mut self.ghosts) {
            let content = self.contents.remove(&inode);
            let pieces = content.map(|content| {
                let pieces = content.pieces();
                let parts = pieces.filter_map(|(at, piece)| Some((at, self.part(piece, held)?)));
                parts.collect()
            });
            ghosts.push(Ghost { inode, row, pieces });
        }
        self.folders = HashMap::from([(ROOT_HOME, Inode::ROOT)]);
        Session {
            lookups: std::mem::take(&mut self.lookups),
            opens: std::mem::take(&mut self.opens),
            handles: std::mem::take(&mut self.handles),
            next_handle: self.next_handle,
            ghosts,
            atimes: std::mem::take(&mut self.atimes),
            room: self.room,
        }
    }

    fn part(&self, piece: Piece, held: &mut dyn FnMut(&Extent) -> Option<Bytes>) -> Option<Part> {
        match piece.source {
            Source::Zero => None,
            Source::Unsent { id, skip } => self.unsent.get(id, skip, piece.length).map(Part::Here),
            Source::Chunk { extent, skip } => {
                let from = usize::try_from(skip).ok()?;
                let to = from.checked_add(usize::try_from(piece.length).ok()?)?;
                let octets = held(&extent).filter(|octets| to <= octets.len());
                Some(octets.map_or(Part::Stored(piece), |octets| {
                    Part::Here(octets.slice(from..to))
                }))
            }
        }
    }

    /// Goes on with what programs and the kernel have.
    pub fn resume(&mut self, session: Session) {
        let homes = session.lookups.iter();
        let homes = homes.filter_map(|(inode, home)| Some((home?, inode)));
        self.folders.extend(homes);
        self.lookups = session.lookups;
        self.opens = session.opens;
        self.handles = session.handles;
        self.next_handle = self.next_handle.max(session.next_handle);
        for ghost in session.ghosts {
            if let Some(pieces) = ghost.pieces {
                let mut content = Content::new();
                for (at, part) in pieces {
                    match part {
                        Part::Stored(piece) => content.put(at, piece, &mut self.unsent),
                        Part::Here(octets) => {
                            content.write(at, &octets, &mut self.unsent);
                        }
                    }
                }
                self.contents.insert(ghost.inode, content);
            }
            self.ghosts.insert(ghost.inode, ghost.row);
        }
        self.atimes.extend(session.atimes);
        self.room = session.room;
    }

    /// Keeps a file for the programs that have the file open, since the tree that comes lacks the rows. A row in a missing page
    /// is kept by nobody.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn keep_open(&mut self, inode: Inode) -> Result<(), Errno> {
        if !self.ghosts.contains_key(&inode)
            && let Some(row) = self.load_to_keep(inode)?
        {
            self.keep(inode, row);
        }
        Ok(())
    }

    /// Programs that have a file open go on with another inode.
    pub fn move_opens(&mut self, from: Inode, to: Inode) {
        if let Some(opens) = self.opens.remove(&from) {
            let known = self.opens.entry(to).or_default();
            *known = known.saturating_add(opens);
        }
        for open in self.handles.values_mut() {
            if let Open::File { inode, .. } = open
                && *inode == from
            {
                *inode = to;
            }
        }
    }

    /// Open files.
    pub fn open_inodes(&self) -> impl Iterator<Item = Inode> + '_ {
        self.opens.keys().copied()
    }

    /// Whether an inode has no rows, and is known to programs or the kernel.
    #[must_use]
    pub fn is_ghost(&self, inode: Inode) -> bool {
        self.ghosts.contains_key(&inode)
    }

    /// Inodes that the kernel knows, with the homes of folders.
    pub fn known_inodes(&self) -> impl Iterator<Item = (Inode, Option<Home>)> + '_ {
        self.lookups.iter()
    }
}
