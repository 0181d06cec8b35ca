//! The replicas of a group, for the display to operators.

use vere_owner::{NetworkState, ReplicaRow, SyncState};

use crate::group::Group;
use crate::trade::Trade;
use vere_control::ReplicaLine;

/// Returns the state of every replica.
pub(super) fn lines<T: Trade>(group: &Group<T>) -> Vec<ReplicaLine> {
    let table = group.host.link.table().into_iter();
    table.map(|row| replica_line(group, row)).collect()
}

fn replica_line<T: Trade>(group: &Group<T>, row: ReplicaRow) -> ReplicaLine {
    let network = |state| match state {
        NetworkState::Run => "run",
        NetworkState::Ready => "ready",
        NetworkState::Down => "down",
    };
    let (sync, copied) = match row.sync {
        SyncState::Sync => ("sync".to_owned(), None),
        SyncState::CatchingUp => ("catching up".to_owned(), None),
        SyncState::Rebuilding(copied) => ("rebuilding".to_owned(), Some(copied)),
        SyncState::Slow => ("slow".to_owned(), None),
        SyncState::Out => ("out".to_owned(), None),
        SyncState::Resting => ("out, slow".to_owned(), None),
        SyncState::Faulty(fault) => (fault.to_string(), None),
    };
    ReplicaLine {
        active: network(row.active).to_owned(),
        standby: network(row.standby).to_owned(),
        sync,
        transactions: row.transactions.0,
        in_flight: row.in_flight,
        alone: row.alone,
        copied,
        trouble: group.host.link.trouble(&row.node),
        node: row.node,
    }
}
