//! Pages on the way, and waiting callers.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use hashbrown::HashMap;
use vere_ports::files::{Call, CallId, Caller, Inode};
use vere_ports::mail_accounts::Urgency;
use vere_units::Timestamp;

use crate::format::{Locator, MailCopy, MailId};
use vere_keep::page_store::PAGES_OCTETS;

/// Pages asked for at once.
pub const ASKED_MAX: usize = 64;
/// Calls that wait for pages; a further one fails with ENOMEM. Each belongs to a thread of a program, which waits too.
pub const PARKED_MAX: usize = 16_384;
/// Pages that no account has, and mails with other UIDs, which are remembered; beyond, all are looked for again.
pub const REMEMBERED_MAX: usize = 1_024;
/// How long a page that no account has is not asked for again.
pub const LOST_FOR: Duration = Duration::from_secs(60);

/// The mail of a page and its place there.
pub type PageKey = (MailId, u32);

/// The key of a page.
pub const fn key_of(at: &Locator) -> PageKey {
    (at.mail, at.at)
}

/// Pages on the way, and waiting callers.
#[derive(Debug)]
pub struct PageFetches {
    /// Octets of decoded pages in memory between two events.
    pub octets_max: usize,
    /// Pages on the way.
    pub fetches: HashMap<PageKey, PageFetch>,
    /// Requests under way.
    pub asked: usize,
    /// Pages without a copy in any account, each with the time of the next question.
    pub lost: HashMap<PageKey, Timestamp>,
    /// Mails that have other UIDs than their locators tell: UIDVALIDITY, UID.
    pub moved: HashMap<MailId, (u32, u32)>,
    /// Calls that wait for pages, in the order of the kernel.
    pub parked: VecDeque<Parked>,
}

impl Default for PageFetches {
    fn default() -> Self {
        Self {
            octets_max: PAGES_OCTETS,
            fetches: HashMap::new(),
            asked: 0,
            lost: HashMap::new(),
            moved: HashMap::new(),
            parked: VecDeque::new(),
        }
    }
}

/// A page on the way.
#[derive(Debug)]
pub struct PageFetch {
    /// The page.
    pub at: Locator,
    /// How urgent the page is.
    pub urgency: Urgency,
    /// Copies that were not tried.
    pub copies: Vec<MailCopy>,
    /// The copy that is asked for.
    pub asking: Option<MailCopy>,
    /// Whether the account was asked, or is being asked, for the UID of the mail.
    pub has_searched: bool,
    /// Accounts whose copies were searched.
    pub searched: Vec<u16>,
    /// Whether an account is being asked.
    pub is_asked: bool,
    /// What accounts have said.
    pub reasons: Vec<String>,
}

/// A call that waits for pages.
#[derive(Debug)]
pub struct Parked {
    /// The call.
    pub id: CallId,
    /// The program.
    pub caller: Caller,
    /// What the program wants.
    pub call: Call,
    /// The file that the call is about.
    pub inode: Option<Inode>,
    /// Whether the call changes the file.
    pub is_change: bool,
    /// The pages that are missing.
    pub pages: BTreeSet<PageKey>,
}

/// A walk over all pages that brings those which are missing.
#[derive(Debug, Default)]
pub struct Bring {
    /// The root at which the walk began.
    pub root: Option<Locator>,
    /// Pages to be looked at, and their levels as far as known.
    pub left: Vec<(Locator, Option<u8>)>,
}

/// What a reader of rows finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// Every row is there.
    Here,
    /// Pages on the way.
    Awaited(BTreeSet<PageKey>),
    /// No account has a page.
    Lost,
}

impl PageFetches {
    /// Whether a call on a file has to wait behind another one that waits: the order of changes of a file is the kernel's.
    pub fn holds_up(&self, before: usize, inode: Option<Inode>, is_change: bool) -> bool {
        let mut earlier = self.parked.iter().take(before);
        inode.is_some()
            && earlier.any(|parked| parked.inode == inode && (parked.is_change || is_change))
    }

    /// Takes calls out of the queue.
    pub fn take(&mut self, which: impl Fn(&Parked) -> bool) -> VecDeque<Parked> {
        let (taken, kept) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|parked| which(parked));
        self.parked = kept;
        taken
    }

    /// A page is there, or is lost: nobody waits for the page any more.
    pub fn arrived(&mut self, key: PageKey) {
        for parked in &mut self.parked {
            parked.pages.remove(&key);
        }
    }

    /// The first call from a position on that waits for no page any more.
    pub fn next_ready(&self, from: usize) -> Option<usize> {
        let mut all = self.parked.iter().enumerate().skip(from);
        let ready = all.find(|(place, parked)| {
            parked.pages.is_empty() && !self.holds_up(*place, parked.inode, parked.is_change)
        });
        ready.map(|(place, _)| place)
    }
}
