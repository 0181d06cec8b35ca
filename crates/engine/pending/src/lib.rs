//! What a mounted volume holds until accounts and the chain have it: changes that wait for [`commits`], [`checkpoints`] on the
//! way, [`reads`] and [`pages`] that wait for accounts, and the fate of written octets on their way into [`packs`]. The crate
//! `vere-mailfs` asks the accounts, and builds the commits.

pub mod checkpoints;
pub mod commits;
pub mod deadlines;
pub mod epochs;
pub mod packs;
pub mod pages;
pub mod reads;
pub mod replicas;

use vere_files::{content, merge};
use vere_mailfs_format::{format, rows};
