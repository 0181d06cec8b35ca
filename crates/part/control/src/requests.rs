//! Requests to a running gateway or mail store.

use serde::{Deserialize, Serialize};
use vere_delivery::{Action, MessageChange, Selection};
use vere_units::TraceId;

use crate::quarantine::{QuarantineAction, QuarantineSelection};

/// What a command can ask of a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Queues in the order of their destinations: a list of [`QueueRow`](crate::QueueRow). One answer may hold fewer
    /// than asked for; the next one begins behind its last.
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
    /// [`MessageRow`](crate::MessageRow).
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
    /// Changes what holds for a destination: an [`OrderRow`](crate::OrderRow).
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
    /// What is ordered for any destination, and which messages are held: a list of [`OrderRow`](crate::OrderRow).
    QueueOrders,
    /// Does something with messages: an [`Acted`](crate::Acted), once it is done.
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
    /// Holds or releases one message: a list of [`HoldRow`](crate::HoldRow), one for each place where it waits.
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
    /// Messages of the quarantine, the oldest first: a list of [`QuarantineRow`](crate::QuarantineRow).
    QuarantineList {
        /// Which messages.
        #[serde(default)]
        selection: QuarantineSelection,
        /// Only messages behind this one.
        #[serde(default)]
        after: Option<TraceId>,
        /// How many to give at most.
        limit: usize,
    },
    /// One message of the quarantine, with its header: a list of [`QuarantineRow`](crate::QuarantineRow), one for each
    /// place where it waits.
    QuarantineShow {
        /// The message's id.
        id: TraceId,
    },
    /// A piece of a message of the quarantine: a [`QuarantineText`](crate::QuarantineText).
    QuarantineText {
        /// The message's id.
        id: TraceId,
        /// The first octet of the piece.
        from: usize,
    },
    /// Releases or removes messages of the quarantine: a [`QuarantineActed`](crate::QuarantineActed), once it is done.
    QuarantineAct {
        /// Which messages.
        selection: QuarantineSelection,
        /// What.
        action: QuarantineAction,
        /// Whether filters and the own list are taught by each message: wanted mail if released, spam if removed.
        #[serde(default)]
        learn: bool,
    },
    /// Learned senders: a list of [`SenderRow`](crate::SenderRow).
    SendersList {
        /// Only this sender, or senders of this domain.
        #[serde(default)]
        sender: Option<String>,
        /// Only senders of this recipient, or of recipients in this domain.
        #[serde(default)]
        recipient: Option<String>,
    },
    /// Forgets learned senders: the number of entries.
    SendersRemove {
        /// The sender, or the domain of senders.
        sender: String,
        /// The recipient, or the domain of the recipients, whose list changes; without a value, all lists change.
        #[serde(default)]
        recipient: Option<String>,
    },
    /// What `vere queue top` shows: a [`TopSample`](crate::TopSample).
    QueueTop {
        /// Which queues come first.
        order: TopOrder,
        /// Only queues whose names hold this.
        filter: String,
        /// How many queues to give at most.
        limit: usize,
    },
    /// The state of every replica of the gateway's queues: a list of [`ReplicaLine`](crate::ReplicaLine).
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
    /// Removes all mail of an account unknown to the directory: the `AccountRow` of the removed mail.
    RemoveAccount {
        /// The address of the account.
        account: String,
    },
    /// Gives all mail of an account unknown to the directory to another account: the `AccountRow` of the moved mail.
    RenameAccount {
        /// The address of the account.
        from: String,
        /// The address of the other account.
        to: String,
    },
    /// The mailboxes of an account, deleted ones with kept messages too: a list of `MailboxRow`.
    Mailboxes {
        /// The address of the account.
        account: String,
    },
    /// Expunged messages that are kept: an `ExpungedPage`.
    Expunged(Expunged),
    /// Brings expunged messages back, or says which would come back: an `UndeletedPage`.
    Undelete(Undelete),
    /// Lets go of expunged messages by one step: a `PurgedPage`.
    PurgeExpunged {
        /// The address of the account.
        account: String,
        /// The name of one mailbox.
        #[serde(default)]
        mailbox: Option<String>,
    },
    /// Holds the log for a backup as long as the connection is open: a [`HeldLog`](crate::HeldLog).
    HoldLog,
    /// Checks the whole store: lines of [`CheckLine`](crate::CheckLine).
    Check,
}

/// Selects expunged messages of an account, a page of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expunged {
    /// The address of the account.
    pub account: String,
    /// The name of one mailbox, which may be deleted.
    #[serde(default)]
    pub mailbox: Option<String>,
    /// UIDs that select messages, at most 1,000; without any, all messages.
    #[serde(default)]
    pub uids: Vec<u32>,
    /// Message-IDs that select messages, at most 100; without any, all messages.
    #[serde(default)]
    pub message_ids: Vec<String>,
    /// Only messages expunged at this time or later, in milliseconds since 1970.
    #[serde(default)]
    pub since: Option<u64>,
    /// Only messages behind this place, which the page before named.
    #[serde(default)]
    pub after: Option<ExpungedAfter>,
    /// The most messages of the page; messages of one change stay together.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// A place in the list of expunged messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpungedAfter {
    /// The mailbox.
    pub mailbox: u64,
    /// The change that expunged the messages.
    pub position: u64,
    /// The first UID of its piece.
    pub first: u32,
}

/// Which messages come back, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Undelete {
    /// The messages.
    pub of: Expunged,
    /// The mailbox that gets the messages, made if it is missing; absent for the mailbox of each message.
    #[serde(default)]
    pub to: Option<String>,
    /// Nothing is changed.
    #[serde(default)]
    pub dry_run: bool,
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
