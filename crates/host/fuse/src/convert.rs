//! Values of the kernel's protocol as values of the ports, and back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, OpenAccMode, TimeOrNow};
use vere_ports::files::{
    Allocate, Attributes, Errno, FileKind, FileTime, OpenFlags, RenameMode, Seek, SetTime,
    XattrMode,
};

/// The value of `st_blksize`. Larger numbers would become the kernel's unit of pages.
const BLOCK: u32 = 4096;
/// The unit of `st_blocks`.
const STAT_BLOCK: u64 = 512;
/// The longest name, in octets.
const NAME_MAX: usize = 255;
/// The bits of a mode without the type.
const MODE_BITS: u32 = 0o7777;
/// The bits of a mode with the type.
const TYPE_BITS: u32 = 0o170_000;

const O_TRUNC: i32 = nix::libc::O_TRUNC;
const O_APPEND: i32 = nix::libc::O_APPEND;
/// O_SYNC contains the bit of O_DSYNC.
const O_DSYNC: i32 = nix::libc::O_DSYNC;

/// A name, checked; the kernel lets up to 1,024 octets through.
pub(crate) fn name(name: &OsStr) -> Result<Vec<u8>, Errno> {
    match name.len() {
        0 => Err(Errno::NoEnt),
        1..=NAME_MAX => Ok(name.as_bytes().to_vec()),
        _ => Err(Errno::NameTooLong),
    }
}

/// Permissions, set-id bits and sticky bit.
pub(crate) fn mode(mode: u32) -> u16 {
    u16::try_from(mode & MODE_BITS).unwrap_or(0)
}

/// The type of a node to be made.
pub(crate) fn node_kind(mode: u32) -> Result<FileKind, Errno> {
    match mode & TYPE_BITS {
        0 | 0o100_000 => Ok(FileKind::File),
        0o010_000 => Ok(FileKind::Fifo),
        0o140_000 => Ok(FileKind::Socket),
        0o020_000 => Ok(FileKind::CharDevice),
        0o060_000 => Ok(FileKind::BlockDevice),
        _ => Err(Errno::Inval),
    }
}

pub(crate) const fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Folder => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo => FileType::NamedPipe,
        FileKind::Socket => FileType::Socket,
        FileKind::CharDevice => FileType::CharDevice,
        FileKind::BlockDevice => FileType::BlockDevice,
    }
}

pub(crate) fn open_flags(flags: i32) -> OpenFlags {
    let access = fuser::OpenFlags(flags).acc_mode();
    OpenFlags {
        read: access != OpenAccMode::O_WRONLY,
        write: access != OpenAccMode::O_RDONLY,
        truncate: flags & O_TRUNC != 0,
        append: flags & O_APPEND != 0,
        sync: flags & O_DSYNC != 0,
    }
}

pub(crate) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::To(from_kernel(time)),
    }
}

/// A time as fuser 0.18 hands out the kernel's: for seconds below 0 fuser subtracts the nanoseconds, where the protocol
/// adds the nanoseconds. So the parts of the distance are the protocol's parts, and the sign is that of the seconds.
fn from_kernel(time: SystemTime) -> FileTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => FileTime {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: after.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            FileTime {
                seconds: i64::try_from(before.as_secs()).map_or(i64::MIN, i64::wrapping_neg),
                nanoseconds: before.subsec_nanos(),
            }
        }
    }
}

/// A time as fuser passes to the kernel.
fn to_kernel(time: FileTime) -> SystemTime {
    let nanoseconds = Duration::from_nanos(u64::from(time.nanoseconds.min(999_999_999)));
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    whole
        .and_then(|whole| whole.checked_add(nanoseconds))
        .unwrap_or(UNIX_EPOCH)
}

pub(crate) fn attributes(facts: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(facts.inode.0),
        size: facts.size,
        blocks: facts.allocated.div_ceil(STAT_BLOCK),
        atime: to_kernel(facts.atime),
        mtime: to_kernel(facts.mtime),
        ctime: to_kernel(facts.ctime),
        crtime: to_kernel(facts.btime),
        kind: file_type(facts.kind),
        perm: mode(u32::from(facts.mode)),
        nlink: facts.links,
        uid: facts.uid,
        gid: facts.gid,
        rdev: facts.device,
        blksize: BLOCK,
        flags: 0,
    }
}

/// Number and type without further facts: for `.` and `..`, and with number 0 for an absent name.
pub(crate) const fn bare(inode: u64, kind: FileKind) -> FileAttr {
    FileAttr {
        ino: INodeNo(inode),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: file_type(kind),
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

pub(crate) fn rename_mode(flags: fuser::RenameFlags) -> Result<RenameMode, Errno> {
    if flags.is_empty() {
        Ok(RenameMode::Replace)
    } else if flags == fuser::RenameFlags::RENAME_NOREPLACE {
        Ok(RenameMode::NoReplace)
    } else if flags == fuser::RenameFlags::RENAME_EXCHANGE {
        Ok(RenameMode::Exchange)
    } else {
        Err(Errno::Inval)
    }
}

pub(crate) const fn xattr_mode(flags: i32) -> Result<XattrMode, Errno> {
    match flags {
        0 => Ok(XattrMode::Any),
        nix::libc::XATTR_CREATE => Ok(XattrMode::Create),
        nix::libc::XATTR_REPLACE => Ok(XattrMode::Replace),
        _ => Err(Errno::Inval),
    }
}

pub(crate) const fn allocate(mode: i32) -> Result<Allocate, Errno> {
    const KEEP: i32 = nix::libc::FALLOC_FL_KEEP_SIZE;
    const PUNCH: i32 = nix::libc::FALLOC_FL_PUNCH_HOLE | KEEP;
    const ZERO: i32 = nix::libc::FALLOC_FL_ZERO_RANGE;
    const ZERO_KEEP: i32 = ZERO | KEEP;
    match mode {
        0 => Ok(Allocate::Plain),
        KEEP => Ok(Allocate::KeepSize),
        PUNCH => Ok(Allocate::PunchHole),
        ZERO => Ok(Allocate::ZeroRange { keep_size: false }),
        ZERO_KEEP => Ok(Allocate::ZeroRange { keep_size: true }),
        _ => Err(Errno::OpNotSupp),
    }
}

pub(crate) const fn seek(whence: i32) -> Result<Seek, Errno> {
    match whence {
        nix::libc::SEEK_DATA => Ok(Seek::Data),
        nix::libc::SEEK_HOLE => Ok(Seek::Hole),
        _ => Err(Errno::Inval),
    }
}

pub(crate) const fn errno(errno: Errno) -> fuser::Errno {
    match errno {
        Errno::Perm => fuser::Errno::EPERM,
        Errno::NoEnt => fuser::Errno::ENOENT,
        // An engine answers when the page is there: the error never comes this far.
        Errno::Io | Errno::Again => fuser::Errno::EIO,
        Errno::BadF => fuser::Errno::EBADF,
        Errno::Acces => fuser::Errno::EACCES,
        Errno::Busy => fuser::Errno::EBUSY,
        Errno::Exist => fuser::Errno::EEXIST,
        Errno::NotDir => fuser::Errno::ENOTDIR,
        Errno::IsDir => fuser::Errno::EISDIR,
        Errno::Inval => fuser::Errno::EINVAL,
        Errno::FBig => fuser::Errno::EFBIG,
        Errno::NoSpc => fuser::Errno::ENOSPC,
        Errno::RoFs => fuser::Errno::EROFS,
        Errno::MLink => fuser::Errno::EMLINK,
        Errno::NameTooLong => fuser::Errno::ENAMETOOLONG,
        Errno::NotEmpty => fuser::Errno::ENOTEMPTY,
        Errno::NoData => fuser::Errno::ENODATA,
        Errno::TooBig => fuser::Errno::E2BIG,
        Errno::NxIo => fuser::Errno::ENXIO,
        Errno::OpNotSupp => fuser::Errno::EOPNOTSUPP,
        Errno::Stale => fuser::Errno::ESTALE,
        Errno::DQuot => fuser::Errno::EDQUOT,
        Errno::TimedOut => fuser::Errno::ETIMEDOUT,
        Errno::NoMem => fuser::Errno::ENOMEM,
    }
}

#[cfg(test)]
mod tests {
    use super::{from_kernel, to_kernel};
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};
    use vere_ports::files::FileTime;

    proptest! {
        #[test]
        fn times_come_back(seconds in -0x8000_0000_0000_i64..0x8000_0000_0000, nanoseconds in 0..1_000_000_000_u32) {
            let time = FileTime { seconds, nanoseconds };
            // As fuser builds the time of a request.
            let asked = if seconds >= 0 {
                UNIX_EPOCH + Duration::new(seconds.unsigned_abs(), nanoseconds)
            } else {
                UNIX_EPOCH - Duration::new(seconds.unsigned_abs(), nanoseconds)
            };
            prop_assert_eq!(from_kernel(asked), time);
            // As fuser writes the time of a reply.
            let told = to_kernel(time);
            let floor = told.duration_since(UNIX_EPOCH).map_or_else(
                |before| -(i128::try_from(before.duration().as_nanos()).unwrap()),
                |after| i128::try_from(after.as_nanos()).unwrap(),
            );
            prop_assert_eq!(floor, i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
        }
    }

    #[test]
    fn times_beyond_the_clock_do_not_panic() {
        for seconds in [i64::MIN, i64::MAX] {
            to_kernel(FileTime {
                seconds,
                nanoseconds: 999_999_999,
            });
        }
    }
}
