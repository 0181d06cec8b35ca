//! Access rights of accounts: creating a group, owning another account's group, reading a group or
//! a queue.

use vere_spoolwire::{CloseReason, NodeStat, Request, Right, Role};

use super::group_charter::GroupCharter;
use super::queue::Queue;
use super::store::Store;

/// The part of a group that an account may read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// The whole group: the account may own the group.
    All,
    /// Queues that grant the account a read; with `group` also queues without grants.
    Reader { account: &'a str, group: bool },
}

impl GroupCharter {
    /// Returns the part that an account may read by the grants of the group.
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

    /// Whether the account may see the figures of the whole group.
    const fn sees_group(self) -> bool {
        matches!(self, Self::All | Self::Reader { group: true, .. })
    }
}

impl Store {
    /// Whether an account may open the group in `role`, or may read at least one queue.
    ///
    /// # Errors
    ///
    /// [`CloseReason::MayNotOwn`], [`CloseReason::MayNotRead`].
    pub(super) fn admits(&self, account: &str, role: Role) -> Result<(), CloseReason> {
        self.group_charter.admits(account, role).or_else(|reason| {
            let named = |queue: &Queue| queue.readers.get().allow(account, Right::Read);
            let reads = role == Role::Reader && self.queues().any(|(_, queue)| named(queue));
            if reads { Ok(()) } else { Err(reason) }
        })
    }

    /// Returns the queue of a request if the account may not read this queue.
    pub(super) fn hidden(&self, sight: Sight<'_>, request: Request) -> Option<&Queue> {
        let Request::Fetch { queue, .. } = request else {
            return None;
        };
        self.queue(queue).filter(|queue| !sight.sees(queue))
    }

    /// Reduces the figures to the account's view: a reader of single queues sees the sums of these
    /// queues, and nothing else of the group.
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
