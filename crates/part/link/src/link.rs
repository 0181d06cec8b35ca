//! The gateway's link to the nodes that hold its queue group.
//!
//! [`SpoolLink::connect`] gives a handle and a driver. The handle is cheap to clone and stays on its thread;
//! the driver runs beside it (`tokio::task::spawn_local`) and is the only one that touches sockets and the
//! register. Requests to the handle within one turn of the loop leave in one write; an acknowledgement wakes
//! every waiter with a covered transaction, in order.
//!
//! What the driver does is in `driver`, what waits for an acknowledgement in `pending`, making and ending
//! queues in `queues`, TLS in `wire`, what is measured in `figures`, state that handle and driver share in `shared`.
//!
//! After a cut the driver connects again and sends what was not acknowledged; a node knows by the
//! transaction number what it has done already. Which nodes count, and how one that lost the group gets
//! it back, is the business of [`vere_owner::Owner`].

mod driver;
mod figures;
mod lease;
mod options;
mod pending;
mod queues;
mod shared;
mod state;
mod wire;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use vere_owner::lease::{LeaseKeeper, LeaseOptions, LeaseState};
use vere_owner::{NodeName, Owner, OwnerConfig, ReplicaRow};
use vere_spoolwire::{Batch, Block, Committed};
use vere_spoolwire::{NodeRefusal, QueueId, QueueStat, RecordId, Seq, Txn};
use vere_units::ByteSize;

pub use self::lease::ask as ask_lease;
pub use self::options::{LinkOptions, NodeAddresses, SlowTerms, random_life};
use self::pending::{Answered, Pending};
pub use self::queues::Change;
use self::shared::{Forget, Inner, Read, Shared};
pub use self::state::LinkState;
use vere_process::boot_clock::Clock;
use vere_spoolwire::SpoolError;

/// Queues asked for at once.
const QUEUES_AT_ONCE: u32 = 4096;

/// A handle on the group.
#[derive(Debug, Clone)]
pub struct SpoolLink {
    shared: Rc<Shared>,
}

/// A commit on the way. It was numbered when [`SpoolLink::commit`] was called; awaiting it only waits.
///
/// Dropping it before it is ready: a commit of new records only is taken back when it turns out to
/// have arrived, any other stands.
#[derive(Debug)]
#[must_use = "a dropped commit of new records is taken back; see SpoolLink::post"]
pub struct Commit {
    answered: Result<Rc<Answered>, SpoolError>,
    committed: Committed,
}

impl Future for Commit {
    type Output = Result<Committed, SpoolError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match &self.answered {
            Ok(answered) => match answered.poll(context) {
                Poll::Ready(result) => result,
                Poll::Pending => return Poll::Pending,
            },
            Err(error) => Err(*error),
        };
        Poll::Ready(result.map(|()| std::mem::take(&mut self.committed)))
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if let Ok(answered) = &self.answered {
            answered.abandon();
        }
    }
}

impl SpoolLink {
    /// Makes the handle and the driver, which runs on a `LocalSet`. The driver ends after
    /// [`SpoolLink::close`], or when another owner takes the group over.
    pub fn connect(options: LinkOptions) -> (Self, impl Future<Output = ()> + use<>) {
        let (state, _) = watch::channel(LinkState::Connecting);
        let owner = Owner::new(OwnerConfig {
            life: options.life,
            takes: options.takes,
            nodes: options.nodes.iter().map(node_name).collect(),
            durable: options.durable,
            replicas: options.replicas,
            replicas_min: options.replicas_min,
            slow_after: options.slow.after,
            slow_lag: options.slow.lag,
            slow_rest: options.slow.rest,
            window: size(options.window),
            pending_max: size(options.pending_max),
            heartbeat: options.heartbeat,
            isolate_after: options.isolate_after,
            account: options.credentials.account.clone(),
            grants: options.grants.clone(),
            bytes_max: options.group_max,
            ..OwnerConfig::new(&options.group, options.credentials.secret.clone(), 0)
        });
        let wakers = owner.links().map(|_| Notify::new()).collect();
        let unwatched = owner.links().map(|_| Cell::new(false)).collect();
        let lease = LeaseKeeper::new(LeaseOptions {
            life: options.life,
            terms: options.lease,
            adopted: options.adopted,
            dead: options.dead.clone(),
        });
        let inner = Inner {
            owner,
            pending: Pending::default(),
            reads: HashMap::new(),
            drops: Vec::new(),
            troubles: HashMap::new(),
            certificate_ends: BTreeMap::new(),
            closed: false,
        };
        let shared = Rc::new(Shared {
            options,
            clock: Clock::start(),
            state,
            replicas: watch::Sender::new(Vec::new()),
            wakers,
            unwatched,
            keeper: Notify::new(),
            lease_state: watch::Sender::new(LeaseState::Waiting),
            lease: RefCell::new(lease),
            lease_waker: Notify::new(),
            closing: Cell::new(false),
            soon: Cell::new(false),
            inner: RefCell::new(inner),
        });
        let driver = driver::drive(Rc::clone(&shared));
        (Self { shared }, driver)
    }

    /// Whether the node is there, and every change of it.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.shared.state.subscribe()
    }

    /// Whether deliveries may begin at this moment (rule R4): this gateway owns the group and holds its
    /// delivery lease.
    pub fn may_deliver(&self) -> bool {
        lease::is_held(&self.shared)
    }

    /// The state of the delivery lease, and every change of it.
    pub fn lease(&self) -> watch::Receiver<LeaseState> {
        self.shared.lease_state.subscribe()
    }

    /// Whether everything that was submitted is acknowledged.
    pub fn is_settled(&self) -> bool {
        let inner = self.shared.inner.borrow();
        inner.owner.submitted() == inner.owner.acknowledged()
    }

    /// Returns the delivery lease, so that the next gateway delivers at once. The caller must have finished all
    /// deliveries and may start none afterwards.
    pub async fn give_back(&self) {
        self.shared.wake();
        lease::give_back(&self.shared).await;
    }

    /// The state of every replica (the paper's Table I).
    pub fn table(&self) -> Vec<ReplicaRow> {
        self.shared.inner.borrow().owner.table()
    }

    /// The table whenever something about a node changes.
    pub fn replicas(&self) -> watch::Receiver<Vec<ReplicaRow>> {
        self.shared.replicas.subscribe()
    }

    /// Why a node is not connected, as far as is known.
    pub fn trouble(&self, node: &str) -> Option<String> {
        self.shared.inner.borrow().troubles.get(node).cloned()
    }

    /// Submits changes: all or nothing. Ready when every replica that counts has
    /// acknowledged them at its level.
    ///
    /// A commit that only adds records fails after `commit_timeout`; any other waits for as long as
    /// the link lives, since it is applied sooner or later.
    pub fn commit(&self, batch: Batch) -> Commit {
        let undo = batch.only_puts();
        match self.submit(batch, undo) {
            Ok((answered, committed)) => Commit {
                answered: Ok(answered),
                committed,
            },
            Err(error) => Commit {
                answered: Err(error),
                committed: Committed::default(),
            },
        }
    }

    fn submit(&self, batch: Batch, undo: bool) -> Result<(Rc<Answered>, Committed), SpoolError> {
        let mut inner = self.shared.inner.borrow_mut();
        if inner.closed {
            return Err(SpoolError::Closed);
        }
        let queues = if undo {
            pending::queues_of(&batch)
        } else {
            Vec::new()
        };
        let committed = inner.owner.commit(batch)?;
        let made = queues
            .into_iter()
            .zip(committed.ids.iter().copied())
            .collect();
        let deadline = undo.then(|| Instant::now() + self.shared.options.commit_timeout);
        let answered = inner.pending.push(committed.txn, deadline, made);
        drop(inner);
        self.shared.wake();
        Ok((answered, committed))
    }

    /// Submits changes that nobody waits for, such as a DELETE after a delivery. They leave with whatever is
    /// submitted next, or a moment later: by themselves they would cost as much as a message.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Busy`] before the node was reached for the first time, and for new records when
    /// too much waits; [`SpoolError::Invalid`]; [`SpoolError::Closed`].
    pub fn post(&self, batch: Batch) -> Result<Txn, SpoolError> {
        let mut inner = self.shared.inner.borrow_mut();
        if inner.closed {
            return Err(SpoolError::Closed);
        }
        let txn = inner.owner.commit(batch)?.txn;
        inner.pending.post(txn);
        drop(inner);
        self.shared.wake_soon();
        Ok(txn)
    }

    /// Reads up to `records` records and about `bytes` octets of a queue from `from` on, at least one.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Refused`] when there is no such queue, [`SpoolError::Timeout`],
    /// [`SpoolError::Closed`].
    pub async fn fetch(
        &self,
        queue: QueueId,
        from: RecordId,
        records: u32,
        bytes: u32,
    ) -> Result<Block, SpoolError> {
        let answer = self
            .read(|owner| owner.fetch(queue, from, records, bytes))
            .await?;
        match answer {
            Read::Block(block) => block.ok_or(SpoolError::Refused(NodeRefusal::NoQueue)),
            Read::Stat(_) | Read::Queues(..) => Err(SpoolError::Closed),
        }
    }

    /// Every queue of the group.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Timeout`], [`SpoolError::Closed`].
    pub async fn queues(&self) -> Result<Vec<QueueStat>, SpoolError> {
        let mut all: Vec<QueueStat> = Vec::new();
        loop {
            let from = QueueId(all.last().map_or(0, |queue| queue.id.0 + 1));
            let answer = self
                .read(|owner| owner.queues(from, QUEUES_AT_ONCE))
                .await?;
            let Read::Queues(queues, end) = answer else {
                return Err(SpoolError::Closed);
            };
            let none = queues.is_empty();
            all.extend(queues);
            if end || none {
                return Ok(all);
            }
        }
    }

    async fn read(&self, ask: impl FnOnce(&mut Owner) -> Seq) -> Result<Read, SpoolError> {
        let (sender, receiver) = oneshot::channel();
        let seq = {
            let mut inner = self.shared.inner.borrow_mut();
            if inner.closed {
                return Err(SpoolError::Closed);
            }
            let seq = ask(&mut inner.owner);
            inner.reads.insert(seq, sender);
            seq
        };
        self.shared.wake();
        // Also when this future is dropped: nobody waits for the answer then.
        let _forget = Forget {
            shared: &self.shared,
            seq,
        };
        match tokio::time::timeout(self.shared.options.read_timeout, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(SpoolError::Closed),
            Err(_) => Err(SpoolError::Timeout),
        }
    }

    /// Closes the link. Pending commits fail.
    pub fn close(&self) {
        self.shared.inner.borrow_mut().closed = true;
        self.shared.closing.set(true);
        self.shared.keeper.notify_one();
        self.shared.lease_waker.notify_one();
        self.shared.wake();
    }
}

fn node_name(node: &NodeAddresses) -> NodeName {
    NodeName {
        name: node.name.clone(),
        links: node.addresses.len(),
        machine: node.machine,
    }
}

fn size(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
