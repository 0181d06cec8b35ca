//! The commands that look after a running system and its records in the DNS: `vere status`, `vere reload`, `vere dns`.
//!
//! Each finding has a remedy ([`finding`]); exit codes tell findings from failures.

pub mod dns;
pub mod figures;
pub mod finding;
pub mod reload;
pub mod status;
