//! The files of a volume on mail accounts: a tree of rows ([`tree`]) and its pages ([`pages`]), contents of files
//! ([`content`]), the POSIX operations on both ([`posix`]), and the changes of two mounts on one tree ([`merge`]). The crate `vere-mailfs` brings them to accounts and back.

pub mod bring;
pub mod content;
pub mod merge;
pub mod pages;
pub mod posix;
pub mod tree;

pub use vere_mailfs_format::{format, rows};
