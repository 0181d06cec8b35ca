//! The order of commits in the log of a volume. The [`chain`] decides which commit follows which; a commit is [`found`] in the
//! log, and people tell commits apart by [`fingerprint`]s. The crate `vere-mailfs` asks the account, and applies rows.

pub mod chain;
pub mod fingerprint;
pub mod found;
mod holes;
mod sent;
#[cfg(test)]
mod tests;

use vere_mailfs_format::{format, rows};
