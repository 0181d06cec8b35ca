//! A received message with its origin.

use std::fmt;
use std::net::SocketAddr;

use crate::address::DomainOrLiteral;
use crate::command::{MailFrom, RcptTo};

use super::config::TlsInfo;

/// A received message with an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The sender and how the message travels.
    pub reverse_path: MailFrom,
    /// The accepted recipients, in order; never empty.
    pub recipients: Vec<RcptTo>,
    /// Octets at the beginning that [`Server::set_aside`](super::Server::set_aside) gave to the host; `body` follows.
    pub aside: u64,
    /// The message as received, without the dots of DATA.
    ///
    /// Unless the type is `BODY=BINARYMIME`, the message has no NUL, and CR and LF only in CRLF. A message received
    /// by BDAT may lack the CRLF at the end. The presence of 8-bit octets is not checked against BODY.
    pub body: Vec<u8>,
    /// The origin of the message.
    pub session: SessionInfo,
}

/// The session as recorded in the trace of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The name claimed by the client; `None` before HELO or EHLO.
    pub helo: Option<DomainOrLiteral>,
    /// The client's address.
    pub address: SocketAddr,
    /// Our address.
    pub local: SocketAddr,
    /// The client's verified name in the DNS.
    pub name: Option<String>,
    /// The encryption.
    pub tls: Option<TlsInfo>,
    /// The account after successful authentication.
    pub account: Option<String>,
    /// The registered name of the protocol.
    pub protocol: Protocol,
    /// The priority of the message, if given.
    pub priority: Option<i8>,
}

/// The protocol of a transaction, by the names registered for `with` in a trace (RFC 3848, RFC 6531
/// section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Protocol {
    /// EHLO instead of HELO.
    pub esmtp: bool,
    /// The transaction has SMTPUTF8.
    pub smtputf8: bool,
    /// Encrypted.
    pub tls: bool,
    /// Authenticated.
    pub auth: bool,
}

impl Protocol {
    /// The registered name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match (self.esmtp, self.smtputf8, self.tls, self.auth) {
            (false, ..) => "SMTP",
            (true, false, false, false) => "ESMTP",
            (true, false, false, true) => "ESMTPA",
            (true, false, true, false) => "ESMTPS",
            (true, false, true, true) => "ESMTPSA",
            (true, true, false, false) => "UTF8SMTP",
            (true, true, false, true) => "UTF8SMTPA",
            (true, true, true, false) => "UTF8SMTPS",
            (true, true, true, true) => "UTF8SMTPSA",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
