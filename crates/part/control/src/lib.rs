//! The control socket: how `vere queue` and other commands talk to a running gateway.
//!
//! A local stream socket; a JSON object per line in each direction. A request is `{"command": NAME, ...}`, its answer
//! `{"ok": VALUE}` or `{"error": TEXT}`. The permissions of the socket's file decide who may connect: the owner only.

pub mod queues;
mod top;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_settings::Settings;
use vere_units::TraceId;

pub use top::{Budget, HeaviestClient, TopSample, TopTotals};

/// Longest request line, in octets.
pub const REQUEST_MAX: usize = 64 * 1024;

/// How long a command waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A request to a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// A list of [`QueueRow`] by destination, possibly shorter than requested: then ask again behind the last queue.
    QueueList {
        /// The queues of the dead gateway of this name, from [`Request::Adopted`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Only queues behind this destination.
        #[serde(default)]
        after: Option<String>,
        /// How many to give at most.
        limit: usize,
    },
    /// Dead gateways whose queues this gateway delivers: a list of names.
    Adopted,
    /// The messages of a queue in acceptance order, or the places of a message: a list of [`MessageRow`].
    QueueShow {
        /// The destination as `queue list` prints it, or a message id; by default, the held messages of all queues.
        #[serde(default)]
        what: Option<String>,
        /// Restrict to messages held individually.
        #[serde(default)]
        held: bool,
        /// Only the queues of the dead gateway of this name; by default, own and adopted queues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Only messages of the queue behind this message.
        #[serde(default)]
        after: Option<TraceId>,
        /// How many to give at most.
        limit: usize,
    },
    /// Changes the orders of a destination: an [`OrderRow`].
    QueueOrder {
        /// The destination, with or without a queue.
        destination: String,
        /// The change.
        change: OrderChange,
        /// For how long a hold, a refusal or another way holds; until taken back, if it is not given.
        #[serde(default)]
        seconds: Option<u64>,
        /// Also where no mail goes there by the settings in force.
        #[serde(default)]
        ahead: bool,
    },
    /// The orders of all destinations, and the held messages: a list of [`OrderRow`].
    QueueOrders,
    /// Acts on messages: an [`Acted`], after the action.
    QueueAct {
        /// The destination; by default, all destinations.
        #[serde(default)]
        destination: Option<String>,
        /// The selected messages.
        #[serde(default)]
        selection: Selection,
        /// The action.
        action: Action,
        /// Whether senders get a report of returned messages.
        report: bool,
    },
    /// Holds or releases a message: a list of [`HoldRow`], a row for each queue of the message.
    QueueMessage {
        /// The message's id.
        id: TraceId,
        /// Only in the queue of this destination.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        destination: Option<String>,
        /// The change.
        change: MessageChange,
        /// The duration of a hold; by default, until the release.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// A sample for `vere queue top`: a [`TopSample`].
    QueueTop {
        /// The order of the queues.
        order: TopOrder,
        /// Only queues whose names contain this text.
        filter: String,
        /// How many queues to give at most.
        limit: usize,
    },
    /// The state of every replica of the gateway's queues: a list of [`ReplicaLine`].
    SpoolTable,
    /// Writes buffered trace events to disk.
    FlushTrace,
}

/// What a command can ask of a running mail store, over `store.sock`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum StoreRequest {
    /// Searches and reports the source of the answer: a text.
    Explain {
        /// The address of the account.
        account: String,
        /// The name of the mailbox, in UTF-8.
        mailbox: String,
        /// The arguments of SEARCH in IMAP.
        search: String,
    },
    /// Accounts with mailboxes, known to the directory or not: an `AccountsPage`.
    Accounts {
        /// Only accounts behind this account.
        #[serde(default)]
        after: Option<String>,
    },
    /// The mail of an account: an `AccountRow`.
    Account {
        /// The address of the account.
        account: String,
    },
    /// Removes the mail of an account unknown to the directory: the `AccountRow` of the removed mail.
    RemoveAccount {
        /// The address of the account.
        account: String,
    },
}

/// A change of a destination's orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderChange {
    /// Pause delivery; mail is accepted.
    Hold,
    /// End a hold.
    Release,
    /// Refuse new mail; queued mail is delivered.
    Refuse,
    /// End a refusal.
    Accept,
    /// Send queued mail elsewhere.
    Reroute {
        /// The domain whose hosts get the mail, or `relay:HOST:PORT`.
        to: String,
    },
    /// End a reroute.
    Restore,
}

/// A change of a message's hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageChange {
    /// Pause delivery of the message.
    Hold,
    /// End a hold.
    Release,
}

/// The outcome of a hold or a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// The change was made.
    Done,
    /// No change: the message was under delivery, or has left.
    Busy,
    /// No change: the message was not held.
    NotHeld,
}

/// A message in a queue after a hold or a release.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HoldRow {
    /// The trace id of the message.
    pub id: String,
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The result for this queue.
    pub outcome: HoldOutcome,
    /// A time, or `taken back`.
    pub held_until: Option<String>,
    /// Whether later messages wait for the message.
    pub in_order: bool,
}

/// The queues that come first in a partial list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopOrder {
    /// Most messages first.
    Messages,
    /// Most deferred messages first.
    Deferred,
    /// Most connections first.
    Connections,
    /// The queue with the oldest message first.
    Oldest,
    /// By the name of the destination.
    Name,
}

/// An action on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Count the message.
    Count,
    /// Retry the message now.
    Retry,
    /// Return the message to its sender.
    Bounce,
    /// Return the message as expired.
    Expire,
    /// Remove the message without a report.
    Purge,
}

/// The selected messages of a queue: messages that match every given criterion.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The sender's address, or its domain with or without `@`, in any letter case; empty for the null reverse-path.
    pub sender: Option<String>,
    /// The address of a recipient, or its domain, in the same way.
    pub recipient: Option<String>,
    /// The least age in seconds.
    pub older_than: Option<u64>,
    /// The message's id.
    pub id: Option<TraceId>,
}

/// The outcome of an action.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Acted {
    /// Messages with the action done.
    pub messages: usize,
    /// Octets of the messages' bodies.
    pub octets: u64,
    /// Messages left alone because of a delivery under way.
    pub busy: usize,
    /// The reason of an early end.
    pub trouble: Option<String>,
}

/// The orders of a destination, or the hold of a single message; a time, or `taken back`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderRow {
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The dead gateway of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The message under a hold of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Start of the hold, if the record has the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// The end of the hold: a time, or `taken back`.
    pub held_until: Option<String>,
    /// The end of the refusal: a time, or `taken back`.
    pub refused_until: Option<String>,
    /// The other destination of the mail.
    pub way: Option<String>,
    /// The end of the reroute: a time, or `taken back`.
    pub way_until: Option<String>,
}

/// The answer to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done; the value depends on the request.
    Ok(serde_json::Value),
    /// Not done, and why.
    Error(String),
}

/// One queue as `vere queue list --json` prints it; times are RFC 3339, `octets` counts bodies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueueRow {
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The dead gateway of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Messages in the queue.
    pub messages: usize,
    /// Octets of the messages' bodies.
    pub octets: u64,
    /// Messages that arrived since the gateway process knows the queue.
    pub came: u64,
    /// Messages that left the queue permanently.
    pub left: u64,
    /// Number of ready messages by priority.
    pub priorities: BTreeMap<i8, usize>,
    /// Messages deferred to their next attempt.
    pub deferred: usize,
    /// Messages in delivery.
    pub in_flight: usize,
    /// Messages under a hold of their own.
    pub held: usize,
    /// Open connections to the hosts of the destination.
    pub connections: usize,
    /// Present limit of connections, shared with other destinations of the same hosts.
    pub connections_max: usize,
    /// Whether messages leave one at a time, in the order of acceptance.
    pub in_order: bool,
    /// The hosts of the destination, once known.
    pub site: Option<String>,
    /// The average time of a message's delivery.
    pub latency_ms: Option<u64>,
    /// The end of a pause of the destination.
    pub paused_until: Option<String>,
    /// A time, or `taken back`.
    pub held_until: Option<String>,
    /// A time, or `taken back`.
    pub refused_until: Option<String>,
    /// The other destination of the mail, by an operator's order.
    pub way: Option<String>,
    /// Whether no route of the settings in force leads to its next hop, and no order leads elsewhere.
    #[serde(default)]
    pub unrouted: bool,
    /// The acceptance of the oldest message.
    pub oldest: Option<String>,
    /// The age of the oldest message.
    pub oldest_seconds: Option<u64>,
    /// The last complaint, of the hosts or about the hosts.
    pub last_reply: Option<String>,
    /// The last reply of the hosts about a message, good or bad.
    #[serde(default)]
    pub last_answer: Option<String>,
}

/// One replica of the gateway's queues as `vere spool stat --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplicaLine {
    /// The name of the spool node.
    pub node: String,
    /// The active connection: `run` or `down`.
    pub active: String,
    /// The connection on standby: `ready` or `down`.
    pub standby: String,
    /// `sync`, `slow` (in sync, and about to be replaced), `rebuilding`, `catching up` (receives the missed records),
    /// `out`, `out, slow` (excluded for slowness), or the fault of the replica.
    pub sync: String,
    /// The last transaction acknowledged by the replica.
    pub transactions: u64,
    /// Transactions sent to the replica and not acknowledged.
    pub in_flight: u64,
    /// Whether acknowledged mail is in the replica's memory and nowhere else.
    #[serde(default)]
    pub alone: bool,
    /// Records copied to the replica, during its rebuild.
    pub copied: Option<u64>,
    /// The reason why the replica is not connected.
    pub trouble: Option<String>,
}

/// One message as `vere queue show --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRow {
    /// The trace id of the message.
    pub id: String,
    /// The dead gateway of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// `ready`, `in flight`, `deferred` or `held`.
    pub state: String,
    /// The time of acceptance.
    pub accepted: String,
    /// Delivery attempts so far.
    pub attempts: u16,
    /// The time of the next attempt.
    pub not_before: Option<String>,
    /// A time, or `taken back`, if an operator holds the message.
    pub held_until: Option<String>,
    /// The beginning of the hold, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// Octets of the body.
    pub size: u32,
    /// From -9 to 9 (MT-PRIORITY).
    pub priority: i8,
    /// Empty for the null reverse-path; absent when the spool does not answer.
    pub reverse_path: Option<String>,
    /// Addresses of the recipients.
    pub recipients: Vec<String>,
    /// The last reply of a next hop about the message.
    pub last_reply: Option<String>,
}

/// Where the store's socket is: beside the gateway's.
pub fn store_socket(settings: &Settings) -> PathBuf {
    settings.control.socket.with_file_name("store.sock")
}

/// Asks the gateway behind `socket` and waits for the answer.
///
/// # Errors
/// When nobody listens at the socket, the answer takes too long, or the gateway refuses; the text has the reason.
pub fn ask(socket: &Path, request: &Request) -> Result<serde_json::Value, String> {
    ask_for(socket, request, ANSWER_TIMEOUT)
}

/// As [`ask`], with a time for work that takes long.
pub fn ask_for(
    socket: &Path,
    request: &Request,
    patience: Duration,
) -> Result<serde_json::Value, String> {
    match talk(socket, request, patience) {
        Err(error) if is_nobody(&error) => Err(format!(
            "no gateway is running (nobody listens on {})",
            socket.display()
        )),
        talked => understood(socket, "gateway", talked),
    }
}

/// Asks the mail store behind `socket`; `None` when nobody listens there.
///
/// # Errors
/// When the answer takes too long, or the store refuses; the text says which.
pub fn ask_store(
    socket: &Path,
    request: &StoreRequest,
    patience: Duration,
) -> Result<Option<serde_json::Value>, String> {
    match talk(socket, request, patience) {
        Err(error) if is_nobody(&error) => Ok(None),
        talked => understood(socket, "mail store", talked).map(Some),
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
    who: &str,
    talked: io::Result<Answer>,
) -> Result<serde_json::Value, String> {
    match talked {
        Ok(Answer::Ok(value)) => Ok(value),
        Ok(Answer::Error(text)) => Err(text),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof
            ) =>
        {
            Err(format!(
                "the {who} on {} gave no answer; what was asked may be done all the same: look again",
                socket.display()
            ))
        }
        Err(error) => Err(format!(
            "cannot talk to the {who} on {}: {error}",
            socket.display()
        )),
    }
}
