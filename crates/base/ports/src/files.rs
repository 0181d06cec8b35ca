//! The calls of a file system, as the kernel gives them and an engine answers them: POSIX operations on inodes, without the
//! octets of any kernel protocol.
//!
//! Offsets and sizes are counted in octets. A name has 1 to 255 octets, none of them NUL or `/`.

use bytes::Bytes;

/// Names a call until its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// The number of an inode; the root folder is [`Inode::ROOT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode(pub u64);

impl Inode {
    /// The root folder.
    pub const ROOT: Self = Self(1);
}

/// Names an open file or folder until its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// A time of a file: seconds since 1970 (negative before), and nanoseconds from 0 to 999,999,999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileTime {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

/// The program behind a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
}

/// The type of an inode. The numbers are those of the volume's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// A regular file.
    File = 1,
    /// A folder.
    Folder = 2,
    /// A symbolic link.
    Symlink = 3,
    /// A FIFO.
    Fifo = 4,
    /// A socket.
    Socket = 5,
    /// A character device.
    CharDevice = 6,
    /// A block device.
    BlockDevice = 7,
}

/// The facts of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// The number.
    pub inode: Inode,
    /// The type.
    pub kind: FileKind,
    /// Permissions with set-id bits and sticky bit: the low 12 bits of `st_mode`.
    pub mode: u16,
    /// Hard links.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The length of a file or a symbolic link's target.
    pub size: u64,
    /// Octets in use, as `st_blocks` × 512 has them.
    pub allocated: u64,
    /// The device's number; 0 for anything but devices.
    pub device: u32,
    /// Last access.
    pub atime: FileTime,
    /// Last change of content.
    pub mtime: FileTime,
    /// Last change of facts.
    pub ctime: FileTime,
    /// Creation.
    pub btime: FileTime,
}

/// A time to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The present.
    Now,
    /// This time.
    To(FileTime),
}

/// The facts to change by [`Call::SetAttributes`]; absent ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Permissions: the low 12 bits of `st_mode`.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The size.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of content.
    pub mtime: Option<SetTime>,
    /// Whether set-id bits end, as a write or a truncation by a program without rights over the file wants.
    pub kill_set_id: bool,
}

/// What happens when the new name of a rename exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameMode {
    /// The new name's inode is replaced.
    Replace,
    /// EEXIST (RENAME_NOREPLACE).
    NoReplace,
    /// Both names change places (RENAME_EXCHANGE).
    Exchange,
}

/// Whether an extended attribute must exist or must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrMode {
    /// Either.
    Any,
    /// EEXIST if present (XATTR_CREATE).
    Create,
    /// ENODATA if absent (XATTR_REPLACE).
    Replace,
}

/// The way an inode is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// Reads are allowed.
    pub read: bool,
    /// Writes are allowed.
    pub write: bool,
    /// The file is cut to nothing (O_TRUNC).
    pub truncate: bool,
    /// Writes go to the end (O_APPEND).
    pub append: bool,
    /// Every write is durable before its reply (O_SYNC, O_DSYNC).
    pub sync: bool,
}

/// What `fallocate` does with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocate {
    /// Room is made, and the size grows with it.
    Plain,
    /// Room is made behind the end too (FALLOC_FL_KEEP_SIZE).
    KeepSize,
    /// A hole (FALLOC_FL_PUNCH_HOLE with KEEP_SIZE).
    PunchHole,
    /// Zeros (FALLOC_FL_ZERO_RANGE), the size kept or not.
    ZeroRange {
        /// Whether the size stays.
        keep_size: bool,
    },
}

/// What `lseek` looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The next octet that is not in a hole (SEEK_DATA).
    Data,
    /// The next hole, or the end (SEEK_HOLE).
    Hole,
}

/// A call. Each call but [`Call::Forget`] gets a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of POSIX calls")]
pub enum Call {
    Lookup {
        parent: Inode,
        name: Vec<u8>,
    },
    /// The kernel drops so many look-ups of an inode.
    Forget {
        inode: Inode,
        lookups: u64,
    },
    GetAttributes {
        inode: Inode,
    },
    SetAttributes {
        inode: Inode,
        changes: Changes,
    },
    ReadLink {
        inode: Inode,
    },
    /// A file, FIFO, socket or device.
    MakeNode {
        parent: Inode,
        name: Vec<u8>,
        kind: FileKind,
        mode: u16,
        device: u32,
    },
    MakeFolder {
        parent: Inode,
        name: Vec<u8>,
        mode: u16,
    },
    Symlink {
        parent: Inode,
        name: Vec<u8>,
        target: Vec<u8>,
    },
    Link {
        inode: Inode,
        parent: Inode,
        name: Vec<u8>,
    },
    Unlink {
        parent: Inode,
        name: Vec<u8>,
    },
    RemoveFolder {
        parent: Inode,
        name: Vec<u8>,
    },
    Rename {
        parent: Inode,
        name: Vec<u8>,
        new_parent: Inode,
        new_name: Vec<u8>,
        mode: RenameMode,
    },
    Open {
        inode: Inode,
        flags: OpenFlags,
    },
    Create {
        parent: Inode,
        name: Vec<u8>,
        mode: u16,
        flags: OpenFlags,
    },
    Read {
        handle: Handle,
        offset: u64,
        size: u32,
    },
    Write {
        handle: Handle,
        offset: u64,
        data: Bytes,
        kill_set_id: bool,
    },
    /// A descriptor of the file is closed; others may be open.
    Flush {
        handle: Handle,
    },
    /// The last descriptor of an open is closed.
    Release {
        handle: Handle,
    },
    Fsync {
        handle: Handle,
        data_only: bool,
    },
    OpenFolder {
        inode: Inode,
    },
    /// Entries behind the entry with this cursor; 0 for the first.
    ReadFolder {
        handle: Handle,
        cursor: u64,
        with_attributes: bool,
    },
    ReleaseFolder {
        handle: Handle,
    },
    FsyncFolder {
        handle: Handle,
    },
    Statistics,
    SetXattr {
        inode: Inode,
        name: Vec<u8>,
        value: Vec<u8>,
        mode: XattrMode,
    },
    GetXattr {
        inode: Inode,
        name: Vec<u8>,
    },
    ListXattrs {
        inode: Inode,
    },
    RemoveXattr {
        inode: Inode,
        name: Vec<u8>,
    },
    Allocate {
        handle: Handle,
        offset: u64,
        length: u64,
        mode: Allocate,
    },
    Seek {
        handle: Handle,
        offset: u64,
        seek: Seek,
    },
    CopyRange {
        from: Handle,
        from_offset: u64,
        to: Handle,
        to_offset: u64,
        length: u64,
    },
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// The inode.
    pub inode: Inode,
    /// The type.
    pub kind: FileKind,
    /// What a later [`Call::ReadFolder`] continues behind; never 0.
    pub cursor: u64,
    /// The facts, where wanted; each counts as a look-up of the inode, but for `.` and `..`, and only for entries that the host took.
    pub attributes: Option<Attributes>,
}

/// Room and numbers of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Octets in all.
    pub octets: u64,
    /// Free octets.
    pub free: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Done, nothing to tell.
    Done,
    /// An inode; counts as a look-up.
    Entry(Attributes),
    /// Facts of an inode.
    Attributes(Attributes),
    /// Octets of a file, a target of a link, or the value of an attribute.
    Octets(Bytes),
    /// Octets taken.
    Written(u32),
    /// An open file or folder, and whether pages that the kernel has are still right.
    Opened {
        /// The handle.
        handle: Handle,
        /// Whether the kernel keeps its pages.
        keep_cache: bool,
    },
    /// A created and open file; counts as a look-up.
    Created(Attributes, Handle),
    /// Entries from the cursor on; none at the end. A host that cannot pass on all of them asks again.
    Entries(Vec<Entry>),
    /// Room.
    Statistics(Statistics),
    /// Names of extended attributes.
    Names(Vec<Vec<u8>>),
    /// An offset.
    Offset(u64),
}

/// Why a call failed: the names of POSIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[allow(missing_docs, reason = "the names are those of POSIX")]
pub enum Errno {
    #[error("EPERM")]
    Perm,
    #[error("ENOENT")]
    NoEnt,
    #[error("EIO")]
    Io,
    #[error("EBADF")]
    BadF,
    #[error("EACCES")]
    Acces,
    #[error("EBUSY")]
    Busy,
    #[error("EEXIST")]
    Exist,
    #[error("ENOTDIR")]
    NotDir,
    #[error("EISDIR")]
    IsDir,
    #[error("EINVAL")]
    Inval,
    #[error("EFBIG")]
    FBig,
    #[error("ENOSPC")]
    NoSpc,
    #[error("EROFS")]
    RoFs,
    #[error("EMLINK")]
    MLink,
    #[error("ENAMETOOLONG")]
    NameTooLong,
    #[error("ENOTEMPTY")]
    NotEmpty,
    #[error("ENODATA")]
    NoData,
    #[error("E2BIG")]
    TooBig,
    #[error("ENXIO")]
    NxIo,
    #[error("EOPNOTSUPP")]
    OpNotSupp,
    #[error("ESTALE")]
    Stale,
    #[error("EDQUOT")]
    DQuot,
    #[error("ETIMEDOUT")]
    TimedOut,
    #[error("ENOMEM")]
    NoMem,
    /// A row lies in a page that is not in memory: the engine fetches the page and tries again. No program sees this error.
    #[error("EAGAIN")]
    Again,
}

/// What the kernel must forget, because another mount has changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalidate {
    /// Facts and pages of an inode.
    Inode(Inode),
    /// A name in a folder.
    Entry {
        /// The folder.
        parent: Inode,
        /// The name.
        name: Vec<u8>,
    },
}
