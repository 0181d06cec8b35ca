//! A POSIX file system kept in mails of ordinary accounts (Srinivasan, "Email-based File System").
//!
//! The design, with words, formats and promises, is `docs/internals/mailfs.md`.

mod breakage;
pub mod volume;

pub use vere_files::{content, merge, pages, posix, tree};
pub use vere_mailfs_format::{format, rows};
