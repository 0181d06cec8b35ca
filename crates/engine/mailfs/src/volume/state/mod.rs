//! The state of a mounted volume: data that the files of `volume/` work on.

pub(crate) use vere_opening::follow;
pub(crate) use vere_opening::{Machine, Terms};
pub(crate) use vere_order::{confirm, other_logs};
pub(crate) use vere_pending::{
    checkpoints, commits, deadlines, division, epochs, pages, reads, replicas, uploads,
};
pub(crate) use vere_placement::speed;

use self::checkpoints::Checkpoints;
use self::commits::Commits;
use self::confirm::{Confirm, ConfirmTicket};
use self::deadlines::Deadlines;
use self::epochs::Epochs;
use self::follow::Follow;
use self::other_logs::{LogTicket, OtherLogs};
use self::pages::{Bring, PageFetches};
use self::reads::Reads;
use self::replicas::Replicas;
use self::speed::Speed;
use self::uploads::Uploads;
use super::accounts::Accounts;
use super::chain::Chain;
use super::commit_store::CommitStore;
use super::facts::{FactsRun, FactsTicket};
use super::job::JobId;
use super::job::Seals;
use super::journal::Journal;
use super::local::Local;
use super::packs::{ChunkCache, Fates};
use super::rates::Began;
use super::step::{Moment, Notice, Step};
use super::upkeep::LastRun;
use super::upkeep::state::{Ticket, Upkeep};
use crate::format::{Locator, MailCopy, MailId, PackNumber};
use crate::posix::Files;
use crate::rows::{Extent, LeadRow};
use hashbrown::HashMap;
use std::collections::VecDeque;

use vere_opening::Reopening;
use vere_order::copies::{Mirrors, Ticket as MirrorTicket};
use vere_ports::files::{Call, CallId, Caller};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

/// Octets on the way to accounts at once.
pub(crate) const SENDING_MAX: usize = 32 << 20;
/// Numbers of mails and blocks that are reserved at once.
pub(crate) const RESERVED: u64 = 1_024;
/// Rows that wait for a commit, before changes wait.
pub(crate) const PENDING_MAX: usize = 12_000;
/// Rows that wait for a commit or are on the way, before changes wait: commits that lose a race leave no more rows than one
/// commit has room for.
pub(crate) const UNSETTLED_MAX: usize = 15_000;
/// Octets of rows that wait for a commit, before changes wait: a commit has room for what a last call adds.
pub(crate) const PENDING_OCTETS_MAX: usize = 1 << 20;

/// A mounted volume.
#[derive(Debug)]
pub struct Volume<S: Storage> {
    pub(crate) terms: Terms,
    pub(crate) seals: Seals,
    pub(crate) machine: Machine,
    pub(crate) writer: u16,
    pub(crate) files: Files,
    pub(crate) fates: Fates,
    pub(crate) cache: ChunkCache,
    pub(crate) local: Local<S>,
    pub(crate) accounts: Accounts,
    pub(crate) uploads: Uploads,
    pub(crate) reads: Reads,
    pub(crate) chain: Chain,
    pub(crate) commits: Commits,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) journal: Journal<S>,
    /// Commits of the chain on the local disk.
    pub(crate) memory: CommitStore<S>,
    /// The comparison of the local disk with the log, while nothing may be sent.
    pub(crate) confirm: Option<Box<Confirm>>,
    pub(crate) deadlines: Deadlines,
    pub(crate) replicas: Replicas,
    /// Pages on the way, and waiting callers.
    pub(crate) pages: PageFetches,
    /// Answers that wait for pages.
    pub(crate) late: Vec<Late>,
    pub(crate) follow: Follow,
    pub(crate) mirrors: Mirrors,
    pub(crate) other_logs: OtherLogs,
    /// A check or a collection under way.
    pub(crate) upkeep: Option<Box<Upkeep>>,
    /// A change of facts under way.
    pub(crate) facts: Option<Box<FactsRun>>,
    pub(crate) epochs: Epochs,
    /// A walk over all pages for a command.
    pub(crate) bring: Bring,
    /// The last collection of this mount.
    pub(crate) collected: Option<LastRun>,
    pub(crate) speed: Speed,
    /// The next sequence of a mail, and the first that is not reserved.
    pub(crate) sequence: (u64, u64),
    /// The first block of homes that is not reserved.
    pub(crate) block_end: u32,
    pub(crate) steps: VecDeque<Step<S::File>>,
    pub(crate) asked: HashMap<RequestId, (u16, Asked)>,
    /// When these requests began.
    pub(crate) began: HashMap<RequestId, Began>,
    pub(crate) working: HashMap<JobId, Working>,
    pub(crate) last_id: u64,
    pub(crate) now: Moment,
    /// Changing calls that wait for room.
    pub(crate) blocked: VecDeque<(CallId, Caller, Call)>,
    /// When the journal is synced next, if anything is unsynced.
    pub(crate) sync_at: Option<Timestamp>,
    /// The position of the journal when a sync of many octets was asked for last.
    pub(crate) synced_to: u64,
    /// When room on the local disk is looked for, while the disk is full.
    pub(crate) journal_at: Option<Timestamp>,
    /// When failed requests of the chain are tried again.
    pub(crate) retry_at: Option<Timestamp>,
    /// When the accounts are asked for their room again.
    pub(crate) quotas_at: Option<Timestamp>,
    /// The last change of the lead, if there was one.
    pub(crate) lead: Option<LeadRow>,
    /// The account from whose copy the volume was opened.
    pub(crate) stand_in: Option<u16>,
    /// Why the volume takes no changes, if so.
    pub(crate) read_only: Option<Notice>,
    /// How far the opening of the volume in place of this one is.
    pub(crate) reopening: Reopening,
}

/// What an answer is about.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Chunk(Extent, MailCopy),
    /// Chunks of a pack, by the whole mail.
    Chunks(Vec<Extent>, MailCopy),
    Pack(PackNumber, u16),
    Original(PackNumber, u16, MailCopy),
    Copy(PackNumber, u16),
    Commit(MailId),
    Log,
    Judge(u32),
    Watch,
    /// A sign of the lead for the host.
    Sign,
    Quota,
    /// The copy on an account.
    Mirror(u16, MirrorTicket),
    /// The log on a further account.
    OtherLog(u16, LogTicket),
    /// A page.
    Page(Locator),
    /// Where the mail of a page is.
    FindPage(Locator),
    /// Where a copy on an account has the mail of a page.
    FindMirrored(Locator, u16),
    /// Where a copy on an account has the commit of a chunk.
    FindCommit(Extent, u16),
    /// Where the pack of a chunk is, besides a place without the pack.
    FindPack(Extent, MailCopy),
    /// A mail with pages: the covered generation, and the number of the mail.
    PageMail(u64, usize),
    Upkeep(Ticket),
    Facts(FactsTicket),
    Confirm(ConfirmTicket),
}

impl Asked {
    /// Whether a volume that serves reads alone asks so.
    pub(crate) const fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Chunk(..)
                | Self::Chunks(..)
                | Self::Watch
                | Self::Sign
                | Self::Quota
                | Self::Page(_)
                | Self::FindPage(_)
                | Self::FindMirrored(..)
                | Self::FindCommit(..)
        )
    }
}

/// An answer whose consequences need pages.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) account: u16,
    pub(crate) asked: Asked,
    pub(crate) answer: Result<Answer, Fault>,
}

/// What a job is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Working {
    Chunk(Extent, MailCopy),
    Cached(Extent, MailId),
    Keep(Extent),
    Names(PackNumber),
    Pack(PackNumber),
    Copy(PackNumber, u16, MailCopy),
    Upkeep(usize),
    /// A mail for the copy on an account.
    Mirror(u16, MirrorTicket),
}
