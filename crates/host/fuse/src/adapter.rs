//! Requests of the kernel as calls.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use fuser::{
    FileHandle, INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use vere_ports::files::{Call, Errno};

use crate::calls::{caller, changes, handle, inode, named};
use crate::convert;
use crate::negotiate::negotiate;
use crate::pending::{Pending, Replies};

/// The most octets of a copy within the mount by one call: a reply has 32 bits for the count, and whole pages let the
/// next call begin at a page.
const COPY_OCTETS_MAX: u64 = 0xffff_f000;

#[derive(Debug)]
pub(crate) struct Adapter {
    replies: Replies,
}

impl Adapter {
    pub(crate) const fn new(replies: Replies) -> Self {
        Self { replies }
    }

    fn submit(&self, by: &Request, pending: Pending, call: Result<Call, Errno>) {
        match call {
            Ok(call) => self.replies.submit(caller(by), pending, call),
            Err(errno) => pending.fail(errno),
        }
    }
}

impl fuser::Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config);
        Ok(())
    }

    fn lookup(&self, by: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let call = named(parent, name, |parent, name| Call::Lookup { parent, name });
        self.submit(by, Pending::Lookup(reply), call);
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.replies.forget(inode(number), lookups);
    }

    fn getattr(&self, by: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let call = Call::GetAttributes {
            inode: inode(number),
        };
        self.submit(by, Pending::Attributes(reply), Ok(call));
    }

    fn setattr(
        &self,
        by: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let call = Call::SetAttributes {
            inode: inode(number),
            changes: changes(by, mode, uid, gid, size, (atime, mtime)),
        };
        self.submit(by, Pending::Attributes(reply), Ok(call));
    }

    fn readlink(&self, by: &Request, number: INodeNo, reply: ReplyData) {
        let call = Call::ReadLink {
            inode: inode(number),
        };
        self.submit(by, Pending::Octets(reply), Ok(call));
    }

    fn mknod(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let call = convert::name(name).and_then(|name| {
            Ok(Call::MakeNode {
                parent: inode(parent),
                name,
                kind: convert::node_kind(mode)?,
                mode: convert::mode(mode),
                device,
            })
        });
        self.submit(by, Pending::Entry(reply), call);
    }

    fn mkdir(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let call = named(parent, name, |parent, name| Call::MakeFolder {
            parent,
            name,
            mode: convert::mode(mode),
        });
        self.submit(by, Pending::Entry(reply), call);
    }

    fn unlink(&self, by: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = named(parent, name, |parent, name| Call::Unlink { parent, name });
        self.submit(by, Pending::Done(reply), call);
    }

    fn rmdir(&self, by: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = named(parent, name, |parent, name| Call::RemoveFolder {
            parent,
            name,
        });
        self.submit(by, Pending::Done(reply), call);
    }

    fn symlink(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let call = named(parent, name, |parent, name| Call::Symlink {
            parent,
            name,
            target: target.as_os_str().as_bytes().to_vec(),
        });
        self.submit(by, Pending::Entry(reply), call);
    }

    fn rename(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        let call = convert::name(name).and_then(|name| {
            Ok(Call::Rename {
                parent: inode(parent),
                name,
                new_parent: inode(new_parent),
                new_name: convert::name(new_name)?,
                mode: convert::rename_mode(flags)?,
            })
        });
        self.submit(by, Pending::Done(reply), call);
    }

    fn link(
        &self,
        by: &Request,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let call = named(parent, name, |parent, name| Call::Link {
            inode: inode(number),
            parent,
            name,
        });
        self.submit(by, Pending::Entry(reply), call);
    }

    fn open(&self, by: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let call = Call::Open {
            inode: inode(number),
            flags: convert::open_flags(flags.0),
        };
        self.submit(by, Pending::Open(reply), Ok(call));
    }

    fn read(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let call = Call::Read {
            handle: handle(file),
            offset,
            size,
        };
        self.submit(by, Pending::Octets(reply), Ok(call));
    }

    fn write(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let call = Call::Write {
            handle: handle(file),
            offset,
            data: Bytes::copy_from_slice(data),
            kill_set_id: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
        };
        self.submit(by, Pending::Written(reply), Ok(call));
    }

    fn flush(&self, by: &Request, _: INodeNo, file: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.submit(
            by,
            Pending::Done(reply),
            Ok(Call::Flush {
                handle: handle(file),
            }),
        );
    }

    fn release(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.submit(
            by,
            Pending::Done(reply),
            Ok(Call::Release {
                handle: handle(file),
            }),
        );
    }

    fn fsync(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let call = Call::Fsync {
            handle: handle(file),
            data_only,
        };
        self.submit(by, Pending::Done(reply), Ok(call));
    }

    fn opendir(&self, by: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let call = Call::OpenFolder {
            inode: inode(number),
        };
        self.submit(by, Pending::OpenFolder(reply), Ok(call));
    }

    fn readdir(
        &self,
        by: &Request,
        _: INodeNo,
        folder: FileHandle,
        cursor: u64,
        reply: ReplyDirectory,
    ) {
        let call = Call::ReadFolder {
            handle: handle(folder),
            cursor,
            with_attributes: false,
        };
        self.submit(by, Pending::Folder(reply), Ok(call));
    }

    fn readdirplus(
        &self,
        by: &Request,
        _: INodeNo,
        folder: FileHandle,
        cursor: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let call = Call::ReadFolder {
            handle: handle(folder),
            cursor,
            with_attributes: true,
        };
        self.submit(by, Pending::FolderPlus(reply), Ok(call));
    }

    fn releasedir(
        &self,
        by: &Request,
        _: INodeNo,
        folder: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let call = Call::ReleaseFolder {
            handle: handle(folder),
        };
        self.submit(by, Pending::Done(reply), Ok(call));
    }

    fn fsyncdir(
        &self,
        by: &Request,
        _: INodeNo,
        folder: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let call = Call::FsyncFolder {
            handle: handle(folder),
        };
        self.submit(by, Pending::Done(reply), Ok(call));
    }

    fn statfs(&self, by: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.submit(by, Pending::Statistics(reply), Ok(Call::Statistics));
    }

    fn setxattr(
        &self,
        by: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let call = convert::xattr_mode(flags).map(|mode| Call::SetXattr {
            inode: inode(number),
            name: name.as_bytes().to_vec(),
            value: value.to_vec(),
            mode,
        });
        self.submit(by, Pending::Done(reply), call);
    }

    fn getxattr(&self, by: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let call = Call::GetXattr {
            inode: inode(number),
            name: name.as_bytes().to_vec(),
        };
        self.submit(by, Pending::Xattr(reply, size), Ok(call));
    }

    fn listxattr(&self, by: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let call = Call::ListXattrs {
            inode: inode(number),
        };
        self.submit(by, Pending::Xattr(reply, size), Ok(call));
    }

    fn removexattr(&self, by: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let call = Call::RemoveXattr {
            inode: inode(number),
            name: name.as_bytes().to_vec(),
        };
        self.submit(by, Pending::Done(reply), Ok(call));
    }

    fn create(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let call = named(parent, name, |parent, name| Call::Create {
            parent,
            name,
            mode: convert::mode(mode),
            flags: convert::open_flags(flags),
        });
        self.submit(by, Pending::Create(reply), call);
    }

    fn fallocate(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let call = convert::allocate(mode).map(|mode| Call::Allocate {
            handle: handle(file),
            offset,
            length,
            mode,
        });
        self.submit(by, Pending::Done(reply), call);
    }

    fn lseek(
        &self,
        by: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let call = convert::seek(whence).and_then(|seek| {
            Ok(Call::Seek {
                handle: handle(file),
                offset: u64::try_from(offset).map_err(|_| Errno::NxIo)?,
                seek,
            })
        });
        self.submit(by, Pending::Offset(reply), call);
    }

    fn copy_file_range(
        &self,
        by: &Request,
        _from: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _to: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _flags: fuser::CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let call = Call::CopyRange {
            from: handle(from),
            from_offset,
            to: handle(to),
            to_offset,
            length: length.min(COPY_OCTETS_MAX),
        };
        self.submit(by, Pending::Written(reply), Ok(call));
    }
}
