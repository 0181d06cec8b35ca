//! Why a register did not answer.

use std::fmt;
use std::path::PathBuf;

/// Why a register did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterError {
    /// The register could not be reached, or its disk failed or is full; a later attempt may
    /// succeed.
    Unreachable {
        /// The endpoint or file that failed, with the reason.
        reason: String,
        /// Whether the swap may have taken effect, or may yet. A read returns the present value;
        /// this swap can still replace the old value until another swap replaces it.
        maybe_applied: bool,
    },
    /// The stored value differs from the written value. An administrator must inspect the register;
    /// no value was changed.
    Damaged {
        /// The file, or the key in etcd.
        file: PathBuf,
        /// The damage.
        reason: String,
    },
    /// The register refuses permanently: permissions, credentials, certificates, a key or a value
    /// beyond the limits. No value was changed.
    Refused {
        /// Who refuses what.
        reason: String,
    },
}

impl RegisterError {
    /// No value was changed, and a later attempt may succeed.
    pub(crate) fn unreachable(reason: impl Into<String>) -> Self {
        Self::Unreachable {
            reason: reason.into(),
            maybe_applied: false,
        }
    }

    /// Perhaps something was changed.
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unreachable {
            reason: reason.into(),
            maybe_applied: true,
        }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused {
            reason: reason.into(),
        }
    }

    /// Says whether a swap that ended so may have taken effect, or may yet.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        matches!(
            self,
            Self::Unreachable {
                maybe_applied: true,
                ..
            }
        )
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable {
                reason,
                maybe_applied: false,
            } => write!(f, "register unreachable: {reason}"),
            Self::Unreachable {
                reason,
                maybe_applied: true,
            } => write!(f, "register unreachable, outcome unknown: {reason}"),
            Self::Damaged { file, reason } => {
                write!(f, "register damaged: {}: {reason}", file.display())
            }
            Self::Refused { reason } => write!(f, "register refused: {reason}"),
        }
    }
}

impl std::error::Error for RegisterError {}
