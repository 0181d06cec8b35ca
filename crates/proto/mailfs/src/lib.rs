//! The octets of a file system in mail accounts: mails with sealed frames, key slots, records of commits, subjects, encodings
//! ([`mod@format`]), and rows of the volume's key space ([`rows`]). The engine is the crate `vere-mailfs`.

pub mod format;
pub mod rows;
