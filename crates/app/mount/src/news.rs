//! What the process of a mount tells its starter.

use serde::{Deserialize, Serialize};

/// News of a mount at its start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum News {
    /// Commits read, and all.
    Progress(usize, usize),
    /// A line for people.
    Line(String),
}
