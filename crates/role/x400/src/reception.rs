//! What all callers share, and all receivers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::watch;
use vere_associations::{Bounds, History, Responder};
use vere_process::tls::ServerTls;

use crate::auditing;
use crate::budget::Budget;
use crate::intake::{Intake, NotTaken};
use crate::kept::Kept;
use crate::origin::Origin;
use crate::receiver::Host;
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
    /// The memory of broken transfers.
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
}

impl Host for Reception {
    fn budget(&self) -> &Rc<Budget> {
        &self.intake.process().budget
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn history(&self, peer: &str) -> Rc<RefCell<History>> {
        let mut histories = self.histories.borrow_mut();
        let new = || Rc::new(RefCell::new(History::new(HISTORY_MAX)));
        Rc::clone(histories.entry(peer.to_owned()).or_insert_with(new))
    }

    fn octets_max(&self) -> u64 {
        self.intake.process().octets_max()
    }

    fn ready(&self) -> Result<(), &'static str> {
        self.intake.ready()
    }

    async fn take(&self, origin: Origin<'_>, apdu: Vec<Bytes>) -> Result<(), NotTaken> {
        self.intake.take(origin, apdu).await.map(drop)
    }

    fn refused(&self) {
        self.intake.process().figures.refused();
    }

    fn not_taken(&self, origin: Origin<'_>, why: &NotTaken) {
        if let Some(audit) = &self.intake.process().audit {
            auditing::refused(audit, origin, &why.to_string());
        }
    }
}
