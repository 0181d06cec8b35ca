//! A second tree, as simple as possible, that answers calls as a local file system does.

use std::collections::{BTreeMap, HashMap};

use vere_ports::files::{
    Allocate, Attributes, Call, Caller, Changes, Errno, FileKind, FileTime, Handle, Inode,
    OpenFlags, RenameMode, Reply, SetTime, XattrMode,
};

pub(super) struct Node {
    pub(super) facts: Attributes,
    pub(super) data: Vec<u8>,
    pub(super) entries: BTreeMap<Vec<u8>, Inode>,
    parent: Inode,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether the kernel knows the inode.
    known: bool,
    opens: usize,
    /// Without a name and not open: gone with the kernel's memory.
    ghost: bool,
}

pub(super) struct Model {
    pub(super) nodes: HashMap<Inode, Node>,
    pub(super) handles: HashMap<Handle, (Inode, OpenFlags)>,
}

type Answer = Result<Reply, Errno>;

impl Model {
    pub(super) fn new(now: FileTime) -> Self {
        let mut root = Node::new(FileKind::Folder, 0o755, Caller { uid: 0, gid: 0 }, now);
        root.facts.inode = Inode::ROOT;
        root.known = true;
        let nodes = HashMap::from([(Inode::ROOT, root)]);
        let handles = HashMap::new();
        Self { nodes, handles }
    }

    fn node(&mut self, inode: Inode) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&inode).ok_or(Errno::Stale)
    }

    fn folder(&mut self, inode: Inode) -> Result<&mut Node, Errno> {
        let node = self.node(inode)?;
        match node.facts.kind {
            FileKind::Folder => Ok(node),
            _ => Err(Errno::NotDir),
        }
    }

    fn find(&mut self, parent: Inode, name: &[u8]) -> Result<Inode, Errno> {
        let folder = self.folder(parent)?;
        folder.entries.get(name).copied().ok_or(Errno::NoEnt)
    }

    fn free_name(&mut self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        let folder = self.folder(parent)?;
        if folder.facts.links == 0 {
            return Err(Errno::NoEnt);
        }
        let taken = folder.entries.contains_key(name);
        if taken { Err(Errno::Exist) } else { Ok(()) }
    }

    fn touch(&mut self, folder: Inode, now: FileTime) {
        let facts = &mut self.nodes.get_mut(&folder).unwrap().facts;
        facts.mtime = now;
        facts.ctime = now;
    }

    fn seen(&mut self, inode: Inode) -> Answer {
        let node = self.node(inode)?;
        node.known = true;
        Ok(Reply::Entry(node.facts.clone()))
    }

    fn insert(
        &mut self,
        (parent, name): (Inode, &[u8]),
        mut node: Node,
        fresh: Option<Inode>,
        now: FileTime,
    ) -> Result<Inode, Errno> {
        self.free_name(parent, name)?;
        let inode = fresh.expect("an inode of the reply");
        assert!(!self.nodes.contains_key(&inode), "{inode:?} is in use");
        let folder = self.folder(parent)?;
        if folder.facts.mode & 0o2000 != 0 {
            node.facts.gid = folder.facts.gid;
            if node.facts.kind == FileKind::Folder {
                node.facts.mode |= 0o2000;
            }
        }
        node.facts.inode = inode;
        node.parent = parent;
        folder.entries.insert(name.to_vec(), inode);
        folder.facts.links += u32::from(node.facts.kind == FileKind::Folder);
        self.nodes.insert(inode, node);
        self.touch(parent, now);
        Ok(inode)
    }

    /// Answers a call; `fresh` and `handle` are the numbers that the other tree gave.
    pub(super) fn call(
        &mut self,
        caller: Caller,
        call: &Call,
        now: FileTime,
        fresh: Option<Inode>,
        handle: Option<Handle>,
    ) -> Answer {
        match call {
            Call::Lookup { parent, name } => {
                let inode = self.find(*parent, name)?;
                self.seen(inode)
            }
            Call::GetAttributes { inode } => {
                Ok(Reply::Attributes(self.node(*inode)?.facts.clone()))
            }
            Call::SetAttributes { inode, changes } => self.set(*inode, changes, now),
            Call::MakeNode {
                parent,
                name,
                kind,
                mode,
                device,
            } => {
                let mut node = Node::new(*kind, *mode, caller, now);
                node.facts.device = *device;
                let inode = self.insert((*parent, name), node, fresh, now)?;
                self.seen(inode)
            }
            Call::MakeFolder { parent, name, mode } => {
                let node = Node::new(FileKind::Folder, *mode, caller, now);
                let inode = self.insert((*parent, name), node, fresh, now)?;
                self.seen(inode)
            }
            other => self.call_on_links(caller, other, now, fresh, handle),
        }
    }

    fn call_on_links(
        &mut self,
        caller: Caller,
        call: &Call,
        now: FileTime,
        fresh: Option<Inode>,
        handle: Option<Handle>,
    ) -> Answer {
        match call {
            Call::Symlink {
                parent,
                name,
                target,
            } => {
                let mut node = Node::new(FileKind::Symlink, 0o777, caller, now);
                node.data.clone_from(target);
                node.facts.size = target.len() as u64;
                let inode = self.insert((*parent, name), node, fresh, now)?;
                self.seen(inode)
            }
            Call::Create {
                parent,
                name,
                mode,
                flags,
            } => {
                let node = Node::new(FileKind::File, *mode, caller, now);
                let inode = self.insert((*parent, name), node, fresh, now)?;
                self.seen(inode)?;
                self.opened(inode, *flags, handle.unwrap())?;
                Ok(Reply::Created(
                    self.node(inode)?.facts.clone(),
                    handle.unwrap(),
                ))
            }
            Call::ReadLink { inode } => {
                let node = self.node(*inode)?;
                if node.facts.kind != FileKind::Symlink {
                    return Err(Errno::Inval);
                }
                node.accessed(now);
                Ok(Reply::Octets(node.data.clone().into()))
            }
            Call::Link {
                inode,
                parent,
                name,
            } => self.link(*inode, (*parent, name), now),
            Call::Unlink { parent, name } => self.unlink(*parent, name, now),
            Call::RemoveFolder { parent, name } => self.rmdir(*parent, name, now),
            Call::Rename {
                parent,
                name,
                new_parent,
                new_name,
                mode,
            } => self.rename((*parent, name), (*new_parent, new_name), *mode, now),
            other => self.call_on_files(caller, other, now, handle),
        }
    }

    fn call_on_files(
        &mut self,
        caller: Caller,
        call: &Call,
        now: FileTime,
        handle: Option<Handle>,
    ) -> Answer {
        match call {
            Call::Open { inode, flags } => {
                let node = self.node(*inode)?;
                match node.facts.kind {
                    FileKind::File => {}
                    FileKind::Folder => return Err(Errno::IsDir),
                    _ => return Err(Errno::NxIo),
                }
                if flags.truncate {
                    node.resize(0, now);
                    if caller.uid != 0 {
                        node.kill();
                    }
                }
                self.opened(*inode, *flags, handle.unwrap())?;
                let handle = handle.unwrap();
                Ok(Reply::Opened {
                    handle,
                    keep_cache: true,
                })
            }
            Call::Release { handle } => {
                let (inode, _) = self.handles.remove(handle).ok_or(Errno::BadF)?;
                self.node(inode)?.opens -= 1;
                self.end_if_unused(inode);
                Ok(Reply::Done)
            }
            Call::Read {
                handle,
                offset,
                size,
            } => {
                let (inode, _) = *self.handles.get(handle).ok_or(Errno::BadF)?;
                let node = self.node(inode)?;
                let from = (*offset as usize).min(node.data.len());
                let to = from.saturating_add(*size as usize).min(node.data.len());
                if from < to {
                    node.accessed(now);
                }
                Ok(Reply::Octets(node.data[from..to].to_vec().into()))
            }
            other => self.call_on_ranges(other, now),
        }
    }

    fn call_on_ranges(&mut self, call: &Call, now: FileTime) -> Answer {
        match call {
            Call::Write {
                handle,
                offset,
                data,
                kill_set_id,
            } => {
                let (inode, flags) = self.writable(*handle)?;
                let node = self.node(inode)?;
                let offset = if flags.append {
                    node.facts.size
                } else {
                    *offset
                };
                if data.is_empty() {
                    return Ok(Reply::Written(0));
                }
                node.fill(offset as usize, data);
                node.changed(now);
                if *kill_set_id {
                    node.kill();
                }
                Ok(Reply::Written(data.len() as u32))
            }
            Call::Allocate {
                handle,
                offset,
                length,
                mode,
            } => {
                let (inode, _) = self.writable(*handle)?;
                self.node(inode)?.allocate((*offset, *length), *mode, now)
            }
            Call::CopyRange {
                from,
                from_offset,
                to,
                to_offset,
                length,
            } => {
                let (source, read) = *self.handles.get(from).ok_or(Errno::BadF)?;
                let (inode, flags) = self.writable(*to)?;
                if !read.read || flags.append {
                    return Err(Errno::BadF);
                }
                let node = self.node(source)?;
                let size = node.facts.size;
                let end = (from_offset + length).min(size);
                let length = end.saturating_sub(*from_offset);
                if source == inode && from_offset.abs_diff(*to_offset) < length {
                    return Err(Errno::Inval);
                }
                if length > 0 {
                    node.accessed(now);
                    let data = node.data[*from_offset as usize..end as usize].to_vec();
                    let node = self.node(inode)?;
                    node.fill(*to_offset as usize, &data);
                    node.changed(now);
                }
                Ok(Reply::Written(length as u32))
            }
            other => self.call_on_xattrs(other, now),
        }
    }

    fn call_on_xattrs(&mut self, call: &Call, now: FileTime) -> Answer {
        match call {
            Call::SetXattr {
                inode,
                name,
                value,
                mode,
            } => {
                let node = self.node(*inode)?;
                node.takes_xattrs()?;
                if node.ghost {
                    return Err(Errno::NoEnt);
                }
                match (node.xattrs.contains_key(name), mode) {
                    (true, XattrMode::Create) => return Err(Errno::Exist),
                    (false, XattrMode::Replace) => return Err(Errno::NoData),
                    _ => {}
                }
                node.xattrs.insert(name.clone(), value.clone());
                node.facts.ctime = now;
                Ok(Reply::Done)
            }
            Call::GetXattr { inode, name } => {
                let value = self.node(*inode)?.xattrs.get(name).cloned();
                value
                    .map(|value| Reply::Octets(value.into()))
                    .ok_or(Errno::NoData)
            }
            Call::ListXattrs { inode } => {
                let names = self.node(*inode)?.xattrs.keys().cloned().collect();
                Ok(Reply::Names(names))
            }
            Call::RemoveXattr { inode, name } => {
                let node = self.node(*inode)?;
                node.takes_xattrs()?;
                node.xattrs.remove(name).ok_or(Errno::NoData)?;
                node.facts.ctime = now;
                Ok(Reply::Done)
            }
            Call::Forget { inode, .. } => {
                if *inode != Inode::ROOT
                    && let Some(node) = self.nodes.get_mut(inode)
                {
                    node.known = false;
                    self.end_if_unused(*inode);
                }
                Ok(Reply::Done)
            }
            other => panic!("the model has no {other:?}"),
        }
    }

    fn opened(&mut self, inode: Inode, flags: OpenFlags, handle: Handle) -> Result<(), Errno> {
        self.node(inode)?.opens += 1;
        self.handles.insert(handle, (inode, flags));
        Ok(())
    }

    fn writable(&self, handle: Handle) -> Result<(Inode, OpenFlags), Errno> {
        let (inode, flags) = *self.handles.get(&handle).ok_or(Errno::BadF)?;
        if flags.write {
            Ok((inode, flags))
        } else {
            Err(Errno::BadF)
        }
    }

    /// Closes a file of a mount that has ended.
    pub(super) fn closed(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.opens = 0;
            self.end_if_unused(inode);
        }
    }

    pub(super) fn end_if_unused(&mut self, inode: Inode) {
        let node = self.nodes.get_mut(&inode).unwrap();
        if node.facts.links > 0 || node.opens > 0 {
            return;
        }
        node.ghost = true;
        node.xattrs.clear();
        if !node.known {
            self.nodes.remove(&inode);
        }
    }

    fn set(&mut self, inode: Inode, changes: &Changes, now: FileTime) -> Answer {
        let node = self.node(inode)?;
        if *changes == Changes::default() {
            return Ok(Reply::Attributes(node.facts.clone()));
        }
        if changes.mode.is_some() && node.facts.kind == FileKind::Symlink {
            return Err(Errno::OpNotSupp);
        }
        if let Some(size) = changes.size {
            match node.facts.kind {
                FileKind::File => node.resize(size, now),
                FileKind::Folder => return Err(Errno::IsDir),
                _ => return Err(Errno::Inval),
            }
        }
        let owner = changes.uid.is_some() || changes.gid.is_some();
        if changes.kill_set_id || owner && node.facts.kind != FileKind::Folder {
            node.kill();
        }
        let facts = &mut node.facts;
        facts.uid = changes.uid.unwrap_or(facts.uid);
        facts.gid = changes.gid.unwrap_or(facts.gid);
        facts.mode = changes.mode.unwrap_or(facts.mode);
        let time = |time| match time {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        facts.atime = changes.atime.map_or(facts.atime, time);
        facts.mtime = changes.mtime.map_or(facts.mtime, time);
        facts.ctime = now;
        Ok(Reply::Attributes(facts.clone()))
    }

    fn link(&mut self, inode: Inode, (parent, name): (Inode, &[u8]), now: FileTime) -> Answer {
        self.free_name(parent, name)?;
        let node = self.node(inode)?;
        if node.facts.kind == FileKind::Folder {
            return Err(Errno::Perm);
        }
        if node.facts.links == 0 {
            return Err(Errno::NoEnt);
        }
        node.facts.links += 1;
        node.facts.ctime = now;
        self.folder(parent)?.entries.insert(name.to_vec(), inode);
        self.touch(parent, now);
        self.seen(inode)
    }

    fn drop_name(&mut self, inode: Inode, now: FileTime) {
        let node = self.nodes.get_mut(&inode).unwrap();
        let folder = node.facts.kind == FileKind::Folder;
        node.facts.links = if folder { 0 } else { node.facts.links - 1 };
        node.facts.ctime = now;
        self.end_if_unused(inode);
    }

    fn unlink(&mut self, parent: Inode, name: &[u8], now: FileTime) -> Answer {
        let inode = self.find(parent, name)?;
        if self.node(inode)?.facts.kind == FileKind::Folder {
            return Err(Errno::IsDir);
        }
        self.folder(parent)?.entries.remove(name);
        self.touch(parent, now);
        self.drop_name(inode, now);
        Ok(Reply::Done)
    }

    fn rmdir(&mut self, parent: Inode, name: &[u8], now: FileTime) -> Answer {
        let inode = self.find(parent, name)?;
        if !self.folder(inode)?.entries.is_empty() {
            return Err(Errno::NotEmpty);
        }
        let folder = self.folder(parent)?;
        folder.entries.remove(name);
        folder.facts.links -= 1;
        self.touch(parent, now);
        self.drop_name(inode, now);
        Ok(Reply::Done)
    }

    fn is_above(&self, above: Inode, mut below: Inode) -> bool {
        while below != above && below != Inode::ROOT {
            below = self.nodes[&below].parent;
        }
        below == above
    }

    fn rename(
        &mut self,
        (parent, name): (Inode, &[u8]),
        (new_parent, new_name): (Inode, &[u8]),
        mode: RenameMode,
        now: FileTime,
    ) -> Answer {
        self.folder(parent)?;
        if self.folder(new_parent)?.facts.links == 0 {
            return Err(Errno::NoEnt);
        }
        let from = self.find(parent, name)?;
        let to = self.find(new_parent, new_name).ok();
        match (to, mode) {
            (Some(_), RenameMode::NoReplace) => return Err(Errno::Exist),
            (None, RenameMode::Exchange) => return Err(Errno::NoEnt),
            _ => {}
        }
        let is_folder = |inode: Inode| self.nodes[&inode].facts.kind == FileKind::Folder;
        let exchange = mode == RenameMode::Exchange;
        if self.is_above(from, new_parent) {
            return Err(Errno::Inval);
        }
        if to.is_some_and(|to| self.is_above(to, parent)) {
            return Err(if exchange {
                Errno::Inval
            } else {
                Errno::NotEmpty
            });
        }
        if to == Some(from) {
            return Ok(Reply::Done);
        }
        if let Some(to) = to.filter(|_| !exchange) {
            match (is_folder(from), is_folder(to)) {
                (true, false) => return Err(Errno::NotDir),
                (false, true) => return Err(Errno::IsDir),
                _ if !self.nodes[&to].entries.is_empty() => return Err(Errno::NotEmpty),
                _ => {}
            }
        }
        self.folder(parent)?.entries.remove(name);
        let replaced = self
            .folder(new_parent)?
            .entries
            .insert(new_name.to_vec(), from);
        if let Some(to) = replaced.filter(|_| exchange) {
            self.folder(parent)?.entries.insert(name.to_vec(), to);
            self.place(to, parent, now);
        }
        self.place(from, new_parent, now);
        self.touch(parent, now);
        self.touch(new_parent, now);
        if let Some(to) = replaced.filter(|_| !exchange) {
            self.drop_name(to, now);
        }
        self.count_folders(parent);
        self.count_folders(new_parent);
        Ok(Reply::Done)
    }

    fn place(&mut self, inode: Inode, parent: Inode, now: FileTime) {
        let node = self.nodes.get_mut(&inode).unwrap();
        node.parent = parent;
        node.facts.ctime = now;
    }

    fn count_folders(&mut self, folder: Inode) {
        let kind = |inode: &&Inode| self.nodes[inode].facts.kind == FileKind::Folder;
        let folders = self.nodes[&folder].entries.values().filter(kind).count();
        self.nodes.get_mut(&folder).unwrap().facts.links = 2 + folders as u32;
    }
}

impl Node {
    fn new(kind: FileKind, mode: u16, caller: Caller, now: FileTime) -> Self {
        let folder = kind == FileKind::Folder;
        Self {
            facts: Attributes {
                inode: Inode(0),
                kind,
                mode,
                links: if folder { 2 } else { 1 },
                uid: caller.uid,
                gid: caller.gid,
                size: if folder { 4096 } else { 0 },
                allocated: 0,
                device: 0,
                atime: now,
                mtime: now,
                ctime: now,
                btime: now,
            },
            data: Vec::new(),
            entries: BTreeMap::new(),
            parent: Inode::ROOT,
            xattrs: BTreeMap::new(),
            known: false,
            opens: 0,
            ghost: false,
        }
    }

    pub(super) fn accessed(&mut self, now: FileTime) {
        let facts = &mut self.facts;
        if facts.atime <= facts.mtime.max(facts.ctime)
            || now.seconds - facts.atime.seconds >= 86_400
        {
            facts.atime = now;
        }
    }

    fn takes_xattrs(&self) -> Result<(), Errno> {
        match self.facts.kind {
            FileKind::File | FileKind::Folder => Ok(()),
            _ => Err(Errno::Perm),
        }
    }

    fn kill(&mut self) {
        let group = if self.facts.mode & 0o010 != 0 {
            0o2000
        } else {
            0
        };
        self.facts.mode &= !(0o4000 | group);
    }

    fn changed(&mut self, now: FileTime) {
        self.facts.size = self.data.len() as u64;
        self.facts.mtime = now;
        self.facts.ctime = now;
    }

    fn resize(&mut self, size: u64, now: FileTime) {
        self.data.resize(size as usize, 0);
        self.changed(now);
    }

    fn fill(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        let size = self.data.len().max(end);
        self.data.resize(size, 0);
        self.data[offset..end].copy_from_slice(data);
    }

    fn allocate(&mut self, (offset, length): (u64, u64), mode: Allocate, now: FileTime) -> Answer {
        if length == 0 {
            return Err(Errno::Inval);
        }
        let end = (offset + length) as usize;
        let size = self.data.len();
        let zeros = matches!(mode, Allocate::PunchHole | Allocate::ZeroRange { .. });
        if zeros && (offset as usize) < size {
            self.data[offset as usize..end.min(size)].fill(0);
        }
        if matches!(
            mode,
            Allocate::Plain | Allocate::ZeroRange { keep_size: false }
        ) {
            self.data.resize(size.max(end), 0);
        }
        self.changed(now);
        Ok(Reply::Done)
    }
}
