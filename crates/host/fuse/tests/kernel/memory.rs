//! A file system in memory, small and literal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use vere_ports::files::{
    Allocate, Attributes, Call, Caller, Changes, Entry, Errno, FileKind, FileTime, Handle, Inode,
    OpenFlags, RenameMode, Reply, Seek, SetTime, Statistics, XattrMode,
};

/// Entries of a listing at a time: more than a page of the kernel holds.
const LISTED: usize = 100;
/// The unit of holes.
const BLOCK: u64 = 4096;

pub(crate) struct Node {
    pub(crate) facts: Attributes,
    pub(crate) content: Vec<u8>,
    /// Blocks that were written.
    data: BTreeSet<u64>,
    pub(crate) entries: BTreeMap<Vec<u8>, (u64, u64)>,
    cursor: u64,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) lookups: u64,
}

pub(crate) struct Memory {
    pub(crate) nodes: BTreeMap<u64, Node>,
    handles: BTreeMap<u64, (u64, OpenFlags)>,
    last: u64,
    /// Calls are left without a reply.
    pub(crate) silent: bool,
}

type Answer = Result<Reply, Errno>;

pub(crate) fn now() -> FileTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    FileTime {
        seconds: i64::try_from(since.as_secs()).unwrap(),
        nanoseconds: since.subsec_nanos(),
    }
}

impl Memory {
    pub(crate) fn new() -> Self {
        let mut new = Self {
            nodes: BTreeMap::new(),
            handles: BTreeMap::new(),
            last: 0,
            silent: false,
        };
        new.make(Caller { uid: 0, gid: 0 }, FileKind::Folder, 0o755);
        new
    }

    /// Absent for calls without a reply.
    pub(crate) fn call(&mut self, caller: Caller, call: Call) -> Option<Answer> {
        if let Call::Forget { inode, lookups } = call {
            let node = self.nodes.get_mut(&inode.0)?;
            node.lookups = node
                .lookups
                .checked_sub(lookups)
                .expect("more forgotten than known");
            return None;
        }
        (!self.silent).then(|| self.answer(caller, call))
    }

    fn answer(&mut self, caller: Caller, call: Call) -> Answer {
        match call {
            Call::Lookup { parent, name } => {
                let found = self.node(parent)?.entries.get(&name).map(|entry| entry.0);
                self.entry(found.ok_or(Errno::NoEnt)?)
            }
            Call::GetAttributes { inode } => Ok(Reply::Attributes(self.node(inode)?.facts.clone())),
            Call::SetAttributes { inode, changes } => self.change(inode, changes),
            Call::ReadLink { inode } => Ok(octets(&self.node(inode)?.content)),
            Call::MakeNode {
                parent,
                name,
                kind,
                mode,
                device,
            } => {
                let made = self.make(caller, kind, mode);
                self.nodes.get_mut(&made).unwrap().facts.device = device;
                self.enter(parent, name, made)?;
                self.entry(made)
            }
            Call::MakeFolder { parent, name, mode } => {
                let made = self.make(caller, FileKind::Folder, mode);
                self.enter(parent, name, made)?;
                self.entry(made)
            }
            Call::Open { inode, flags } => {
                if flags.truncate {
                    self.resize(inode, 0)?;
                }
                self.open(inode, flags)
            }
            Call::OpenFolder { inode } => self.open(inode, OpenFlags::default()),
            Call::Create {
                parent,
                name,
                mode,
                flags,
            } => {
                let made = self.make(caller, FileKind::File, mode);
                self.enter(parent, name, made)?;
                self.nodes.get_mut(&made).unwrap().lookups += 1;
                let Reply::Opened { handle, .. } = self.open(Inode(made), flags)? else {
                    unreachable!()
                };
                Ok(Reply::Created(self.nodes[&made].facts.clone(), handle))
            }
            Call::ReadFolder {
                handle,
                cursor,
                with_attributes,
            } => self.list(handle, cursor, with_attributes),
            Call::Statistics => Ok(Reply::Statistics(Statistics {
                octets: 1 << 30,
                free: 1 << 29,
                inodes: 1000,
                inodes_free: 900,
            })),
            other => self.answer_names(caller, other),
        }
    }

    fn answer_names(&mut self, caller: Caller, call: Call) -> Answer {
        match call {
            Call::Link {
                inode,
                parent,
                name,
            } => {
                self.node(inode)?.facts.links += 1;
                self.enter(parent, name, inode.0)?;
                self.entry(inode.0)
            }
            Call::Unlink { parent, name } | Call::RemoveFolder { parent, name } => {
                self.remove(parent, &name)
            }
            Call::Rename {
                parent,
                name,
                new_parent,
                new_name,
                mode,
            } => self.rename((parent, name), (new_parent, new_name), mode),
            Call::Flush { .. } | Call::Fsync { .. } | Call::FsyncFolder { .. } => Ok(Reply::Done),
            Call::Release { handle } | Call::ReleaseFolder { handle } => {
                self.handles.remove(&handle.0);
                Ok(Reply::Done)
            }
            Call::Symlink {
                parent,
                name,
                target,
            } => {
                let made = self.make(caller, FileKind::Symlink, 0o777);
                let node = self.nodes.get_mut(&made).unwrap();
                node.facts.size = target.len() as u64;
                node.content = target;
                self.enter(parent, name, made)?;
                self.entry(made)
            }
            other => self.answer_content(other),
        }
    }

    fn answer_content(&mut self, call: Call) -> Answer {
        match call {
            Call::Read {
                handle,
                offset,
                size,
            } => {
                let content = &self.opened(handle)?.content;
                let start = usize::try_from(offset).unwrap().min(content.len());
                let end = start.saturating_add(size as usize).min(content.len());
                Ok(octets(&content[start..end]))
            }
            Call::Write {
                handle,
                offset,
                data,
                kill_set_id,
            } => {
                let append = self.handles.get(&handle.0).ok_or(Errno::BadF)?.1.append;
                let node = self.opened(handle)?;
                if kill_set_id {
                    node.facts.mode &= 0o1777;
                }
                node.put(if append { node.facts.size } else { offset }, &data);
                Ok(Reply::Written(u32::try_from(data.len()).unwrap()))
            }
            Call::Allocate {
                handle,
                offset,
                length,
                mode,
            } => {
                self.opened(handle)?.allocate(offset, length, mode);
                Ok(Reply::Done)
            }
            Call::Seek {
                handle,
                offset,
                seek,
            } => self.opened(handle)?.seek(offset, seek),
            Call::CopyRange {
                from,
                from_offset,
                to,
                to_offset,
                length,
            } => {
                let content = &self.opened(from)?.content;
                let start = usize::try_from(from_offset).unwrap().min(content.len());
                let end = start
                    .saturating_add(usize::try_from(length).unwrap())
                    .min(content.len());
                let data = content[start..end].to_vec();
                self.opened(to)?.put(to_offset, &data);
                Ok(Reply::Written(u32::try_from(data.len()).unwrap()))
            }
            other => self.answer_xattrs(other),
        }
    }

    fn answer_xattrs(&mut self, call: Call) -> Answer {
        match call {
            Call::SetXattr {
                inode,
                name,
                value,
                mode,
            } => {
                let xattrs = &mut self.node(inode)?.xattrs;
                match (mode, xattrs.contains_key(&name)) {
                    (XattrMode::Create, true) => return Err(Errno::Exist),
                    (XattrMode::Replace, false) => return Err(Errno::NoData),
                    _ => xattrs.insert(name, value),
                };
                Ok(Reply::Done)
            }
            Call::GetXattr { inode, name } => {
                let node = self.node(inode)?;
                node.xattrs
                    .get(&name)
                    .map(|value| octets(value))
                    .ok_or(Errno::NoData)
            }
            Call::ListXattrs { inode } => Ok(Reply::Names(
                self.node(inode)?.xattrs.keys().cloned().collect(),
            )),
            Call::RemoveXattr { inode, name } => {
                let removed = self.node(inode)?.xattrs.remove(&name);
                removed.map(|_| Reply::Done).ok_or(Errno::NoData)
            }
            other => panic!("no answer for {other:?}"),
        }
    }

    fn node(&mut self, inode: Inode) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&inode.0).ok_or(Errno::Stale)
    }

    fn opened(&mut self, handle: Handle) -> Result<&mut Node, Errno> {
        let inode = self.handles.get(&handle.0).ok_or(Errno::BadF)?.0;
        self.node(Inode(inode))
    }

    fn entry(&mut self, inode: u64) -> Answer {
        let node = self.node(Inode(inode))?;
        node.lookups += 1;
        Ok(Reply::Entry(node.facts.clone()))
    }

    fn open(&mut self, inode: Inode, flags: OpenFlags) -> Answer {
        self.last += 1;
        self.handles.insert(self.last, (inode.0, flags));
        Ok(Reply::Opened {
            handle: Handle(self.last),
            keep_cache: true,
        })
    }

    pub(crate) fn make(&mut self, caller: Caller, kind: FileKind, mode: u16) -> u64 {
        self.last += 1;
        let time = now();
        let facts = Attributes {
            inode: Inode(self.last),
            kind,
            mode,
            links: if kind == FileKind::Folder { 2 } else { 1 },
            uid: caller.uid,
            gid: caller.gid,
            size: 0,
            allocated: 0,
            device: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
        };
        let node = Node {
            facts,
            content: Vec::new(),
            data: BTreeSet::new(),
            entries: BTreeMap::new(),
            cursor: 2,
            xattrs: BTreeMap::new(),
            lookups: 0,
        };
        self.nodes.insert(self.last, node);
        self.last
    }

    pub(crate) fn enter(&mut self, parent: Inode, name: Vec<u8>, inode: u64) -> Result<(), Errno> {
        let parent = self.node(parent)?;
        if parent.entries.contains_key(&name) {
            return Err(Errno::Exist);
        }
        parent.cursor += 1;
        parent.entries.insert(name, (inode, parent.cursor));
        Ok(())
    }

    fn remove(&mut self, parent: Inode, name: &[u8]) -> Answer {
        let found = self.node(parent)?.entries.get(name).map(|entry| entry.0);
        let node = self.node(Inode(found.ok_or(Errno::NoEnt)?))?;
        if !node.entries.is_empty() {
            return Err(Errno::NotEmpty);
        }
        node.facts.links = node.facts.links.saturating_sub(1);
        self.node(parent)?.entries.remove(name);
        Ok(Reply::Done)
    }

    fn rename(&mut self, from: (Inode, Vec<u8>), to: (Inode, Vec<u8>), mode: RenameMode) -> Answer {
        let moved = self
            .node(from.0)?
            .entries
            .get(&from.1)
            .copied()
            .ok_or(Errno::NoEnt)?;
        let old = self.node(to.0)?.entries.get(&to.1).copied();
        match (mode, old) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::Exist),
            (RenameMode::Exchange, None) => return Err(Errno::NoEnt),
            (RenameMode::Exchange, Some(old)) => {
                self.node(from.0)?.entries.insert(from.1, old);
                self.node(to.0)?.entries.insert(to.1, moved);
                return Ok(Reply::Done);
            }
            (RenameMode::Replace, Some(_)) => {
                self.remove(to.0, &to.1)?;
            }
            _ => {}
        }
        self.node(from.0)?.entries.remove(&from.1);
        self.enter(to.0, to.1, moved.0)?;
        Ok(Reply::Done)
    }

    fn list(&mut self, handle: Handle, cursor: u64, with_attributes: bool) -> Answer {
        let folder = self.handles.get(&handle.0).ok_or(Errno::BadF)?.0;
        let node = &self.nodes[&folder];
        let dots = [(b".".to_vec(), (folder, 1)), (b"..".to_vec(), (folder, 2))];
        let named = node
            .entries
            .iter()
            .map(|(name, entry)| (name.clone(), *entry));
        let mut all: Vec<_> = dots
            .into_iter()
            .chain(named)
            .filter(|entry| entry.1.1 > cursor)
            .collect();
        all.sort_by_key(|entry| entry.1.1);
        all.truncate(LISTED);
        let entries = all.into_iter().map(|(name, (inode, cursor))| {
            let node = self.nodes.get_mut(&inode).unwrap();
            let counted = with_attributes && name != b"." && name != b"..";
            node.lookups += u64::from(counted);
            Entry {
                name,
                inode: Inode(inode),
                kind: node.facts.kind,
                cursor,
                attributes: counted.then(|| node.facts.clone()),
            }
        });
        Ok(Reply::Entries(entries.collect()))
    }

    fn resize(&mut self, inode: Inode, size: u64) -> Result<(), Errno> {
        let node = self.node(inode)?;
        node.content.resize(usize::try_from(size).unwrap(), 0);
        node.data.retain(|block| block * BLOCK < size);
        node.facts.size = size;
        Ok(())
    }

    fn change(&mut self, inode: Inode, changes: Changes) -> Answer {
        if let Some(size) = changes.size {
            self.resize(inode, size)?;
        }
        let facts = &mut self.node(inode)?.facts;
        let time = |time| match time {
            SetTime::Now => now(),
            SetTime::To(time) => time,
        };
        if changes.kill_set_id {
            facts.mode &= 0o1777;
        }
        facts.mode = changes.mode.unwrap_or(facts.mode);
        facts.uid = changes.uid.unwrap_or(facts.uid);
        facts.gid = changes.gid.unwrap_or(facts.gid);
        facts.atime = changes.atime.map_or(facts.atime, time);
        facts.mtime = changes.mtime.map_or(facts.mtime, time);
        facts.ctime = now();
        Ok(Reply::Attributes(facts.clone()))
    }
}

impl Node {
    pub(crate) fn put(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        self.grow(end);
        let start = usize::try_from(offset).unwrap();
        self.content[start..start + data.len()].copy_from_slice(data);
        self.data.extend(offset / BLOCK..end.div_ceil(BLOCK));
        self.facts.allocated = self.data.len() as u64 * BLOCK;
    }

    fn grow(&mut self, end: u64) {
        if end > self.facts.size {
            self.content.resize(usize::try_from(end).unwrap(), 0);
            self.facts.size = end;
        }
    }

    fn allocate(&mut self, offset: u64, length: u64, mode: Allocate) {
        let end = offset + length;
        match mode {
            Allocate::Plain | Allocate::ZeroRange { keep_size: false } => self.grow(end),
            _ => {}
        }
        if matches!(mode, Allocate::PunchHole | Allocate::ZeroRange { .. }) {
            let end = end.min(self.facts.size);
            let range = usize::try_from(offset.min(end)).unwrap()..usize::try_from(end).unwrap();
            self.content[range].fill(0);
            self.data
                .retain(|block| block * BLOCK < offset || (block + 1) * BLOCK > end);
        }
    }

    fn seek(&self, offset: u64, seek: Seek) -> Answer {
        if offset >= self.facts.size {
            return Err(Errno::NxIo);
        }
        let wanted = |block: &u64| self.data.contains(block) == (seek == Seek::Data);
        let found = (offset / BLOCK..self.facts.size.div_ceil(BLOCK)).find(wanted);
        match (found, seek) {
            (Some(block), _) => Ok(Reply::Offset(offset.max(block * BLOCK))),
            (None, Seek::Hole) => Ok(Reply::Offset(self.facts.size)),
            (None, Seek::Data) => Err(Errno::NxIo),
        }
    }
}

fn octets(octets: &[u8]) -> Reply {
    Reply::Octets(Bytes::copy_from_slice(octets))
}
