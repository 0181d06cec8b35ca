//! A data directory that a restore did not finish.

/// The file that a data directory has as long as a backup is being restored into it: a system that began there would
/// take the missing files for new ones.
pub const INCOMPLETE: &str = "restore-incomplete";
