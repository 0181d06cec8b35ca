//! The owner's side: what a gateway asks of its group's replicas, numbered, in flight and resent.
//!
//! [`Owner`] is a machine. The host connects every [`Link`] that [`Owner::wants`], tells it so
//! ([`Owner::connected`]), feeds it what arrives ([`Owner::input`]), writes what is pending
//! ([`Owner::output`], [`Owner::sent`]), asks the register what it is told to
//! ([`Owner::poll_register`]), and takes events ([`Owner::poll_event`]). Changes are numbered when they
//! are submitted and kept until every replica that counts has acknowledged them; after a cut they are
//! sent again from the number on that the node asks for.
//!
//! ```text
//! phase      leaves for   when
//! Start      Claimed      the register says that the group is this owner's, under a new epoch
//! Claimed    Learning     the full members with the highest transaction are all that the record names
//! Learning   Open         they have told their queues, and it is safe on all what they hold and whose it is
//! Learning   Claimed      one of them is gone
//! any        Fenced       the register names another owner
//! ```
//!
//! Reading order: `changes` (what is submitted), `connection` and `replica` (to whom), `settle` (what is
//! safe when), `register` (who counts: rules R1 to R6), `duty` (who keeps a log), `rebuild` (how a node gets what it lacks).

mod batch;
mod changes;
mod config;
mod connection;
mod duty;
mod incoming;
mod links;
mod membership;
mod names;
mod rebuild;
mod register;
mod replica;
mod settle;
mod table;
mod title;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use vere_spoolwire::{
    NodeStat, QueueId, QueueLimits, QueueStat, RecordId, Refusal, Request, Seq, Txn,
};
use vere_units::Timestamp;

use changes::{Changes, What};
use names::Names;
use register::Register;
use replica::Replica;
use title::Noted;

pub use batch::{Batch, Block, Committed, Operation, Record};
pub use config::{NodeName, OwnerConfig, OwnerError, SubmitError};
pub use links::Link;
pub use membership::{MEMBERS_MAX, Member, MemberState, Membership, MembershipError};
pub use register::{RegisterFailed, RegisterRequest, RegisterSwap};
pub use replica::Fault;
pub use table::{NetworkState, ReplicaRow, SyncState};
pub use title::Title;

/// Queues asked for at once.
const QUEUES_AT_ONCE: u32 = 4096;

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
    /// The answer to [`Owner::fetch`]; `None` when there is no such queue.
    Block {
        /// Which fetch.
        seq: Seq,
        /// The records.
        block: Option<Block>,
    },
    /// The answer to [`Owner::stat`].
    Stat {
        /// Which one.
        seq: Seq,
        /// The figures.
        stat: NodeStat,
    },
    /// The answer to [`Owner::queues`].
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
    /// It counts no more, and why.
    Isolated(Fault),
    /// Changes go over its standby connection now.
    Switched,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The group is not this owner's yet.
    Start,
    /// It is; its members are being looked at since then.
    Claimed {
        since: Timestamp,
    },
    /// They are asked which queues there are, and make safe what they have.
    Learning {
        leader: usize,
    },
    Open,
    /// It is another owner's.
    Fenced,
}

/// For what something is read.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// The host asked.
    Caller,
    /// To know names and numbers.
    Learn,
    /// To rebuild this replica.
    CopyQueues(usize),
    /// To rebuild this replica: records of a queue.
    CopyRecords(usize, QueueId),
}

#[derive(Debug)]
struct Read {
    request: Request,
    purpose: Purpose,
    /// The replica that was asked.
    asked: Option<usize>,
}

/// The owner of one group.
#[derive(Debug)]
pub struct Owner {
    config: OwnerConfig,
    phase: Phase,
    register: Register,
    /// What the register says, as far as this owner knows.
    record: Membership,
    replicas: Vec<Replica>,
    changes: Changes,
    names: Names,
    /// Reads without an answer.
    reads: BTreeMap<Seq, Read>,
    next_seq: Seq,
    events: VecDeque<OwnerEvent>,
    /// What is decided, to be told when there are enough full replicas.
    untold: VecDeque<OwnerEvent>,
    /// Connections that the host is to end.
    drops: VecDeque<(Link, OwnerError)>,
    /// What was told last; `None`: open.
    shut: Option<ShutReason>,
    now: Timestamp,
}

impl Owner {
    /// An owner that knows nothing yet.
    #[must_use]
    pub fn new(config: OwnerConfig) -> Self {
        Self {
            phase: Phase::Start,
            register: Register::default(),
            record: Membership::new(0, config.life),
            replicas: config.nodes.iter().map(Replica::new).collect(),
            changes: Changes::new(),
            names: Names::default(),
            reads: BTreeMap::new(),
            next_seq: Seq(1),
            events: VecDeque::new(),
            untold: VecDeque::new(),
            drops: VecDeque::new(),
            shut: Some(ShutReason::Starting),
            now: Timestamp::ZERO,
            config,
        }
    }

    /// Whether changes are acknowledged now.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.shut.is_none()
    }

    /// The last change submitted.
    #[must_use]
    pub fn submitted(&self) -> Txn {
        self.changes.submitted()
    }

    /// The last change acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> Txn {
        self.changes.acknowledged()
    }

    /// Octets submitted and not acknowledged.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.changes.pending()
    }

    /// The membership record as this owner knows it.
    #[must_use]
    pub const fn membership(&self) -> &Membership {
        &self.record
    }

    /// Submits changes, all or nothing, under one number. New records get theirs here, in the order of
    /// the batch.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`] before the queues are known; [`SubmitError::Busy`] for new records when
    /// too much is pending; [`SubmitError::Invalid`] for a batch without a change, over the nodes' frame
    /// limit, or with metadata over its limit.
    pub fn commit(&mut self, batch: Batch) -> Result<Committed, SubmitError> {
        self.changes.check(&batch)?;
        if batch.has_puts() && self.changes.pending() >= self.config.pending_max {
            return Err(SubmitError::Busy);
        }
        let mut ids = Vec::with_capacity(batch.makes());
        for operation in batch.operations() {
            let queue = match operation {
                Operation::Put { queue, .. } => *queue,
                Operation::Move { to, .. } => *to,
                Operation::Delete { .. } | Operation::Replace { .. } => continue,
            };
            ids.push(self.names.next_id(queue));
        }
        let what = What::Batch {
            batch,
            ids: ids.clone(),
        };
        let txn = self.changes.push(what, false);
        Ok(Committed { txn, ids })
    }

    /// Makes a queue under the lowest free number, or gives the one of that name other limits.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`]; [`SubmitError::Invalid`] for a name over its limit, or when all numbers
    /// are taken.
    pub fn create_queue(
        &mut self,
        name: &str,
        limits: QueueLimits,
    ) -> Result<(QueueId, Txn), SubmitError> {
        self.changes.check_name(name)?;
        let queue = self.names.number(name).ok_or(SubmitError::Invalid)?;
        let name = name.to_owned();
        let what = What::Create {
            queue,
            name,
            limits,
        };
        Ok((queue, self.changes.push(what, false)))
    }

    /// Ends all records of a queue up to and with `through`; with `drop` forgets the queue, which must
    /// be empty then.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`].
    pub fn purge(
        &mut self,
        queue: QueueId,
        through: RecordId,
        drop: bool,
    ) -> Result<Txn, SubmitError> {
        self.changes.check_ready()?;
        let what = What::Purge {
            queue,
            through,
            drop,
        };
        Ok(self.changes.push(what, false))
    }

    /// Asks for records of a queue from one on.
    pub fn fetch(&mut self, queue: QueueId, from: RecordId, records: u32, octets: u32) -> Seq {
        self.read(Request::Fetch {
            queue,
            from,
            records,
            octets,
        })
    }

    /// Asks for figures of the replica that is read from.
    pub fn stat(&mut self) -> Seq {
        self.read(Request::Stat)
    }

    /// Asks for queues from a number on.
    pub fn queues(&mut self, from: QueueId, count: u32) -> Seq {
        self.read(Request::Queues { from, count })
    }

    /// Forgets a read: its answer is not waited for.
    pub fn forget(&mut self, seq: Seq) {
        self.reads.remove(&seq);
    }

    fn read(&mut self, request: Request) -> Seq {
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0 + 1);
        let read = Read {
            request,
            purpose: Purpose::Caller,
            asked: None,
        };
        self.reads.insert(seq, read);
        self.ask_reads();
        seq
    }

    /// Asks one replica something, under the next sequence number.
    fn ask(&mut self, index: usize, request: Request, purpose: Purpose) -> Seq {
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0 + 1);
        if let Some(connection) = self.replicas[index].active_connection() {
            connection.write(|out| request.encode(out, seq));
        }
        let asked = Some(index);
        let read = Read {
            request,
            purpose,
            asked,
        };
        self.reads.insert(seq, read);
        seq
    }

    /// Asks what the host wants to know, of a replica that holds everything.
    fn ask_reads(&mut self) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        let Some(index) = self.replicas.iter().position(Replica::is_sound) else {
            return;
        };
        let Some(connection) = self.replicas[index].active_connection() else {
            return;
        };
        for (seq, read) in &mut self.reads {
            if read.asked.is_none() {
                connection.write(|out| read.request.encode(out, *seq));
                read.asked = Some(index);
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<OwnerEvent> {
        self.events.pop_front()
    }

    /// A connection that the host is to end now, and why; then [`Owner::disconnected`].
    pub fn poll_drop(&mut self) -> Option<(Link, OwnerError)> {
        self.drops.pop_front()
    }

    /// Does what has become possible.
    fn advance(&mut self, now: Timestamp) {
        self.look_at_clock(now);
        for index in 0..self.replicas.len() {
            self.attach_standby(index);
        }
        self.ask_register(now);
        self.secure_title();
        self.adopt(now);
        self.assign_duty(now);
        self.ask_reads();
        for index in 0..self.replicas.len() {
            self.rebuild(index);
        }
        self.settle();
        self.find_stalled(now);
        // A fault that was found just now, or a rebuild that is complete.
        self.ask_register(now);
        self.drop_unwanted();
        self.tell_whether_open(now);
    }

    /// From Claimed to Learning, when the record names just the members to go on with; and back.
    fn adopt(&mut self, now: Timestamp) {
        match self.phase {
            Phase::Claimed { since }
                if self.record.full() > 0
                    && self.adopted(since, now).as_ref() == Some(&self.record) =>
            {
                self.learn();
            }
            Phase::Learning { leader } => {
                let full = || self.replicas.iter().filter(|replica| replica.is_full());
                let base = self.changes.base();
                let sound = self.replicas[leader].is_sound() && full().all(Replica::is_sound);
                let noted = full().all(|replica| replica.noted == Noted::Safe);
                let safe = noted && full().all(|replica| replica.listed && replica.acked >= base);
                let agree = full().all(|replica| replica.agrees(&self.replicas[leader]));
                if !sound || !agree {
                    self.phase = Phase::Claimed { since: now };
                } else if safe {
                    // From now on no crash of a member makes it fall behind where numbers began, or serve
                    // an owner before.
                    self.phase = Phase::Open;
                    self.changes.open();
                }
            }
            _ => {}
        }
    }

    /// Goes on from where the members are, and asks one of them for its queues.
    fn learn(&mut self) {
        let Some(leader) = self.replicas.iter().position(Replica::is_sound) else {
            return;
        };
        let progress = self.replicas[leader].progress.as_ref();
        let processed = progress.map_or(Txn(0), |progress| progress.processed);
        self.changes.restart(processed);
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_full()) {
            let progress = replica.progress.as_ref();
            replica.acked = progress.map_or(Txn(0), |progress| progress.acknowledged);
            replica.position = processed;
        }
        self.names.clear();
        self.reads
            .retain(|_, read| matches!(read.purpose, Purpose::Caller));
        // What one refused and another one did and took back used up a number only there.
        let full = self.replicas.iter().enumerate();
        let full: Vec<_> = full
            .filter(|(_, replica)| replica.is_full())
            .map(|(i, _)| i)
            .collect();
        self.phase = Phase::Learning { leader };
        for index in full {
            self.replicas[index].listed = false;
            self.ask_queues(index, QueueId(0));
        }
    }

    fn ask_queues(&mut self, index: usize, from: QueueId) {
        let request = Request::Queues {
            from,
            count: QUEUES_AT_ONCE,
        };
        self.ask(index, request, Purpose::Learn);
    }

    /// A full replica told queues.
    fn learned_queues(
        &mut self,
        index: usize,
        queues: &[QueueStat],
        end: bool,
    ) -> Result<(), OwnerError> {
        if !matches!(self.phase, Phase::Learning { .. }) {
            return Ok(());
        }
        self.replicas[index].listed = end || queues.is_empty();
        if !queues.iter().all(|queue| self.names.learn(queue)) {
            return Err(OwnerError::Protocol);
        }
        if let Some(last) = queues.last().filter(|_| !end) {
            self.ask_queues(index, QueueId(last.id.0 + 1));
        }
        Ok(())
    }

    fn tell_whether_open(&mut self, now: Timestamp) {
        let shut = self.why_shut(now);
        if shut == self.shut {
            return;
        }
        self.shut = shut;
        self.events
            .push_back(shut.map_or(OwnerEvent::Opened, OwnerEvent::Shut));
    }

    fn why_shut(&self, now: Timestamp) -> Option<ShutReason> {
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let lost = |replica: &Replica| replica.is_up() && !self.is_recorded(replica);
        match self.phase {
            Phase::Open => {
                let there = full().filter(|replica| replica.is_sound()).count();
                let waited = |replica: &Replica| {
                    !replica.is_up()
                        && now.saturating_since(replica.away_since) >= self.config.isolate_after
                };
                if there > 0 && !self.has_log() {
                    Some(ShutReason::Unreachable)
                } else if there == 0 {
                    let all_lost = full().all(|replica| replica.fault.is_some() || lost(replica));
                    Some(if all_lost {
                        ShutReason::NoFullReplica
                    } else {
                        ShutReason::Unreachable
                    })
                } else if self.record.full() < self.config.replicas_min {
                    Some(ShutReason::TooFew)
                } else if full().any(waited) {
                    // It cannot be removed: the register does not answer.
                    Some(ShutReason::Unreachable)
                } else {
                    None
                }
            }
            Phase::Claimed { .. } if self.is_left_to_operator() => Some(ShutReason::NoFullReplica),
            Phase::Start | Phase::Claimed { .. } | Phase::Learning { .. } => {
                Some(self.shut.unwrap_or(ShutReason::Starting))
            }
            Phase::Fenced => Some(ShutReason::Unreachable),
        }
    }
}
