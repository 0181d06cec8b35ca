//! Asks for confirmation before an irreversible action.

use std::io::{self, IsTerminal as _, Write as _};

use crate::failure::Failure;

/// Asks at a terminal; elsewhere only `--yes` is an answer.
///
/// # Errors
/// When the answer is not `yes`.
pub fn confirm(what: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::new(format!("{what}; nothing was done: add --yes")));
    }
    let mut stderr = io::stderr();
    write!(stderr, "{what}. Type yes to go on: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::new("nothing was done"))
}
