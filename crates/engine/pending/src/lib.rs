//! What a mounted volume holds until accounts and the chain have it: changes that wait for [`commits`], [`checkpoints`] on the
//! way, [`reads`] and [`pages`] that wait for accounts, and written octets, which become chunks ([`cuts`]) on their way into
//! [`packs`] ([`uploads`]). The crate `vere-mailfs` asks the accounts, and builds the commits.

pub mod checkpoints;
pub mod commits;
pub mod cuts;
pub mod deadlines;
pub mod division;
pub mod epochs;
pub mod packs;
pub mod pages;
pub mod reads;
pub mod replicas;
pub mod uploads;

use vere_files::{content, merge};
use vere_mailfs_format::{format, rows};
