//! The reasons for the end of a connection, and the replies for recipients left without a reply.

use std::fmt;

use crate::reply::{EnhancedStatusCode, Reply, ReplyError};
use vere_sasl::client::ExchangeError;

/// The event awaited by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The greeting.
    Greeting,
    /// The reply to EHLO, HELO or LHLO.
    Hello,
    /// The reply to STARTTLS, or the handshake.
    StartTls,
    /// A reply to AUTH.
    Auth,
    /// The reply to RSET.
    Reset,
    /// The reply to MAIL.
    Mail,
    /// The reply to RCPT.
    Recipient,
    /// The reply to DATA.
    Data,
    /// The message to leave.
    Body,
    /// The reply to the message.
    Final,
    /// The reply to QUIT.
    Quit,
    /// No event: there was no message to send.
    Idle,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greeting => "waiting for the greeting",
            Self::Hello => "waiting for the reply to EHLO",
            Self::StartTls => "starting TLS",
            Self::Auth => "authenticating",
            Self::Reset => "waiting for the reply to RSET",
            Self::Mail => "waiting for the reply to MAIL",
            Self::Recipient => "waiting for the reply to RCPT",
            Self::Data => "waiting for the reply to DATA",
            Self::Body => "sending the message",
            Self::Final => "waiting for the reply to the message",
            Self::Quit => "waiting for the reply to QUIT",
            Self::Idle => "idle",
        })
    }
}

/// How a server broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// The server sent octets that are no reply, or exceed the limits of a reply.
    Malformed(ReplyError),
    /// The server sent this reply while no command was open.
    Unasked(Reply),
    /// The server replied before it can have received the command.
    TooEarly(Stage),
    /// The server sent a reply of a kind that the command does not have.
    WrongKind(Stage, Reply),
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::Unasked(reply) => write!(f, "reply to no command: {reply}"),
            Self::TooEarly(stage) => write!(f, "reply too early while {stage}"),
            Self::WrongKind(stage, reply) => write!(f, "unfitting reply while {stage}: {reply}"),
        }
    }
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The host requested the end, or the server accepts no more messages on this connection.
    Quit,
    /// Server: it does not want to talk to us (a greeting or EHLO refused), or refused in the middle
    /// of a message.
    Refused(Reply),
    /// Server: the server closes the connection (421).
    ServerClosing(Reply),
    /// Network: the connection was lost.
    Lost(Stage),
    /// Network or server: the wait was too long.
    TimedOut(Stage),
    /// Server: TLS is required and not offered.
    TlsUnavailable,
    /// Server: TLS is required, and STARTTLS was offered and refused.
    TlsRefused(Reply),
    /// Attacker, or a broken server: octets came behind the reply to STARTTLS and before the
    /// handshake. The octets are dropped, and no command is sent (CVE-2021-33515 and its kin).
    InjectedBeforeTls,
    /// Server: no permitted mechanism is offered.
    AuthUnavailable,
    /// Server: the credentials were refused.
    AuthRefused(Reply),
    /// Server: the authentication exchange was broken.
    AuthBroken(ExchangeError),
    /// Server: the server violated the protocol.
    Misbehaved(Misbehaviour),
}

impl CloseReason {
    /// Makes the reply for recipients without a separate reply: the server's reply if given, and
    /// otherwise 451, so that the message is tried again.
    ///
    /// A greeting refused for good is a 5yz reply here (RFC 7504 section 4 for 521 and 554); whether
    /// another host of the destination is tried first is the caller's choice.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let (subject, detail) = match self {
            Self::Refused(reply) | Self::ServerClosing(reply) => return reply.clone(),
            Self::Quit | Self::Lost(_) | Self::TimedOut(_) => (4, 2),
            Self::TlsUnavailable | Self::TlsRefused(_) | Self::InjectedBeforeTls => (7, 5),
            Self::AuthUnavailable | Self::AuthRefused(_) | Self::AuthBroken(_) => (7, 0),
            Self::Misbehaved(_) => (5, 0),
        };
        transient(subject, detail, self.to_string())
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quit => f.write_str("connection ended"),
            Self::Refused(reply) => write!(f, "server refused: {reply}"),
            Self::ServerClosing(reply) => write!(f, "server closes the connection: {reply}"),
            Self::Lost(stage) => write!(f, "connection lost while {stage}"),
            Self::TimedOut(stage) => write!(f, "timed out while {stage}"),
            Self::TlsUnavailable => f.write_str("TLS is required and not offered"),
            Self::TlsRefused(reply) => write!(f, "TLS is required and refused: {reply}"),
            Self::InjectedBeforeTls => {
                f.write_str("server sent plaintext behind the reply to STARTTLS")
            }
            Self::AuthUnavailable => f.write_str("no usable authentication mechanism is offered"),
            Self::AuthRefused(reply) => write!(f, "authentication refused: {reply}"),
            Self::AuthBroken(error) => write!(f, "authentication failed: {error}"),
            Self::Misbehaved(how) => write!(f, "server broke the protocol: {how}"),
        }
    }
}

/// A reply of our own after which the message is tried again.
pub(super) fn transient(subject: u16, detail: u16, text: impl Into<String>) -> Reply {
    Reply::new(451, EnhancedStatusCode::new(4, subject, detail), text)
}

/// A reply of our own after which the message goes back.
pub(super) fn permanent(code: u16, subject: u16, detail: u16, text: impl Into<String>) -> Reply {
    Reply::new(code, EnhancedStatusCode::new(5, subject, detail), text)
}
