//! Files: the synced log, Maildir, directory stores, the mail store's metadata.

#[cfg(feature = "directory")]
pub mod directory;
pub mod log;
pub mod mail_meta;
pub mod maildir;
pub mod spill;

/// Octets that are free on the disk of a folder, for whoever is not root.
///
/// # Errors
///
/// What the system says.
pub fn free_octets(folder: &std::path::Path) -> std::io::Result<u64> {
    room(folder).map(|room| room.free)
}

/// The disk of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Octets that are free, for whoever is not root.
    pub free: u64,
    /// All that it holds.
    pub all: u64,
}

/// How much the disk of a folder holds, and how much of that is free.
///
/// # Errors
///
/// What the system says.
pub fn room(folder: &std::path::Path) -> std::io::Result<Room> {
    let system = nix::sys::statvfs::statvfs(folder)?;
    let octets = |blocks: u64| blocks.saturating_mul(system.fragment_size());
    Ok(Room {
        free: octets(system.blocks_available()),
        all: octets(system.blocks()),
    })
}
