//! The file whose lock says that a system, or a command for a stopped system, uses a data directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use nix::libc::O_NOFOLLOW;
use nix::unistd::geteuid;

/// Name of the file under the data directory, with the process id of the supervisor.
pub const FILE_NAME: &str = "lock";

/// Opens the file, and gives the file to the directory's owner: a start without root has to open the
/// file, too. The owner may have planted a different file for root to open, hence the checks of type and links.
///
/// # Errors
/// The system's; a link, or a file with several names, is refused.
pub fn open(data: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(data.join(FILE_NAME))?;
    let is = file.metadata()?;
    if !is.is_file() || is.nlink() != 1 {
        return Err(io::Error::other("is not a file of this system, remove it"));
    }
    let owner = data.metadata()?;
    if geteuid().is_root() && is.uid() != owner.uid() {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(file)
}
