//! Changes of the facts about a volume: key slots, key epochs, accounts and groups.
//!
//! A run goes by stages. New key slots are stored on every account before a commit lists them; the facts' mail follows the
//! commit; replaced mails are removed last. So a client may die at any request: the old secret opens the volume, or the new
//! secret does, or the old secret until the next mount commits the rows of the journal. A slot without a row is never trusted.
//!
//! Another machine may change the same facts meanwhile. The chain decides: a run whose rows the chain does not have takes no new
//! keys, removes its own slots and nothing else, and fails.
//!
//! A failure before the commit leaves the facts as they were. Afterwards the change counts, and silent accounts are
//! named as behind.

mod claims;
mod epoch;
mod leave;
mod run;

use vere_inventory::head::{look, outgoing as mails, tidy};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vere_units::Timestamp;

use self::look::Looking;
use self::mails::Mails;
use self::tidy::Tidying;
use super::accounts::{AccountTerms, GroupTerms};
use super::upkeep::rows::{RowChange, Writing};
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
    /// Values of the rows before the change: a row with a new value meanwhile stays.
    pub expected: BTreeMap<Vec<u8>, Vec<u8>>,
    /// All slots of the list from which the change was made; the change counts for no other list. Absent where slots stay.
    pub listed: Option<BTreeMap<u8, MailId>>,
    /// The keys of all epochs with the new epoch, where a key epoch begins.
    pub keys: Option<(u16, Arc<Keys>)>,
    /// Further accounts of the volume, without data before [`Volume::use_accounts`](super::Volume::use_accounts).
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

/// A change on the way.
#[derive(Debug)]
pub(crate) struct FactsRun {
    change: FactsChange,
    stage: Stage,
    report: FactsReport,
    /// The mail of the facts, once made.
    mail: MailId,
    /// Whether a key epoch begins.
    rotates: bool,
    /// The run's rows about slots, accounts and groups.
    own: Vec<RowChange>,
    /// Slots that the run replaces.
    replaced: BTreeSet<MailId>,
    /// The generation of the run's facts.
    generation: u64,
    failed: Option<String>,
    /// When failing accounts are given up; absent while no account is waited for.
    until: Option<Timestamp>,
    /// When the run was over; nobody may have taken the result.
    ended: Option<Timestamp>,
}

impl FactsRun {
    /// When the run must go on at the latest.
    pub(crate) const fn until(&self) -> Option<Timestamp> {
        self.until
    }

    /// The run ends without a result, unless the run is over.
    pub(crate) fn end(&mut self, reason: &str, now: Timestamp) {
        if !matches!(self.stage, Stage::Over) {
            self.stage = Stage::Over;
            self.failed = Some(reason.to_owned());
            (self.until, self.ended) = (None, Some(now));
        }
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
    /// The first commit of a new epoch is on the way.
    Epoch(Writing, Box<Looking>),
    Facts(Mails),
    Tidy(Tidying),
    Over,
}
