//! Answers of the gateway to the parts of a message.

use std::cell::Cell;

use tokio::sync::Notify;

/// What the gateway has said about the parts of a message.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The last part is in the file.
    kept: Cell<bool>,
    /// The parts are lost, and whether the client is too slow to be heard any further.
    gone: Cell<Option<bool>>,
    changed: Notify,
}

impl Ahead {
    /// The last part is in the file.
    pub(crate) fn kept(&self) {
        self.kept.set(true);
        self.changed.notify_one();
    }

    /// Another part is sent.
    pub(crate) fn expect(&self) {
        self.kept.set(false);
    }

    /// Whether the last part is in the file.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.get()
    }

    /// Whether the parts are lost: then, whether the client is too slow to be heard any further.
    pub(crate) fn lost(&self) -> Option<bool> {
        self.gone.get()
    }

    /// Waits until the gateway has said something further.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The parts are lost.
    pub(crate) fn gone(&self, ends: bool) {
        self.gone.set(Some(ends));
        self.changed.notify_one();
    }
}
