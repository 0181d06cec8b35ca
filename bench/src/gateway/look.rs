//! How long a look into the queues takes.

use std::path::Path;
use std::time::Instant;

use crate::error::BenchError;
use crate::peer::{OURS, Peer, PeerError};
use crate::row::{Bar, Row, median};

/// Limit in milliseconds, including the start of the command.
const LOOK_MAX: f64 = 50.0;
const LOOKS: usize = 9;

/// Runs `vere ARGUMENTS` about a system of ours.
///
/// # Errors
///
/// When the command fails, with the error text of the command.
pub(super) fn ask(peer: &Peer, vere: &Path, arguments: &[&str]) -> Result<(), BenchError> {
    match peer.ask(vere, arguments) {
        Ok(_) => Ok(()),
        Err(error) => Err(BenchError::Peer(PeerError::NotReady {
            name: "vere",
            last_words: error.to_string(),
        })),
    }
}

/// Asks several times: the median of the times.
pub(super) fn looked(
    name: String,
    peer: &Peer,
    vere: &Path,
    arguments: &[&str],
) -> Result<Row, BenchError> {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        ask(peer, vere, arguments)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let median = median(times).unwrap_or(0.0);
    Ok(Row::new(format!("{OURS}: {name}"), median, "ms").bar(Bar::ValueMax(LOOK_MAX)))
}
