//! The client machine against the server machine, octet by octet and cut at every place.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use vere_units::{ByteSize, Timestamp};

use super::messages::one_round;
use super::{config, message, short};
use crate::client::{Client, ClientConfig, ClientStep, OutgoingMessage, TransactionOutcome};
use crate::command::BodyType;
use crate::refusal::Refusal;
use crate::server::{
    Answer, AuthConfig, Message, Peer, Question, Role, Server, ServerConfig, Step, TlsInfo,
};
use vere_sasl::client::Credentials;
use vere_sasl::server::{PasswordOutcome, ScramLookup};
use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// Both machines and the wires between them.
struct Pair {
    client: Client,
    server: Server,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    /// Octets moved at a time.
    piece: usize,
    /// Octets that may still pass, both ways together; then the connection is lost.
    left: usize,
    passed: usize,
    stored: Vec<Message>,
    outcomes: Vec<TransactionOutcome>,
    handshakes: usize,
    closed: bool,
}

impl Pair {
    fn new(client: ClientConfig, server: ServerConfig) -> Self {
        let address = ([192, 0, 2, 7], 4711).into();
        let mut peer = Peer::new(address, ([192, 0, 2, 25], 25).into());
        peer.tls_available = true;
        Self {
            client: Client::new(Arc::new(client), NOW),
            server: Server::new(Arc::new(server), peer, NOW),
            to_server: Vec::new(),
            to_client: Vec::new(),
            piece: usize::MAX,
            left: usize::MAX,
            passed: 0,
            stored: Vec::new(),
            outcomes: Vec::new(),
            handshakes: 0,
            closed: false,
        }
    }

    /// Sends messages until the client is done with them and has quit.
    fn run(&mut self, messages: Vec<OutgoingMessage>) {
        let mut messages = messages.into_iter();
        for _ in 0..1_000_000 {
            if !self.advance(&mut messages) {
                return;
            }
        }
        panic!("the machines do not come to an end");
    }

    fn advance(&mut self, messages: &mut impl Iterator<Item = OutgoingMessage>) -> bool {
        let server_waits = self.step_server();
        match self.client.step() {
            ClientStep::Done(outcome) => self.outcomes.push(*outcome),
            ClientStep::Ready => match messages.next() {
                Some(message) => self.client.begin(message, NOW),
                None => self.client.quit(NOW),
            },
            ClientStep::StartTls => {
                assert!(server_waits && self.to_client.is_empty() && self.to_server.is_empty());
                let (version, cipher) = ("TLSv1.3".to_owned(), String::new());
                self.server.tls_started(TlsInfo {
                    version,
                    cipher,
                    sni: None,
                });
                self.client.tls_started(NOW);
                self.handshakes += 1;
            }
            ClientStep::Closed(_) => {
                self.closed = true;
                // What never had its turn on this connection.
                for message in messages {
                    self.client.begin(message, NOW);
                }
                while let ClientStep::Done(outcome) = self.client.step() {
                    self.outcomes.push(*outcome);
                }
                return false;
            }
            ClientStep::Send | ClientStep::NeedInput => {}
        }
        self.transfer();
        true
    }

    /// True when the server waits for the handshake.
    fn step_server(&mut self) -> bool {
        let taken = self.server.input(&self.to_server, NOW);
        self.to_server.drain(..taken);
        match self.server.step() {
            Step::Send => {
                let octets = self.server.output().len().min(self.piece);
                self.to_client
                    .extend_from_slice(&self.server.output()[..octets]);
                self.server.sent(octets);
            }
            Step::Ask(question) => {
                let answer = self.answer(question);
                self.server.answer(answer, NOW);
            }
            Step::StartTls => return true,
            Step::Close if self.to_client.is_empty() => self.client.connection_lost(),
            Step::Close | Step::NeedInput | Step::NeedAnswer => {}
        }
        false
    }

    fn transfer(&mut self) {
        let octets = self.client.output().len().min(self.piece).min(self.left);
        self.to_server
            .extend_from_slice(&self.client.output()[..octets]);
        self.client.sent(octets);
        self.left -= octets;
        let back = self.to_client.len().min(self.piece).min(self.left);
        let heard: Vec<u8> = self.to_client.drain(..back).collect();
        self.client.input(&heard, NOW);
        self.left -= back;
        self.passed += octets + back;
        if self.left == 0 {
            // The server gets what has left, and no reply gets back.
            self.step_server();
            self.step_server();
            self.client.connection_lost();
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        match question {
            Question::Recipient(rcpt) if rcpt.forward_path.as_str().starts_with("no") => {
                Answer::Policy(Err(Refusal::MailboxUnknown))
            }
            Question::Mail(_) | Question::Recipient(_) => Answer::Policy(Ok(())),
            Question::Message(message) => {
                self.stored.push(*message);
                Answer::Stored(Ok(format!("Q{}", self.stored.len())))
            }
            Question::Password(attempt) => Answer::Password(
                if (attempt.authcid.as_str(), attempt.password.expose().as_str())
                    == ("tim", "secret")
                {
                    PasswordOutcome::Accepted {
                        account: attempt.authcid,
                    }
                } else {
                    PasswordOutcome::Rejected
                },
            ),
            Question::ScramUser { username } => {
                let keys = ScramKeys::derive("secret", b"0123456789abcdef", 4096).unwrap();
                Answer::ScramUser(ScramLookup::Found {
                    account: username,
                    keys,
                })
            }
            Question::Client(_) => Answer::Client(Err(Refusal::ClientRefused)),
        }
    }
}

fn server() -> ServerConfig {
    ServerConfig::new("mx.example", Role::Mx)
}

fn with_auth(mechanism: Mechanism) -> ServerConfig {
    let mut config = server();
    config.auth = Some(AuthConfig {
        mechanisms: vec![mechanism],
        nonces: Arc::new(NonceSource::new([4; 32])),
        fake_keys: FakeKeys::new([5; 32], 4096),
    });
    config
}

fn messages() -> Vec<OutgoingMessage> {
    let binary = OutgoingMessage {
        body: Bytes::from_static(b"a\r\n\r\n\0\n.\r\n.\r\nb"),
        body_type: BodyType::BinaryMime,
        ..message(&["c@b.example"])
    };
    vec![
        message(&["a@b.example", "nobody@b.example", "c@b.example"]),
        binary,
        message(&["nobody@b.example"]),
    ]
}

#[test]
fn a_whole_session_with_starttls() {
    for client in [config(), one_round()] {
        check_session(Pair::new(client, server()));
    }
}

fn check_session(mut pair: Pair) {
    pair.run(messages());
    let outcomes: Vec<String> = pair.outcomes.iter().map(short).collect();
    assert_eq!(outcomes, ["+250 -550 +250", "+250", "-550"]);
    assert_eq!(pair.handshakes, 1);
    assert_eq!(pair.stored.len(), 2);
    assert_eq!(pair.stored[0].body, super::BODY.as_bytes());
    assert_eq!(pair.stored[0].recipients.len(), 2);
    assert_eq!(&pair.stored[1].body[..], b"a\r\n\r\n\0\n.\r\n.\r\nb");
    assert_eq!(pair.stored[1].session.protocol.as_str(), "ESMTPS");
}

#[test]
fn authenticated_by_each_mechanism() {
    for mechanism in Mechanism::ALL {
        let client = ClientConfig {
            auth: Some(Credentials::new("tim", "secret")),
            ..config()
        };
        let mut pair = Pair::new(client, with_auth(mechanism));
        pair.run(vec![message(&["a@b.example"])]);
        assert_eq!(short(&pair.outcomes[0]), "+250", "{mechanism}");
        assert_eq!(pair.stored[0].session.account.as_deref(), Some("tim"));
    }
    let client = ClientConfig {
        auth: Some(Credentials::new("tim", "wrong")),
        ..config()
    };
    let mut pair = Pair::new(client, with_auth(Mechanism::ScramSha256));
    pair.run(vec![message(&["a@b.example"])]);
    assert_eq!(short(&pair.outcomes[0]), "~451");
    assert!(pair.stored.is_empty());
}

/// However the octets are cut, the same comes out.
#[test]
fn in_pieces_of_every_size() {
    for piece in 1..200 {
        for client in [config(), one_round()] {
            let mut pair = Pair::new(client, server());
            pair.piece = piece;
            pair.run(messages());
            let outcomes: Vec<String> = pair.outcomes.iter().map(short).collect();
            assert_eq!(outcomes, ["+250 -550 +250", "+250", "-550"], "{piece}");
            assert_eq!(pair.stored.len(), 2, "{piece}");
        }
    }
}

/// The connection is lost behind every single octet: every message has an outcome, what the client
/// believes delivered is stored, and what is stored is believed delivered unless its reply was lost.
#[test]
fn lost_behind_every_octet() {
    lose_behind_every_octet(config, 100);
    // Here the replies to the envelope come after the message has left, too.
    lose_behind_every_octet(one_round, 300);
}

fn lose_behind_every_octet(client: fn() -> ClientConfig, doubled_max: usize) {
    let mut whole = Pair::new(client(), server());
    whole.piece = 1;
    whole.run(messages());
    let (mut doubled, passed) = (0, whole.passed);
    assert!(passed > 1000);
    for left in 1..passed {
        let mut pair = Pair::new(client(), server());
        pair.piece = 1;
        pair.left = left;
        pair.run(messages());
        assert!(pair.closed && pair.outcomes.len() == 3, "{left}");
        let believed = pair
            .outcomes
            .iter()
            .filter(|outcome| short(outcome).contains('+'))
            .count();
        assert!(believed <= pair.stored.len(), "{left}: lost");
        assert!(pair.stored.len() <= believed + 1, "{left}");
        doubled += pair.stored.len() - believed;
        let refused = pair
            .outcomes
            .iter()
            .filter(|outcome| short(outcome).contains('-'))
            .count();
        let settled = pair
            .outcomes
            .iter()
            .flat_map(|outcome| &outcome.recipients)
            .count();
        assert_eq!((settled, refused <= 2), (5, true));
    }
    // The two replies to the messages, each octet of them but the last.
    assert!(doubled > 0 && doubled < doubled_max, "{doubled}");
}

#[test]
fn server_limits_are_kept() {
    let mut limited = server();
    limited.limits.recipients_max = 2;
    limited.limits.transactions_max = 2;
    let mut pair = Pair::new(config(), limited);
    pair.run(vec![message(&[
        "a@b.example",
        "b@b.example",
        "c@b.example",
    ])]);
    assert_eq!(short(&pair.outcomes[0]), "+250 +250 +250");
    assert!(!pair.outcomes[0].connection_usable);
    assert_eq!(pair.stored.len(), 2);

    let mut small = server();
    small.limits.message_size_max = ByteSize::new(10);
    let mut pair = Pair::new(config(), small);
    pair.run(vec![message(&["a@b.example"])]);
    assert_eq!(short(&pair.outcomes[0]), "-552");
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b".".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r\n.\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        prop::collection::vec(any::<u8>(), 0..30),
        (1..30_000_usize).prop_map(|length| vec![b'x'; length]),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any octets arrive as they were sent, whether they are text or not.
    #[test]
    fn any_body_arrives(
        body in body(),
        piece in 1..5000_usize,
        binary in any::<bool>(),
        one_round_max in 0..50_000_usize,
    ) {
        let mut wide = server();
        wide.limits.text_line_octets_max = 1 << 30;
        let client = ClientConfig { one_round_max, ..config() };
        let mut pair = Pair::new(client, wide);
        pair.piece = piece;
        let body_type = if binary { BodyType::BinaryMime } else { BodyType::SevenBit };
        let sent = Bytes::from(body.clone());
        pair.run(vec![OutgoingMessage { body: sent, body_type, ..message(&["a@b.example"]) }]);
        assert_eq!(short(&pair.outcomes[0]), "+250");
        let mut expected = body;
        let by_data = pair.stored[0].reverse_path.body != BodyType::BinaryMime;
        if by_data && !expected.is_empty() && !expected.ends_with(b"\r\n") {
            expected.extend_from_slice(b"\r\n");
        }
        assert!(pair.stored[0].body == expected);
    }
}
