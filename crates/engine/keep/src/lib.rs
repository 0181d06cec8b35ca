//! What a volume on mail accounts keeps on the local disk. The [`journal`] has every change until a commit has the change, in
//! [`record`]s, and gives octets back ([`regain`]). Commits ([`commit_store`]), pages ([`page_store`]), chunks ([`chunk_store`]) and
//! hints to the chunks of the volume ([`local`]) are there for speed, and for a mount without accounts: a mount without them is
//! slower, and loses nothing. The crate `vere-mailfs` fills and asks the stores.

pub mod chunk_store;
pub mod commit_store;
mod hints;
pub mod journal;
pub mod keep_job;
pub mod local;
mod numbered;
pub mod page_store;
pub mod record;
pub mod regain;
#[cfg(test)]
mod tests;

use vere_files::{content, pages, posix, tree};
use vere_mailfs_format::{format, rows};
