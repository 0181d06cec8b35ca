//! What a volume on mail accounts keeps on the local disk, for speed alone: pages ([`page_store`]), chunks ([`chunk_store`])
//! and hints to the chunks that the volume has ([`local`]). The crate `vere-mailfs` fills and asks the stores;
//! without a working disk a mount is slower, and nothing is lost.

pub mod chunk_store;
mod hints;
pub mod keep_job;
pub mod local;
pub mod page_store;

use vere_files::pages;
use vere_mailfs_format::{format, rows};
