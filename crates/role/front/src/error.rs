//! Why the front ends.

use std::error::Error;
use std::fmt;
use std::io;

use nix::errno::Errno;
use vere_net::listen::ListenError;

/// Why the front cannot start, or ended early.
#[derive(Debug)]
pub enum FrontError {
    /// The settings have no section `[front]`.
    NoFront,
    /// A socket of the internet cannot be opened.
    Listen(ListenError),
    /// Signals cannot be taken.
    Signals(Errno),
    /// The system refused something.
    System(io::Error),
}

impl FrontError {
    /// The error that is shown in place of this one.
    fn shown(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::NoFront => return None,
            Self::Listen(error) => error,
            Self::Signals(error) => error,
            Self::System(error) => error,
        })
    }
}

impl fmt::Display for FrontError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Some(error) => fmt::Display::fmt(error, f),
            None => f.write_str("the settings have no section [front]"),
        }
    }
}

impl Error for FrontError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.shown().and_then(Error::source)
    }
}

impl From<ListenError> for FrontError {
    fn from(error: ListenError) -> Self {
        Self::Listen(error)
    }
}

impl From<io::Error> for FrontError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
