//! The paper's Table I: state of every replica, as used by the owner.

use vere_spoolwire::Txn;
use vere_units::Timestamp;

use super::replica::{Replica, Standing};
use super::{Fault, Owner};

/// State of a connection (Table I, "Network State").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkState {
    /// Carries changes.
    Run,
    /// On standby.
    Ready,
    /// Not connected.
    Down,
}

/// Content of a replica (Table I, "Sync. State").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncState {
    /// Everything.
    Sync,
    /// Everything, with answers persistently later than the other members'.
    Slow,
    /// Everything except changes missed during an absence, which are being sent.
    CatchingUp,
    /// In rebuild; number of copied records.
    Rebuilding(u64),
    /// Nothing that counts.
    Out,
    /// Nothing that counts: the node left as slow and has a pause.
    Resting,
    /// A member that must leave.
    Faulty(Fault),
}

/// One row: one replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    /// Name of the node.
    pub node: String,
    /// State of the active connection.
    pub active: NetworkState,
    /// State of the standby connection.
    pub standby: NetworkState,
    /// Content of the replica.
    pub sync: SyncState,
    /// Last acknowledged transaction.
    pub transactions: Txn,
    /// Number of transactions sent without acknowledgement.
    pub in_flight: u64,
    /// Whether only this node's memory holds the acknowledged records.
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
