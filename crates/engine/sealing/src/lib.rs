//! The mails of a volume's packs, sealed and opened: [`job`]s without state, for any thread. The crate `vere-mailfs` has the jobs
//! carried out.

pub mod job;
pub mod mirror;
#[cfg(test)]
mod tests;

use vere_mailfs_format::format;
