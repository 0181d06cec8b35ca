//! Why a commit or a read did not succeed.

use std::fmt;

use vere_spool::owner::SubmitError;
use vere_spoolwire::Refusal;

/// Why a commit or a read did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoolError {
    /// The nodes refused it: nothing changed.
    Refused(Refusal),
    /// Not acknowledged in time. New records are taken back when they turn out to have arrived.
    Timeout,
    /// Too much is waiting already, or the link has been down for longer than a commit may wait.
    Busy,
    /// A batch without a change, or metadata or a name over its limit.
    Invalid,
    /// The link was closed.
    Closed,
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "spool refused: {refusal}"),
            Self::Timeout => f.write_str("spool did not acknowledge in time"),
            Self::Busy => f.write_str("spool takes no more now"),
            Self::Invalid => f.write_str("change is empty or over a limit"),
            Self::Closed => f.write_str("link to the spool is closed"),
        }
    }
}

impl std::error::Error for SpoolError {}

impl From<SubmitError> for SpoolError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Unknown | SubmitError::Busy => Self::Busy,
            SubmitError::Invalid => Self::Invalid,
        }
    }
}
