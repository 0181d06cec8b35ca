//! The server's side of a session, from the greeting to the end of the connection.
//!
//! The host drives a [`Server`] in a loop:
//!
//! 1. call [`Server::step`] and carry out the step;
//! 2. after [`Answer`]ing or sending, first give [`Server::input`] the octets not yet consumed, then go to 1.
//!
//! While a mailbox is open ([`Server::mailbox`]) the host calls [`Server::mailbox_changed`] after every possible
//! change of the mailbox; the machine decides how and when to tell the client.
//!
//! The effect of a command in each state (`-` is `BAD`; RFC 9051 section 3):
//!
//! | command | not authenticated | authenticated | selected |
//! |---|---|---|---|
//! | CAPABILITY, NOOP, ID, LOGOUT | ok | ok | ok |
//! | STARTTLS | handshake | - | - |
//! | LOGIN, AUTHENTICATE | asks, authenticated | - | - |
//! | ENABLE, LIST, LSUB, STATUS, CREATE, DELETE, RENAME, SUBSCRIBE, UNSUBSCRIBE, NAMESPACE, APPEND, IDLE, GETQUOTA | - | asks | asks |
//! | SELECT, EXAMINE | - | asks, selected | asks, selected or authenticated |
//! | CLOSE, UNSELECT | - | - | authenticated |
//! | FETCH, STORE, SEARCH, COPY, MOVE, EXPUNGE, CHECK | - | - | asks |
//!
//! Message numbers change only in the permitted places: no EXPUNGE is sent during FETCH, STORE or SEARCH with message
//! numbers, nor between commands (RFC 9051 section 7.5.1).

mod answer;
mod append;
mod asked;
mod auth;
mod command;
mod config;
mod copy;
mod drive;
mod fetch;
mod frame;
mod list;
mod mailbox;
mod output;
mod pace;
mod pattern;
mod question;
mod refusal;
mod row;
mod search;
mod select;
mod selected;
mod store;
mod sync;
mod view;

pub mod capability;

use std::sync::Arc;

use vere_sasl::server::Login;
use vere_units::Timestamp;

use auth::AuthPhase;
use frame::FrameReader;
use output::Output;
use selected::Selected;

pub use answer::{
    Answer, Appended, Changes, Copied, FlagsChanged, FlagsOf, Found, Gone, MailboxEntry, Messages,
    Opened, Quota, Row, Status,
};
pub use config::{Peer, ServerConfig};
pub use question::{
    AppendQuery, FetchQuery, MailboxChange, MailboxKey, Need, PieceQuery, Question, Step,
    StoreQuery,
};
pub use refusal::Refusal;

/// The session with one client.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    peer: Peer,
    phase: Phase,
    session: Session,
    frames: FrameReader,
    /// While a literal comes.
    pace: Option<Box<pace::Pace>>,
    output: Output,
    /// Ended login attempts, kept for the host.
    logins: Vec<Login>,
    enabled: Enabled,
    counts: Counts,
    shutting_down: bool,
    began: Timestamp,
    /// The time of the client's last required action.
    waiting_since: Timestamp,
    /// Number of keepalive responses since then.
    told_alive: u16,
}

/// The meaning of the next octet, or the event before the next octet.
#[derive(Debug)]
enum Phase {
    /// Octets of a command.
    Command,
    /// Octets of a response within AUTHENTICATE.
    AuthResponse(Box<AuthPhase>),
    /// `DONE`, which ends the IDLE command with this tag.
    Idle(String),
    /// The answer of the host.
    Asking(Box<Asking>),
    /// The client reads waiting output, before more rows are written.
    Writing(Box<fetch::FetchWork>),
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
    Password {
        tag: String,
        login: Login,
    },
    ScramUser(AuthPhase),
    List(list::ListWork),
    ListStatus(list::ListWork),
    Status(mailbox::StatusWork),
    Change {
        tag: String,
        name: &'static str,
    },
    Quota {
        tag: String,
        mailbox: Option<String>,
    },
    Open(select::OpenWork),
    Resync(select::ResyncWork),
    Vanished(fetch::FetchWork),
    Seen(fetch::FetchWork),
    Fetch(fetch::FetchWork),
    /// In the middle of a literal: nothing else can be said.
    Piece(fetch::FetchWork),
    Store(store::StoreWork),
    Expunge {
        tag: String,
        close: bool,
    },
    Copy(copy::CopyWork),
    Append(String),
    Search(search::SearchWork),
    Sync(sync::SyncWork),
}

/// The authentication state of the client, with the open mailbox.
#[derive(Debug)]
enum Session {
    NotAuthenticated,
    Authenticated {
        account: String,
    },
    Selected {
        account: String,
        mailbox: Box<Selected>,
    },
}

/// Extensions enabled by the client, whose responses old clients cannot parse.
#[derive(Debug, Default, Clone, Copy)]
struct Enabled {
    /// IMAP4rev2: names are UTF-8, SEARCH is answered by ESEARCH, there is no `\Recent`.
    rev2: bool,
    /// CONDSTORE: mod-sequences are told with flags.
    condstore: bool,
    /// QRESYNC: VANISHED takes the place of EXPUNGE.
    qresync: bool,
}

#[derive(Debug, Default)]
struct Counts {
    errors: u32,
    auth_failures: u32,
}

impl Server {
    /// Begins a session; the greeting waits to be sent.
    #[must_use]
    pub fn new(config: Arc<ServerConfig>, peer: Peer, now: Timestamp) -> Self {
        Self::greeting(config, peer, Session::NotAuthenticated, now)
    }

    /// Begins the session of a client already authenticated by the host: the greeting is PREAUTH (RFC 9051 section
    /// 7.1.4).
    #[must_use]
    pub fn preauthenticated(
        config: Arc<ServerConfig>,
        peer: Peer,
        account: String,
        now: Timestamp,
    ) -> Self {
        Self::greeting(config, peer, Session::Authenticated { account }, now)
    }

    fn greeting(config: Arc<ServerConfig>, peer: Peer, session: Session, now: Timestamp) -> Self {
        let condition = match session {
            Session::NotAuthenticated => "OK",
            _ => "PREAUTH",
        };
        let mut server = Self {
            config,
            peer,
            phase: Phase::Command,
            session,
            frames: FrameReader::default(),
            pace: None,
            output: Output::default(),
            logins: Vec::new(),
            enabled: Enabled::default(),
            counts: Counts::default(),
            shutting_down: false,
            began: now,
            waiting_since: now,
            told_alive: 0,
        };
        let greeting = format!(
            "* {condition} [CAPABILITY {}] {} Veredarius",
            server.capabilities(),
            server.config.hostname
        );
        server.output.line(&greeting);
        server
    }

    /// The next step of the host.
    pub fn step(&mut self) -> Step {
        self.write_on();
        let much_waits = self.output.len() >= self.config.limits.output_octets_max;
        if let Phase::Asking(asking) = &mut self.phase {
            // A piece waits until the client has read the pieces before.
            let is_early = matches!(asking.about, About::Piece(_)) && !self.output.is_empty();
            if asking.question.is_some() && (much_waits || is_early) {
                return Step::Send;
            }
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

    /// The responses to be sent, in order; not always all.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Takes note that the first `octets` of the output were sent.
    pub fn sent(&mut self, octets: usize) {
        self.output.sent(octets);
    }

    /// The login attempts that ended since the last call.
    pub fn take_logins(&mut self) -> Vec<Login> {
        std::mem::take(&mut self.logins)
    }

    /// The peer of the session.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The account after successful authentication.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        match &self.session {
            Session::NotAuthenticated => None,
            Session::Authenticated { account } | Session::Selected { account, .. } => Some(account),
        }
    }

    /// The open mailbox.
    #[must_use]
    pub fn mailbox(&self) -> Option<MailboxKey> {
        match &self.session {
            Session::Selected { mailbox, .. } => Some(mailbox.key),
            _ => None,
        }
    }

    /// Octets of memory that the session holds outside the struct.
    #[must_use]
    pub fn memory(&self) -> usize {
        let view = match &self.session {
            Session::Selected { mailbox, .. } => mailbox.memory(),
            _ => 0,
        };
        view.saturating_add(self.frames.memory())
            .saturating_add(self.fetch_memory())
    }

    /// Octets of memory of responses not yet read by the client, and of messages for those responses.
    #[must_use]
    pub fn fetch_memory(&self) -> usize {
        let held = match &self.phase {
            Phase::Writing(work) => work.memory(),
            Phase::Asking(asking) => match &asking.about {
                About::Piece(work) => work.memory(),
                _ => 0,
            },
            _ => 0,
        };
        self.output.memory().saturating_add(held)
    }

    /// Whether a response is half written, which blocks every other response.
    fn is_within_response(&self) -> bool {
        match &self.phase {
            Phase::Writing(_) => true,
            Phase::Asking(asking) => matches!(asking.about, About::Piece(_)),
            _ => false,
        }
    }

    /// Octets of memory of a message being received.
    #[must_use]
    pub fn message_memory(&self) -> usize {
        self.frames.message_memory()
    }

    fn selected(&mut self) -> Option<&mut Selected> {
        match &mut self.session {
            Session::Selected { mailbox, .. } => Some(mailbox),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
