//! The memory of a life of an MTA: transfers of peers, own transfers that broke off, names of sessions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use vere_associations::History;
use vere_osi::rtse::{Broken, SessionConnectionIdentifier};
use vere_units::TraceId;

use super::mtas::NAMES;

/// Transfers of a peer that are remembered, as in the role.
const HISTORY_MAX: usize = 256;

/// The memory of a life.
pub(super) struct Process {
    pub(super) mta: usize,
    pub(super) life: usize,
    histories: RefCell<BTreeMap<String, Rc<RefCell<History>>>>,
    broken: RefCell<BTreeMap<(TraceId, String), Broken>>,
    sessions: Cell<u32>,
}

impl Process {
    pub(super) fn new(mta: usize, life: usize) -> Self {
        Self {
            mta,
            life,
            histories: RefCell::default(),
            broken: RefCell::default(),
            sessions: Cell::new(0),
        }
    }

    /// Transfers of a peer.
    pub(super) fn history(&self, peer: &str) -> Rc<RefCell<History>> {
        let mut histories = self.histories.borrow_mut();
        let new = || Rc::new(RefCell::new(History::new(HISTORY_MAX)));
        Rc::clone(histories.entry(peer.to_owned()).or_insert_with(new))
    }

    pub(super) fn take_broken(&self, trace: TraceId, peer: &str) -> Option<Broken> {
        self.broken.borrow_mut().remove(&(trace, peer.to_owned()))
    }

    pub(super) fn keep_broken(&self, trace: TraceId, peer: &str, broken: Broken) {
        let mut all = self.broken.borrow_mut();
        all.insert((trace, peer.to_owned()), broken);
    }

    /// The name of the next session connection.
    pub(super) fn session(&self) -> SessionConnectionIdentifier {
        let number = self.sessions.get() + 1;
        self.sessions.set(number);
        let name = format!("mta-{}-{}-{number}", NAMES[self.mta], self.life);
        SessionConnectionIdentifier {
            calling: Bytes::from(name),
            common: Bytes::from_static(b"231114221320Z"),
            additional: None,
        }
    }
}
