//! The server's side of a session, from the greeting to the end of the connection.
//!
//! The host drives a [`Server`] in a loop:
//!
//! 1. call [`Server::step`] and carry out the step;
//! 2. after [`Answer`]ing or sending, first give [`Server::input`] the octets not yet consumed, then go
//!    to 1.
//!
//! ```
//! use std::sync::Arc;
//! use vere_smtp::server::{Answer, Peer, Question, Role, Server, ServerConfig, Step};
//! use vere_units::Timestamp;
//!
//! let config = Arc::new(ServerConfig::new("mx.example.org", Role::Mx));
//! let peer = Peer::new("192.0.2.7:4711".parse()?, "192.0.2.1:25".parse()?);
//! let now = Timestamp::from_millis(0); // the host's clock in earnest
//! let mut server = Server::new(config, peer, now);
//! server.sent(server.output().len()); // the greeting
//!
//! let mut received: &[u8] = b"EHLO client.example\r\nMAIL FROM:<a@b.example>\r\n";
//! loop {
//!     let taken = server.input(received, now);
//!     received = &received[taken..];
//!     match server.step() {
//!         Step::Ask(Question::Mail(mail)) => {
//!             assert_eq!(mail.reverse_path.as_str(), "a@b.example");
//!             server.answer(Answer::Policy(Ok(())), now);
//!         }
//!         Step::Send => break,
//!         other => panic!("{other:?}"),
//!     }
//! }
//! assert!(server.output().ends_with(b"250 2.1.0 sender ok\r\n"));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```
//!
//! The effect of a command in each state (`-` is `503 5.5.1`):
//!
//! | command  | connected | greeted        | transaction    | chunks begun   |
//! |----------|-----------|----------------|----------------|----------------|
//! | EHLO, LHLO | greeted | greeted        | greeted        | greeted        |
//! | MAIL     | -         | asks, opens    | -              | -              |
//! | RCPT     | -         | -              | asks, adds     | -              |
//! | DATA     | -         | -              | takes text     | -              |
//! | BDAT     | - (eaten) | - (eaten)      | takes chunk    | takes chunk    |
//! | RSET     | ok        | ok             | greeted        | greeted        |
//! | STARTTLS | -         | connected      | connected      | connected      |
//! | AUTH     | -         | exchange       | -              | -              |
//! | XCLIENT  | connected | connected      | -              | -              |
//! | NOOP, VRFY, EXPN, HELP, QUIT | any state | | | |
//!
//! DATA and BDAT without a recipient are `554 5.5.1`. Within text and chunks no octet is a command, and
//! while a question is open, or more replies wait than
//! [`output_octets_max`](crate::limits::Limits::output_octets_max), no octet is consumed.

mod auth;
mod bdat;
mod collector;
mod config;
mod data;
mod drive;
mod handover;
mod helo;
mod line;
mod mail;
mod message;
mod notes;
mod output;
mod pace;
mod question;
mod rcpt;
mod received;
mod replies;
mod session;
mod starttls;
mod tally;
mod xclient;

use std::sync::Arc;

use vere_sasl::server::Login;
use vere_units::Timestamp;

use crate::address::DomainOrLiteral;
use crate::command::{MailFrom, RcptTo};

use auth::AuthPhase;
use bdat::ChunkPhase;
use collector::Collector;
use line::LineReader;
use output::Output;
use session::{Counts, Forwarded, Session};

pub use config::{AuthConfig, Extensions, Peer, Role, ServerConfig, TlsInfo};
pub use handover::{Handover, HandoverError, HandoverRefused};
pub use message::{Message, Protocol, SessionInfo};
pub use notes::{Notes, Refused};
pub use question::{Answer, ClientRights, Question, Step};
pub use received::{SpfIdentity, received_header, received_spf_header};
pub use tally::Tally;

/// The session with one client.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    peer: Peer,
    phase: Phase,
    session: Session,
    forwarded: Option<Box<Forwarded>>,
    counts: Counts,
    lines: LineReader,
    output: Output,
    notes: Notes,
    /// No octet of the client has a place before the greeting has left.
    greeting_pending: bool,
    shutting_down: bool,
    /// The time of the client's last required action.
    waiting_since: Timestamp,
}

/// The meaning of the next octet, or the event before the next octet.
#[derive(Debug)]
enum Phase {
    /// Of a command.
    Command,
    /// Of a response within AUTH.
    AuthResponse(Box<AuthPhase>),
    /// Of a message, after DATA.
    Data(Box<Collector>),
    /// Of a chunk, after BDAT.
    Chunk(Box<ChunkPhase>),
    /// The answer of the host.
    Asking(Box<Asking>),
    /// The TLS handshake.
    StartTls,
    /// Of no interest.
    Closing,
}

/// An open question.
#[derive(Debug)]
struct Asking {
    /// The question not yet given to the host.
    question: Option<Question>,
    about: About,
}

/// The purpose of the open question.
#[derive(Debug)]
enum About {
    Password(Box<Login>),
    ScramUser(Box<AuthPhase>),
    Mail(MailFrom),
    Recipient(RcptTo),
    /// How many recipients the message has.
    Message(usize),
    Client(Box<(Peer, Forwarded)>),
}

impl Server {
    /// Begins a session; the greeting waits to be sent.
    #[must_use]
    pub fn new(config: Arc<ServerConfig>, peer: Peer, now: Timestamp) -> Self {
        let mut server = Self {
            config,
            peer,
            phase: Phase::Command,
            session: Session::default(),
            forwarded: None,
            counts: Counts::default(),
            lines: LineReader::default(),
            output: Output::default(),
            notes: Notes::default(),
            greeting_pending: true,
            shutting_down: false,
            waiting_since: now,
        };
        server.greet();
        server
    }

    fn greet(&mut self) {
        let protocol = match self.config.role {
            Role::Lmtp => "LMTP",
            Role::Mx | Role::Submission => "ESMTP",
        };
        let text = format!("{} {protocol} Veredarius", self.config.hostname);
        self.output.line(220, &text, true);
    }

    /// The next step of the host.
    pub fn step(&mut self) -> Step {
        if let Phase::Asking(asking) = &mut self.phase {
            return asking.question.take().map_or(Step::NeedAnswer, Step::Ask);
        }
        if !self.output.is_empty() {
            return Step::Send;
        }
        match self.phase {
            Phase::StartTls => Step::StartTls,
            Phase::Closing => Step::Close,
            _ => Step::NeedInput,
        }
    }

    /// The replies to be sent, in order.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Whether the connection ends behind the replies to be sent.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing)
    }

    /// Takes note that the first `octets` of the output were sent.
    pub fn sent(&mut self, octets: usize) {
        self.output.sent(octets);
        if self.output.is_empty() {
            self.greeting_pending = false;
        }
    }

    /// The counts of replies and authentications since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.output.tally)
    }

    /// The machine's own decisions since the last call.
    pub fn take_notes(&mut self) -> Notes {
        std::mem::take(&mut self.notes)
    }

    /// The client and its permissions.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The name claimed by the client.
    #[must_use]
    pub fn helo(&self) -> Option<&DomainOrLiteral> {
        let forwarded = self
            .forwarded
            .as_ref()
            .and_then(|forwarded| forwarded.helo.as_ref());
        forwarded.or(self.session.helo.as_ref())
    }

    /// The account after successful authentication.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        let forwarded = self
            .forwarded
            .as_ref()
            .and_then(|forwarded| forwarded.login.as_deref());
        self.session.account.as_deref().or(forwarded)
    }

    /// The sender of the open transaction.
    #[must_use]
    pub fn mail_from(&self) -> Option<&MailFrom> {
        self.session
            .transaction
            .as_ref()
            .map(|transaction| &transaction.mail)
    }

    /// The session as recorded in the trace of a message from this sender.
    #[must_use]
    pub fn session_info(&self, mail: &MailFrom) -> SessionInfo {
        let forwarded = self
            .forwarded
            .as_ref()
            .and_then(|forwarded| forwarded.esmtp);
        SessionInfo {
            helo: self.helo().cloned(),
            address: self.peer.address,
            local: self.peer.local,
            name: self.peer.name.clone(),
            tls: self.peer.tls.clone(),
            account: self.account().map(str::to_owned),
            protocol: Protocol {
                esmtp: forwarded.unwrap_or(self.session.esmtp),
                smtputf8: mail.smtputf8,
                tls: self.peer.tls.is_some(),
                auth: self.account().is_some(),
            },
            priority: mail.priority,
        }
    }

    /// Octets of memory that the session holds beside itself: text, replies, an unfinished line.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.message_memory()
            .saturating_add(self.output.memory())
            .saturating_add(self.lines.memory())
    }

    /// Octets of the message being received, without the octets set aside; with those that the host [holds beside](Server::hold_beside).
    #[must_use]
    pub fn message_memory(&self) -> usize {
        self.coming().map_or(0, Collector::memory)
    }

    /// The message being received.
    fn coming(&self) -> Option<&Collector> {
        match &self.phase {
            Phase::Data(collector) => Some(collector),
            _ => self
                .session
                .transaction
                .as_ref()
                .and_then(|open| open.chunks.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests;
