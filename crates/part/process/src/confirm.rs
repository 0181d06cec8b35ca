//! Asks for confirmation before an irreversible action.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

/// The missing confirmation of an action, which was therefore not done.
#[derive(Debug)]
pub enum ConfirmError {
    /// Standard input is no terminal: only `--yes` confirms.
    NoTerminal {
        /// The action, such as "1 message would be removed".
        what: String,
    },
    /// The operator did not type `yes`.
    Declined,
    /// The terminal cannot be read or written.
    Terminal(io::Error),
}

impl fmt::Display for ConfirmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTerminal { what } => write!(f, "{what}; nothing was done: add --yes"),
            Self::Declined => f.write_str("nothing was done"),
            Self::Terminal(error) => error.fmt(f),
        }
    }
}

impl Error for ConfirmError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoTerminal { .. } | Self::Declined => None,
            Self::Terminal(error) => error.source(),
        }
    }
}

impl From<io::Error> for ConfirmError {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Asks at a terminal; elsewhere only `--yes` is an answer.
///
/// # Errors
/// When the answer is not `yes`.
pub fn confirm(what: &str) -> Result<(), ConfirmError> {
    if !io::stdin().is_terminal() {
        return Err(ConfirmError::NoTerminal {
            what: what.to_owned(),
        });
    }
    let mut stderr = io::stderr();
    write!(stderr, "{what}. Type yes to go on: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(ConfirmError::Declined)
}
