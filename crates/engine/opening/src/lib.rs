//! The time before a volume exists: an [`Opening`] reads journal, log and pages, from the local disk, the lead or a copy, and
//! decides on which state the volume begins. [`Opened`] is the outcome. The crate `vere-mailfs` makes the volume.
//!
//! The types shared by a volume and its opening are here too: terms, machine, notices, knowledge about commits of others.

mod before;
mod error;
pub mod follow;
mod machine;
mod notice;
mod opening;
mod reopen;
mod reopening;
mod terms;

use vere_files::{merge, pages, tree};
use vere_mailfs_format::{format, rows};

pub use self::error::OpenError;
pub use self::machine::{Machine, is_machine, registration};
pub use self::notice::{Moment, Notice};
pub use self::opening::{Local, Log, OpenStep, Opened, Opening, Places, is_outage};
pub use self::reopen::Reopen;
pub use self::reopening::Reopening;
pub use self::terms::{Create, Terms};
