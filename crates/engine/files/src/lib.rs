//! The files of a volume on mail accounts: a tree of rows ([`tree`]) and its pages ([`pages`]), contents of files
//! ([`content`]), and the POSIX operations on both ([`posix`]). The crate `vere-mailfs` brings them to accounts and back.

pub mod content;
pub mod pages;
pub mod posix;
pub mod tree;

pub use vere_mailfs_format::{format, rows};
