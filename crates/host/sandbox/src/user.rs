//! Another user.

use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};

use super::layers::Missing;

/// The user and group to which no file belongs: the kernel's overflow ids (proc_sys_kernel(5)).
const NOBODY: u32 = 65534;

/// Changes root to nobody, which takes all capabilities away.
pub(super) fn become_nobody() -> Result<(), Missing> {
    if !geteuid().is_root() {
        return Err(Missing::NotRoot);
    }
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(())
}
