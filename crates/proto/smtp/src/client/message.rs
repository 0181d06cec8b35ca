//! The messages given to a client machine, and their outcomes.

use bytes::Bytes;

use crate::address::ReversePath;
use crate::command::{BodyType, RcptTo, Ret, Xtext};
use crate::reply::{EnhancedStatusCode, Reply};

/// A message with an envelope.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    /// Where reports go.
    pub reverse_path: ReversePath,
    /// The recipients. Without recipients no transaction takes place.
    pub recipients: Vec<RcptTo>,
    /// Header and body with CRLF line ends, not dot-stuffed. What holds a NUL or a CR or LF alone is
    /// treated as [`BodyType::BinaryMime`], whatever `body_type` says.
    pub body: Bytes,
    /// The body type declared by the sender.
    pub body_type: BodyType,
    /// Whether the sender asked for SMTPUTF8.
    pub smtputf8: bool,
    /// Whether the message may go only to a server with REQUIRETLS within TLS (RFC 8689). The host verifies the
    /// identity of the server before giving the message to the machine.
    pub require_tls: bool,
    /// From -9 to 9, higher priorities first; passed on to servers that offer MT-PRIORITY (RFC 6710).
    pub priority: i8,
    /// Whether only MAIL and RCPT are sent: the outcome of each recipient is the reply to RCPT, and "delivered" means
    /// that the server would accept the recipient.
    pub dry_run: bool,
    /// How much of the message a report returns.
    pub ret: Option<Ret>,
    /// The sender's identifier for reports.
    pub envid: Option<Xtext>,
}

impl OutgoingMessage {
    /// Makes a message without any parameters.
    #[must_use]
    pub fn new(reverse_path: ReversePath, recipients: Vec<RcptTo>, body: Bytes) -> Self {
        Self {
            reverse_path,
            recipients,
            body,
            body_type: BodyType::SevenBit,
            smtputf8: false,
            require_tls: false,
            priority: 0,
            dry_run: false,
            ret: None,
            envid: None,
        }
    }
}

/// The outcome of one recipient. The reply comes from the server, or from the client if the server gave no reply; the
/// code of a reply from the client is 451 where a retry may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientOutcome {
    /// The server has taken responsibility (2yz).
    Delivered(Reply),
    /// The server, or we by what the server cannot do, refused for good (5yz).
    Failed(Reply),
    /// A retry may help (4yz, and 552, which meant too many recipients in RFC 821). When the connection was lost
    /// behind the end of the message, the server may have accepted the message all the same, and will then get a
    /// duplicate.
    Deferred(Reply),
}

impl RecipientOutcome {
    /// Sorts a reply that settles a recipient.
    pub(super) fn of(reply: Reply) -> Self {
        if reply.is_completion() {
            Self::Delivered(reply)
        } else if reply.is_permanent() {
            Self::Failed(reply)
        } else {
            Self::Deferred(reply)
        }
    }

    /// Returns the reply.
    #[must_use]
    pub fn reply(&self) -> &Reply {
        match self {
            Self::Delivered(reply) | Self::Failed(reply) | Self::Deferred(reply) => reply,
        }
    }
}

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOutcome {
    /// The outcome of each recipient, in the order of [`OutgoingMessage::recipients`].
    pub recipients: Vec<RecipientOutcome>,
    /// Whether the server took over the duty to report (RFC 3461 section 5.2.1): without DSN, the
    /// host owes `NOTIFY=SUCCESS` senders a report that says "relayed".
    pub dsn_passed_on: bool,
    /// Whether the server refused MAIL: the outcome of each recipient has that reply, which says nothing about the recipient.
    pub sender_refused: bool,
    /// Whether the connection takes another message.
    pub connection_usable: bool,
    /// Whether the server ended the connection before replying to MAIL, as happens with connections kept a moment too
    /// long: the message was not refused, and a new connection may be tried at once. A message sent together with its
    /// envelope may have been accepted all the same, and is then sent twice (RFC 5321 section 4.5.3.2.6 accepts
    /// duplicates).
    pub untried: bool,
}

/// RFC 5321 section 4.5.3.1.10: 452 for too many recipients, 552 in RFC 821.
pub(super) fn is_too_many(reply: &Reply) -> bool {
    const DETAIL: (u16, u16) = (5, 3);
    let said = |status: EnhancedStatusCode| (status.subject, status.detail) == DETAIL;
    matches!(reply.code, 452 | 552) && reply.enhanced.is_none_or(said)
}
