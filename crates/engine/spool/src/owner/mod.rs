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
//! safe when), `register` (who counts: rules R1 to R6), `opening` (from a claim to an open group), `duty` (who keeps a log),
//! `pace` (who is too slow), `rebuild` (how a node gets what it lacks), `absence` (who lacks little).

mod absence;
mod adoption;
mod alone;
mod batch;
mod changes;
mod config;
mod connection;
mod duty;
mod event;
mod incoming;
mod links;
mod membership;
mod names;
mod opening;
mod pace;
mod phase;
mod question;
mod reads;
mod rebuild;
mod register;
mod replica;
mod settle;
mod table;
mod title;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use vere_spoolwire::{QueueCharter, QueueId, RecordId, Request, Seq, Txn};
use vere_units::Timestamp;

use changes::{Changes, What};
use names::Names;
use phase::Phase;
use question::{Purpose, Read};
use register::Register;
use replica::Replica;

pub use batch::{Batch, Block, Committed, Operation, Record};
pub use config::{Link, NodeName, OwnerConfig, OwnerError, SubmitError};
pub use event::{OwnerEvent, ReplicaChange, ShutReason};
pub use membership::{MEMBERS_MAX, Member, MemberState, Membership, MembershipError};
pub use register::{RegisterFailed, RegisterRequest, RegisterSwap};
pub use replica::Fault;
pub use table::{NetworkState, ReplicaRow, SyncState};
pub use title::Title;

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
    /// The replica that alone holds what was acknowledged, as it was told last.
    alone: Option<usize>,
    now: Timestamp,
    /// When the part of the window ends in which members are compared.
    part_ends: Timestamp,
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
            alone: None,
            now: Timestamp::ZERO,
            part_ends: Timestamp::ZERO,
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
            let id = self.names.next_id(queue).ok_or(SubmitError::Invalid)?;
            ids.push(id);
        }
        let what = What::Batch {
            batch,
            ids: ids.clone(),
        };
        let txn = self.changes.push(what, false);
        Ok(Committed { txn, ids })
    }

    /// Makes a queue under the lowest free number, or gives the one of that name another charter.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`]; [`SubmitError::Busy`] when too much is pending;
    /// [`SubmitError::Invalid`] for a name over its limit, for somebody who is to adopt the queue alone, or
    /// when all numbers are taken.
    pub fn create_queue<'a>(
        &mut self,
        name: &str,
        charter: impl Into<QueueCharter<'a>>,
    ) -> Result<(QueueId, Txn), SubmitError> {
        let QueueCharter { limits, readers } = charter.into();
        self.changes.check_name(name)?;
        if !readers.only_read() {
            return Err(SubmitError::Invalid);
        }
        if self.changes.pending() >= self.config.pending_max {
            return Err(SubmitError::Busy);
        }
        let queue = self.names.make(name).ok_or(SubmitError::Invalid)?;
        let name = name.to_owned();
        let what = What::Create {
            queue,
            name,
            limits,
            readers: readers.into(),
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

    /// Asks every replica that holds everything for figures, and gives under which numbers.
    pub fn stats(&mut self) -> Vec<Seq> {
        if !matches!(self.phase, Phase::Open) {
            return Vec::new();
        }
        (0..self.replicas.len())
            .filter(|index| self.replicas[*index].is_sound())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|index| self.ask(index, Request::Stat, Purpose::Caller))
            .collect()
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
            asked_at: self.now,
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
            asked_at: self.now,
        };
        self.reads.insert(seq, read);
        seq
    }

    /// Asks what the host wants to know, of a replica that holds everything.
    fn ask_reads(&mut self) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        let Some(index) = self.readable() else {
            return;
        };
        let Some(connection) = self.replicas[index].active_connection() else {
            return;
        };
        for (seq, read) in &mut self.reads {
            if read.asked.is_none() {
                connection.write(|out| read.request.encode(out, *seq));
                (read.asked, read.asked_at) = (Some(index), self.now);
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
        self.watch_pace(now);
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
        self.tell_who_is_alone();
    }
}
