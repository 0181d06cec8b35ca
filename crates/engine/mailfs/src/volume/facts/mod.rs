//! Changes of the facts about a volume: key slots, key epochs, accounts and groups.
//!
//! A run goes by stages. New key slots are stored on every account before a commit lists them; the facts' mail follows the
//! commit; what the change has replaced is removed last. So a client that dies at any request leaves a volume that the old
//! secret opens, or the new one, or the old one until the next mount commits what its journal has. A slot that no commit lists
//! is trusted by nobody.
//!
//! A failure before the commit leaves the facts as they were. Afterwards the change counts, and accounts that do not answer are
//! named as behind; the next run tidies them.

mod epoch;
mod leave;
mod look;
mod mails;
mod run;
mod tidy;

use std::collections::BTreeMap;
use std::sync::Arc;

use vere_units::Timestamp;

use self::look::Looking;
use self::mails::Mails;
use self::tidy::Tidying;
use super::accounts::{AccountTerms, GroupTerms};
use super::upkeep::rows::Writing;
use crate::format::slot::Slot;
use crate::format::{Keys, MailId};

pub use self::leave::Leaving;

/// A change of facts.
#[derive(Debug, Clone, Default)]
pub struct FactsChange {
    /// Key slots for every account.
    pub slots: Vec<Slot>,
    /// Rows that change: keys, and values where a row stays.
    pub rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The keys of all epochs, the new one among them, where a key epoch begins.
    pub keys: Option<(u16, Arc<Keys>)>,
    /// Accounts that the volume gets. They keep no data before [`Volume::use_accounts`](super::Volume::use_accounts).
    pub accounts: Vec<AccountTerms>,
    /// The volume's name, for facts without an earlier mail.
    pub name: String,
}

/// Accounts and groups after a change.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    /// All accounts.
    pub accounts: Vec<AccountTerms>,
    /// All groups.
    pub groups: Vec<GroupTerms>,
}

/// The result of a change that counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FactsReport {
    /// Accounts without the newest facts or with replaced mails, and why.
    pub behind: BTreeMap<u16, String>,
    /// Replaced mails that are removed.
    pub removed: usize,
}

/// A change on its way.
#[derive(Debug)]
pub(crate) struct FactsRun {
    change: FactsChange,
    stage: Stage,
    report: FactsReport,
    /// The mail of the facts, once made.
    mail: MailId,
    /// Whether a key epoch begins.
    rotates: bool,
    failed: Option<String>,
    /// When accounts that fail are given up; none while no account is waited for.
    until: Option<Timestamp>,
}

impl FactsRun {
    /// When the run must go on at the latest.
    pub(crate) const fn until(&self) -> Option<Timestamp> {
        self.until
    }
}

/// What an answer to a run is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FactsTicket {
    Look,
    Mail(usize),
    Tidy,
}

#[derive(Debug)]
enum Stage {
    Look(Looking),
    Slots(Mails, Box<Looking>),
    Rows(Writing, Box<Looking>),
    /// The first commit of a new epoch is on its way.
    Epoch(Writing, Box<Looking>),
    Facts(Mails),
    Tidy(Tidying),
    Over,
}
