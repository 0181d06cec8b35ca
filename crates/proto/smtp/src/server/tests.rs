//! Dialogues with the machine, as a host would hold them.

mod auth;
mod bounds;
mod chunking;
mod dialogue;
mod handover;
mod hostile;
mod text;
mod trace;

use std::sync::Arc;

use vere_units::Timestamp;

use super::{
    Answer, AuthConfig, ClientRights, Message, Peer, Question, Role, Server, ServerConfig, Step,
    Tally, TlsInfo,
};
use crate::refusal::Refusal;
use crate::reply::EnhancedStatusCode;
use vere_sasl::server::{PasswordOutcome, ScramLookup};
use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys};

/// A host that answers by simple rules and writes down what it hears.
pub(super) struct Host {
    pub(super) server: Server,
    pub(super) now: Timestamp,
    pub(super) messages: Vec<Message>,
    pub(super) questions: Vec<String>,
    pub(super) sent: Vec<u8>,
    pub(super) sends: usize,
    pub(super) closed: bool,
    pub(super) start_tls: bool,
    pub(super) memory_max: usize,
    /// Whether all output was sent in whole replies, as nearly always.
    pub(super) sends_whole: bool,
    /// Everything that was tallied.
    pub(super) tally: Tally,
    /// Everything that was noted.
    pub(super) noted: Vec<String>,
    /// Where the session is handed over.
    pub(super) cut: handover::Cut,
    pub(super) cuts: usize,
}

pub(super) fn config(role: Role) -> ServerConfig {
    ServerConfig::new("mx.example.org", role)
}

pub(super) fn with_auth(mut config: ServerConfig) -> ServerConfig {
    config.auth = Some(AuthConfig {
        mechanisms: Mechanism::ALL.to_vec(),
        nonces: Arc::new(NonceSource::new([1; 32])),
        fake_keys: FakeKeys::new([2; 32], 4096),
    });
    config
}

pub(super) fn peer() -> Peer {
    Peer::new(
        "192.0.2.7:4711".parse().unwrap(),
        "192.0.2.1:25".parse().unwrap(),
    )
}

pub(super) fn tls() -> TlsInfo {
    TlsInfo {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
        sni: None,
    }
}

impl Host {
    /// A session whose greeting has been sent.
    pub(super) fn new(config: ServerConfig, peer: Peer) -> Self {
        let mut host = Self::before_greeting(config, peer);
        host.settle();
        host.sent.clear();
        host.sends = 0;
        host
    }

    pub(super) fn mx() -> Self {
        Self::new(config(Role::Mx), peer())
    }

    pub(super) fn before_greeting(config: ServerConfig, peer: Peer) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self {
            server: Server::new(Arc::new(config), peer, now),
            now,
            messages: Vec::new(),
            questions: Vec::new(),
            sent: Vec::new(),
            sends: 0,
            closed: false,
            start_tls: false,
            memory_max: 0,
            sends_whole: true,
            tally: Tally::default(),
            noted: Vec::new(),
            cut: handover::Cut::Never,
            cuts: 0,
        }
    }

    /// Gives octets in one piece and returns what is sent.
    pub(super) fn say(&mut self, octets: impl AsRef<[u8]>) -> String {
        let from = self.sent.len();
        self.give(octets.as_ref());
        String::from_utf8(self.sent[from..].to_vec()).unwrap()
    }

    /// Gives octets in one piece; the replies must have these codes.
    #[track_caller]
    pub(super) fn gets(&mut self, octets: impl AsRef<[u8]>, expected: &[&str]) {
        let replies = self.say(octets);
        assert_eq!(codes(&replies), expected, "{replies}");
    }

    /// Gives octets, answering and sending as the machine asks, until all are taken.
    pub(super) fn give(&mut self, octets: &[u8]) {
        let mut rest = octets;
        loop {
            rest = &rest[self.server.input(rest, self.now)..];
            self.memory_max = self.memory_max.max(self.server.memory());
            if !self.settle_once() && (rest.is_empty() || self.start_tls) {
                return;
            }
        }
    }

    fn settle(&mut self) {
        while self.settle_once() {}
    }

    fn settle_once(&mut self) -> bool {
        handover::between_steps(self);
        match self.server.step() {
            Step::NeedInput => return false,
            Step::NeedAnswer => panic!("every question was answered"),
            Step::Send => {
                self.sends += 1;
                let octets = self.server.output().to_vec();
                self.sent.extend_from_slice(&octets);
                self.server.sent(octets.len());
                self.count(&octets);
            }
            Step::Ask(question) => {
                let answer = self.answer(question);
                self.server.answer(answer, self.now);
                handover::behind_answer(self);
            }
            Step::StartTls => {
                self.start_tls = true;
                return false;
            }
            Step::Close => {
                self.closed = true;
                return false;
            }
        }
        true
    }

    /// Whatever is sent, it is tallied as it can be read off the wire.
    fn count(&mut self, octets: &[u8]) {
        let lines = octets.split(|&octet| octet == b'\n');
        let last: Vec<u8> = lines
            .filter(|line| line.get(3) == Some(&b' '))
            .map(|line| line[0])
            .collect();
        let of = |class| last.iter().filter(|&&digit| digit == class).count() as u32;
        let tally = self.take_tally();
        let tallied = [
            tally.positive,
            tally.intermediate,
            tally.transient,
            tally.permanent,
        ];
        if self.sends_whole {
            assert_eq!(tallied, [b'2', b'3', b'4', b'5'].map(of));
        }
    }

    /// What was counted since the last call, which counts in the sum as well.
    fn take_tally(&mut self) -> Tally {
        let tally = self.server.take_tally();
        self.tally.positive += tally.positive;
        self.tally.intermediate += tally.intermediate;
        self.tally.transient += tally.transient;
        self.tally.permanent += tally.permanent;
        self.tally.authenticated += tally.authenticated;
        self.tally.rejected += tally.rejected;
        self.tally.undecided += tally.undecided;
        tally
    }

    fn answer(&mut self, question: Question) -> Answer {
        self.questions.push(format!("{question:?}"));
        match question {
            Question::Mail(mail) => Answer::Policy(verdict(mail.reverse_path.as_str())),
            Question::Recipient(rcpt) => Answer::Policy(verdict(rcpt.forward_path.as_str())),
            Question::Message(message) => {
                let full = message.body.starts_with(b"Subject: full");
                self.messages.push(*message);
                Answer::Stored(if full {
                    Err(Refusal::StorageFull)
                } else {
                    Ok(format!("ID{}", self.messages.len()))
                })
            }
            Question::Password(attempt) => Answer::Password(match attempt.authcid.as_str() {
                "broken" => PasswordOutcome::Unavailable,
                "tim" if attempt.password.expose() == "tanstaaftanstaaf" => {
                    PasswordOutcome::Accepted {
                        account: "tim@example.org".to_owned(),
                    }
                }
                _ => PasswordOutcome::Rejected,
            }),
            Question::ScramUser { username } => Answer::ScramUser(match username.as_str() {
                "broken" => ScramLookup::Unavailable,
                "user" => ScramLookup::Found {
                    account: "user@example.org".to_owned(),
                    keys: ScramKeys::derive("pencil", b"0123456789abcdef", 4096).unwrap(),
                },
                _ => ScramLookup::Unknown,
            }),
            Question::Client(peer) => {
                Answer::Client(match peer.address.ip().to_string().as_str() {
                    "192.0.2.66" => Err(Refusal::ClientRefused),
                    _ => Ok(ClientRights {
                        may_relay: true,
                        may_auth_in_clear: false,
                        may_prioritise: false,
                    }),
                })
            }
        }
    }
}

/// What the address says happens to it.
fn verdict(address: &str) -> Result<(), Refusal> {
    match address.split('@').next() {
        Some("nobody") => Err(Refusal::MailboxUnknown),
        Some("later") => Err(Refusal::TryLater),
        Some("gone") => Err(Refusal::ServiceUnavailable),
        _ => Ok(()),
    }
}

/// The codes that a transcript's replies begin with, one for each reply.
pub(super) fn codes(transcript: &str) -> Vec<&str> {
    transcript
        .split_terminator("\r\n")
        .filter(|line| line.as_bytes().get(3) != Some(&b'-'))
        .map(|line| match line.split(' ').nth(1) {
            Some(status) if status.parse::<EnhancedStatusCode>().is_ok() => {
                &line[..4 + status.len()]
            }
            _ => &line[..3],
        })
        .collect()
}
