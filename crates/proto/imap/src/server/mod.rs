//! The server's side of a session, from the greeting to the end of the connection.
//!
//! The host drives a [`Server`] like this:
//!
//! 1. call [`Server::step`] and do what it says;
//! 2. after [`Answer`]ing or sending, first give [`Server::input`] the octets that it has not taken,
//!    then go to 1.
//!
//! While a mailbox is open ([`Server::mailbox`]) the host calls [`Server::mailbox_changed`] whenever
//! something in it may be other than before; how and when the client is told is the machine's business.
//!
//! What a command does in each state (`-` is `BAD`; RFC 9051 section 3):
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
//! Message numbers change only where they may: no EXPUNGE is sent while FETCH, STORE or SEARCH with
//! message numbers are answered, nor while no command is (RFC 9051 section 7.5.1).

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
    Answer, Appended, Changes, Copied, FlagsChanged, FlagsOf, Found, Gone, LoginOutcome,
    MailboxEntry, Messages, Opened, Quota, Row, ScramLookup, Status,
};
pub use config::{Peer, ServerConfig};
pub use question::{
    AppendQuery, FetchQuery, MailboxChange, MailboxKey, Need, PieceQuery, Question, Step,
    StoreQuery,
};
pub use refusal::Refusal;

/// One session with one client.
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
    /// Attempts to log in that ended, until they are taken.
    logins: Vec<Login>,
    enabled: Enabled,
    counts: Counts,
    shutting_down: bool,
    began: Timestamp,
    /// When the client last did what it had to.
    waiting_since: Timestamp,
    /// How often it was told since then that the connection lives.
    told_alive: u16,
}

/// What the next octet is, or what has to come before it.
#[derive(Debug)]
enum Phase {
    /// Of a command.
    Command,
    /// Of a response within AUTHENTICATE.
    AuthResponse(Box<AuthPhase>),
    /// Of `DONE`, which ends the IDLE of this tag.
    Idle(String),
    /// The answer of the host.
    Asking(Box<Asking>),
    /// That the client reads what waits for it: more of what the host gave follows.
    Writing(Box<fetch::FetchWork>),
    /// The TLS handshake.
    StartTls,
    /// Of no interest.
    Closing,
}

/// An open question.
#[derive(Debug)]
struct Asking {
    /// What the host has not been told yet.
    question: Option<Question>,
    about: About,
}

/// What the answer decides.
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

/// Who the client is, and what it has open.
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

/// What the client has asked for that old clients could not read.
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

    /// Begins a session of a client that the host knows already: it is greeted with PREAUTH (RFC 9051
    /// section 7.1.4).
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

    /// What the host must do next.
    pub fn step(&mut self) -> Step {
        self.write_on();
        let much_waits = self.output.len() >= self.config.limits.output_octets_max;
        if let Phase::Asking(asking) = &mut self.phase {
            // A piece is not made before those in front of it are read.
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

    /// Attempts to log in that ended since this was last asked.
    pub fn take_logins(&mut self) -> Vec<Login> {
        std::mem::take(&mut self.logins)
    }

    /// Who the client is.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The account that the client has proved to be.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        match &self.session {
            Session::NotAuthenticated => None,
            Session::Authenticated { account } | Session::Selected { account, .. } => Some(account),
        }
    }

    /// The mailbox that is open.
    #[must_use]
    pub fn mailbox(&self) -> Option<MailboxKey> {
        match &self.session {
            Session::Selected { mailbox, .. } => Some(mailbox.key),
            _ => None,
        }
    }

    /// Octets of memory that the session holds beside itself.
    #[must_use]
    pub fn memory(&self) -> usize {
        let view = match &self.session {
            Session::Selected { mailbox, .. } => mailbox.memory(),
            _ => 0,
        };
        view.saturating_add(self.frames.memory())
            .saturating_add(self.fetch_memory())
    }

    /// Octets of memory of responses that the client has not read yet, and of messages for them.
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

    /// Whether a response is half written, so that nothing else can be said.
    fn is_within_response(&self) -> bool {
        match &self.phase {
            Phase::Writing(_) => true,
            Phase::Asking(asking) => matches!(asking.about, About::Piece(_)),
            _ => false,
        }
    }

    /// Octets of memory of a message that is being received.
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
