//! What a client machine is given to send, and what it says became of it.

use bytes::Bytes;

use crate::address::ReversePath;
use crate::command::{BodyType, RcptTo, Ret, Xtext};
use crate::reply::{EnhancedStatusCode, Reply};

/// A message with its envelope.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    /// Where reports go.
    pub reverse_path: ReversePath,
    /// Who receives. Without recipients nothing is sent.
    pub recipients: Vec<RcptTo>,
    /// Header and body with CRLF line ends, not dot-stuffed. What holds a NUL or a CR or LF alone is
    /// treated as [`BodyType::BinaryMime`], whatever `body_type` says.
    pub body: Bytes,
    /// What the sender declared the body to be.
    pub body_type: BodyType,
    /// Whether the sender asked for SMTPUTF8.
    pub smtputf8: bool,
    /// Whether it may go to a server only that takes REQUIRETLS within TLS (RFC 8689). That the server is
    /// who it should be is for the host to see, before it gives the message here.
    pub require_tls: bool,
    /// Higher ones first, from -9 to 9; told to servers that offer MT-PRIORITY (RFC 6710).
    pub priority: i8,
    /// Whether nothing is sent but MAIL and RCPT: each recipient's outcome then is the reply to its RCPT,
    /// and "delivered" means that it would be taken.
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

/// What became of one recipient. The reply is the server's, or one that the client made because the
/// server gave none; those have the code 451 when trying again may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipientOutcome {
    /// The server has taken responsibility (2yz).
    Delivered(Reply),
    /// The server, or we by what the server cannot do, refused for good (5yz).
    Failed(Reply),
    /// It may be tried again (4yz, and the 552 that RFC 821 had for too many recipients). When the connection was lost behind the end of the message, the server
    /// may have it all the same, and will then get it twice.
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

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOutcome {
    /// One outcome for each recipient, in the order of [`OutgoingMessage::recipients`].
    pub recipients: Vec<RecipientOutcome>,
    /// Whether the server took over the duty to report (RFC 3461 section 5.2.1): without DSN, the
    /// host owes `NOTIFY=SUCCESS` senders a report that says "relayed".
    pub dsn_passed_on: bool,
    /// Whether the connection takes another message.
    pub connection_usable: bool,
    /// Whether the server ended the connection before it replied to MAIL, as happens with one that was
    /// kept a moment too long: nothing is known against the message, and a new connection may be tried at
    /// once. A message that left with its envelope may have been taken all the same, and is then sent
    /// twice (RFC 5321 section 4.5.3.2.6 accepts that).
    pub untried: bool,
}

/// RFC 5321 section 4.5.3.1.10: 452 for too many recipients, which RFC 821 had as 552.
pub(super) fn is_too_many(reply: &Reply) -> bool {
    const DETAIL: (u16, u16) = (5, 3);
    let said = |status: EnhancedStatusCode| (status.subject, status.detail) == DETAIL;
    matches!(reply.code, 452 | 552) && reply.enhanced.is_none_or(said)
}
