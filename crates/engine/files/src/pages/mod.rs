//! Checkpoints: the rows of a volume in immutable pages, a B+ tree in mails of the mailbox `pages`.
//!
//! A [`PageTree`] reads pages that are in memory, and names the page that is missing. A [`Draft`] writes the pages that
//! changes touch, and leaves all other pages where they are.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod draft;
mod items;
mod mails;
mod read;

pub use crate::format::page::{Child, LEVELS_MAX, Page};
pub use draft::{Draft, DraftError, Progress};
pub use mails::{Lot, PageMail};
pub use read::{LocalPages, Missing, PageTree, RowVisitor};

#[cfg(test)]
pub(crate) mod tests;
