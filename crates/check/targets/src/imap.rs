//! Both sides of an IMAP session.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use vere_imap::client::{AppendTo, Client, ClientLimits, Command, Event};
use vere_imap::limits::Limits;
use vere_imap::server::{Answer, Peer, Refusal, Server, ServerConfig, Step};
use vere_sasl::{FakeKeys, Mechanism, NonceSource, ScramKeys};
use vere_units::{ByteSize, Timestamp};

use crate::choice::choice;

pub(crate) const SERVER_SEEDS: &[&[u8]] = &[
    b"\x01a SELECT INBOX\r\nb APPEND x (\\Seen) {3+}\r\nabc\r\nc LOGOUT\r\n",
    b"\x01a LIST (SUBSCRIBED) \"\" (\"*\" %) RETURN (STATUS (MESSAGES))\r\nb IDLE\r\nDONE\r\n",
    b"\x00a LOGIN {1}\r\nx y\r\nb AUTHENTICATE PLAIN =\r\n",
    b"\x02a CAPABILITY\r\nb STARTTLS\r\nc NOOP\r\n",
];

pub(crate) const CLIENT_SEEDS: &[&[u8]] = &[
    b"* OK [CAPABILITY LITERAL+] x\r\n* LIST (\\Sent) \"/\" {2}\r\nab\r\nc1 OK x\r\nc2 OK\r\n+ go\r\n",
    b"* PREAUTH x\r\n* 1 FETCH (UID 2 BODY[] {20}\r\n01234567890123456789 FLAGS (\\Seen))\r\nc3 NO [TOOBIG] x\r\n",
];

/// Octets of a literal kept within a response.
const KEPT: usize = 8;
/// Octets of a response.
const RESPONSE_MAX: usize = 4_096;

/// A client's octets mean the same in single octets, and take bounded memory; every request of the client is
/// refused, because the grammar of commands does not depend on the answers.
pub(crate) fn server(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let whole = talk(kind, octets, octets.len().max(1));
    let by_octet = talk(kind, octets, 1);
    let (whole, by_octet) = (before_tls(&whole), before_tls(&by_octet));
    assert!(
        whole == by_octet,
        "in one piece {}, octet by octet {}",
        String::from_utf8_lossy(whole),
        String::from_utf8_lossy(by_octet)
    );
}

/// The output before the answer to STARTTLS: the answer depends on octets that came with the command in the
/// same piece.
fn before_tls(said: &[u8]) -> &[u8] {
    let (mut before, mut lines) = (0, said.split_inclusive(|octet| *octet == b'\n'));
    let answers = |line: &[u8]| {
        line.ends_with(b" OK begin TLS\r\n") || line == b"* BYE no command may follow STARTTLS\r\n"
    };
    while let Some(line) = lines.next().filter(|line| !answers(line)) {
        before += line.len();
    }
    &said[..before]
}

fn talk(kind: u8, octets: &[u8], piece: usize) -> Vec<u8> {
    let limits = Limits {
        message_size_max: ByteSize::kib(2),
        refused_size_max: ByteSize::kib(4),
        command_octets_max: 1_024,
        sets_octets_max: 2_048,
        login_octets_max: 256,
        ..Limits::default()
    };
    let config = Arc::new(ServerConfig {
        hostname: "mx.example.org".to_owned(),
        limits,
        mechanisms: Mechanism::ALL.to_vec(),
        nonces: Arc::new(NonceSource::new([1; 32])),
        fake_keys: FakeKeys::new([2; 32], ScramKeys::ITERATIONS_MIN),
    });
    let peer = Peer {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        tls: false,
        tls_available: kind & 2 != 0,
        may_auth_in_clear: true,
    };
    let now = Timestamp::from_millis(0);
    let mut server = match kind & 1 {
        0 => Server::new(config, peer, now),
        _ => Server::preauthenticated(config, peer, "a@example.org".to_owned(), now),
    };
    let mut said = Vec::new();
    let mut rest = octets;
    let mut begin = 0;
    loop {
        match server.step() {
            Step::Send => {
                said.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::Ask(_) => server.answer(Answer::Done(Err(Refusal::Unavailable)), now),
            Step::NeedInput if begin < rest.len() => {
                let end = rest.len().min(begin + piece);
                begin += server.input(&rest[begin..end], now);
                assert!(server.memory() < 64 * 1024);
            }
            Step::StartTls => {
                // What came before the handshake is not looked at, whatever the pieces were.
                rest = &[];
                begin = 0;
                server.tls_started(now);
            }
            Step::NeedInput | Step::NeedAnswer | Step::Close => return said,
        }
    }
}

/// A server's octets mean the same in single octets, whatever the octets are, and every literal passed on has
/// the announced length.
pub(crate) fn client(octets: &[u8]) {
    let whole = events(octets, octets.len().max(1));
    let by_octet = events(octets, 1);
    assert!(whole == by_octet, "{whole:?} and {by_octet:?}");
}

fn events(octets: &[u8], piece: usize) -> Vec<String> {
    let mut client = Client::new(ClientLimits {
        response_octets_max: RESPONSE_MAX,
        literal_kept_max: KEPT,
    });
    let to = AppendTo {
        mailbox: b"x".to_vec(),
        flags: Vec::new(),
        date: None,
        binary: false,
    };
    client.send(&Command::List {
        extended: true,
        special_use: true,
    });
    client.send(&Command::Noop);
    client.send(&Command::QuotaRoot(b"x".to_vec()));
    client.append(&to, 3);
    client.append_octets(b"abcd");
    let (mut events, mut begin, mut announced) = (Vec::new(), 0, 0_u64);
    while begin < octets.len() {
        let end = octets.len().min(begin + piece);
        match client.input(&octets[begin..end]) {
            Err(error) => {
                // How much of a line that is too long had come depends on the pieces.
                events.push(format!("{error:?}"));
                return events;
            }
            Ok((taken, event)) => {
                begin += taken;
                match event {
                    Some(Event::Literal(octets)) => {
                        assert_eq!(announced, 0, "a literal within another");
                        announced = octets;
                    }
                    Some(Event::Piece(piece)) => announced -= piece.len() as u64,
                    Some(event) => {
                        assert_eq!(announced, 0, "a literal is shorter than announced");
                        events.push(format!("{event:?}"));
                    }
                    None => {}
                }
            }
        }
    }
    events
}
