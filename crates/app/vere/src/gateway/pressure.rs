//! Whether new mail is taken: what stands against it.

use std::fmt;

use vere_smtp::refusal::Refusal;

use super::state::Gateway;

/// Why no message is begun now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// What the spool holds is not read back yet.
    Recovering,
    /// The spool acknowledges nothing.
    Spool,
    /// As many messages are queued as may be.
    Messages,
    /// As many lines for other systems wait as may.
    Lines,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recovering => "queues are read back",
            Self::Spool => "spool acknowledges nothing",
            Self::Messages => "limits.queued_messages_max reached",
            Self::Lines => "records.waiting_max reached",
        })
    }
}

impl Closed {
    /// What clients are told.
    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::Recovering | Self::Spool => Refusal::Busy,
            Self::Messages | Self::Lines => Refusal::StorageFull,
        }
    }
}

impl Gateway {
    /// Why no message is begun now; `None`: they are.
    pub(super) fn closed(&self) -> Option<Closed> {
        if !self.is_recovered() {
            return Some(Closed::Recovering);
        }
        if !self.link.state().borrow().is_up() {
            return Some(Closed::Spool);
        }
        let queued = self.queues.borrow().messages() as u64;
        if queued >= self.settings().limits.queued_messages_max {
            return Some(Closed::Messages);
        }
        self.too_many_lines().then_some(Closed::Lines)
    }
}
