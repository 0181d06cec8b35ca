//! The outcome of an opening.

use std::collections::HashMap;

use vere_keep::commit_store::CommitStore;
use vere_keep::journal::Journal;
use vere_keep::record::{Part, Won};
use vere_order::found::Found;
use vere_pending::checkpoints::Checkpoints;
use vere_ports::storage::Storage;
use vere_replay::Replay;

use super::log::Log;
use crate::follow::Follow;
use crate::format::MailId;
use crate::merge::Merged;
use crate::terms::{Create, Terms};
use crate::tree::Tree;

/// All that a volume begins with.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// What the mount was told.
    pub terms: Terms,
    /// Facts of the volume besides the terms.
    pub of: Create,
    /// The state at the newest commit of the log below.
    pub tree: Tree,
    /// The journal.
    pub journal: Journal<S>,
    /// Commits on the local disk.
    pub memory: CommitStore<S>,
    /// Records of the journal.
    pub records: Vec<(u64, Vec<Part>)>,
    /// The records that no commit has.
    pub replay: Replay,
    /// The newest commit of the tree.
    pub head: Won,
    /// The highest UID seen in the log.
    pub known: u32,
    /// The key epoch of the newest commit of all.
    pub epoch: u16,
    /// Checkpoints, and the commits behind the newest one.
    pub checkpoints: Checkpoints,
    /// Knowledge about commits of other mounts.
    pub follow: Follow,
    /// The log up to the newest commit of the tree.
    pub log: Log,
    /// Commits behind the one on which changes of the journal lie.
    pub later: Vec<Found>,
    /// Where log and pages are.
    pub places: Places,
    /// The number of the last request.
    pub last_id: u64,
    /// The account whose copy was read in place of the lead, and why.
    pub stand_in: Option<(u16, String)>,
    /// The highest writer of a state that the log has lost.
    pub lost_writer: u16,
    /// The merge of changes whose base is gone.
    pub merged: Option<Merged>,
}

/// UIDVALIDITY of log and pages, the UIDs of page mails that are not where their locators say, and from which UID on the log is
/// still to be compared, if the local disk alone was read.
#[derive(Debug)]
pub struct Places {
    /// UIDVALIDITY of the log.
    pub log: u32,
    /// UIDVALIDITY of the pages, or 0.
    pub pages: u32,
    /// The UIDs of page mails.
    pub moved: HashMap<MailId, u32>,
    /// The UID of the comparison.
    pub first: Option<u32>,
}
