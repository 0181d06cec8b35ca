//! A POSIX file system kept in mails of ordinary accounts (Srinivasan, "Email-based File System").
//!
//! The design, with words, formats and promises, is `docs/internals/mailfs.md`.

pub mod content;
pub mod pages;
pub mod posix;
pub mod tree;
pub mod volume;

pub use vere_mailfs_format::{format, rows};
