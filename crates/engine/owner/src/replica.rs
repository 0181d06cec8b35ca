//! One node from the owner's view: connections, progress, and standing in the group.

use std::fmt;

use vere_spoolwire::{Incarnation, NodeRefusal, Role, Seq, Txn};
use vere_units::Timestamp;

use super::config::NodeName;
use super::connection::Connection;
use super::membership::MemberState;
use super::pace::Pace;
use super::rebuild::Rebuild;
use super::title::Noted;

/// Standing of a node in the group, by the membership record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not a member: holds nothing that counts.
    Out,
    /// Holds everything acknowledged; no change is acknowledged without this replica.
    Full,
    /// In rebuild.
    Syncing,
}

impl From<MemberState> for Standing {
    fn from(state: MemberState) -> Self {
        match state {
            MemberState::Full => Self::Full,
            MemberState::Syncing => Self::Syncing,
        }
    }
}

/// Reason why a member must leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The node returned under another incarnation: its memory is lost.
    Lost,
    /// The node has not processed a change that it acknowledged, or has processed a change never
    /// sent.
    Behind,
    /// The node's log failed.
    LogFailed,
    /// The node refused a change that other replicas executed.
    Diverged,
    /// The node was absent for too long.
    Away,
    /// The node lags too far behind to be rebuilt.
    Lagging,
    /// The node is connected and acknowledges nothing, while another replica does.
    Stalled,
    /// The node has no space for the group's records.
    NoRoom,
    /// The node's answers were persistently later than the other members'.
    Slow,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "memory lost",
            Self::Behind => "behind its acknowledgements",
            Self::LogFailed => "log failed",
            Self::Diverged => "refused a change that other nodes executed",
            Self::Away => "away for too long",
            Self::Lagging => "too slow to be rebuilt",
            Self::Stalled => "acknowledges nothing",
            Self::NoRoom => "no room for what it is to hold",
            Self::Slow => "slower than the others",
        })
    }
}

/// Progress that a node reported when connecting.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) processed: Txn,
    pub(super) acknowledged: Txn,
    /// The group is incomplete on the node.
    pub(super) syncing: bool,
    pub(super) refused: Vec<(Txn, NodeRefusal)>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) name: String,
    pub(super) connections: Vec<Connection>,
    /// Slot of the connection that carries changes.
    pub(super) active: Option<usize>,
    /// Standby connection with an outstanding request to become active.
    pub(super) attaching: Option<(usize, Seq)>,
    pub(super) incarnation: Option<Incarnation>,
    /// Machine of the node: one log is enough for all nodes of a machine.
    pub(super) machine: usize,
    /// The node reported a log with everything it has acknowledged, and has no other duty since.
    pub(super) logged: bool,
    /// The node cannot keep a log in this life of its memory.
    pub(super) logless: bool,
    /// Outstanding duty: to keep a log, or not to.
    pub(super) duty: Option<(Seq, bool)>,
    /// Whether the node has noted this owner on stable storage.
    pub(super) noted: Noted,
    /// The node last reported another owner of the group, and so holds some data.
    pub(super) fenced: bool,
    /// Progress reported on the last connection.
    pub(super) progress: Option<Progress>,
    /// Last change without a vote of this replica: during the rebuild the replica ignored changes
    /// of records not copied yet.
    pub(super) whole_after: Txn,
    /// Whether the node has listed all its queues to this owner after the takeover.
    pub(super) listed: bool,
    /// Last change encoded for this replica.
    pub(super) position: Txn,
    /// Last acknowledged change.
    pub(super) acked: Txn,
    pub(super) standing: Standing,
    pub(super) fault: Option<Fault>,
    /// Time since which the replica has acknowledged nothing while another replica was ahead.
    pub(super) moved_at: Timestamp,
    /// Last acknowledged change at this time.
    pub(super) moved_to: Txn,
    /// Measured speed of answers.
    pub(super) pace: Pace,
    /// Time since which the replica has no active connection.
    pub(super) away_since: Timestamp,
    /// Earliest time of the next rebuild.
    pub(super) retry_at: Timestamp,
    pub(super) rebuild: Option<Rebuild>,
    /// The replica was full and left because of an absence: the owner keeps unacknowledged changes
    /// for it (`absence`).
    pub(super) awaited: bool,
    /// Last change for which this replica's refusals were compared with the group's.
    pub(super) compared: Txn,
    /// Version of an outstanding swap that makes this replica full.
    pub(super) promised: Option<u64>,
    /// Version of an outstanding swap that removes this replica.
    pub(super) leaving: Option<u64>,
}

impl Replica {
    pub(super) fn new(node: &NodeName) -> Self {
        Self {
            name: node.name.clone(),
            connections: (0..node.links.max(1)).map(|_| Connection::new()).collect(),
            active: None,
            attaching: None,
            incarnation: None,
            machine: node.machine,
            logged: false,
            logless: false,
            duty: None,
            noted: Noted::No,
            fenced: false,
            progress: None,
            whole_after: Txn(0),
            listed: false,
            position: Txn(0),
            acked: Txn(0),
            standing: Standing::Out,
            fault: None,
            moved_at: Timestamp::ZERO,
            moved_to: Txn(0),
            pace: Pace::default(),
            away_since: Timestamp::ZERO,
            retry_at: Timestamp::ZERO,
            rebuild: None,
            awaited: false,
            compared: Txn(0),
            promised: None,
            leaving: None,
        }
    }

    /// Returns the reported progress, completed by earlier refusals: on a new connection the node
    /// omits refusals that were acknowledged.
    pub(super) fn told(&self, progress: &Progress) -> Progress {
        let before = self.progress.as_ref().map(|before| &before.refused);
        let mut told = progress.clone();
        told.refused.extend(before.into_iter().flatten().copied());
        told.refused.retain(|(txn, _)| *txn <= progress.processed);
        told.refused.sort_unstable();
        told.refused.dedup();
        told
    }

    /// Whether two members with equal last transaction refused the same changes; assumed while one
    /// of them has changes that are not safe. A member may have refused a change for lack of space,
    /// and the earlier owner died before noticing.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let safe = |progress: &&Progress| progress.acknowledged >= progress.processed;
        let one = self.progress.as_ref().filter(safe);
        let another = other.progress.as_ref().filter(safe);
        one.zip(another)
            .is_none_or(|(one, another)| one.refused == another.refused)
    }

    /// Whether the node is connected and holds nothing that counts, whatever the record says.
    /// `recorded`: the record names this incarnation.
    pub(super) fn is_empty(&self, recorded: bool) -> bool {
        let progress = self.progress.as_ref();
        let incomplete = progress.is_some_and(|progress| progress.syncing);
        self.is_up() && (!recorded || incomplete)
    }

    /// Whether the node has shown that it holds or held data of the group.
    pub(super) fn is_used(&self) -> bool {
        let progress = self.progress.as_ref();
        self.fenced || progress.is_some_and(|progress| progress.processed > Txn(0))
    }

    /// Whether the node has the complete group and has noted this owner for good.
    pub(super) fn is_made(&self) -> bool {
        let progress = self.progress.as_ref();
        let whole = progress.is_some_and(|progress| !progress.syncing);
        self.is_up() && whole && self.noted == Noted::Safe
    }

    /// Whether changes can be sent to the node.
    pub(super) const fn is_up(&self) -> bool {
        self.active.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.standing == Standing::Full
    }

    /// Whether the replica can answer for the group.
    pub(super) fn is_sound(&self) -> bool {
        self.is_full() && self.is_up() && self.fault.is_none()
    }

    /// Whether the replica has no outstanding request except changes.
    pub(super) fn is_settled(&self) -> bool {
        let told = self.duty.is_some() || self.attaching.is_some();
        let noting = matches!(self.noted, Noted::Asked(_));
        !told && !noting && self.rebuild.is_none() && self.promised.is_none()
    }

    /// Whether the replica refused a change that other replicas executed.
    pub(super) fn differs(&self) -> bool {
        self.fault == Some(Fault::Diverged)
    }

    /// Whether every acknowledgement requires this replica.
    pub(super) fn is_required(&self) -> bool {
        let complete = self.rebuild.as_ref().is_some_and(Rebuild::is_complete);
        self.is_full() || self.promised.is_some() || complete
    }

    /// Whether acknowledgements wait for this replica: required, connected and without a known
    /// fault.
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_required() && self.is_up() && self.fault.is_none()
    }

    /// Whether the owner sends changes to this replica.
    pub(super) fn takes_changes(&self) -> bool {
        self.is_full() || self.rebuild.is_some() || self.promised.is_some()
    }

    /// Whether the replica's log counts: it is complete, and no outstanding swap removes the
    /// replica.
    pub(super) fn keeps_log(&self) -> bool {
        self.is_full() && self.logged && self.leaving.is_none()
    }

    /// Whether the owner keeps changes until this replica has acknowledged them.
    pub(super) fn needs_changes(&self) -> bool {
        self.takes_changes() || self.awaited
    }

    pub(super) fn active_connection(&mut self) -> Option<&mut Connection> {
        let slot = self.active?;
        self.connections.get_mut(slot)
    }

    /// Role for the HELLO of the connection in `slot`: only one connection can be active. `None`
    /// while another connection is about to become active, because a standby connection needs an
    /// active one.
    pub(super) fn role_for(&self, slot: usize) -> Option<Role> {
        let taken = self
            .connections
            .iter()
            .enumerate()
            .any(|(other, connection)| {
                other != slot && connection.said_hello() && connection.role == Role::Owner
            });
        match self.active {
            Some(active) if active != slot => Some(Role::Standby),
            None if taken || self.attaching.is_some() => None,
            _ => Some(Role::Owner),
        }
    }

    /// Slot of a standby connection that can become active.
    pub(super) fn standby(&self) -> Option<usize> {
        if self.active.is_some() || self.attaching.is_some() {
            return None;
        }
        let trying = |connection: &Connection| {
            connection.said_hello() && !connection.is_up() && connection.role == Role::Owner
        };
        if self.connections.iter().any(trying) {
            return None;
        }
        let ready = |connection: &Connection| {
            let same = connection.incarnation == self.incarnation;
            connection.is_up() && connection.role == Role::Standby && same
        };
        self.connections.iter().position(ready)
    }
}
