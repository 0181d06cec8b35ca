//! The gateways that are attached.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use vere_attach::{Deliver, PlaceResult};

/// The results of a delivery.
#[derive(Debug)]
pub(crate) struct Results {
    /// One for each recipient of the delivery, in its order.
    pub(crate) results: Vec<PlaceResult>,
    /// Whether the gateway submits the reports about deliveries itself.
    pub(crate) own_reports: bool,
}

/// A delivery for a connection.
#[derive(Debug)]
pub(crate) struct Order {
    /// The facts; the connection sets the id.
    pub(crate) deliver: Deliver,
    /// The octets.
    pub(crate) apdu: Vec<Bytes>,
    /// Gets the results; dropped when the connection ends.
    pub(crate) answer: oneshot::Sender<Results>,
}

/// A connection that takes deliveries.
#[derive(Debug)]
pub(crate) struct Line {
    orders: mpsc::UnboundedSender<Order>,
    window: usize,
    used: Cell<usize>,
    /// Whether the connection is there.
    open: watch::Receiver<bool>,
}

/// The end of a line at its connection.
#[derive(Debug)]
pub(crate) struct LineEnd {
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    name: String,
    line: Rc<Line>,
    gateways: Rc<Gateways>,
    /// Dropped with the connection, which closes the line.
    _open: watch::Sender<bool>,
}

/// A place in the window of a line.
#[derive(Debug)]
pub(crate) struct Slot(Rc<Line>);

/// The attached gateways, by name in lower case, as queues have it.
#[derive(Debug, Default)]
pub(crate) struct Gateways {
    lines: RefCell<BTreeMap<String, Vec<Rc<Line>>>>,
    next: Cell<u64>,
}

impl Gateways {
    /// Adds a connection.
    pub(crate) fn attach(self: &Rc<Self>, name: &str, window: usize) -> LineEnd {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (opened, open) = watch::channel(true);
        let line = Rc::new(Line {
            orders,
            window,
            used: Cell::new(0),
            open,
        });
        let name = name.to_ascii_lowercase();
        let mut lines = self.lines.borrow_mut();
        lines
            .entry(name.clone())
            .or_default()
            .push(Rc::clone(&line));
        LineEnd {
            orders: ordered,
            name,
            line,
            gateways: Rc::clone(self),
            _open: opened,
        }
    }

    /// Connections of a gateway.
    pub(crate) fn attached(&self, name: &str) -> usize {
        self.lines
            .borrow()
            .get(&name.to_ascii_lowercase())
            .map_or(0, Vec::len)
    }

    /// A place in the window of the connection that has most room.
    pub(crate) fn slot(&self, name: &str) -> Option<Slot> {
        let lines = self.lines.borrow();
        let room = |line: &&Rc<Line>| line.window.saturating_sub(line.used.get());
        let line = lines
            .get(&name.to_ascii_lowercase())?
            .iter()
            .max_by_key(room)
            .filter(|line| room(line) > 0)?;
        line.used.set(line.used.get().saturating_add(1));
        Some(Slot(Rc::clone(line)))
    }

    /// A new id of a delivery.
    pub(crate) fn id(&self) -> String {
        let id = self.next.get();
        self.next.set(id.wrapping_add(1));
        id.to_string()
    }
}

impl Drop for LineEnd {
    fn drop(&mut self) {
        let mut lines = self.gateways.lines.borrow_mut();
        if let Some(of_name) = lines.get_mut(&self.name) {
            of_name.retain(|line| !Rc::ptr_eq(line, &self.line));
            if of_name.is_empty() {
                lines.remove(&self.name);
            }
        }
    }
}

impl Slot {
    /// Whether the connection is there.
    pub(crate) fn is_open(&self) -> bool {
        self.0.open.has_changed().is_ok()
    }

    /// Waits for the end of the connection.
    pub(crate) async fn closed(&self) {
        let mut open = self.0.open.clone();
        while open.changed().await.is_ok() {}
    }

    /// Gives a delivery to the connection, and waits for the results; `None` when the connection ends before.
    pub(crate) async fn deliver(&self, deliver: Deliver, apdu: Vec<Bytes>) -> Option<Results> {
        let (answer, answered) = oneshot::channel();
        let order = Order {
            deliver,
            apdu,
            answer,
        };
        self.0.orders.send(order).ok()?;
        answered.await.ok()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.used.set(self.0.used.get().saturating_sub(1));
    }
}
