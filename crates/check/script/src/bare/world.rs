//! The users of the made-up world, and their permissions.

use std::net::IpAddr;
use std::sync::Arc;

use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};
use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys};
use vere_smtp::address::AddrSpec;
use vere_smtp::command::{MailFrom, RcptTo};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{
    Answer, AuthConfig, ClientRights, Message, Peer, Question, Role, Server, ServerConfig,
};

const HOSTNAME: &str = "mx.demo.test";
const DOMAIN: &str = "demo.test";
const PASSWORD: &str = "demo";
pub(super) const ITERATIONS: u32 = 4096;

/// The made-up world: the client, the users, and the stored messages.
#[derive(Debug)]
pub struct World {
    /// The settings of all sessions.
    pub config: ServerConfig,
    /// The identity and permissions of a new client.
    pub peer: Peer,
    /// Whether connections begin with a PROXY header.
    pub(super) proxy: bool,
    stored: u32,
    last: Option<Message>,
}

impl World {
    /// Makes the world described in [`bare`](crate::bare).
    #[must_use]
    pub fn new() -> Self {
        let mut config = ServerConfig::new(HOSTNAME, Role::Mx);
        config.auth = Some(AuthConfig {
            mechanisms: Mechanism::ALL.to_vec(),
            nonces: Arc::new(NonceSource::new([1; 32])),
            fake_keys: FakeKeys::new([2; 32], ITERATIONS),
        });
        let mut peer = Peer::new(
            ([198, 51, 100, 7], 40_001).into(),
            ([203, 0, 113, 25], 25).into(),
        );
        peer.tls_available = true;
        Self {
            config,
            peer,
            proxy: false,
            stored: 0,
            last: None,
        }
    }

    pub(super) fn grant(&mut self, right: &str, has: bool) {
        match right {
            "relay" => self.peer.may_relay = has,
            "priority" => self.peer.may_prioritise = has,
            "auth-in-clear" => self.peer.may_auth_in_clear = has,
            "xclient" => self.peer.may_xclient = has,
            "proxy" => self.proxy = has,
            "tls" => self.peer.tls_available = has,
            // The configuration of the bare machine has it.
            _ => {}
        }
    }

    pub(super) fn rights_of(address: IpAddr) -> ClientRights {
        ClientRights {
            may_relay: address == IpAddr::from([192, 0, 2, 66]),
            may_auth_in_clear: false,
            may_prioritise: false,
        }
    }

    /// Answers a question of a session.
    pub fn answer(&mut self, question: Question, server: &Server) -> Answer {
        match question {
            Question::Password(attempt) => Answer::Password(password(&attempt)),
            Question::ScramUser { username } => Answer::ScramUser(keys(username)),
            Question::Mail(mail) => Answer::Policy(sender(&mail)),
            Question::Recipient(rcpt) => Answer::Policy(recipient(&rcpt, server)),
            Question::Message(message) => Answer::Stored(self.store(*message)),
            Question::Client(peer) => Answer::Client(Ok(Self::rights_of(peer.address.ip()))),
        }
    }

    fn store(&mut self, message: Message) -> Result<String, Refusal> {
        let has = |line: &str| {
            let body = String::from_utf8_lossy(&message.body);
            body.lines().any(|other| other == line)
        };
        if has("X-Refuse: content") {
            return Err(Refusal::ContentRefused);
        }
        if has("X-Refuse: full") {
            return Err(Refusal::StorageFull);
        }
        self.stored += 1;
        self.last = Some(message);
        Ok(format!("Q{}", self.stored))
    }

    pub(super) fn last_message(&self) -> String {
        let Some(message) = &self.last else {
            return "none".to_owned();
        };
        let recipients: Vec<String> = message
            .recipients
            .iter()
            .map(|rcpt| rcpt.forward_path.to_string())
            .collect();
        let session = &message.session;
        let mut text = format!(
            "from {} to {} size {} with {} client {}",
            message.reverse_path.reverse_path,
            recipients.join(","),
            message.body.len(),
            session.protocol,
            session.address.ip(),
        );
        if let Some(account) = &session.account {
            text.push_str(&format!(" account {account}"));
        }
        text
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

fn account(name: &str) -> Option<&'static str> {
    ["alice@demo.test", "bob@demo.test"]
        .into_iter()
        .find(|account| *account == name)
}

fn password(attempt: &PasswordAttempt) -> PasswordOutcome {
    match password_of(attempt) {
        Some(account) => PasswordOutcome::Accepted { account },
        None => PasswordOutcome::Rejected,
    }
}

/// The account whose password was given.
pub(super) fn password_of(attempt: &PasswordAttempt) -> Option<String> {
    let own = attempt
        .authzid
        .as_ref()
        .is_none_or(|authzid| *authzid == attempt.authcid);
    let account = account(&attempt.authcid)?;
    (own && attempt.password.expose() == PASSWORD).then(|| account.to_owned())
}

/// The keys of an account.
pub(super) fn scram_keys_of(username: &str) -> Option<ScramKeys> {
    account(username)?;
    ScramKeys::derive(PASSWORD, b"sixteen octets !", ITERATIONS).ok()
}

fn keys(username: String) -> ScramLookup {
    match scram_keys_of(&username) {
        Some(keys) => ScramLookup::Found {
            account: username,
            keys,
        },
        None => ScramLookup::Unknown,
    }
}

fn sender(mail: &MailFrom) -> Result<(), Refusal> {
    match mail.reverse_path.as_str() {
        "refused@evil.test" => Err(Refusal::SenderRefused),
        _ => Ok(()),
    }
}

fn recipient(rcpt: &RcptTo, server: &Server) -> Result<(), Refusal> {
    let Some(address) = rcpt.forward_path.address() else {
        return Ok(());
    };
    if address.domain() != DOMAIN {
        let allowed = server.peer().may_relay || server.account().is_some();
        return if allowed {
            Ok(())
        } else {
            Err(Refusal::RelayDenied)
        };
    }
    mailbox(address)
}

fn mailbox(address: &AddrSpec) -> Result<(), Refusal> {
    match address.local_part_unquoted().as_ref() {
        "alice" | "bob" | "postmaster" => Ok(()),
        "full" => Err(Refusal::MailboxFull),
        "later" => Err(Refusal::TryLater),
        _ => Err(Refusal::MailboxUnknown),
    }
}
