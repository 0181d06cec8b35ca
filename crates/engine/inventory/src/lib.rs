//! What the accounts of a volume have. A [`survey`] lists every mailbox; rows are compared with the listings ([`compare`]) and
//! with each other ([`fit`]); an [`inspect`]ion reads whole mails, which are [`verified`]; a [`finding`] is told to people, by the
//! [`paths`] of files. A [`salvage`] finds content by mails alone, and [`head`] is the mailbox of facts.
//! A [`collection`] decides which mails nobody needs, and what others need is [`moving`] into new packs; the [`chain`] of commits is
//! checked for gaps. An [`upkeep`] is a run of any kind. The crate `vere-mailfs` asks the accounts, and changes rows.

pub mod chain;
pub mod collection;
pub mod compare;
pub mod finding;
pub mod fit;
pub mod head;
pub mod inspect;
pub mod moving;
pub mod paths;
pub mod salvage;
pub mod survey;
#[cfg(test)]
mod tests;
pub mod upkeep;
pub mod verified;

use vere_files::tree;
use vere_mailfs_format::{format, rows};
