//! Failures of mounts and unmounts, with remedies.

use std::io;
use std::path::PathBuf;

/// Why a mount or an unmount failed. Each text names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel has no FUSE device.
    #[error(
        "/dev/fuse: expected the FUSE device; found none. Load the module with `modprobe fuse`; a container needs `--device /dev/fuse`"
    )]
    DeviceAbsent,
    /// The FUSE device is closed to this user.
    #[error(
        "/dev/fuse: expected the right to read and write; found none. Run as root, or set mode 0666, as is usual"
    )]
    DeviceClosed,
    /// This user may not mount.
    #[error(
        "{}: expected the right to mount; found none. Run as root, install the package fuse3 (fusermount3), or give a container CAP_SYS_ADMIN",
        .0.display()
    )]
    Right(PathBuf),
    /// There is no folder to mount at.
    #[error("{}: expected a folder to mount at; found nothing. Create the folder with `mkdir -p`", .0.display())]
    PointAbsent(PathBuf),
    /// The mount point is no folder.
    #[error("{}: expected a folder to mount at; found something else", .0.display())]
    PointNoFolder(PathBuf),
    /// The folder is not empty.
    #[error("{path}: expected an empty folder to mount at; found the entry {1:?}", path = .0.display())]
    PointFull(PathBuf, String),
    /// A file system in user space is mounted already.
    #[error("{path}: expected a free mount point; found a mount of {1}. Unmount with `vere fs umount {path}` first", path = .0.display())]
    PointBusy(PathBuf, String),
    /// The process behind a mount has ended.
    #[error(
        "{path}: expected a free mount point; found a mount whose process has ended (\"Transport endpoint is not connected\"). Unmount with \
         `vere fs umount {path}` first",
        path = .0.display()
    )]
    PointStale(PathBuf),
    /// No mount was found.
    #[error("{}: expected a mount; found none", .0.display())]
    NotMounted(PathBuf),
    /// The helper refuses.
    #[error("fusermount3: {0}")]
    Helper(String),
    /// A call of the system failed.
    #[error("{what}: {error}")]
    System {
        /// The call.
        what: String,
        /// The failure.
        #[source]
        error: io::Error,
    },
}

impl MountError {
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            error: error.into(),
        }
    }
}
