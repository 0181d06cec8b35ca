//! A run of upkeep.

use std::collections::BTreeMap;

use super::super::state::pages::Bring;
use super::collect::{CollectReport, CollectTerms};
use super::compare::Comparison;
use super::finding::{CheckReport, CheckTerms};
use super::inspect::Inspection;
use super::rows::{Removing, Writing};
use super::survey::{Inventory, Look, Survey};
use crate::format::MailId;
use crate::rows::TombstoneRow;

/// What an answer to a run is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ticket {
    Look(Look),
    Mail(usize),
    Batch(usize),
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
    /// Tombstones whose mails this run removes.
    pub(super) due: BTreeMap<u64, TombstoneRow>,
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
    Survey(Survey),
    Inspect(Inspection),
    Write(Writing, Then),
    Copy,
    Remove(Removing),
    Over,
}

/// What follows written rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Copy,
    Remove,
    End,
}
