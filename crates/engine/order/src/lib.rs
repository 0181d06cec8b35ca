//! The order of commits in the log of a volume. The [`chain`] decides which commit follows which; a commit is [`found`] in the
//! log, and people tell commits apart by [`fingerprint`]s. Further accounts keep [`copies`]
//! of the chain. The crate `vere-mailfs` asks the account, and applies rows.

pub mod chain;
mod compare;
pub mod confirm;
pub mod copies;
pub mod fingerprint;
pub mod found;
mod holes;
mod pause;
pub mod recent;
mod sent;
#[cfg(test)]
mod tests;

use vere_mailfs_format::{format, rows};
