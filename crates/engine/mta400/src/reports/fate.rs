//! The ends of recipients.

use vere_x400::{Time, TypeOfMtsUser};

use crate::cause::Cause;

/// How a recipient ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Delivered; or, for a probe, deliverable.
    Delivered {
        /// When.
        at: Time,
        /// What took the message.
        user: TypeOfMtsUser,
    },
    /// Not delivered.
    Failed {
        /// The cause.
        cause: Cause,
        /// More about it, for people; may be empty.
        said: String,
    },
}

impl Fate {
    /// Not delivered for this cause.
    #[must_use]
    pub const fn failed(cause: Cause) -> Self {
        Self::Failed {
            cause,
            said: String::new(),
        }
    }

    /// What a failure of the queues means: an enhanced status code and the last reply.
    #[must_use]
    pub fn of_status(status: &str, said: &str) -> Self {
        Self::Failed {
            cause: Cause::of_status(status),
            said: said.to_owned(),
        }
    }
}
