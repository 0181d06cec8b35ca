//! The end of a mount, by the mount's process or by another process.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};

use crate::attach::{HELPER, KIND, helper_error, source_of};
use crate::error::MountError;
use crate::point::{self, Mounted};

/// How hard to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Programs keep open files.
    Soft,
    /// Calls under way and open files fail, also where the engine does not answer.
    Forced,
}

/// The result of an unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmounted {
    /// The mount is gone.
    Clean,
    /// The mount is out of the tree, and ends with the last program using the mount.
    Detached,
}

/// Unmounts.
///
/// # Errors
/// When no FUSE file system is mounted there, or the right is missing.
pub fn unmount(at: &Path, strength: Strength) -> Result<Unmounted, MountError> {
    let whole =
        point::absolute(at).map_err(|error| MountError::system(at.display().to_string(), error))?;
    let mounted = found(&whole)?;
    unmount_found(&mounted, strength)
}

/// Unmounts a mount of this name whose process has ended. Returns whether there was one.
///
/// # Errors
/// When the table of mounts cannot be read, or the right is missing.
pub fn clear_dead(at: &Path, name: &str) -> Result<bool, MountError> {
    let Ok(whole) = point::absolute(at) else {
        return Ok(false);
    };
    let own = |mounted: &Mounted| mounted.kind == KIND && mounted.source == source_of(name);
    let mounted = point::mounted_at(&whole)
        .map_err(|error| MountError::system("/proc/self/mountinfo", error))?
        .filter(own);
    match mounted {
        Some(mounted) if point::is_dead(&whole) => {
            // Programs with open files keep the rest of a dead mount, and see errors only.
            unmount_found(&mounted, Strength::Soft).map(|_| true)
        }
        _ => Ok(false),
    }
}

fn found(whole: &Path) -> Result<Mounted, MountError> {
    point::mounted_at(whole)
        .map_err(|error| MountError::system("/proc/self/mountinfo", error))?
        .filter(Mounted::is_fuse)
        .ok_or_else(|| MountError::NotMounted(whole.into()))
}

/// Unmounts the mount of this connection, and no other one at the same place. By force, a mount that is out of the tree ends
/// too.
pub(crate) fn unmount_own(
    at: &Path,
    minor: Option<u32>,
    strength: Strength,
) -> Result<Unmounted, MountError> {
    let own = |mounted: &Mounted| minor.is_none_or(|minor| minor == mounted.minor);
    match (found(at), minor) {
        (Ok(mounted), _) if own(&mounted) => unmount_found(&mounted, strength),
        (Err(error @ MountError::System { .. }), _) => Err(error),
        (_, Some(minor)) if strength == Strength::Forced => match abort(minor) {
            Ok(()) => Ok(Unmounted::Clean),
            Err(error) => Err(MountError::system(
                "/sys/fs/fuse/connections (the file system fusectl)",
                error,
            )),
        },
        _ => Err(MountError::NotMounted(at.into())),
    }
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
