//! Calls without a reply yet, and the way of a reply to the kernel.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{FileHandle, FopenFlags, Generation, INodeNo};
use vere_ports::files::{
    Call, CallId, Caller, Entry, Errno, FileKind, Handle, Inode, Reply, Statistics,
};

use crate::convert;
use crate::options::{KEPT, PENDING_MAX};
use crate::sink::Sink;

/// Numbers of inodes are never used twice.
const GENERATION: Generation = Generation(0);
/// The unit of free room.
const ROOM_BLOCK: u32 = 4096;
/// The longest name.
const NAME_MAX: u32 = 255;

/// The reply that the kernel expects of a call.
#[derive(Debug)]
pub(crate) enum Pending {
    Lookup(fuser::ReplyEntry),
    Entry(fuser::ReplyEntry),
    Attributes(fuser::ReplyAttr),
    Octets(fuser::ReplyData),
    Done(fuser::ReplyEmpty),
    Open(fuser::ReplyOpen),
    OpenFolder(fuser::ReplyOpen),
    Create(fuser::ReplyCreate),
    Written(fuser::ReplyWrite),
    Folder(fuser::ReplyDirectory),
    FolderPlus(fuser::ReplyDirectoryPlus),
    Statistics(fuser::ReplyStatfs),
    /// A value or names, and room for the octets; no room asks for the length.
    Xattr(fuser::ReplyXattr, u32),
    Offset(fuser::ReplyLseek),
}

impl Pending {
    pub(crate) fn fail(self, errno: Errno) {
        let code = convert::errno(errno);
        match self {
            // A name known to be absent is not asked for again.
            Self::Lookup(reply) if errno == Errno::NoEnt => {
                reply.entry(&KEPT, &convert::bare(0, FileKind::File), GENERATION);
            }
            Self::Lookup(reply) | Self::Entry(reply) => reply.error(code),
            Self::Attributes(reply) => reply.error(code),
            Self::Octets(reply) => reply.error(code),
            Self::Done(reply) => reply.error(code),
            Self::Open(reply) | Self::OpenFolder(reply) => reply.error(code),
            Self::Create(reply) => reply.error(code),
            Self::Written(reply) => reply.error(code),
            Self::Folder(reply) => reply.error(code),
            Self::FolderPlus(reply) => reply.error(code),
            Self::Statistics(reply) => reply.error(code),
            Self::Xattr(reply, _) => reply.error(code),
            Self::Offset(reply) => reply.error(code),
        }
    }

    /// Sends a reply. Inodes of listed entries that the kernel did not get come back: their look-ups are not the kernel's.
    fn succeed(self, reply: Reply) -> Vec<Inode> {
        match (self, reply) {
            (Self::Lookup(to) | Self::Entry(to), Reply::Entry(facts)) => {
                to.entry(&KEPT, &convert::attributes(&facts), GENERATION);
            }
            (Self::Attributes(to), Reply::Attributes(facts)) => {
                to.attr(&KEPT, &convert::attributes(&facts))
            }
            (Self::Octets(to), Reply::Octets(octets)) => to.data(&octets),
            (Self::Done(to), Reply::Done) => to.ok(),
            (Self::Open(to), Reply::Opened { handle, keep_cache }) => {
                to.opened(number(handle), kept(keep_cache))
            }
            // Cursors belong to their handle. A list kept by the kernel (FOPEN_CACHE_DIR) would end with the cursors of another one.
            (Self::OpenFolder(to), Reply::Opened { handle, .. }) => {
                to.opened(number(handle), FopenFlags::empty());
            }
            (Self::Create(to), Reply::Created(facts, handle)) => {
                to.created(
                    &KEPT,
                    &convert::attributes(&facts),
                    GENERATION,
                    number(handle),
                    FopenFlags::empty(),
                );
            }
            (Self::Written(to), Reply::Written(octets)) => to.written(octets),
            (Self::Folder(to), Reply::Entries(entries)) => list(to, &entries),
            (Self::FolderPlus(to), Reply::Entries(entries)) => {
                return list_with_facts(to, &entries);
            }
            (Self::Statistics(to), Reply::Statistics(room)) => tell_room(to, room),
            (Self::Xattr(to, room), Reply::Octets(value)) => tell_xattr(to, room, &value),
            (Self::Xattr(to, room), Reply::Names(names)) => tell_xattr(to, room, &joined(&names)),
            (Self::Offset(to), Reply::Offset(offset)) => match i64::try_from(offset) {
                Ok(offset) => to.offset(offset),
                Err(_) => to.error(fuser::Errno::EOVERFLOW),
            },
            // The engine has answered another call.
            (asked, _) => asked.fail(Errno::Io),
        }
        Vec::new()
    }
}

const fn number(handle: Handle) -> FileHandle {
    FileHandle(handle.0)
}

const fn kept(keep: bool) -> FopenFlags {
    if keep {
        FopenFlags::FOPEN_KEEP_CACHE
    } else {
        FopenFlags::empty()
    }
}

fn list(mut to: fuser::ReplyDirectory, entries: &[Entry]) {
    for entry in entries {
        let name = OsStr::from_bytes(&entry.name);
        if to.add(
            INodeNo(entry.inode.0),
            entry.cursor,
            convert::file_type(entry.kind),
            name,
        ) {
            break;
        }
    }
    to.ok();
}

fn list_with_facts(mut to: fuser::ReplyDirectoryPlus, entries: &[Entry]) -> Vec<Inode> {
    let mut taken = 0;
    for entry in entries {
        let facts = match &entry.attributes {
            Some(facts) if !is_dots(&entry.name) => convert::attributes(facts),
            None if !is_dots(&entry.name) => break,
            _ => convert::bare(entry.inode.0, entry.kind),
        };
        let name = OsStr::from_bytes(&entry.name);
        if to.add(facts.ino, entry.cursor, name, &KEPT, &facts, GENERATION) {
            break;
        }
        taken += 1;
    }
    if taken == 0 && !entries.is_empty() {
        // Without facts, the kernel would take the folder for read to the end.
        to.error(fuser::Errno::EIO);
    } else {
        to.ok();
    }
    let left = entries.iter().skip(taken);
    left.filter(|entry| entry.attributes.is_some() && !is_dots(&entry.name))
        .map(|entry| entry.inode)
        .collect()
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

fn joined(names: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for name in names {
        all.extend_from_slice(name);
        all.push(0);
    }
    all
}

fn tell_xattr(to: fuser::ReplyXattr, room: u32, value: &[u8]) {
    match u32::try_from(value.len()) {
        Ok(length) if room == 0 => to.size(length),
        Ok(length) if length <= room => to.data(value),
        _ => to.error(fuser::Errno::ERANGE),
    }
}

fn tell_room(to: fuser::ReplyStatfs, room: Statistics) {
    let blocks = |octets: u64| octets / u64::from(ROOM_BLOCK);
    let free = blocks(room.free);
    to.statfs(
        blocks(room.octets),
        free,
        free,
        room.inodes,
        room.inodes_free,
        ROOM_BLOCK,
        NAME_MAX,
        ROOM_BLOCK,
    );
}

/// Waiting calls, by number.
#[derive(Debug, Default)]
struct Table {
    last: u64,
    waiting: HashMap<CallId, Pending>,
}

/// The way back for replies, usable from any thread.
#[derive(Clone)]
pub struct Replies {
    table: Arc<Mutex<Table>>,
    sink: Arc<dyn Sink>,
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replies")
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl Replies {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> Self {
        Self {
            table: Arc::default(),
            sink,
        }
    }

    /// Answers a call. An unknown number is no error: the mount may have ended.
    pub fn reply(&self, id: CallId, result: Result<Reply, Errno>) {
        let pending = self.table().waiting.remove(&id);
        let Some(pending) = pending else { return };
        match result {
            Ok(reply) => {
                for inode in pending.succeed(reply) {
                    self.forget(inode, 1);
                }
            }
            Err(errno) => pending.fail(errno),
        }
    }

    /// The number of waiting calls.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.table().waiting.len()
    }

    /// Passes a call on to the sink.
    pub(crate) fn submit(&self, caller: Caller, pending: Pending, call: Call) {
        let id = {
            let mut table = self.table();
            if table.waiting.len() >= PENDING_MAX {
                drop(table);
                return pending.fail(Errno::NoMem);
            }
            let id = next(&mut table);
            table.waiting.insert(id, pending);
            id
        };
        if self.sink.call(id, caller, call).is_err() {
            self.reply(id, Err(Errno::Io));
        }
    }

    pub(crate) fn forget(&self, inode: Inode, lookups: u64) {
        let id = next(&mut self.table());
        // A closed sink has forgotten all inodes.
        let _gone = self.sink.call(
            id,
            Caller { uid: 0, gid: 0 },
            Call::Forget { inode, lookups },
        );
    }

    /// Fails all waiting calls.
    pub(crate) fn fail_all(&self, errno: Errno) {
        let waiting = std::mem::take(&mut self.table().waiting);
        for pending in waiting.into_values() {
            pending.fail(errno);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn next(table: &mut Table) -> CallId {
    table.last = table.last.wrapping_add(1);
    CallId(table.last)
}
