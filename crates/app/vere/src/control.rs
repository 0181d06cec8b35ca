//! The control socket: how `vere queue` and other commands talk to a running gateway.
//!
//! A local stream socket; one JSON object per line each way. A request is
//! `{"command": NAME, ...}`, its answer `{"ok": VALUE}` or `{"error": TEXT}`. Who may connect is decided
//! by the permissions of the socket's file: its owner only.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_units::TraceId;

/// Longest request line, in octets.
pub(crate) const REQUEST_MAX: usize = 64 * 1024;

/// How long a command waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a command can ask of a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Queues in the order of their destinations: a list of [`QueueRow`]. One answer may hold fewer than
    /// asked for; the next one begins behind its last.
    QueueList {
        /// Those of a dead gateway of this name, as [`Request::Adopted`] gives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Only those behind this destination.
        #[serde(default)]
        after: Option<String>,
        /// How many to give at most.
        limit: usize,
    },
    /// Dead gateways whose queues are delivered by this one: a list of names.
    Adopted,
    /// The messages of one queue in acceptance order, or the places of one message: a list of
    /// [`MessageRow`].
    QueueShow {
        /// The destination as `queue list` prints it, or the id of a message.
        what: String,
        /// Only messages of the queue behind this one.
        #[serde(default)]
        after: Option<TraceId>,
        /// How many to give at most.
        limit: usize,
    },
    /// The state of every replica of the gateway's queues: a list of [`ReplicaLine`].
    SpoolTable,
    /// Writes buffered trace events to disk.
    FlushTrace,
}

/// The answer to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Done; the value depends on the request.
    Ok(serde_json::Value),
    /// Not done, and why.
    Error(String),
}

/// One queue as `vere queue list --json` prints it; times are RFC 3339, `octets` counts bodies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct QueueRow {
    pub(crate) destination: String,
    /// The dead gateway whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    pub(crate) messages: usize,
    pub(crate) octets: u64,
    pub(crate) deferred: usize,
    pub(crate) in_flight: usize,
    pub(crate) connections: usize,
    pub(crate) paused_until: Option<String>,
    pub(crate) oldest: Option<String>,
    pub(crate) last_reply: Option<String>,
}

/// One replica of the gateway's queues as `vere spool stat --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplicaLine {
    pub(crate) node: String,
    /// The active connection: `run` or `down`.
    pub(crate) active: String,
    /// The connection on standby: `ready` or `down`.
    pub(crate) standby: String,
    /// `sync`, `rebuilding`, `out`, or what is wrong with it.
    pub(crate) sync: String,
    /// The last transaction it acknowledged.
    pub(crate) transactions: u64,
    /// Transactions sent to it and not acknowledged.
    pub(crate) in_flight: u64,
    /// Records copied to it, while it is being rebuilt.
    pub(crate) copied: Option<u64>,
    /// Why it is not connected.
    pub(crate) trouble: Option<String>,
}

/// One message as `vere queue show --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MessageRow {
    pub(crate) id: String,
    pub(crate) destination: String,
    /// `ready`, `in flight` or `deferred`.
    pub(crate) state: String,
    pub(crate) accepted: String,
    pub(crate) attempts: u16,
    pub(crate) not_before: Option<String>,
    pub(crate) size: u32,
    /// Empty for the null reverse-path; absent when the spool does not answer.
    pub(crate) reverse_path: Option<String>,
    pub(crate) recipients: Vec<String>,
    pub(crate) last_reply: Option<String>,
}

/// Asks the gateway behind `socket` and waits for its answer.
///
/// # Errors
/// When nobody listens there, the answer takes too long, or the gateway refuses; the text says which.
pub(crate) fn ask(socket: &Path, request: &Request) -> Result<serde_json::Value, String> {
    let talk = || -> io::Result<Answer> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    match talk() {
        Ok(Answer::Ok(value)) => Ok(value),
        Ok(Answer::Error(text)) => Err(text),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Err(format!(
                "no gateway is running (nobody listens on {})",
                socket.display()
            ))
        }
        Err(error) => Err(format!(
            "cannot talk to the gateway on {}: {error}",
            socket.display()
        )),
    }
}
