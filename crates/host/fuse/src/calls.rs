//! Parts of calls.

use std::ffi::OsStr;

use fuser::{FileHandle, INodeNo, Request, TimeOrNow};
use vere_ports::files::{Call, Caller, Changes, Errno, Handle, Inode};

use crate::convert;

pub(crate) fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

pub(crate) const fn inode(number: INodeNo) -> Inode {
    Inode(number.0)
}

pub(crate) const fn handle(number: FileHandle) -> Handle {
    Handle(number.0)
}

/// Set-id bits end with a truncation by a program without rights over the file. fuser 0.18 does not pass the kernel's own word
/// (FATTR_KILL_SUIDGID), so every user but root counts as without rights. A change of owner is the engine's matter: folders
/// keep the bits.
pub(crate) fn changes(
    request: &Request,
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    size: Option<u64>,
    times: (Option<TimeOrNow>, Option<TimeOrNow>),
) -> Changes {
    Changes {
        mode: mode.map(convert::mode),
        uid,
        gid,
        size,
        atime: times.0.map(convert::set_time),
        mtime: times.1.map(convert::set_time),
        kill_set_id: size.is_some() && request.uid() != 0,
    }
}

/// A call about a name in a folder.
pub(crate) fn named(
    parent: INodeNo,
    name: &OsStr,
    call: impl FnOnce(Inode, Vec<u8>) -> Call,
) -> Result<Call, Errno> {
    convert::name(name).map(|name| call(inode(parent), name))
}
