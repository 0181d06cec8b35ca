//! Files: the synced log, Maildir, directory stores, the mail store's metadata.

#[cfg(feature = "directory")]
pub mod directory;
pub mod log;
pub mod mail_meta;
pub mod maildir;
pub mod spill;

/// Returns the octets of a folder's file system that unprivileged users can still write.
///
/// # Errors
///
/// The error of the operating system.
pub fn free_octets(folder: &std::path::Path) -> std::io::Result<u64> {
    room(folder).map(|room| room.free)
}

/// Size and free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Octets that unprivileged users can still write.
    pub free: u64,
    /// Size in octets.
    pub all: u64,
}

/// Returns size and free space of the file system that contains a folder.
///
/// # Errors
///
/// The error of the operating system.
pub fn room(folder: &std::path::Path) -> std::io::Result<Room> {
    let system = nix::sys::statvfs::statvfs(folder)?;
    let octets = |blocks: u64| blocks.saturating_mul(system.fragment_size());
    Ok(Room {
        free: octets(system.blocks_available()),
        all: octets(system.blocks()),
    })
}
