//! A run of upkeep.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::super::state::pages::Bring;
use super::anew::Anew;
use super::collect::{CollectReport, CollectTerms, Plan, Present};
use super::compare::Comparison;
use super::finding::{CheckReport, CheckTerms};
use super::history::History;
use super::inspect::{Inspection, Suspect, Verdict};
use super::listing::{Doomed, Listing};
use super::losers::Losers;
use super::moving::Moving;
use super::rows::{Removing, Writing};
use super::scan::{Scan, Weighed};
use super::slots::Verified;
use super::survey::{Inventory, Look, Survey};
use super::walk::Walk;
use crate::format::{Locator, MailCopy, MailId};
use crate::rows::{TombstoneRow, UpkeepRow};

/// What an answer to a run is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ticket {
    Look(Look),
    Mail(usize),
    Batch(usize),
    /// The page that a walk reads.
    Page,
    /// A frame that is moved, and the account that is asked.
    Frame(usize, u16),
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upkept {
    /// A check.
    Checked(CheckReport),
    /// A collection.
    Collected(CollectReport),
    /// Rows that were given.
    Written,
    /// The run could not go on.
    Failed(String),
}

/// A run.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(super) what: What,
    pub(super) stage: Stage,
    /// The newest commit when the run began.
    pub(super) head: (MailId, u64),
    pub(super) inventory: Inventory,
    pub(super) comparison: Comparison,
    /// What a collection has found and decided.
    pub(super) garbage: Garbage,
    /// Packs that rows have named since the run began: none of these goes.
    pub(super) touched: HashSet<u64>,
    /// Packs whose rows have changed since the run began: a listing may be older.
    pub(super) new_rows: HashSet<u64>,
    /// Whether another slice of work follows without any answer.
    pub(super) is_hungry: bool,
    pub(super) failed: Option<String>,
    pub(super) bring: Bring,
}

#[derive(Debug)]
pub(super) enum What {
    Check(CheckTerms, CheckReport),
    Collect(CollectTerms, CollectReport),
    /// Rows that are given.
    Rows,
}

#[derive(Debug)]
pub(super) enum Stage {
    Begin,
    Survey(Survey),
    /// Rows are compared with what a check has listed.
    Compare,
    Inspect(Inspection),
    /// Mails are read.
    Judge(Vec<(Suspect, Verdict)>),
    Walk(Box<Walk>),
    Scan(Box<Scan>),
    Write(Writing, Then),
    Copy,
    Remove(Removing),
    Move(Box<Moving>),
    Anew(Box<Anew>),
    Over,
}

/// What follows written rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Copy,
    Remove,
    Move,
    Anew,
    End,
}

/// What a collection has found and decided.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    pub(super) present: Option<Present>,
    pub(super) listing: Listing,
    pub(super) history: History,
    pub(super) snapshots: Vec<Locator>,
    /// Mails of pages that kept checkpoints reach; absent if a page could not be read.
    pub(super) reached: Option<HashSet<MailId>>,
    /// Packs that snapshots need.
    pub(super) packs: BTreeSet<u64>,
    pub(super) good: BTreeSet<MailCopy>,
    /// Verdicts about listed key slots.
    pub(super) slots: Verified,
    /// Packs weighed and not yet decided about.
    pub(super) weighed: VecDeque<Weighed>,
    pub(super) plan: Plan,
    /// Commits that lost a race.
    pub(super) losers: Losers,
    /// Mails that go without a tombstone.
    pub(super) doomed: Vec<Doomed>,
    /// Packs whose content moves.
    pub(super) thin: HashSet<u64>,
    pub(super) thin_octets: u64,
    pub(super) row: UpkeepRow,
    /// Tombstones of the mails under removal.
    pub(super) due: BTreeMap<u64, TombstoneRow>,
}
