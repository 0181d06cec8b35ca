//! Accounts: who may make a group, own one that another account made, read it, or read a queue of it.

use std::collections::BTreeSet;
use std::fmt;

use vere_spoolwire::{
    Charter, CloseReason, DEFAULT_ACCOUNT, KeptGrants, NodeStat, Request, Right, Role,
    SharedSecret, read_chartered, write_chartered,
};

use super::handshake::Believed;
use super::queue::Queue;
use super::store::Store;

/// Denials that were told already and are not told again.
const TOLD_MAX: usize = 256;

/// Somebody whom a node knows, by a secret.
#[derive(Debug, Clone)]
pub struct Account {
    /// 1 to 32 octets of UTF-8.
    pub name: String,
    /// What proves it, shared with nobody but the nodes.
    pub secret: SharedSecret,
    /// Whether it may make groups.
    pub makes_groups: bool,
}

impl Account {
    /// The account of those who were given one secret and no name.
    #[must_use]
    pub fn default_with(secret: SharedSecret) -> Self {
        Self {
            name: DEFAULT_ACCOUNT.to_owned(),
            secret,
            makes_groups: true,
        }
    }
}

/// An account that proved itself and was not let do what it wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// Who.
    pub account: String,
    /// With which group.
    pub group: String,
    /// With which queue of it, when it was about one.
    pub queue: Option<String>,
    /// What: the reason it was told.
    pub reason: CloseReason,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            group,
            queue,
            reason,
        } = self;
        write!(f, "account {account:?}, group {group:?}")?;
        if let Some(queue) = queue {
            write!(f, ", queue {queue:?}")?;
        }
        write!(f, ": {reason}")
    }
}

/// Denials to be told, each once.
#[derive(Debug, Default)]
pub(super) struct Denials {
    told: BTreeSet<Denial>,
    untold: Vec<Denial>,
}

impl Denials {
    pub(super) fn note(&mut self, denial: Denial) {
        if self.told.contains(&denial) {
            return;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        self.told.insert(denial.clone());
        self.untold.push(denial);
    }

    pub(super) fn take(&mut self) -> Option<Denial> {
        self.untold.pop()
    }
}

/// Whose a group is, and what holds for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deed {
    /// The account that made it.
    pub(super) account: Box<str>,
    pub(super) bytes_max: u64,
    grants: KeptGrants,
}

impl Deed {
    pub(super) fn new(account: &str, charter: Charter<'_>) -> Self {
        Self {
            account: account.into(),
            bytes_max: charter.bytes_max,
            grants: charter.grants.into(),
        }
    }

    /// That of a group of which only the name is left. No account has this name.
    pub(super) fn unknown() -> Self {
        Self::new("", Charter::OWN)
    }

    pub(super) const fn is_known(&self) -> bool {
        !self.account.is_empty()
    }

    pub(super) fn charter(&self) -> Charter<'_> {
        Charter {
            bytes_max: self.bytes_max,
            grants: self.grants.get(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_chartered(out, &self.account, self.charter());
    }

    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (account, charter) = read_chartered(octets)?;
        Some(Self::new(account, charter))
    }

    fn allows(&self, account: &str, right: Right) -> bool {
        *self.account == *account || self.charter().grants.allow(account, right)
    }

    /// What an account may read, as far as the group says so.
    pub(super) fn sight<'a>(&self, account: &'a str) -> Sight<'a> {
        if self.allows(account, Right::Adopt) {
            Sight::All
        } else {
            let group = self.allows(account, Right::Read);
            Sight::Reader { account, group }
        }
    }

    fn admits(&self, account: &str, role: Role) -> Result<(), CloseReason> {
        let (right, reason) = match role {
            Role::Owner | Role::Standby => (Right::Adopt, CloseReason::MayNotOwn),
            Role::Reader => (Right::Read, CloseReason::MayNotRead),
        };
        self.allows(account, right).then_some(()).ok_or(reason)
    }

    /// What holds after this HELLO of an owner: an account sets what holds for groups that it made.
    pub(super) fn after(&self, hello: &Believed) -> Option<Self> {
        let changed = hello.deed.account == self.account && hello.deed != *self;
        changed.then(|| hello.deed.clone())
    }
}

/// What somebody may read of a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// Everything: who may own the group.
    All,
    /// Queues that name the account; with `group` also those that name nobody.
    Reader { account: &'a str, group: bool },
}

impl Sight<'_> {
    pub(super) fn sees(self, queue: &Queue) -> bool {
        let readers = queue.readers.get();
        match self {
            Self::All => true,
            Self::Reader { group, .. } if readers.is_empty() => group,
            Self::Reader { account, .. } => readers.allow(account, Right::Read),
        }
    }

    /// Whether the figures of the group are for him.
    const fn sees_group(self) -> bool {
        matches!(self, Self::All | Self::Reader { group: true, .. })
    }
}

impl Store {
    /// Whether an account may have the group in a role, or read at least a queue of it.
    ///
    /// # Errors
    ///
    /// [`CloseReason::MayNotOwn`], [`CloseReason::MayNotRead`].
    pub(super) fn admits(&self, account: &str, role: Role) -> Result<(), CloseReason> {
        self.deed.admits(account, role).or_else(|reason| {
            let named = |queue: &Queue| queue.readers.get().allow(account, Right::Read);
            let reads = role == Role::Reader && self.queues().any(|(_, queue)| named(queue));
            if reads { Ok(()) } else { Err(reason) }
        })
    }

    /// The queue that a request is about, when it is none that he may read.
    pub(super) fn hidden(&self, sight: Sight<'_>, request: Request) -> Option<&Queue> {
        let Request::Fetch { queue, .. } = request else {
            return None;
        };
        self.queue(queue).filter(|queue| !sight.sees(queue))
    }

    /// The figures that are for him: who may read single queues sees what these come to, and nothing of what
    /// the group is otherwise.
    pub(super) fn seen(&self, sight: Sight<'_>, stat: NodeStat) -> NodeStat {
        if sight.sees_group() {
            return stat;
        }
        let mut seen = NodeStat {
            queues: 0,
            records: 0,
            bytes: 0,
            log_bytes: 0,
            spilled: 0,
            bytes_max: u64::MAX,
            ..stat
        };
        for (_, queue) in self.queues().filter(|(_, queue)| sight.sees(queue)) {
            seen.queues += 1;
            seen.records += queue.length;
            seen.bytes += queue.octets;
        }
        seen
    }
}

/// Groups of logs from before there were accounts.
impl Default for Deed {
    fn default() -> Self {
        Self::new(DEFAULT_ACCOUNT, Charter::OWN)
    }
}
