//! Account and charter of a group.

use vere_spoolwire::{
    Charter, CloseReason, DEFAULT_ACCOUNT, KeptGrants, Right, Role, read_chartered, write_chartered,
};

/// Account and charter of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupCharter {
    /// Account that created the group.
    pub(super) account: Box<str>,
    pub(super) bytes_max: u64,
    grants: KeptGrants,
}

impl GroupCharter {
    pub(super) fn new(account: &str, charter: Charter<'_>) -> Self {
        Self {
            account: account.into(),
            bytes_max: charter.bytes_max,
            grants: charter.grants.into(),
        }
    }

    /// Charter of a group of which only the name is known. No account has the empty name.
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

    /// Whether an account has this right to the group.
    pub(super) fn allows(&self, account: &str, right: Right) -> bool {
        *self.account == *account || self.charter().grants.allow(account, right)
    }

    /// Whether an account may open the group in `role`.
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

    /// Returns the changed charter after an owner's HELLO: an account may change the charter of groups
    /// that it created.
    pub(super) fn after(&self, wanted: &Self) -> Option<Self> {
        let changed = wanted.account == self.account && wanted != self;
        changed.then(|| wanted.clone())
    }
}

/// Charter of groups in logs that are older than accounts.
impl Default for GroupCharter {
    fn default() -> Self {
        Self::new(DEFAULT_ACCOUNT, Charter::OWN)
    }
}
