//! What an owner has to tell its host.

use vere_spoolwire::{NodeStat, QueueStat, Refusal, Seq, Txn};

use super::batch::Block;
use super::replica::Fault;

/// What an owner has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerEvent {
    /// Changes are taken and acknowledged from now on.
    Opened,
    /// Nothing is acknowledged for now, and why.
    Shut(ShutReason),
    /// The register names another owner: this one is done, for good.
    Fenced,
    /// The register cannot be reached, or what it holds is damaged. Told once until it answers.
    RegisterUnreachable,
    /// Something changed about a node.
    Replica {
        /// Its name.
        node: String,
        /// What.
        change: ReplicaChange,
    },
    /// One change was refused. Comes before the [`OwnerEvent::Acked`] that covers it.
    Refused {
        /// Its number.
        txn: Txn,
        /// Why.
        refusal: Refusal,
    },
    /// Every change up to this one is safe, but for the refused ones.
    Acked {
        /// The last of them.
        through: Txn,
    },
    /// The answer to [`super::Owner::fetch`]; `None` when there is no such queue.
    Block {
        /// Which fetch.
        seq: Seq,
        /// The records.
        block: Option<Block>,
    },
    /// The answer to [`super::Owner::stat`], or one of those to [`super::Owner::stats`].
    Stat {
        /// Which one.
        seq: Seq,
        /// The figures.
        stat: NodeStat,
    },
    /// The answer to [`super::Owner::queues`].
    Queues {
        /// Which one.
        seq: Seq,
        /// The queues.
        queues: Vec<QueueStat>,
        /// Whether there are none after these.
        end: bool,
    },
}

/// Why an owner acknowledges nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutReason {
    /// It has not begun yet: the register or enough nodes did not answer so far.
    Starting,
    /// No full replica is reached.
    Unreachable,
    /// Fewer full replicas are left than there must be.
    TooFew,
    /// No node holds the group under the incarnation that the record names: what it held may be lost.
    /// An operator has to decide.
    NoFullReplica,
}

/// What changed about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaChange {
    /// It is connected.
    Up,
    /// It is not connected any more.
    Down,
    /// It counts: it holds everything.
    Full,
    /// It is being rebuilt.
    Rebuilding,
    /// It was only away: it is given what it missed.
    CatchingUp,
    /// It has that, so it counts again: it holds everything.
    CaughtUp,
    /// It counts no more, and why.
    Isolated(Fault),
    /// Changes go over its standby connection now.
    Switched,
    /// Its answers come later than the others' for long: it is to be replaced.
    Slow,
    /// It keeps up with the others again, or they do no better.
    Keeps,
    /// What was acknowledged is in its memory and nowhere else: not in another's, and in no log.
    Alone,
    /// Another one holds it too, or a log does.
    Joined,
}
