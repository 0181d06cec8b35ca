//! Accounts: who may make a group, own one that another account made, read it, or read a queue of it.

use vere_spoolwire::{CloseReason, NodeStat, Request, Right, Role};

use super::deed::Deed;
use super::queue::Queue;
use super::store::Store;

/// What somebody may read of a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// Everything: who may own the group.
    All,
    /// Queues that name the account; with `group` also those that name nobody.
    Reader { account: &'a str, group: bool },
}

impl Deed {
    /// What an account may read, as far as the group says so.
    pub(super) fn sight<'a>(&self, account: &'a str) -> Sight<'a> {
        if self.allows(account, Right::Adopt) {
            Sight::All
        } else {
            let group = self.allows(account, Right::Read);
            Sight::Reader { account, group }
        }
    }
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
