//! Memory that messages take while they are received, of all connections of a role together.

use std::cell::Cell;
use std::rc::Rc;

use vere_telemetry::metrics::Gauge;

/// A protocol machine that holds what a client sends until a message is whole.
pub(crate) trait Receiver {
    /// Octets that it holds of messages.
    fn memory(&self) -> usize;

    /// Lets go of the message that is being received; the client hears that there is no room for it now.
    fn refuse_for_room(&mut self);
}

impl Receiver for vere_smtp::server::Server {
    fn memory(&self) -> usize {
        self.memory()
    }

    fn refuse_for_room(&mut self) {
        self.refuse_for_room();
    }
}

impl Receiver for vere_imap::server::Server {
    fn memory(&self) -> usize {
        self.message_memory()
    }

    fn refuse_for_room(&mut self) {
        self.refuse_for_room();
    }
}

/// The bound of all, and what is held.
#[derive(Debug, Default)]
pub(crate) struct BodyMemory {
    held: Cell<usize>,
    max: Cell<usize>,
    gauge: Gauge,
}

impl BodyMemory {
    /// Nothing is held, and nothing may be. What is held is shown in `gauge`.
    pub(crate) fn new(gauge: Gauge) -> Self {
        Self {
            gauge,
            ..Self::default()
        }
    }

    /// Sets the bound: `limits.body_memory_max`.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.set(max);
    }

    /// The part of a connection that begins.
    pub(crate) fn share(self: &Rc<Self>) -> Share {
        Share {
            memory: Rc::clone(self),
            octets: 0,
        }
    }
}

/// What one connection holds.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Rc<BodyMemory>,
    octets: usize,
}

impl Share {
    /// Counts what `receiver` holds now; a message that finds no room is refused.
    pub(crate) fn count(&mut self, receiver: &mut impl Receiver) {
        self.set(receiver.memory());
        if self.memory.held.get() > self.memory.max.get() && self.octets > 0 {
            receiver.refuse_for_room();
            self.set(receiver.memory());
        }
    }

    fn set(&mut self, octets: usize) {
        if octets == self.octets {
            return;
        }
        let held = self.memory.held.get() - self.octets + octets;
        self.memory.held.set(held);
        self.memory
            .gauge
            .set(i64::try_from(held).unwrap_or(i64::MAX));
        self.octets = octets;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
