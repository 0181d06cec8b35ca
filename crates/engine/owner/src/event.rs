//! Events of an owner for its host.

use vere_spoolwire::{NodeRefusal, NodeStat, QueueStat, Seq, Txn};

use super::replica::Fault;
use vere_spoolwire::Block;

/// Event of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerEvent {
    /// The owner accepts and acknowledges changes from now on.
    Opened,
    /// The owner acknowledges nothing for now, for this reason.
    Shut(ShutReason),
    /// The register names another owner: this owner has ended for good.
    Fenced,
    /// The register is unreachable, or its value is damaged. Emitted once until the register
    /// answers.
    RegisterUnreachable,
    /// The state of a node changed.
    Replica {
        /// Name of the node.
        node: String,
        /// New state.
        change: ReplicaChange,
    },
    /// A change was refused. Precedes the [`OwnerEvent::Acked`] that covers this change.
    Refused {
        /// Transaction number.
        txn: Txn,
        /// Reason.
        refusal: NodeRefusal,
    },
    /// All changes up to and including `through` are safe, except refused ones.
    Acked {
        /// Last acknowledged change.
        through: Txn,
    },
    /// Answer to [`super::Owner::fetch`]; `None` without such a queue.
    Block {
        /// Sequence number of the fetch.
        seq: Seq,
        /// The records.
        block: Option<Block>,
    },
    /// Answer to [`super::Owner::stat`], or one answer to [`super::Owner::stats`].
    Stat {
        /// Sequence number of the request.
        seq: Seq,
        /// The figures.
        stat: NodeStat,
    },
    /// Answer to [`super::Owner::queues`].
    Queues {
        /// Sequence number of the request.
        seq: Seq,
        /// The queues.
        queues: Vec<QueueStat>,
        /// Whether the list ends here.
        end: bool,
    },
}

/// Reason why an owner acknowledges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutReason {
    /// The owner has not opened yet: the register or enough nodes have not answered.
    Starting,
    /// No full replica is reachable.
    Unreachable,
    /// The number of full replicas is below the configured minimum.
    TooFew,
    /// No node holds the group under the incarnation in the record: the group's data may be lost.
    /// An operator has to decide.
    NoFullReplica,
}

/// New state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaChange {
    /// Connected.
    Up,
    /// Disconnected.
    Down,
    /// Full: the node holds everything and counts.
    Full,
    /// In rebuild.
    Rebuilding,
    /// Catching up: the node was only absent and receives the missed changes.
    CatchingUp,
    /// Full again: the node has received the missed changes and counts.
    CaughtUp,
    /// Isolated: the node does not count any more, for this reason.
    Isolated(Fault),
    /// Changes are sent over the former standby connection.
    Switched,
    /// Persistently slower than the other members: the node is to be replaced.
    Slow,
    /// No longer slow: the node keeps up with the other members, or they are as slow.
    Keeps,
    /// Only this node's memory holds the acknowledged records: no other node and no log holds them.
    Alone,
    /// Another node or a log holds the acknowledged records too.
    Joined,
}
