//! The operations of a file system on rows and contents.
//!
//! Every operation answers as ext4 on Linux does, for what the kernel leaves to a file system mounted with
//! `default_permissions`: the kernel walks paths, compares names with `.` and `..`, and checks permissions.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod again;
mod attributes;
mod damage;
mod files;
mod folders;
mod inodes;
mod io;
mod lookups;
mod moves;
mod names;
mod numbers;
mod open;
mod outcome;
mod ranges;
mod rename;
mod session;
mod state;
#[cfg(test)]
mod tests;
mod touch;
mod upload;
mod xattrs;

pub use damage::Damage;
pub use moves::inode_for_copy;
pub use names::{LINKS_MAX, root_folder};
pub use numbers::Numbers;
pub use outcome::{ContentChange, DirtyFile, Outcome, ReadPlan, UnsentRange};
pub use session::Session;
pub use state::Files;
