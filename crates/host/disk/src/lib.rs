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
    let system = nix::sys::statvfs::statvfs(folder)?;
    Ok(system
        .blocks_available()
        .saturating_mul(system.fragment_size()))
}
