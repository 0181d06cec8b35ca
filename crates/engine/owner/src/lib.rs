//! The owner's side: numbers the requests of a gateway to its group's replicas, sends and resends
//! them.
//!
//! [`Owner`] is a machine. The host connects every [`Link`] that [`Owner::wants`] and reports the
//! connection ([`Owner::connected`]). The host passes received octets ([`Owner::input`]), writes
//! pending output ([`Owner::output`], [`Owner::sent`]), asks the register
//! ([`Owner::poll_register`]) and takes events ([`Owner::poll_event`]). A change gets a number when
//! submitted and stays in memory until every required replica has acknowledged the change. After a
//! lost connection the owner resends changes from the number that the node requests.
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
//! Reading order: `changes` (submitted changes), `connection` and `replica` (their receivers),
//! `settle` (when a change is safe), `register` (which members count: rules R1 to R6), `opening`
//! (from a claim to an open group), `duty` (which nodes keep a log), `pace` (slow members),
//! `rebuild` (filling a node), `absence` (members that missed only a few changes), [`lease`] (which of two owners of a
//! group may deliver). The node is in `vere-spool`.

mod absence;
mod adoption;
mod alone;
mod changes;
mod config;
mod connection;
mod duty;
mod event;
mod incoming;
pub mod lease;
mod links;
mod membership;
mod names;
mod opening;
mod outgoing;
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

// Tests need the other side; the tools that connect both are those of the node's tests.
#[cfg(test)]
use crate as owner;
#[cfg(test)]
use vere_spool::node;

#[cfg(test)]
#[path = "../../spool/src/testing/mod.rs"]
#[expect(dead_code, reason = "the node's tests need more of it")]
mod testing;
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

pub use config::{Link, NodeName, OwnerConfig, OwnerError, SubmitError};
pub use event::{OwnerEvent, ReplicaChange, ShutReason};
pub use membership::{MEMBERS_MAX, Member, MemberState, Membership, MembershipError};
pub use register::{RegisterFailed, RegisterRequest, RegisterSwap};
pub use replica::Fault;
pub use table::{NetworkState, ReplicaRow, SyncState};
pub use title::Title;
use vere_spoolwire::{Batch, Committed, Operation};

/// The owner of one group.
#[derive(Debug)]
pub struct Owner {
    config: OwnerConfig,
    phase: Phase,
    register: Register,
    /// The membership record in the register, as far as this owner knows.
    record: Membership,
    replicas: Vec<Replica>,
    changes: Changes,
    names: Names,
    /// Reads without an answer.
    reads: BTreeMap<Seq, Read>,
    next_seq: Seq,
    events: VecDeque<OwnerEvent>,
    /// Decided events, held back until enough full replicas exist.
    untold: VecDeque<OwnerEvent>,
    /// Connections that the host must end.
    drops: VecDeque<(Link, OwnerError)>,
    /// State of the last event: reason for being shut, or `None` for open.
    shut: Option<ShutReason>,
    /// The only replica that holds acknowledged records, as last reported.
    alone: Option<usize>,
    now: Timestamp,
    /// End of the part of the window in which the owner compares members.
    part_ends: Timestamp,
}

impl Owner {
    /// Creates an owner without knowledge of register and nodes.
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

    /// Submits changes, all or nothing, under one transaction number. New records get their numbers
    /// here, in the order of the batch.
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

    /// Creates a queue under the lowest free number, or changes the charter of an existing queue of
    /// this name.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`]; [`SubmitError::Busy`] when too much is pending;
    /// [`SubmitError::Invalid`] for a name over its limit, for readers with a right beyond reading,
    /// or without a free number.
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

    /// Ends all records of a queue up to and including `through`. With `drop` the node also removes
    /// the queue, which must then be empty.
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

    /// Requests records of a queue, beginning with number `from`.
    pub fn fetch(&mut self, queue: QueueId, from: RecordId, records: u32, octets: u32) -> Seq {
        self.read(Request::Fetch {
            queue,
            from,
            records,
            octets,
        })
    }

    /// Requests the figures of the replica that serves reads.
    pub fn stat(&mut self) -> Seq {
        self.read(Request::Stat)
    }

    /// Requests the figures of every sound full replica. Returns the sequence numbers of the
    /// requests.
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

    /// Requests the list of queues, beginning with number `from`.
    pub fn queues(&mut self, from: QueueId, count: u32) -> Seq {
        self.read(Request::Queues { from, count })
    }

    /// Cancels a read and drops its answer.
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

    /// Sends a request to one replica under the next sequence number.
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

    /// Sends the host's outstanding reads to a full replica.
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

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<OwnerEvent> {
        self.events.pop_front()
    }

    /// Returns a connection that the host must end now, and the reason. The host then calls
    /// [`Owner::disconnected`].
    pub fn poll_drop(&mut self) -> Option<(Link, OwnerError)> {
        self.drops.pop_front()
    }

    /// Takes every step that input or time has made possible.
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
        // `settle` and `rebuild` may have found a fault or completed a rebuild.
        self.ask_register(now);
        self.drop_unwanted();
        self.tell_whether_open(now);
        self.tell_who_is_alone();
    }
}
