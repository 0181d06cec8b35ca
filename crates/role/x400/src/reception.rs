//! What all callers share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::watch;
use vere_associations::{Bounds, History, Responder};
use vere_process::tls::ServerTls;

use crate::intake::Intake;
use crate::kept::Kept;
use crate::waiting::Waiting;

/// Transfers of a peer that are remembered, for resumption.
const HISTORY_MAX: usize = 1_024;

/// What all callers share.
#[derive(Debug)]
pub(crate) struct Reception {
    pub(crate) intake: Rc<Intake>,
    pub(crate) responder: Responder,
    /// Associations that each peer has opened.
    pub(crate) open: RefCell<HashMap<String, usize>>,
    /// Transfers of each peer that may be resumed.
    histories: RefCell<HashMap<String, Rc<RefCell<History>>>>,
    /// Connections without a bind.
    pub(crate) waiting: Waiting,
    /// The memory of transfers that broke off.
    pub(crate) kept: Kept,
    pub(crate) tls: ServerTls,
    pub(crate) connections: Cell<u32>,
    /// Binds so far.
    binds: Cell<u64>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Reception {
    pub(crate) fn new(intake: Rc<Intake>, tls: ServerTls, stop: watch::Receiver<bool>) -> Self {
        Self {
            intake,
            responder: Responder {
                bounds: Bounds::default(),
                ..Responder::default()
            },
            open: RefCell::default(),
            histories: RefCell::default(),
            waiting: Waiting::default(),
            kept: Kept::default(),
            tls,
            connections: Cell::new(0),
            binds: Cell::new(0),
            stop,
        }
    }

    /// The number of the next association.
    pub(crate) fn number(&self) -> u64 {
        self.binds.set(self.binds.get() + 1);
        self.binds.get()
    }

    /// The transfers of a peer.
    pub(crate) fn history(&self, peer: &str) -> Rc<RefCell<History>> {
        let mut histories = self.histories.borrow_mut();
        let new = || Rc::new(RefCell::new(History::new(HISTORY_MAX)));
        Rc::clone(histories.entry(peer.to_owned()).or_insert_with(new))
    }
}
