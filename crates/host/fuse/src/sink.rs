//! Where calls of the kernel go.

use vere_ports::files::{Call, CallId, Caller};

/// Where calls go. Both threads of a mount use the sink, and neither may be held up for long.
pub trait Sink: Send + Sync + 'static {
    /// Takes a call; the reply comes by [`crate::Replies::reply`].
    ///
    /// # Errors
    /// When the engine is gone: the call fails with EIO.
    fn call(&self, id: CallId, caller: Caller, call: Call) -> Result<(), Refused>;

    /// The mount has ended: no call follows.
    fn ended(&self);
}

/// The engine is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an engine that takes calls; found none")]
pub struct Refused;
