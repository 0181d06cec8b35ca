//! The small traits through which engines reach the outside world.

pub mod directory;
pub mod files;
pub mod mail_accounts;
pub mod mail_meta;
pub mod spill;
pub mod spool_log;
pub mod storage;
