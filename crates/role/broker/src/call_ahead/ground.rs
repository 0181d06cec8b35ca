//! What the calls under one reading of the settings share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use vere_handoff::question::Figures;
use vere_net::resolver::Resolver;
use vere_outbound::{Outbound, OutboundError, OutboundMetrics};
use vere_settings::{Front, Settings};
use vere_units::Span;

use super::super::share::Shares;
use super::kept::{Kept, Verdict};

/// Connections to next hops in all.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Questions that wait for calls; a further question is deferred.
pub(super) const WAITING_MAX: usize = 4_096;
/// A connection attempt has this part of the time of a call, so that another address gets a turn.
const CONNECT_PARTS: u32 = 3;

/// Bounds and counts, which outlive a reload.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connections: Arc<Semaphore>,
    pub(super) waiting: Arc<Semaphore>,
    pub(super) shares: Shares,
    figures: Cell<Figures>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            shares: Shares::default(),
            figures: Cell::default(),
        }
    }
}

impl Shared {
    pub(super) fn count(&self, count: impl FnOnce(&mut Figures) -> &mut u64) {
        let mut figures = self.figures.get();
        *count(&mut figures) += 1;
        self.figures.set(figures);
    }

    pub(super) fn figures(&self) -> Figures {
        self.figures.get()
    }
}

/// Connections, terms and results under one reading of the settings. A call that a reload finds under way ends by the settings
/// of its beginning.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) outbound: Outbound,
    pub(super) terms: vere_settings::CallAhead,
    /// Calls over a connection.
    pub(super) calls_per_connection: u32,
    pub(super) kept: RefCell<Kept>,
    /// The recipients of the calls that are under way or wait.
    pub(super) open: RefCell<HashMap<Box<str>, watch::Receiver<Option<Verdict>>>>,
    pub(super) shared: Rc<Shared>,
}

impl Ground {
    /// # Errors
    /// When roots of certificates or a password cannot be read.
    pub(super) fn new(
        settings: &Settings,
        front: &Front,
        resolver: &Resolver,
        shared: &Rc<Shared>,
    ) -> Result<Self, OutboundError> {
        let terms = front.call_ahead;
        let mut settings = settings.clone();
        let patience = terms.timeout.duration() / CONNECT_PARTS;
        let connect = &mut settings.delivery.connect_timeout;
        if connect.duration() > patience {
            *connect = Span::new(patience);
        }
        let calls_per_connection = settings.delivery.messages_per_connection_max;
        let settings = Arc::new(settings);
        let (resolver, metrics) = (resolver.clone(), OutboundMetrics::default());
        Ok(Self {
            outbound: Outbound::new(&settings, resolver, metrics, None)?,
            terms,
            calls_per_connection,
            kept: RefCell::default(),
            open: RefCell::default(),
            shared: Rc::clone(shared),
        })
    }
}
