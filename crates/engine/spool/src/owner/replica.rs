//! One node as the owner sees it: its connections, what it has, and what it is to the group.

use std::fmt;

use vere_spoolwire::{Incarnation, Refusal, Role, Seq, Txn};
use vere_units::Timestamp;

use super::config::NodeName;
use super::connection::Connection;
use super::membership::MemberState;
use super::pace::Pace;
use super::rebuild::Rebuild;
use super::title::Noted;

/// What a node is to the group, by the membership record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It holds nothing that counts.
    Out,
    /// It holds everything acknowledged; nothing is acknowledged without it.
    Full,
    /// It is being rebuilt.
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

/// Why a member must leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It came back under another incarnation: its memory is lost.
    Lost,
    /// It has not processed what it acknowledged, or has processed what was never sent.
    Behind,
    /// Its log failed.
    LogFailed,
    /// It refused what others did.
    Diverged,
    /// It was away for too long.
    Away,
    /// It lags too far behind to be rebuilt.
    Lagging,
    /// It lives and acknowledges nothing, while another one does.
    Stalled,
    /// It has no room for what it is to be given.
    NoRoom,
    /// Its answers came later than the others' for long.
    Slow,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "memory lost",
            Self::Behind => "behind its acknowledgements",
            Self::LogFailed => "log failed",
            Self::Diverged => "refused what others did",
            Self::Away => "away for too long",
            Self::Lagging => "too slow to be rebuilt",
            Self::Stalled => "acknowledges nothing",
            Self::NoRoom => "no room for what it is to hold",
            Self::Slow => "slower than the others",
        })
    }
}

/// What a node told about the group when it was connected to.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) processed: Txn,
    pub(super) acknowledged: Txn,
    /// The group is incomplete there.
    pub(super) syncing: bool,
    pub(super) refused: Vec<(Txn, Refusal)>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) name: String,
    pub(super) connections: Vec<Connection>,
    /// The connection that carries changes.
    pub(super) active: Option<usize>,
    /// A standby connection that was asked to become the active one.
    pub(super) attaching: Option<(usize, Seq)>,
    pub(super) incarnation: Option<Incarnation>,
    /// Its machine: one log is enough for all nodes on it.
    pub(super) machine: usize,
    /// It said last that its log holds everything it has acknowledged, and was told nothing else since.
    pub(super) logged: bool,
    /// It cannot keep a log, in this life of its memory.
    pub(super) logless: bool,
    /// It was told to keep a log, or not to, and has not answered.
    pub(super) duty: Option<(Seq, bool)>,
    /// Whether it has on stable storage that the group is this owner's.
    pub(super) noted: Noted,
    /// It said last that the group is another owner's: it holds something.
    pub(super) fenced: bool,
    /// What it told when it was connected to last.
    pub(super) progress: Option<Progress>,
    /// What it answered to changes up to here says nothing: it was being rebuilt and passed over what it
    /// did not have.
    pub(super) whole_after: Txn,
    /// Whether it told all its queues to this owner when that took over.
    pub(super) listed: bool,
    /// The last change put into a frame for it.
    pub(super) position: Txn,
    /// The last change it acknowledged.
    pub(super) acked: Txn,
    pub(super) standing: Standing,
    pub(super) fault: Option<Fault>,
    /// Since when it has acknowledged nothing, while another one was ahead.
    pub(super) moved_at: Timestamp,
    /// What it had acknowledged then.
    pub(super) moved_to: Txn,
    /// How fast it answers.
    pub(super) pace: Pace,
    /// Since when it has no active connection.
    pub(super) away_since: Timestamp,
    /// When it may be tried again.
    pub(super) retry_at: Timestamp,
    pub(super) rebuild: Option<Rebuild>,
    /// It was full and left because it was away: what it has not acknowledged is kept for it (`absence`).
    pub(super) awaited: bool,
    /// Up to here it did what the others did, as far as it has to.
    pub(super) compared: Txn,
    /// The register was asked to make it full, expecting this version, and may still do so.
    pub(super) promised: Option<u64>,
    /// The register was asked to let it go, expecting this version, and may still do so.
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

    /// What it told, with the refusals that it told before: on a new connection it leaves out those
    /// that were acknowledged.
    pub(super) fn told(&self, progress: &Progress) -> Progress {
        let before = self.progress.as_ref().map(|before| &before.refused);
        let mut told = progress.clone();
        told.refused.extend(before.into_iter().flatten().copied());
        told.refused.retain(|(txn, _)| *txn <= progress.processed);
        told.refused.sort_unstable();
        told.refused.dedup();
        told
    }

    /// Whether another member with the same last transaction did the same, as far as both are safe.
    /// One may have had no room for what the other did, and their owner died before it saw that.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let safe = |progress: &&Progress| progress.acknowledged >= progress.processed;
        let one = self.progress.as_ref().filter(safe);
        let another = other.progress.as_ref().filter(safe);
        one.zip(another)
            .is_none_or(|(one, another)| one.refused == another.refused)
    }

    /// Whether it is there and holds nothing that counts, though the record may say so: `recorded`, under
    /// this life of its memory.
    pub(super) fn is_empty(&self, recorded: bool) -> bool {
        let progress = self.progress.as_ref();
        let incomplete = progress.is_some_and(|progress| progress.syncing);
        self.is_up() && (!recorded || incomplete)
    }

    /// Whether it has shown that it holds, or held, something of the group.
    pub(super) fn is_used(&self) -> bool {
        let progress = self.progress.as_ref();
        self.fenced || progress.is_some_and(|progress| progress.processed > Txn(0))
    }

    /// Whether the group is whole there, and this owner's, for good.
    pub(super) fn is_made(&self) -> bool {
        let progress = self.progress.as_ref();
        let whole = progress.is_some_and(|progress| !progress.syncing);
        self.is_up() && whole && self.noted == Noted::Safe
    }

    /// Whether changes can be sent to it.
    pub(super) const fn is_up(&self) -> bool {
        self.active.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.standing == Standing::Full
    }

    /// Whether it can answer for the group.
    pub(super) fn is_sound(&self) -> bool {
        self.is_full() && self.is_up() && self.fault.is_none()
    }

    /// Whether it was told nothing that it has not answered, but for changes.
    pub(super) fn is_settled(&self) -> bool {
        let told = self.duty.is_some() || self.attaching.is_some();
        let noting = matches!(self.noted, Noted::Asked(_));
        !told && !noting && self.rebuild.is_none() && self.promised.is_none()
    }

    /// Whether it refused what others did.
    pub(super) fn differs(&self) -> bool {
        self.fault == Some(Fault::Diverged)
    }

    /// Whether nothing is acknowledged without it.
    pub(super) fn is_required(&self) -> bool {
        let complete = self.rebuild.as_ref().is_some_and(Rebuild::is_complete);
        self.is_full() || self.promised.is_some() || complete
    }

    /// Whether it is there, in order as far as is known, and nothing is acknowledged without it.
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_required() && self.is_up() && self.fault.is_none()
    }

    /// Whether changes go to it.
    pub(super) fn takes_changes(&self) -> bool {
        self.is_full() || self.rebuild.is_some() || self.promised.is_some()
    }

    /// Whether its log counts: it holds everything, and nothing that is on its way takes it out of the record.
    pub(super) fn keeps_log(&self) -> bool {
        self.is_full() && self.logged && self.leaving.is_none()
    }

    /// Whether changes are kept until it has acknowledged them.
    pub(super) fn needs_changes(&self) -> bool {
        self.takes_changes() || self.awaited
    }

    pub(super) fn active_connection(&mut self) -> Option<&mut Connection> {
        let slot = self.active?;
        self.connections.get_mut(slot)
    }

    /// As what the connection in `slot` is to say HELLO: only one can be the active one.
    /// `None` while another one is about to be it: there is nothing to be on standby for yet.
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

    /// A standby connection to change to.
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
