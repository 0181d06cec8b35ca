//! The owner's side: what a gateway asks of its group's node, numbered, in flight and resent.
//!
//! [`Owner`] is a machine: the host tells it that a connection exists ([`Owner::connected`]), feeds it
//! what arrives ([`Owner::input`]), writes what is pending ([`Owner::output`], [`Owner::sent`]) and asks
//! for events ([`Owner::poll_event`]). Changes are numbered when they are submitted and kept until they
//! are acknowledged; after a cut they are sent again from the number on that the node asks for.
//!
//! ```text
//! state         GREETING          WELCOME             QUEUE_LIST          ACK, BLOCK, ...
//! Down          -                 -                   -                   -
//! Greeting      Welcome           protocol error      protocol error      protocol error
//! Welcome       protocol error    Queues, or Up*      protocol error      protocol error
//! Queues        protocol error    protocol error      Up after the last   as in Up
//! Up            protocol error    protocol error      event               event
//! ```
//! *: when the node's memory is the one that is known already.

mod batch;
mod config;
mod incoming;
mod names;
mod outgoing;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use vere_spoolwire::{
    Answer, CloseReason, Greeting, Hello, Incarnation, NodeStat, QueueId, QueueLimits, QueueStat,
    RecordId, Refusal, Request, Role, SECRET_LEN, Seq, Txn, VERSION, Welcome,
};
use vere_units::Timestamp;

use incoming::{Incoming, Message};
use names::Names;
use outgoing::{Outgoing, What};

pub use batch::{Batch, Block, Committed, Operation, Record};
pub use config::{OwnerConfig, OwnerError, SubmitError};

/// Queues asked for at once when the owner learns what there is.
const QUEUES_AT_ONCE: u32 = 4096;

/// What an owner has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerEvent {
    /// The node is there and takes changes.
    Connected {
        /// The life of its memory.
        incarnation: Incarnation,
        /// It lost what it held: everything submitted before is void, and every queue is new.
        replaced: bool,
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

#[derive(Debug)]
enum State {
    Down,
    /// Waits for the greeting; the nonce to answer with.
    Greeting([u8; SECRET_LEN]),
    /// Waits for the welcome; the proof that must be in it.
    Welcome {
        incarnation: Incarnation,
        proof: [u8; SECRET_LEN],
    },
    /// Learns the queues; whether the node lost its memory before.
    Queues {
        seq: Seq,
        replaced: bool,
    },
    Up,
}

/// The owner of one group.
#[derive(Debug)]
pub struct Owner {
    config: OwnerConfig,
    state: State,
    /// The memory that the numbers below are about.
    incarnation: Option<Incarnation>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Reads without an answer, to be asked again after a cut.
    reads: BTreeMap<Seq, Request>,
    next_seq: Seq,
    names: Names,
    events: VecDeque<OwnerEvent>,
    /// When something came last.
    heard: Timestamp,
    /// When a sign of life is due.
    heartbeat_at: Timestamp,
}

impl Owner {
    /// An owner that was never connected.
    #[must_use]
    pub fn new(config: OwnerConfig) -> Self {
        Self {
            state: State::Down,
            incarnation: None,
            incoming: Incoming::default(),
            outgoing: Outgoing::new(config.window),
            reads: BTreeMap::new(),
            next_seq: Seq(1),
            names: Names::default(),
            events: VecDeque::new(),
            heard: Timestamp::ZERO,
            heartbeat_at: Timestamp::MAX,
            config,
        }
    }

    /// A connection to the node exists; 32 octets nobody can guess.
    pub fn connected(&mut self, nonce: [u8; SECRET_LEN], now: Timestamp) {
        self.disconnected();
        self.state = State::Greeting(nonce);
        self.heard = now;
    }

    /// The connection is gone. What was not acknowledged is kept.
    pub fn disconnected(&mut self) {
        self.state = State::Down;
        self.incoming = Incoming::default();
        self.outgoing.rewind();
        self.heartbeat_at = Timestamp::MAX;
    }

    /// Whether the node takes changes now.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    /// The last change submitted.
    #[must_use]
    pub fn submitted(&self) -> Txn {
        self.outgoing.submitted()
    }

    /// The last change acknowledged.
    #[must_use]
    pub const fn acknowledged(&self) -> Txn {
        self.outgoing.acknowledged()
    }

    /// Octets submitted and not acknowledged.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.outgoing.pending()
    }

    /// Submits changes, all or nothing, under one number. New records get theirs here, in the order of
    /// the batch.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unknown`] before the first connection, when the numbers are not known yet;
    /// [`SubmitError::Busy`] for new records when too much is pending; [`SubmitError::Invalid`] for a
    /// batch without a change, over the node's frame limit, or with metadata over its limit.
    pub fn commit(&mut self, batch: Batch) -> Result<Committed, SubmitError> {
        self.outgoing.check(&batch)?;
        if batch.has_puts() && self.outgoing.pending() >= self.config.pending_max {
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
        let txn = self.outgoing.push(What::Batch {
            batch,
            ids: ids.clone(),
        });
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
        self.outgoing.check_name(name)?;
        let queue = self.names.number(name).ok_or(SubmitError::Invalid)?;
        let name = name.to_owned();
        let txn = self.outgoing.push(What::Create {
            queue,
            name,
            limits,
        });
        Ok((queue, txn))
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
        self.outgoing.check_ready()?;
        Ok(self.outgoing.push(What::Purge {
            queue,
            through,
            drop,
        }))
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

    /// Asks for figures.
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
        self.reads.insert(seq, request);
        if self.is_up() {
            self.outgoing.write(|out| request.encode(out, seq));
        }
        seq
    }

    /// What is to be written next. Changes are put into frames here, as far as the window allows.
    pub fn output(&mut self) -> &[u8] {
        if self.is_up() {
            self.outgoing.fill();
        }
        self.outgoing.output()
    }

    /// So many octets were written.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.sent(count);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<OwnerEvent> {
        self.events.pop_front()
    }

    /// When [`Owner::timed_out`] has something to do.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        self.heartbeat_at
    }

    /// Time has passed.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Silent`] when the node has not answered three heartbeats: disconnect.
    pub fn timed_out(&mut self, now: Timestamp) -> Result<(), OwnerError> {
        if now < self.heartbeat_at {
            return Ok(());
        }
        if now.saturating_since(self.heard) > self.config.heartbeat * 3 {
            return Err(OwnerError::Silent);
        }
        self.heartbeat_at = now + self.config.heartbeat;
        // Nobody waits for this answer; that it comes is enough.
        self.outgoing
            .write(|out| Request::Heartbeat.encode(out, Seq(0)));
        Ok(())
    }

    /// Octets came from the node.
    ///
    /// # Errors
    ///
    /// Why the connection must be given up. [`OwnerError::is_final`] says whether for ever.
    pub fn input(&mut self, octets: &[u8], now: Timestamp) -> Result<(), OwnerError> {
        self.heard = now;
        self.incoming.extend(octets);
        loop {
            let in_handshake = matches!(self.state, State::Greeting(_) | State::Welcome { .. });
            let Some(message) = self
                .incoming
                .next(in_handshake, self.outgoing.frame_max())?
            else {
                return Ok(());
            };
            match message {
                Message::Greeting(greeting) => self.greeted(&greeting)?,
                Message::Welcome(welcome) => self.welcomed(welcome, now)?,
                Message::Answer(answer) => self.answered(answer)?,
                Message::Block { seq, block } => {
                    if self.reads.remove(&seq).is_some() {
                        self.events.push_back(OwnerEvent::Block { seq, block });
                    }
                }
            }
        }
    }

    fn greeted(&mut self, greeting: &Greeting) -> Result<(), OwnerError> {
        let State::Greeting(nonce) = self.state else {
            return Err(OwnerError::Protocol);
        };
        if !(greeting.version_min..=greeting.version_max).contains(&VERSION) {
            return Err(OwnerError::Closed(CloseReason::Version));
        }
        let known = self.incarnation == Some(greeting.incarnation);
        let hello = Hello {
            acknowledged: if known { self.acknowledged() } else { Txn(0) },
            version: VERSION,
            role: Role::Owner,
            owner: self.config.life,
            epoch: 0,
            logged: true,
            group: &self.config.group,
            nonce,
            proof: [0; SECRET_LEN],
        };
        let hello = hello.sign(greeting, &self.config.secret);
        self.outgoing.write(|out| hello.encode(out));
        let proof = hello.answer(greeting, &self.config.secret);
        self.state = State::Welcome {
            incarnation: greeting.incarnation,
            proof,
        };
        Ok(())
    }

    fn welcomed(&mut self, welcome: Welcome, now: Timestamp) -> Result<(), OwnerError> {
        let State::Welcome { incarnation, proof } = self.state else {
            return Err(OwnerError::Protocol);
        };
        if !vere_units::constant_time_eq(&welcome.proof, &proof) {
            return Err(OwnerError::NotTheNode);
        }
        self.heartbeat_at = now + self.config.heartbeat;
        self.outgoing.set_frame_max(welcome.frame_max);
        if self.incarnation == Some(incarnation) {
            // A node that crashed may have forgotten that this owner came, but then nothing of it
            // either: only what was acknowledged was certain to last.
            let untouched = welcome.processed == self.acknowledged();
            if welcome.owner != self.config.life && !untouched {
                return Err(OwnerError::Closed(CloseReason::TakenOver));
            }
            if welcome.processed < self.acknowledged() || welcome.processed > self.submitted() {
                return Err(OwnerError::Behind);
            }
            self.acked(welcome.acknowledged, &welcome.refused)?;
            self.outgoing.resume(welcome.processed);
            return self.up(false);
        }
        let replaced = self.incarnation.replace(incarnation).is_some();
        self.outgoing.restart(welcome.processed);
        self.names.clear();
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0 + 1);
        self.state = State::Queues { seq, replaced };
        self.ask_queues(QueueId(0), seq);
        Ok(())
    }

    fn ask_queues(&mut self, from: QueueId, seq: Seq) {
        let request = Request::Queues {
            from,
            count: QUEUES_AT_ONCE,
        };
        self.outgoing.write(|out| request.encode(out, seq));
    }

    fn up(&mut self, replaced: bool) -> Result<(), OwnerError> {
        self.state = State::Up;
        for (seq, request) in &self.reads {
            self.outgoing.write(|out| request.encode(out, *seq));
        }
        let incarnation = self.incarnation.ok_or(OwnerError::Protocol)?;
        self.events.push_back(OwnerEvent::Connected {
            incarnation,
            replaced,
        });
        Ok(())
    }

    fn acked(&mut self, through: Txn, refused: &[(Txn, Refusal)]) -> Result<(), OwnerError> {
        let before = self.acknowledged();
        if through > self.submitted() {
            return Err(OwnerError::Protocol);
        }
        if through <= before {
            return Ok(());
        }
        for &(txn, refusal) in refused {
            if txn > before && txn <= through {
                self.events.push_back(OwnerEvent::Refused { txn, refusal });
            }
        }
        let names = &mut self.names;
        self.outgoing.acknowledge(through, |txn, what| {
            let refused = refused.iter().any(|(number, _)| *number == txn);
            match what {
                What::Create { queue, .. } if refused => names.remove(*queue),
                What::Purge {
                    queue, drop: true, ..
                } if !refused => names.remove(*queue),
                _ => {}
            }
        });
        self.events.push_back(OwnerEvent::Acked { through });
        Ok(())
    }

    fn answered(&mut self, answer: Answer) -> Result<(), OwnerError> {
        if let Answer::Close(reason) = answer {
            return Err(OwnerError::Closed(reason));
        }
        if !matches!(self.state, State::Up | State::Queues { .. }) {
            return Err(OwnerError::Protocol);
        }
        match answer {
            Answer::Ack { through, refused } => self.acked(through, &refused)?,
            Answer::Stats { seq, stat } => {
                if self.reads.remove(&seq).is_some() {
                    self.events.push_back(OwnerEvent::Stat { seq, stat });
                }
            }
            Answer::QueueList { seq, queues, end } => self.queue_list(seq, queues, end)?,
            Answer::Alive { .. } | Answer::Block { .. } | Answer::Close(_) => {}
            // It never asks for that.
            Answer::Attached { .. } => return Err(OwnerError::Protocol),
        }
        Ok(())
    }

    fn queue_list(
        &mut self,
        seq: Seq,
        queues: Vec<QueueStat>,
        end: bool,
    ) -> Result<(), OwnerError> {
        if matches!(self.state, State::Queues { .. })
            && !queues.iter().all(|queue| self.names.learn(queue))
        {
            return Err(OwnerError::Protocol);
        }
        if let State::Queues { seq: own, replaced } = self.state
            && own == seq
        {
            match queues.last() {
                Some(last) if !end => self.ask_queues(QueueId(last.id.0 + 1), seq),
                _ => self.up(replaced)?,
            }
        } else if self.reads.remove(&seq).is_some() {
            self.events
                .push_back(OwnerEvent::Queues { seq, queues, end });
        }
        Ok(())
    }
}
