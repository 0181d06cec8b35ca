//! The agreement with the kernel at the start of a mount.

use std::time::Duration;

use fuser::{InitFlags, KernelConfig};

use crate::options::{BACKGROUND_CALLS_MAX, CALL_OCTETS_MAX};

/// Flags to ask of a kernel that knows the flag. Without POSIX_LOCKS and FLOCK_LOCKS the kernel keeps locks itself, as on
/// a local disk; without POSIX_ACL the kernel checks mode bits.
const WANTED: [InitFlags; 9] = [
    InitFlags::FUSE_ASYNC_READ,
    InitFlags::FUSE_MAX_PAGES,
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    InitFlags::FUSE_CACHE_SYMLINKS,
];
pub(crate) fn negotiate(config: &mut KernelConfig) {
    for flag in WANTED {
        // A kernel without the flag works without.
        let _without = config.add_capabilities(flag);
    }
    // Each setter gives back the nearest value, where the kernel has a lower bound.
    let _bounded = config.set_max_write(CALL_OCTETS_MAX);
    if let Err(most) = config.set_max_readahead(CALL_OCTETS_MAX) {
        let _bounded = config.set_max_readahead(most);
    }
    let _bounded = config.set_max_background(BACKGROUND_CALLS_MAX);
    let _bounded = config.set_time_granularity(Duration::from_nanos(1));
}
