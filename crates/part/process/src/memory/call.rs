//! Calls to let go of memory.

use std::cell::Cell;

use tokio::sync::Notify;

/// What a holder is called to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Let the message go; its client hears of it where the message ends.
    Refuse,
    /// End the connection: it brings next to nothing.
    End,
}

/// How a connection is told to let go, which may wait for its client.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) verdict: Cell<Option<Verdict>>,
    pub(super) notify: Notify,
}

impl Call {
    pub(super) fn tell(&self, verdict: Verdict) {
        self.verdict.set(Some(verdict));
        self.notify.notify_one();
    }
}
