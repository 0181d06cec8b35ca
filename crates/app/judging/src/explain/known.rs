//! Knowledge of a message.

use vere_judge::Facts;
use vere_units::Timestamp;

use super::asked::Asked;

/// A message with its facts.
#[derive(Debug)]
pub(super) struct Known {
    /// The queue id or the file.
    pub(super) name: String,
    /// The former judgement; `None` for a file.
    pub(super) past: Option<Past>,
    /// The lists and filters asked about a file; `None` for a queue id.
    pub(super) asked: Option<Asked>,
    pub(super) facts: Facts,
    pub(super) recipients: Vec<String>,
}

/// A former judgement.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) at: Timestamp,
    pub(super) verdict: String,
    pub(super) score: String,
    /// Rules and weights, as the trace has them.
    pub(super) rules: String,
    /// The reply to the client, if the message was refused.
    pub(super) reply: Option<String>,
    pub(super) reverse_path: Option<String>,
    pub(super) peer: Option<String>,
}
