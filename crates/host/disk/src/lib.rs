//! Files: the synced log, Maildir, directory stores, the mail store's metadata.

#[cfg(feature = "directory")]
pub mod directory;
pub mod log;
pub mod mail_meta;
pub mod maildir;
pub mod spill;
