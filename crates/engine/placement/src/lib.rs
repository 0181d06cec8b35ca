//! The accounts of a volume on mail accounts: what is known about them ([`accounts`], [`rates`], [`scarcity`], [`speed`]), and
//! to which of them a pack goes ([`strategy`]). The crate `vere-mailfs` asks the accounts.

pub mod accounts;
mod mailboxes;
pub mod rates;
pub mod scarcity;
pub mod speed;
pub mod strategy;
mod terms;
#[cfg(test)]
mod tests;

use vere_mailfs_format::format;
