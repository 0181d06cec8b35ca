//! The control socket: how `vere queue` and other commands talk to a running gateway.
//!
//! A local stream socket; a JSON object per line in each direction. A request is `{"command": NAME, ...}`, its answer
//! `{"ok": VALUE}` or `{"error": TEXT}`. The permissions of the socket's file decide who may connect: the owner only.

mod error;
mod log_hold;
mod quarantine;
pub mod queues;
mod requests;
mod rows;
mod store_check;
pub mod supervision;
mod top;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_settings::Settings;

pub use vere_delivery::{Acted, Action, HoldOutcome, MessageChange, Selection};

pub use error::{AskError, Peer};
pub use log_hold::{HeldFile, HeldLog, LogHold};
pub use quarantine::{
    HeaderField, QuarantineActed, QuarantineAction, QuarantineRow, QuarantineSelection,
    QuarantineText, SenderRow,
};
pub use requests::{
    Expunged, ExpungedAfter, OrderChange, Request, StoreRequest, TopOrder, Undelete,
};
pub use rows::{HoldRow, MessageRow, OrderRow, QueueRow, ReplicaLine};
pub use store_check::{CheckLine, StoreProgress, check_store};
pub use top::{Budget, HeaviestClient, TopSample, TopTotals};

/// Longest request line, in octets.
pub const REQUEST_MAX: usize = 64 * 1024;

/// How long a command waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done; the value depends on the request.
    Ok(serde_json::Value),
    /// Not done, and why.
    Error(String),
}

/// Where the store's socket is: beside the gateway's.
pub fn store_socket(settings: &Settings) -> PathBuf {
    settings.control.socket.with_file_name("store.sock")
}

/// Asks the gateway behind `socket` and waits for the answer.
///
/// # Errors
/// When nobody listens at the socket, the answer takes too long, or the gateway refuses.
pub fn ask(socket: &Path, request: &Request) -> Result<serde_json::Value, AskError> {
    ask_for(socket, request, ANSWER_TIMEOUT)
}

/// As [`ask`], with a time for work that takes long.
///
/// # Errors
/// As [`ask`].
pub fn ask_for(
    socket: &Path,
    request: &Request,
    patience: Duration,
) -> Result<serde_json::Value, AskError> {
    match talk(socket, request, patience) {
        Err(error) if is_nobody(&error) => Err(AskError::NoGateway {
            socket: socket.to_owned(),
        }),
        talked => understood(socket, Peer::Gateway, talked),
    }
}

/// Asks the mail store behind `socket`; `None` when nobody listens there.
///
/// # Errors
/// When the answer takes too long, or the store refuses.
pub fn ask_store(
    socket: &Path,
    request: &StoreRequest,
    patience: Duration,
) -> Result<Option<serde_json::Value>, AskError> {
    match talk(socket, request, patience) {
        Err(error) if is_nobody(&error) => Ok(None),
        talked => understood(socket, Peer::Store, talked).map(Some),
    }
}

fn talk(socket: &Path, request: &impl Serialize, patience: Duration) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

fn understood(
    socket: &Path,
    peer: Peer,
    talked: io::Result<Answer>,
) -> Result<serde_json::Value, AskError> {
    let socket = socket.to_owned();
    match talked {
        Ok(Answer::Ok(value)) => Ok(value),
        Ok(Answer::Error(text)) => Err(AskError::Refused(text)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof
            ) =>
        {
            Err(AskError::NoAnswer { peer, socket })
        }
        Err(source) => Err(AskError::Connection {
            peer,
            socket,
            source,
        }),
    }
}
