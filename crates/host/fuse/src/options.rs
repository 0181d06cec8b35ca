//! Options of a mount.

use std::time::Duration;

/// Time that the kernel keeps facts and names, present and absent. The mount invalidates changes of other mounts, so the
/// time needs no small value.
pub(crate) const KEPT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest write and read of a single call, in octets.
pub(crate) const CALL_OCTETS_MAX: u32 = 1 << 20;
/// Calls of read-ahead and releases under way in the kernel at a time.
pub(crate) const BACKGROUND_CALLS_MAX: u16 = 64;
/// Read-ahead of the kernel: four of the longest reads under way. The kernel begins with 128 KiB.
pub(crate) const READ_AHEAD_KIB: u32 = 4096;
/// Loops. A loop reserves 16 MiB of addresses, and touches the length of the longest call.
pub(crate) const LOOPS: usize = 2;
/// Calls without a reply; more are answered with ENOMEM. The kernel bounds background calls, and every other call stands for a thread.
pub(crate) const PENDING_MAX: usize = 65_536;

/// Options of a mount. Permissions are always checked by the kernel (`default_permissions`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The source in the table of mounts.
    pub name: String,
    /// Whether other users may use the mount (`allow_other`).
    pub allow_other: bool,
    /// Whether the mount takes no change.
    pub read_only: bool,
    /// Whether set-id bits of programs count (`suid`).
    pub suid: bool,
    /// Whether device nodes work (`dev`).
    pub devices: bool,
}
