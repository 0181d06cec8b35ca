//! The counts of the broker, which the front shows among its metrics.

use super::wire::{Content, WireError};

macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Counts since the start of the broker.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Figures {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl Figures {
            /// Returns the counts in the order of the octets.
            #[must_use]
            pub const fn counts(&self) -> [u64; [$(stringify!($name)),+].len()] {
                [$(self.$name),+]
            }

            pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
                Ok(Self {
                    $($name: u64::from_le_bytes(content.array()?),)+
                })
            }
        }
    };
}

counts! {
    /// Calls by which a next hop accepted the recipient.
    calls_accepted,
    /// Calls by which a next hop refused the recipient.
    calls_refused,
    /// Calls without a definite answer.
    calls_unavailable,
    /// Answers about recipients that were known from an earlier call.
    answers_kept,
    /// Answers by a call that another question had begun.
    answers_shared,
    /// Answers by a separate call.
    answers_called,
    /// Answers without a call: the next hop failed a moment ago, or a bound was reached.
    answers_denied,
    /// Connections to next hops.
    connections,
}

impl Figures {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for count in self.counts() {
            out.extend_from_slice(&count.to_le_bytes());
        }
    }
}
