//! Accounts: who may make a group, own one that another account made, or read it.

use std::collections::BTreeSet;
use std::fmt;

use vere_spoolwire::{
    Charter, CloseReason, DEFAULT_ACCOUNT, Grants, Right, Role, SharedSecret, read_chartered,
    write_chartered,
};

use super::handshake::Believed;

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
    /// What: the reason it was told.
    pub reason: CloseReason,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            group,
            reason,
        } = self;
        write!(f, "account {account:?}, group {group:?}: {reason}")
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
    grants: Box<[u8]>,
}

impl Deed {
    pub(super) fn new(account: &str, charter: Charter<'_>) -> Self {
        Self {
            account: account.into(),
            bytes_max: charter.bytes_max,
            grants: charter.grants.octets().into(),
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
            grants: Grants::read(&self.grants).unwrap_or_default(),
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

    /// Whether an account may have the group in a role.
    ///
    /// # Errors
    ///
    /// [`CloseReason::MayNotOwn`], [`CloseReason::MayNotRead`].
    pub(super) fn admits(&self, account: &str, role: Role) -> Result<(), CloseReason> {
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

/// Groups of logs from before there were accounts.
impl Default for Deed {
    fn default() -> Self {
        Self::new(DEFAULT_ACCOUNT, Charter::OWN)
    }
}
