//! Files: the synced log, Maildir, directory stores.

pub mod directory;
pub mod log;
pub mod maildir;
pub mod spill;
