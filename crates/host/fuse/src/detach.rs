//! The end of a mount, by its own process or by another.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};

use crate::attach::{HELPER, helper_error};
use crate::error::MountError;
use crate::point::{self, Mounted};

/// How hard to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Programs keep what they have open.
    Soft,
    /// Calls under way and open files fail, also where the engine does not answer.
    Forced,
}

/// What an unmount has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmounted {
    /// The mount is gone.
    Clean,
    /// The mount is out of the tree, and ends with the last program that has a part open.
    Detached,
}

/// Unmounts.
///
/// # Errors
/// When nothing of FUSE is mounted there, or the right is missing.
pub fn unmount(at: &Path, strength: Strength) -> Result<Unmounted, MountError> {
    let whole =
        point::absolute(at).map_err(|error| MountError::system(at.display().to_string(), error))?;
    let mounted = found(&whole)?;
    unmount_found(&mounted, strength)
}

fn found(whole: &Path) -> Result<Mounted, MountError> {
    point::mounted_at(whole)
        .map_err(|error| MountError::system("/proc/self/mountinfo", error))?
        .filter(Mounted::is_fuse)
        .ok_or_else(|| MountError::NotMounted(whole.into()))
}

/// Unmounts the mount of this connection, and no other one at the same place.
pub(crate) fn unmount_own(
    at: &Path,
    minor: Option<u32>,
    strength: Strength,
) -> Result<Unmounted, MountError> {
    let mounted = found(at)?;
    if minor.is_some_and(|minor| minor != mounted.minor) {
        return Err(MountError::NotMounted(at.into()));
    }
    unmount_found(&mounted, strength)
}

fn unmount_found(mounted: &Mounted, strength: Strength) -> Result<Unmounted, MountError> {
    let at = mounted.point.as_path();
    let mut flags = MntFlags::from_bits_retain(nix::libc::UMOUNT_NOFOLLOW);
    if strength == Strength::Forced {
        // Without the control file system, MNT_FORCE does the same for root.
        let _without = abort(mounted.minor);
        flags |= MntFlags::MNT_FORCE;
    }
    match umount2(at, flags) {
        Ok(()) => Ok(Unmounted::Clean),
        Err(Errno::EBUSY) => {
            let lazily = flags.difference(MntFlags::MNT_FORCE) | MntFlags::MNT_DETACH;
            umount2(at, lazily).map_err(|errno| umount_error(at, errno))?;
            Ok(Unmounted::Detached)
        }
        Err(Errno::EPERM) => by_helper(at),
        Err(errno) => Err(umount_error(at, errno)),
    }
}

fn umount_error(at: &Path, errno: Errno) -> MountError {
    match errno {
        Errno::EINVAL => MountError::NotMounted(at.into()),
        _ => MountError::system(format!("umount of {}", at.display()), errno),
    }
}

/// Ends a connection: every call under way fails, and none follows.
pub(crate) fn abort(minor: u32) -> io::Result<()> {
    fs::write(format!("/sys/fs/fuse/connections/{minor}/abort"), b"1")
}

fn by_helper(at: &Path) -> Result<Unmounted, MountError> {
    if helper(at, &["-u"])?.is_ok() {
        return Ok(Unmounted::Clean);
    }
    match helper(at, &["-u", "-z"])? {
        Ok(()) => Ok(Unmounted::Detached),
        Err(text) => Err(helper_error(at, &text)),
    }
}

/// The inner result has the text of the helper.
fn helper(at: &Path, flags: &[&str]) -> Result<Result<(), String>, MountError> {
    let output = Command::new(HELPER)
        .args(flags)
        .arg("--")
        .arg(at)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => MountError::Right(at.into()),
            _ => MountError::system(HELPER, error),
        })?;
    if output.status.success() {
        Ok(Ok(()))
    } else {
        Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
