//! Why a command that writes its own output stopped.

use std::io;

use vere_process::failure::Failure;

/// Why a command stopped before its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Standard output does not accept more.
    Output(io::Error),
    /// Something else failed.
    Failed(Failure),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
