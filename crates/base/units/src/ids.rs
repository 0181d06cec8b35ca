//! The numbers of queues, records and transactions, of mailboxes and their logs.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        ///
        /// Serialised as the bare number.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The following number; the highest number follows itself.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }

        impl From<$name> for $inner {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    };
}

number! {
    /// The number of a queue within the group of its owner. The owner chooses the number, from 0 up.
    QueueId(u32)
}
number! {
    /// The number of a record within the queue: increasing, in acceptance order. The owner chooses the
    /// number; a refused number is skipped.
    RecordId(u64)
}
number! {
    /// A mailbox of a mail store, unique there and never used again (RFC 8474 `MAILBOXID`).
    MailboxId(u64)
}
number! {
    /// The random number of a mail store's log.
    LogId(u64)
}
number! {
    /// The transaction number of a mutation within its group: 1, 2, 3 and so on without a gap. 0 stands for
    /// "no transaction yet".
    Txn(u64)
}
number! {
    /// Matches an answer with the request; the asking side chooses the number.
    Seq(u64)
}
number! {
    /// The life of a node's memory: a node that lost its records returns with a new number.
    Incarnation(u64)
}
