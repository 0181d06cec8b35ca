//! A run of upkeep: a check, a collection, or rows that are given.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use vere_pending::pages::Bring;

use crate::collection::anew::Anew;
use crate::collection::collect::{CollectReport, CollectTerms, Plan, Present};
use crate::collection::history::History;
use crate::collection::listing::{Doomed, Listing};
use crate::collection::losers::Losers;
use crate::collection::rows::{Removing, Writing};
use crate::collection::scan::{Scan, Weighed};
use crate::collection::slots::Verified;
use crate::collection::walk::Walk;
use crate::compare::Comparison;
use crate::finding::{CheckReport, CheckTerms};
use crate::format::{Locator, MailCopy, MailId};
use crate::inspect::{Inspection, Suspect, Verdict};
use crate::moving::Moving;
use crate::rows::{TombstoneRow, UpkeepRow};
use crate::survey::{Inventory, Look, Survey};

/// What an answer to a run is about.
#[derive(Debug, Clone, Copy)]
pub enum Ticket {
    /// A request of the survey.
    Look(Look),
    /// A mail that is inspected.
    Mail(usize),
    /// Mails that are removed.
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
pub struct Upkeep {
    /// What the run is for.
    pub what: What,
    /// How far the run is.
    pub stage: Stage,
    /// The newest commit when the run began.
    pub head: (MailId, u64),
    /// What the accounts have, as a check has listed.
    pub inventory: Inventory,
    /// The rows against the inventory.
    pub comparison: Comparison,
    /// What a collection has found and decided.
    pub garbage: Garbage,
    /// Packs that rows have named since the run began: none of these goes.
    pub touched: HashSet<u64>,
    /// Packs whose rows have changed since the run began: a listing may be older.
    pub new_rows: HashSet<u64>,
    /// Whether another slice of work follows without any answer.
    pub is_hungry: bool,
    /// Why the run has failed, if so.
    pub failed: Option<String>,
    /// The walk that brings the pages of all rows.
    pub bring: Bring,
}

/// What a run is for.
#[derive(Debug)]
pub enum What {
    /// A check.
    Check(CheckTerms, CheckReport),
    /// A collection.
    Collect(CollectTerms, CollectReport),
    /// Rows that are given.
    Rows,
}

/// How far a run is.
#[derive(Debug)]
pub enum Stage {
    /// Nothing is asked yet.
    Begin,
    /// Accounts are listed.
    Survey(Survey),
    /// Rows are compared with what a check has listed.
    Compare,
    /// Mails are inspected.
    Inspect(Inspection),
    /// Mails are read.
    Judge(Vec<(Suspect, Verdict)>),
    /// Pages of the past are read.
    Walk(Box<Walk>),
    /// Packs are weighed.
    Scan(Box<Scan>),
    /// Rows are changed.
    Write(Writing, Then),
    /// Copies are made.
    Copy,
    /// Mails are removed.
    Remove(Removing),
    /// Content moves.
    Move(Box<Moving>),
    /// Files are written anew.
    Anew(Box<Anew>),
    /// The run has ended.
    Over,
}

/// What follows written rows.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// Copies are made.
    Copy,
    /// Mails are removed.
    Remove,
    /// Content moves.
    Move,
    /// Files are written anew.
    Anew,
    /// The run ends.
    End,
}

/// What a collection has found and decided.
#[derive(Debug, Default)]
pub struct Garbage {
    /// The time of the collection.
    pub present: Option<Present>,
    /// Mails without rows.
    pub listing: Listing,
    /// What the past needs.
    pub history: History,
    /// The roots of snapshots.
    pub snapshots: Vec<Locator>,
    /// Mails of pages that kept checkpoints reach; absent if a page could not be read.
    pub reached: Option<HashSet<MailId>>,
    /// Packs that snapshots need.
    pub packs: BTreeSet<u64>,
    /// Copies whose mails are good.
    pub good: BTreeSet<MailCopy>,
    /// Verdicts about listed key slots.
    pub slots: Verified,
    /// Packs weighed and not yet decided about.
    pub weighed: VecDeque<Weighed>,
    /// The tombstones of the run.
    pub plan: Plan,
    /// Commits that lost a race.
    pub losers: Losers,
    /// Mails that go without a tombstone.
    pub doomed: Vec<Doomed>,
    /// Packs whose content moves.
    pub thin: HashSet<u64>,
    /// Octets of this content.
    pub thin_octets: u64,
    /// The row about the collection.
    pub row: UpkeepRow,
    /// Tombstones of the mails under removal.
    pub due: BTreeMap<u64, TombstoneRow>,
}
