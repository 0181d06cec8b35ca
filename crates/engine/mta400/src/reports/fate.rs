//! The ends of recipients.

use vere_x400::{Time, TypeOfMtsUser};

use crate::cause::Cause;

/// The end of a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Delivered, or deliverable in the case of a probe.
    Delivered {
        /// The time.
        at: Time,
        /// The kind of recipient.
        user: TypeOfMtsUser,
    },
    /// Not delivered.
    Failed {
        /// The cause.
        cause: Cause,
        /// The last reply, for people; may be empty.
        said: String,
    },
}

impl Fate {
    /// Non-delivery for a cause.
    #[must_use]
    pub const fn failed(cause: Cause) -> Self {
        Self::Failed {
            cause,
            said: String::new(),
        }
    }

    /// Non-delivery by the queues: an enhanced status code and the last reply.
    #[must_use]
    pub fn of_status(status: &str, said: &str) -> Self {
        Self::Failed {
            cause: Cause::of_status(status),
            said: said.to_owned(),
        }
    }
}
