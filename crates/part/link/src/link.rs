//! The gateway's link to the nodes that hold its queue group.
//!
//! [`SpoolLink::connect`] gives a handle and a driver. The handle is cheap to clone and stays on its
//! thread; the driver runs beside it (`tokio::task::spawn_local`) and is the only one that touches
//! sockets and the register. What is asked of the handle within one turn of the loop leaves in one write; one
//! acknowledgement wakes everybody whose transaction it covers, in order.
//!
//! What the driver does is in `driver`, what waits for an acknowledgement in `pending`, making and ending
//! queues in `queues`, TLS in `wire`, what is measured in `figures`.
//!
//! After a cut the driver connects again and sends what was not acknowledged; a node knows by the
//! transaction number what it has done already. Which nodes count, and how one that lost the group gets
//! it back, is the business of [`vere_spool::owner::Owner`].

mod driver;
mod figures;
mod lease;
mod pending;
mod queues;
mod wire;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::task::spawn_local;
use tokio::time::Instant;
use vere_cluster::Register;
use vere_spool::lease::{LeaseKeeper, LeaseOptions, LeaseState, LeaseTerms};
use vere_spool::owner::{
    Batch, Block, Committed, Link, NodeName, Owner, OwnerConfig, OwnerError, ReplicaRow,
    ShutReason, SubmitError,
};
use vere_spoolwire::{KeptGrants, NodeStat, QueueId, QueueStat, RecordId, Refusal, Seq, Txn};
use vere_units::{ByteSize, Timestamp};

pub use self::lease::ask as ask_lease;
use self::pending::{Answered, Pending};
pub use self::queues::Change;
use super::Credentials;
use vere_process::boot_clock::Clock;
use vere_process::encryption::Encryption;

/// How long what nobody waits for may wait for something to go with. A node syncs it later than that.
const POST_DELAY: Duration = Duration::from_millis(20);
/// Queues asked for at once.
const QUEUES_AT_ONCE: u32 = 4096;

/// A node of the group's circle.
#[derive(Debug, Clone)]
pub struct NodeAddresses {
    /// Its name in the settings.
    pub name: String,
    /// Nodes of the same number are on the same machine, where one log is enough.
    pub machine: usize,
    /// Where it listens; over a second address a connection is on standby.
    pub addresses: Vec<SocketAddr>,
    /// TLS for the connections to encrypt; `None`: all in the clear.
    pub encryption: Option<Encryption>,
}

/// Terms for replacing a node that answers later than its peers. By default, no node is replaced.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlowTerms {
    /// Period in which the node was slower most of the time.
    pub after: Duration,
    /// Delay behind the other nodes.
    pub lag: Duration,
    /// Pause before the node may serve the group again; each repetition lengthens the pause.
    pub rest: Duration,
}

/// How to reach the nodes, and how much to have in flight.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The nodes on which the group may lie, in the order of preference.
    pub nodes: Vec<NodeAddresses>,
    /// Whether an acknowledgement requires a synced log.
    pub durable: bool,
    /// Replicas of the group, as a target.
    pub replicas: usize,
    /// Replicas required before a commit is acknowledged.
    pub replicas_min: usize,
    /// Terms for replacing a slow replica.
    pub slow: SlowTerms,
    /// The register with the membership record of the group.
    pub register: Rc<Register>,
    /// The group this gateway owns: 1 to 255 octets.
    pub group: String,
    /// Credentials of the gateway towards the nodes.
    pub credentials: Credentials,
    /// Rights of other accounts to the group.
    pub grants: Vec<u8>,
    /// Accounts that may read single queues of the group, by account name.
    pub readers: BTreeMap<String, KeptGrants>,
    /// Octets of records that the group may hold.
    pub group_max: u64,
    /// Octets sent and not acknowledged, at most.
    pub window: ByteSize,
    /// Octets asked for and not acknowledged, at most; beyond it [`SpoolError::Busy`].
    pub pending_max: ByteSize,
    /// How long a commit of new records may wait for its acknowledgement.
    pub commit_timeout: Duration,
    /// How long a read may wait for its answer.
    pub read_timeout: Duration,
    /// How long connecting and authenticating may take.
    pub connect_timeout: Duration,
    /// The first pause before connecting again; doubled up to `backoff_max`.
    pub backoff_min: Duration,
    /// The longest pause before connecting again.
    pub backoff_max: Duration,
    /// A silent node is asked for a sign of life after this time, and its connection given up after
    /// three of them.
    pub heartbeat: Duration,
    /// How long a node may be away before the group goes on without it.
    pub isolate_after: Duration,
    /// How long the delivery lease lasts.
    pub lease: LeaseTerms,
    /// The life of this owner: a number that no owner of the group had before.
    pub life: u64,
    /// Whether the group is named for another gateway.
    pub adopted: bool,
    /// The group is taken only from the owner of this epoch; `None`: from any.
    pub takes: Option<u64>,
    /// Lives of owners of the group that are known to be over: their lease is not waited for.
    pub dead: Vec<u64>,
}

impl LinkOptions {
    /// Defaults for everything but where, which group and by which secret: a replica on every node,
    /// one is enough.
    pub fn new(
        nodes: Vec<NodeAddresses>,
        register: Rc<Register>,
        group: &str,
        credentials: Credentials,
    ) -> Self {
        Self {
            durable: false,
            replicas: nodes.len(),
            replicas_min: 1,
            slow: SlowTerms::default(),
            nodes,
            register,
            group: group.to_owned(),
            credentials,
            grants: Vec::new(),
            readers: BTreeMap::new(),
            group_max: u64::MAX,
            window: ByteSize::new(512 << 10),
            pending_max: ByteSize::new(256 << 20),
            commit_timeout: Duration::from_secs(15),
            read_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_secs(2),
            heartbeat: Duration::from_millis(300),
            isolate_after: Duration::from_secs(3),
            lease: LeaseTerms {
                lease: Duration::from_secs(10),
                skew: Duration::from_secs(2),
            },
            life: random_life(),
            adopted: false,
            takes: None,
            dead: Vec::new(),
        }
    }
}

/// A number that no owner had before.
pub fn random_life() -> u64 {
    vere_process::secret::random_number().max(1)
}

/// Whether the group can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It was never opened yet.
    Connecting,
    /// Commits are taken and acknowledged.
    Connected,
    /// Nothing is acknowledged for now; the driver keeps trying.
    Down(ShutReason),
    /// Another gateway has taken the group over, for good.
    Fenced,
}

impl LinkState {
    /// Whether new mail may be taken.
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Connected)
    }

    /// Whether it is not a matter of seconds: too few nodes are left, or none that counts.
    pub const fn is_shut(self) -> bool {
        matches!(
            self,
            Self::Down(ShutReason::TooFew | ShutReason::NoFullReplica) | Self::Fenced
        )
    }
}

/// Why a commit or a read did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolError {
    /// The nodes refused it: nothing changed.
    Refused(Refusal),
    /// Not acknowledged in time. New records are taken back when they turn out to have arrived.
    Timeout,
    /// Too much is waiting already, or the link has been down for longer than a commit may wait.
    Busy,
    /// A batch without a change, or metadata or a name over its limit.
    Invalid,
    /// The link was closed.
    Closed,
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "spool refused: {refusal}"),
            Self::Timeout => f.write_str("spool did not acknowledge in time"),
            Self::Busy => f.write_str("spool takes no more now"),
            Self::Invalid => f.write_str("change is empty or over a limit"),
            Self::Closed => f.write_str("link to the spool is closed"),
        }
    }
}

impl std::error::Error for SpoolError {}

/// A handle on the group.
#[derive(Debug, Clone)]
pub struct SpoolLink {
    shared: Rc<Shared>,
}

/// What handle and driver share.
#[derive(Debug)]
struct Shared {
    options: LinkOptions,
    clock: Clock,
    state: watch::Sender<LinkState>,
    /// The table as it was when something about a node changed last.
    replicas: watch::Sender<Vec<ReplicaRow>>,
    /// Wakes the link of this number: there is something to send, to connect or to end.
    wakers: Vec<Notify>,
    /// Whether the runtime does not hear of what comes over the link of this number.
    unwatched: Vec<Cell<bool>>,
    /// Wakes whoever looks after deadlines and the register.
    keeper: Notify,
    /// Whether deliveries may begin (rule R4), as it was when that changed last.
    lease_state: watch::Sender<LeaseState>,
    lease: RefCell<LeaseKeeper>,
    /// Wakes whoever looks after the lease.
    lease_waker: Notify,
    /// Nobody uses the link any more.
    closing: Cell<bool>,
    /// The links are woken in a moment.
    soon: Cell<bool>,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    owner: Owner,
    pending: Pending,
    reads: HashMap<Seq, oneshot::Sender<Read>>,
    /// Connections that are to end.
    drops: Vec<(Link, OwnerError)>,
    /// Why a node's connection ended last, by name; nothing while it is connected.
    troubles: HashMap<String, String>,
    /// When the certificates end that nodes have shown, by name.
    certificate_ends: BTreeMap<String, Timestamp>,
    closed: bool,
}

/// The answer to a read.
#[derive(Debug)]
enum Read {
    Block(Option<Block>),
    Stat(NodeStat),
    Queues(Vec<QueueStat>, bool),
}

impl From<SubmitError> for SpoolError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Unknown | SubmitError::Busy => Self::Busy,
            SubmitError::Invalid => Self::Invalid,
        }
    }
}

/// A commit on its way. It was numbered when [`SpoolLink::commit`] was called; awaiting it only waits.
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
            Read::Block(block) => block.ok_or(SpoolError::Refused(Refusal::NoQueue)),
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

impl Shared {
    /// Wakes the connections to send new output.
    fn wake(&self) {
        for waker in &self.wakers {
            waker.notify_one();
        }
    }

    /// Wakes the connections after a short delay, for output that is not urgent.
    fn wake_soon(self: &Rc<Self>) {
        if !self.soon.replace(true) {
            let shared = Rc::clone(self);
            spawn_local(async move {
                tokio::time::sleep(POST_DELAY).await;
                shared.soon.set(false);
                shared.wake();
            });
        }
    }
}

fn node_name(node: &NodeAddresses) -> NodeName {
    NodeName {
        name: node.name.clone(),
        links: node.addresses.len(),
        machine: node.machine,
    }
}

/// A read that somebody waits for.
struct Forget<'a> {
    shared: &'a Shared,
    seq: Seq,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut inner = self.shared.inner.borrow_mut();
        inner.reads.remove(&self.seq);
        inner.owner.forget(self.seq);
    }
}

fn size(size: ByteSize) -> usize {
    usize::try_from(size.as_u64()).unwrap_or(usize::MAX)
}
