//! The control socket: how `vere queue` and other commands talk to a running gateway.
//!
//! A local stream socket; one JSON object per line each way. A request is
//! `{"command": NAME, ...}`, its answer `{"ok": VALUE}` or `{"error": TEXT}`. Who may connect is decided
//! by the permissions of the socket's file: its owner only.

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

/// What a command can ask of a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
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
        /// The destination as `queue list` prints it, or the id of a message; of all queues those that are
        /// held, if it is not given.
        #[serde(default)]
        what: Option<String>,
        /// Restrict to messages held individually.
        #[serde(default)]
        held: bool,
        /// Only the queues of the dead gateway of this name; without it, own and adopted ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Only messages of the queue behind this one.
        #[serde(default)]
        after: Option<TraceId>,
        /// How many to give at most.
        limit: usize,
    },
    /// Changes what holds for a destination: an [`OrderRow`].
    QueueOrder {
        /// The destination, with or without a queue.
        destination: String,
        /// What changes.
        change: OrderChange,
        /// For how long a hold, a refusal or another way holds; until taken back, if it is not given.
        #[serde(default)]
        seconds: Option<u64>,
        /// Also where no mail goes there by the settings in force.
        #[serde(default)]
        ahead: bool,
    },
    /// What is ordered for any destination, and which messages are held: a list of [`OrderRow`].
    QueueOrders,
    /// Does something with messages: an [`Acted`], once it is done.
    QueueAct {
        /// The destination; all, if it is not given.
        #[serde(default)]
        destination: Option<String>,
        /// Which of its messages.
        #[serde(default)]
        selection: Selection,
        /// What.
        action: Action,
        /// Whether senders are told of what is returned.
        report: bool,
    },
    /// Holds or releases one message: a list of [`HoldRow`], one for each place where it waits.
    QueueMessage {
        /// The message's id.
        id: TraceId,
        /// Only where it waits for this destination.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        destination: Option<String>,
        /// What changes.
        change: MessageChange,
        /// For how long a hold holds; until it is released, if it is not given.
        #[serde(default)]
        seconds: Option<u64>,
    },
    /// What `vere queue top` shows: a [`TopSample`].
    QueueTop {
        /// Which queues come first.
        order: TopOrder,
        /// Only queues whose names hold this.
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
    /// Searches and says what answered: a text.
    Explain {
        /// The address of the account.
        account: String,
        /// The name of the mailbox, in UTF-8.
        mailbox: String,
        /// What follows SEARCH in IMAP.
        search: String,
    },
    /// Accounts that have mailboxes, whether the directory knows them or not: an `AccountsPage`.
    Accounts {
        /// Only those behind this one.
        #[serde(default)]
        after: Option<String>,
    },
    /// What one account has: an `AccountRow`.
    Account {
        /// The address of the account.
        account: String,
    },
    /// Removes all that an account has which the directory does not know: the same of it.
    RemoveAccount {
        /// The address of the account.
        account: String,
    },
}

/// A change of what holds for a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderChange {
    /// Nothing is delivered; mail is taken.
    Hold,
    /// Ends that.
    Release,
    /// No mail is taken; what is queued is delivered.
    Refuse,
    /// Ends that.
    Accept,
    /// What is queued goes elsewhere.
    Reroute {
        /// The domain whose hosts take it, or `relay:HOST:PORT`.
        to: String,
    },
    /// Ends that.
    Restore,
}

/// A change of what holds for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageChange {
    /// It is not delivered.
    Hold,
    /// Ends that.
    Release,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    /// It was done.
    Done,
    /// Nothing: the message was being delivered, or has left.
    Busy,
    /// Nothing: it was not held.
    NotHeld,
}

/// A message in one queue after it was held or released.
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
    /// Whether those behind it wait for it.
    pub in_order: bool,
}

/// Which queues come first when not all are shown.
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

/// What is done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is counted.
    Count,
    /// It is tried again now.
    Retry,
    /// It is returned to its sender.
    Bounce,
    /// As when its time were over.
    Expire,
    /// It is removed; nobody is told.
    Purge,
}

/// Which messages of a queue: all for which everything given holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The sender's address, in any case of letters, or its domain, with or without `@` in front; empty for
    /// the null reverse-path.
    pub sender: Option<String>,
    /// The address of a recipient, or its domain, in the same way.
    pub recipient: Option<String>,
    /// The least age in seconds.
    pub older_than: Option<u64>,
    /// The message's id.
    pub id: Option<TraceId>,
}

/// What came of an action.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Acted {
    /// Messages for which it was done.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages left alone because they were being delivered.
    pub busy: usize,
    /// Why it ended early.
    pub trouble: Option<String>,
}

/// What is ordered for a destination, or that one message is held; a time, or `taken back`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderRow {
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The dead gateway for whose queue it is ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The message that is held alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Start of the hold, if the record has the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// The end of the hold: a time, or `taken back`.
    pub held_until: Option<String>,
    /// The end of the refusal: a time, or `taken back`.
    pub refused_until: Option<String>,
    /// Where its mail goes instead.
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
    /// The dead gateway whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Messages in the queue.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages that came since this gateway process knows the queue.
    pub came: u64,
    /// Messages that left the queue for good.
    pub left: u64,
    /// How many messages of which priority are ready.
    pub priorities: BTreeMap<i8, usize>,
    /// Messages that wait for their next attempt.
    pub deferred: usize,
    /// Messages in delivery.
    pub in_flight: usize,
    /// Messages that an operator holds one by one.
    pub held: usize,
    /// Open connections to the hosts of the destination.
    pub connections: usize,
    /// How many there may be now, with those of other destinations that the same hosts serve.
    pub connections_max: usize,
    /// Whether its messages leave one at a time, in the order in which they were taken.
    pub in_order: bool,
    /// The hosts that serve it, once they are known.
    pub site: Option<String>,
    /// The average time that a message takes there.
    pub latency_ms: Option<u64>,
    /// The end of a pause of the destination.
    pub paused_until: Option<String>,
    /// A time, or `taken back`.
    pub held_until: Option<String>,
    /// A time, or `taken back`.
    pub refused_until: Option<String>,
    /// Where its mail goes instead, by an operator's order.
    pub way: Option<String>,
    /// Whether no route of the settings in force leads to its next hop, and no order leads elsewhere.
    #[serde(default)]
    pub unrouted: bool,
    /// The acceptance of the oldest message.
    pub oldest: Option<String>,
    /// The age of the oldest message.
    pub oldest_seconds: Option<u64>,
    /// The last complaint, of its hosts or about them.
    pub last_reply: Option<String>,
    /// What its hosts said last about a message, good or bad.
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
    /// `sync`, `slow` (the same, and it is to be replaced), `rebuilding`, `catching up` (it is given
    /// what it missed), `out`, `out, slow` (left alone for that), or what is wrong with it.
    pub sync: String,
    /// The last transaction it acknowledged.
    pub transactions: u64,
    /// Transactions sent to it and not acknowledged.
    pub in_flight: u64,
    /// Whether acknowledged mail is in its memory and nowhere else.
    #[serde(default)]
    pub alone: bool,
    /// Records copied to it, while it is being rebuilt.
    pub copied: Option<u64>,
    /// Why it is not connected.
    pub trouble: Option<String>,
}

/// One message as `vere queue show --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRow {
    /// The trace id of the message.
    pub id: String,
    /// The dead gateway in whose queue it is.
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
    /// A time, or `taken back`, if an operator holds it.
    pub held_until: Option<String>,
    /// Since when, where its record says so.
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

/// Asks the gateway behind `socket` and waits for its answer.
///
/// # Errors
/// When nobody listens there, the answer takes too long, or the gateway refuses; the text says which.
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
