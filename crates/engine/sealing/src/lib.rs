//! The mails of a volume's packs, sealed and opened: [`job`]s without state, for any thread. The crate `vere-mailfs` has the jobs
//! carried out.

pub mod job;
#[cfg(test)]
mod tests;
pub mod mirror;

use vere_mailfs_format::format;
