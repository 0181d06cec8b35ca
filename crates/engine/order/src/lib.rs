//! The order of commits in the log of a volume. The [`chain`] decides which commit follows which; a commit is [`found`] in the
//! log, and people tell commits apart by [`fingerprint`]s. Further accounts keep [`copies`]
//! of the chain, or have logs of their own ([`other_logs`]). The crate `vere-mailfs` asks the account, and applies rows.

pub mod chain;
mod compare;
pub mod confirm;
pub mod copies;
pub mod fingerprint;
pub mod found;
mod holes;
pub mod other_logs;
mod pause;
pub mod recent;
mod sent;
#[cfg(test)]
mod tests;

use vere_mailfs_format::{format, rows};
