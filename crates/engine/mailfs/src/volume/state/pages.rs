//! Pages on the way, and waiting callers.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use hashbrown::HashMap;
use vere_ports::files::{Call, CallId, Caller, Inode};
use vere_ports::mail_accounts::Urgency;
use vere_units::Timestamp;

use crate::format::{Locator, MailCopy, MailId};
use crate::volume::page_store::PAGES_OCTETS;

/// Pages asked for at once.
pub(crate) const ASKED_MAX: usize = 64;
/// Calls that wait for pages; a further one fails with ENOMEM. Each belongs to a thread of a program, which waits too.
pub(crate) const PARKED_MAX: usize = 16_384;
/// Pages that no account has, and mails with other UIDs, which are remembered; beyond, all are looked for again.
pub(crate) const REMEMBERED_MAX: usize = 1_024;
/// How long a page that no account has is not asked for again.
pub(crate) const LOST_FOR: Duration = Duration::from_secs(60);

/// The mail of a page and its place there.
pub(crate) type PageKey = (MailId, u32);

/// The key of a page.
pub(crate) const fn key_of(at: &Locator) -> PageKey {
    (at.mail, at.at)
}

/// Pages on the way, and waiting callers.
#[derive(Debug)]
pub(crate) struct PageFetches {
    /// Octets of decoded pages in memory between two events.
    pub(crate) octets_max: usize,
    pub(crate) fetches: HashMap<PageKey, PageFetch>,
    /// Requests under way.
    pub(crate) asked: usize,
    /// Pages without a copy in any account, each with the time of the next question.
    pub(crate) lost: HashMap<PageKey, Timestamp>,
    /// Mails that have other UIDs than their locators tell: UIDVALIDITY, UID.
    pub(crate) moved: HashMap<MailId, (u32, u32)>,
    /// Calls that wait for pages, in the order of the kernel.
    pub(crate) parked: VecDeque<Parked>,
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
pub(crate) struct PageFetch {
    pub(crate) at: Locator,
    pub(crate) urgency: Urgency,
    /// Copies that were not tried.
    pub(crate) copies: Vec<MailCopy>,
    /// The copy that is asked for.
    pub(crate) asking: Option<MailCopy>,
    /// Whether the account was asked, or is being asked, for the UID of the mail.
    pub(crate) has_searched: bool,
    /// Accounts whose copies were searched.
    pub(crate) searched: Vec<u16>,
    pub(crate) is_asked: bool,
    pub(crate) reasons: Vec<String>,
}

/// A call that waits for pages.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) id: CallId,
    pub(crate) caller: Caller,
    pub(crate) call: Call,
    /// The file that the call is about.
    pub(crate) inode: Option<Inode>,
    pub(crate) is_change: bool,
    pub(crate) pages: BTreeSet<PageKey>,
}

/// A walk over all pages that brings those which are missing.
#[derive(Debug, Default)]
pub(crate) struct Bring {
    /// The root at which the walk began.
    pub(crate) root: Option<Locator>,
    /// Pages to be looked at, and their levels as far as known.
    pub(crate) left: Vec<(Locator, Option<u8>)>,
}

/// What a reader of rows finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Every row is there.
    Here,
    /// Pages on the way.
    Awaited(BTreeSet<PageKey>),
    /// No account has a page.
    Lost,
}

impl PageFetches {
    /// Whether a call on a file has to wait behind another one that waits: the order of changes of a file is the kernel's.
    pub(crate) fn holds_up(&self, before: usize, inode: Option<Inode>, is_change: bool) -> bool {
        let mut earlier = self.parked.iter().take(before);
        inode.is_some()
            && earlier.any(|parked| parked.inode == inode && (parked.is_change || is_change))
    }

    /// Takes calls out of the queue.
    pub(crate) fn take(&mut self, which: impl Fn(&Parked) -> bool) -> VecDeque<Parked> {
        let (taken, kept) = std::mem::take(&mut self.parked)
            .into_iter()
            .partition(|parked| which(parked));
        self.parked = kept;
        taken
    }

    /// A page is there, or is lost: nobody waits for the page any more.
    pub(crate) fn arrived(&mut self, key: PageKey) {
        for parked in &mut self.parked {
            parked.pages.remove(&key);
        }
    }

    /// The first call from a position on that waits for no page any more.
    pub(crate) fn next_ready(&self, from: usize) -> Option<usize> {
        let mut all = self.parked.iter().enumerate().skip(from);
        let ready = all.find(|(place, parked)| {
            parked.pages.is_empty() && !self.holds_up(*place, parked.inode, parked.is_change)
        });
        ready.map(|(place, _)| place)
    }
}
