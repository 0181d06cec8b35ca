//! `vere x400 show`

mod found;
mod json;

use std::fmt::{self, Write as _};

use vere_process::failure::Failure;

use self::found::{Found, interpersonal};
use crate::args::ShowArgs;
use crate::send::read;

/// Octets of a file, at most.
const OCTETS_MAX: u64 = 1 << 30;

/// Reads a file, and returns the text to print.
///
/// # Errors
/// When the file cannot be read, or is neither.
pub(crate) fn run(args: &ShowArgs) -> Result<String, Failure> {
    let octets = read(Some(&args.file), OCTETS_MAX)?;
    let found = Found::of(&octets)
        .map_err(|error| Failure::new(format!("{}: {error}", args.file.display())))?;
    if args.json {
        return Ok(format!("{:#}\n", json::found(&found)));
    }
    Ok(found.to_string())
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(apdu) => {
                apdu.fmt(out)?;
                match interpersonal(apdu) {
                    Some(Ok(content)) => below(out, &content),
                    Some(Err(error)) => writeln!(out, "  not readable as P22: {error}"),
                    None => Ok(()),
                }
            }
            Self::Content(content) => content.fmt(out),
        }
    }
}

/// Writes lines with an indent.
fn below(out: &mut fmt::Formatter<'_>, text: &impl fmt::Display) -> fmt::Result {
    let mut lines = String::new();
    write!(lines, "{text}")?;
    lines
        .lines()
        .try_for_each(|line| writeln!(out, "    {line}"))
}

#[cfg(test)]
mod tests;
