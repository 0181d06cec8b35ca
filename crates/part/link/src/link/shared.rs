//! State that the handle and the driver of a link share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::task::spawn_local;
use vere_owner::lease::{LeaseKeeper, LeaseState};
use vere_owner::{Link, Owner, OwnerError, ReplicaRow};
use vere_spoolwire::Block;
use vere_spoolwire::{NodeStat, QueueStat, Seq};
use vere_units::Timestamp;

use super::options::LinkOptions;
use super::pending::Pending;
use super::state::LinkState;
use vere_process::boot_clock::Clock;

/// How long what nobody waits for may wait for something to go with. A node syncs it later than that.
const POST_DELAY: Duration = Duration::from_millis(20);

/// What handle and driver share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: LinkOptions,
    pub(super) clock: Clock,
    pub(super) state: watch::Sender<LinkState>,
    /// The table as it was when something about a node changed last.
    pub(super) replicas: watch::Sender<Vec<ReplicaRow>>,
    /// Wakes the link of this number: there is something to send, to connect or to end.
    pub(super) wakers: Vec<Notify>,
    /// Whether the runtime does not hear of what comes over the link of this number.
    pub(super) unwatched: Vec<Cell<bool>>,
    /// Wakes whoever looks after deadlines and the register.
    pub(super) keeper: Notify,
    /// Whether deliveries may begin (rule R4), as it was when that changed last.
    pub(super) lease_state: watch::Sender<LeaseState>,
    pub(super) lease: RefCell<LeaseKeeper>,
    /// Wakes whoever looks after the lease.
    pub(super) lease_waker: Notify,
    /// Nobody uses the link any more.
    pub(super) closing: Cell<bool>,
    /// The links are woken in a moment.
    pub(super) soon: Cell<bool>,
    pub(super) inner: RefCell<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) owner: Owner,
    pub(super) pending: Pending,
    pub(super) reads: HashMap<Seq, oneshot::Sender<Read>>,
    /// Connections that are to end.
    pub(super) drops: Vec<(Link, OwnerError)>,
    /// Why a node's connection ended last, by name; nothing while it is connected.
    pub(super) troubles: HashMap<String, String>,
    /// When the certificates end that nodes have shown, by name.
    pub(super) certificate_ends: BTreeMap<String, Timestamp>,
    pub(super) closed: bool,
}

/// The answer to a read.
#[derive(Debug)]
pub(super) enum Read {
    Block(Option<Block>),
    Stat(NodeStat),
    Queues(Vec<QueueStat>, bool),
}

impl Shared {
    /// Wakes the connections to send new output.
    pub(super) fn wake(&self) {
        for waker in &self.wakers {
            waker.notify_one();
        }
    }

    /// Wakes the connections after a short delay, for output that is not urgent.
    pub(super) fn wake_soon(self: &Rc<Self>) {
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

/// A read that somebody waits for.
pub(super) struct Forget<'a> {
    pub(super) shared: &'a Shared,
    pub(super) seq: Seq,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut inner = self.shared.inner.borrow_mut();
        inner.reads.remove(&self.seq);
        inner.owner.forget(self.seq);
    }
}
