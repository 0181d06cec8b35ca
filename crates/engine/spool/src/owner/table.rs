//! The paper's Table I: the state of every replica, as the owner acts on it.

use vere_spoolwire::Txn;
use vere_units::Timestamp;

use super::replica::{Replica, Standing};
use super::{Fault, Owner};

/// State of a connection (Table I, "Network State").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkState {
    /// It carries changes.
    Run,
    /// It is on standby.
    Ready,
    /// It is not there.
    Down,
}

/// What a replica holds (Table I, "Sync. State").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncState {
    /// Everything.
    Sync,
    /// Everything, and its answers come later than the others' for long.
    Slow,
    /// Everything but the changes that it missed while it was away; it is given them.
    CatchingUp,
    /// It is being rebuilt; so many records were copied.
    Rebuilding(u64),
    /// Nothing that counts.
    Out,
    /// Nothing that counts: it was too slow and is left alone for a while.
    Resting,
    /// It is a member and must leave.
    Faulty(Fault),
}

/// One row: one replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    /// The node.
    pub node: String,
    /// Its active connection.
    pub active: NetworkState,
    /// Its connection on standby.
    pub standby: NetworkState,
    /// What it holds.
    pub sync: SyncState,
    /// The last transaction it acknowledged.
    pub transactions: Txn,
    /// Transactions sent to it and not acknowledged.
    pub in_flight: u64,
    /// Whether what was acknowledged is in its memory and nowhere else.
    pub alone: bool,
}

impl Owner {
    /// The table, in the order of the configured nodes.
    #[must_use]
    pub fn table(&self) -> Vec<ReplicaRow> {
        let alone = self.alone();
        let rows = self.replicas.iter().enumerate();
        rows.map(|(index, replica)| ReplicaRow {
            alone: alone == Some(index),
            ..row(replica, self.now)
        })
        .collect()
    }
}

fn row(replica: &Replica, now: Timestamp) -> ReplicaRow {
    let standby = replica
        .connections
        .iter()
        .enumerate()
        .any(|(slot, connection)| connection.is_up() && replica.active != Some(slot));
    let sync = match (replica.standing, replica.fault, &replica.rebuild) {
        (Standing::Out, ..) if replica.pace.rests(now) => SyncState::Resting,
        (Standing::Out, ..) => SyncState::Out,
        (_, Some(fault), _) => SyncState::Faulty(fault),
        (Standing::Full, ..) if replica.pace.is_slow() => SyncState::Slow,
        (Standing::Full, ..) => SyncState::Sync,
        (Standing::Syncing, ..) if replica.awaited => SyncState::CatchingUp,
        (Standing::Syncing, _, rebuild) => {
            SyncState::Rebuilding(rebuild.as_ref().map_or(0, |rebuild| rebuild.records))
        }
    };
    let state = |there, state| if there { state } else { NetworkState::Down };
    ReplicaRow {
        node: replica.name.clone(),
        active: state(replica.is_up(), NetworkState::Run),
        standby: state(standby, NetworkState::Ready),
        sync,
        transactions: replica.acked,
        in_flight: replica.position.0.saturating_sub(replica.acked.0),
        alone: false,
    }
}
