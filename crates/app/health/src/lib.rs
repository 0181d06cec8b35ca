//! The commands that look after a running system and its records in the DNS: `vere status`, `vere reload`,
//! `vere dns`, `vere doctor`, `vere support-bundle`; and commands that ask what would happen: `vere dial`, `vere resolve`, `vere auth`.
//!
//! Each finding has a remedy ([`finding`]); exit codes tell findings from failures.

pub mod auth;
pub mod bundle;
pub mod dial;
pub mod dns;
pub mod doctor;
pub mod figures;
pub mod finding;
pub mod loaded;
pub mod machine;
mod nodes;
mod outward;
mod program;
pub mod reload;
pub mod resolve;
mod row;
pub mod signing;
mod starting;
pub mod status;
pub mod surroundings;
