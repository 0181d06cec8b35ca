//! The bare IMAP machine as subject, over mailboxes in memory.
//!
//! The accounts are those of the SMTP world, each with an empty INBOX.

mod mailbox;
mod mailboxes;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vere_imap::limits::Limits;
use vere_imap::server::{Answer, Peer, Question, Server, ServerConfig, Step};
use vere_sasl::server::{PasswordOutcome, ScramLookup};
use vere_sasl::{FakeKeys, Mechanism, NonceSource};
use vere_units::{ByteSize, Timestamp};

use crate::parse::{Requirement, Script};
use crate::runner::{Dialect, Heard, Subject, SubjectError, take_line};

use super::Pieces;
use super::world::{ITERATIONS, password_of, scram_keys_of};
use mailboxes::Mailboxes;

/// The machines and their mailboxes.
#[derive(Debug)]
pub(super) struct BareImap {
    config: Arc<ServerConfig>,
    peer: Peer,
    pieces: Pieces,
    now: Timestamp,
    mailboxes: Mailboxes,
    connections: BTreeMap<u32, Connection>,
}

#[derive(Debug)]
struct Connection {
    server: Box<Server>,
    /// Octets from the client that the machine has not consumed yet.
    waiting: Vec<u8>,
    /// Output of the machine that the script has not read.
    said: Vec<u8>,
    closed: bool,
}

impl BareImap {
    pub(super) fn new(script: &Script, pieces: Pieces) -> Result<Self, String> {
        let mut config = ServerConfig {
            hostname: "mx.demo.test".to_owned(),
            limits: Limits::default(),
            mechanisms: Mechanism::ALL.to_vec(),
            nonces: Arc::new(NonceSource::new([1; 32])),
            fake_keys: FakeKeys::new([2; 32], ITERATIONS),
        };
        let mut peer = Peer {
            address: ([198, 51, 100, 7], 40_001).into(),
            tls: false,
            tls_available: true,
            may_auth_in_clear: false,
        };
        for requirement in &script.requirements {
            match requirement {
                Requirement::Right { right, has } => match right.as_str() {
                    "auth-in-clear" => peer.may_auth_in_clear = *has,
                    "tls" => peer.tls_available = *has,
                    other => return Err(format!("unknown right {other}")),
                },
                Requirement::Limit { name, value } => limit(&mut config.limits, name, *value)?,
                Requirement::Switch(name) => return Err(format!("unknown switch {name}")),
                _ => {}
            }
        }
        Ok(Self {
            config: Arc::new(config),
            peer,
            pieces,
            now: Timestamp::from_millis(1_750_000_000_000),
            mailboxes: Mailboxes::default(),
            connections: BTreeMap::new(),
        })
    }

    fn connect(&mut self, number: u32) {
        let (config, peer, now) = (&self.config, &self.peer, self.now);
        self.connections
            .entry(number)
            .or_insert_with(|| Connection {
                server: Box::new(Server::new(Arc::clone(config), peer.clone(), now)),
                waiting: Vec::new(),
                said: Vec::new(),
                closed: false,
            });
    }

    /// Lets all connections run until no step is left, and passes on the changes of other
    /// connections.
    fn settle(&mut self) {
        loop {
            for connection in self.connections.values_mut() {
                connection.settle(&mut self.mailboxes, self.now);
            }
            let changed = self.mailboxes.take_changed();
            if changed.is_empty() {
                return;
            }
            for key in changed {
                for connection in self.connections.values_mut() {
                    connection.server.mailbox_changed(key);
                }
            }
        }
    }
}

impl Connection {
    fn feed(&mut self, now: Timestamp) -> bool {
        let taken = self.server.input(&self.waiting, now);
        self.waiting.drain(..taken);
        taken > 0
    }

    fn settle(&mut self, mailboxes: &mut Mailboxes, now: Timestamp) {
        loop {
            let fed = self.feed(now);
            match self.server.step() {
                Step::Send => {
                    self.said.extend_from_slice(self.server.output());
                    self.server.sent(self.server.output().len());
                }
                Step::Ask(question) => {
                    let answer = answer(mailboxes, &self.server, question, now);
                    self.server.answer(answer, now);
                }
                Step::NeedInput if fed => {}
                Step::NeedInput | Step::NeedAnswer | Step::StartTls => return,
                Step::Close => {
                    self.closed = true;
                    return;
                }
            }
        }
    }
}

fn answer(
    mailboxes: &mut Mailboxes,
    server: &Server,
    question: Question,
    now: Timestamp,
) -> Answer {
    match question {
        Question::Password(attempt) => Answer::Login(match password_of(&attempt) {
            Some(account) => PasswordOutcome::Accepted { account },
            None => PasswordOutcome::Rejected,
        }),
        Question::ScramUser { username } => Answer::ScramUser(match scram_keys_of(&username) {
            Some(keys) => ScramLookup::Found {
                account: username,
                keys,
            },
            None => ScramLookup::Unknown,
        }),
        other => {
            let account = server.account().unwrap_or_default().to_owned();
            mailboxes.answer(&account, other, now)
        }
    }
}

impl Subject for BareImap {
    fn lacks(&self, requirement: &Requirement) -> Option<String> {
        match requirement {
            Requirement::Together(reason) if self.pieces != Pieces::Whole => Some(reason.clone()),
            _ => None,
        }
    }

    fn lacks_wait(&self, _: Duration) -> Option<String> {
        None
    }

    fn dialect(&self) -> Dialect {
        Dialect::Imap
    }

    fn send(&mut self, connection: u32, octets: &[u8]) -> Result<(), SubjectError> {
        self.connect(connection);
        self.settle();
        let pieces: Vec<&[u8]> = match self.pieces {
            Pieces::Whole => vec![octets],
            Pieces::Octets => octets.chunks(1).collect(),
        };
        for piece in pieces {
            if let Some(open) = self.connections.get_mut(&connection) {
                open.waiting.extend_from_slice(piece);
            }
            self.settle();
        }
        Ok(())
    }

    fn hear(&mut self, connection: u32) -> Result<Heard, SubjectError> {
        self.connect(connection);
        self.settle();
        let Some(open) = self.connections.get_mut(&connection) else {
            return Ok(Heard::Closed);
        };
        Ok(match take_line(&mut open.said) {
            Some(line) => Heard::Line(line),
            None if !open.said.is_empty() => Heard::Line(std::mem::take(&mut open.said)),
            None if open.closed => Heard::Closed,
            None => Heard::Nothing,
        })
    }

    fn has_more(&mut self, connection: u32) -> bool {
        self.settle();
        self.connections
            .get(&connection)
            .is_some_and(|open| !open.said.is_empty())
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        for connection in self.connections.values_mut() {
            while !connection.closed && connection.server.deadline() <= self.now {
                connection.server.timed_out();
                connection.settle(&mut self.mailboxes, self.now);
            }
        }
    }

    fn start_tls(&mut self, connection: u32) -> Result<(), SubjectError> {
        self.settle();
        let now = self.now;
        if let Some(open) = self.connections.get_mut(&connection)
            && matches!(open.server.step(), Step::StartTls)
        {
            open.server.tls_started(now);
            return Ok(());
        }
        Err(SubjectError(
            "the server is not ready for the handshake".to_owned(),
        ))
    }

    fn close(&mut self, connection: u32) {
        self.connections.remove(&connection);
    }

    fn shut_down(&mut self) -> bool {
        for connection in self.connections.values_mut() {
            connection.server.shut_down();
        }
        true
    }

    fn message(&mut self) -> Option<String> {
        None
    }
}

/// Sets a limit by name.
fn limit(limits: &mut Limits, name: &str, value: u64) -> Result<(), String> {
    let count = usize::try_from(value).map_err(|error| error.to_string())?;
    match name {
        "message_size_max" => limits.message_size_max = ByteSize::new(value),
        "refused_size_max" => limits.refused_size_max = ByteSize::new(value),
        "command_octets_max" => limits.command_octets_max = count,
        "sets_octets_max" => limits.sets_octets_max = count,
        "login_octets_max" => limits.login_octets_max = count,
        "errors_max" => limits.errors_max = count,
        "auth_failures_max" => limits.auth_failures_max = count,
        "output_octets_max" => limits.output_octets_max = count,
        "login_timeout" => limits.login_timeout = Duration::from_millis(value),
        "command_timeout" => limits.command_timeout = Duration::from_millis(value),
        _ => return Err(format!("unknown limit {name}")),
    }
    Ok(())
}
