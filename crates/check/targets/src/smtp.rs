//! Both SMTP machines.

use std::sync::Arc;

use bytes::Bytes;
use vere_sasl::client::Credentials;
use vere_script::bare::World;
use vere_smtp::address::{AddrSpec, ForwardPath, ReversePath};
use vere_smtp::client::{
    Client, ClientConfig, ClientStep, OutgoingMessage, RecipientOutcome, TlsMode,
};
use vere_smtp::command::{BodyType, RcptTo};
use vere_smtp::reply::ReplyParser;
use vere_smtp::server::{Message, Question, Role, Server, Step, TlsInfo};
use vere_units::{ByteSize, Timestamp};

use crate::choice::choice;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// Octets that a session may hold beside its input: a line, replies, and growth.
pub(crate) const MEMORY_BESIDE: usize = 64 * 1024;

pub(crate) const SERVER_SEEDS: &[&[u8]] = &[
    b"\x01EHLO a.example\r\nMAIL FROM:<a@b.example> SIZE=9\r\nRCPT TO:<alice@demo.test>\r\n\
      DATA\r\nSubject: x\r\n\r\n..\r\n.\r\nQUIT\r\n",
    b"\x01EHLO a.example\r\nMAIL FROM:<> BODY=BINARYMIME\r\nRCPT TO:<bob@demo.test>\r\n\
      BDAT 3\r\na\nbBDAT 0 LAST\r\nRSET\r\n",
    b"\x07EHLO a.example\r\nAUTH PLAIN AGFsaWNlQGRlbW8udGVzdABkZW1v\r\nAUTH LOGIN\r\nQQ==\r\n*\r\n",
    b"\x0fXCLIENT ADDR=192.0.2.66 LOGIN=bob\r\nEHLO a.example\r\nSTARTTLS\r\n",
];

pub(crate) const CLIENT_SEEDS: &[&[u8]] = &[
    b"\x00220 mx\r\n\xff250-mx\r\n250-PIPELINING\r\n250 SIZE 9999\r\n\xff\
      250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n\xff250 queued\r\n\xff221 bye\r\n",
    b"\x05220 mx\r\n\xff250-mx\r\n250 STARTTLS\r\n\xff220 go\r\n\xff250-mx\r\n250 AUTH PLAIN\r\n\xff235 ok\r\n",
    b"\x02220 mx\r\n\xff500 what\r\n\xff250 mx\r\n\xff250 ok\r\n\xff250 ok\r\n\xff452 4.5.3 x\r\n",
];

/// The result of a session.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Session {
    said: Vec<u8>,
    stored: Vec<Message>,
}

/// A client that sends arbitrary octets.
pub(crate) fn server(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let whole = talk(kind, octets, octets.len().max(1));
    let pieces = talk(kind, octets, 1 + usize::from(kind >> 4));
    // Octets refused because they came in the same piece as STARTTLS are refused later when sent in
    // several pieces.
    let behind = |session: &Session| {
        let said = String::from_utf8_lossy(&session.said);
        said.contains("STARTTLS, closing") || said.contains("ready to start TLS")
    };
    assert!(
        whole == pieces || behind(&whole) || behind(&pieces),
        "in one piece {whole:?}, in several {pieces:?}"
    );
}

fn talk(kind: u8, octets: &[u8], piece: usize) -> Session {
    let mut world = World::new();
    world.peer.may_relay = kind & 1 != 0;
    world.peer.may_auth_in_clear = kind & 2 != 0;
    world.peer.may_xclient = kind & 8 != 0;
    if kind & 4 != 0 {
        world.config.role = Role::Submission;
    }
    world.config.limits.message_size_max = ByteSize::new(4096);
    world.config.limits.refused_size_max = ByteSize::new(8192);
    world.config.early_talkers_refused = false;
    let mut server = Server::new(Arc::new(world.config.clone()), world.peer.clone(), NOW);
    let mut session = Session::default();
    let mut waiting = Vec::new();
    let mut parser = ReplyParser::default();
    for piece in octets.chunks(piece) {
        waiting.extend_from_slice(piece);
        let ended = turn(&mut server, &mut world, &mut waiting, &mut session);
        assert!(
            server.memory() <= 4 * waiting.len().max(4096) + MEMORY_BESIDE,
            "holds too much"
        );
        if ended {
            break;
        }
    }
    // The output consists of whole replies.
    let mut said = &session.said[..];
    while !said.is_empty() {
        match parser.parse(said) {
            Ok((taken, Some(_))) => said = &said[taken..],
            other => panic!("said what is no reply: {other:?}"),
        }
    }
    session
}

/// Carries out the machine's steps until the machine needs input; true at the end of the session.
pub(crate) fn turn(
    server: &mut Server,
    world: &mut World,
    waiting: &mut Vec<u8>,
    session: &mut Session,
) -> bool {
    loop {
        let taken = server.input(waiting, NOW);
        assert!(taken <= waiting.len());
        waiting.drain(..taken);
        match server.step() {
            Step::Send => {
                session.said.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::Ask(question) => {
                if let Question::Message(message) = &question {
                    check_message(message);
                    session.stored.push(Message::clone(message));
                }
                let answer = world.answer(question, server);
                server.answer(answer, NOW);
            }
            Step::NeedInput if taken > 0 => {}
            Step::NeedInput => {
                assert!(waiting.is_empty(), "wants input and takes none");
                return false;
            }
            Step::StartTls => {
                let (version, cipher) = ("TLSv1.3".to_owned(), String::new());
                server.tls_started(TlsInfo {
                    version,
                    cipher,
                    sni: None,
                });
            }
            Step::NeedAnswer => panic!("asks nothing and waits for an answer"),
            Step::Close => return true,
        }
    }
}

/// No stored message could be split or cut by another server.
fn check_message(message: &Message) {
    assert!(!message.recipients.is_empty());
    if message.reverse_path.body == BodyType::BinaryMime {
        return;
    }
    let mut before = b' ';
    for octet in message.body.iter().copied().chain([b' ']) {
        assert!(octet != 0, "NUL stored");
        assert!(
            (before == b'\r') == (octet == b'\n'),
            "bare line end stored"
        );
        before = octet;
    }
}

/// A server that sends arbitrary octets; `0xff` separates the pieces.
pub(crate) fn client(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let mut config = ClientConfig::new("me.example", [1; 32]);
    config.lmtp = kind & 1 != 0;
    config.tls = match kind & 6 {
        0 => TlsMode::Off,
        2 => TlsMode::Opportunistic,
        4 => TlsMode::Required,
        _ => TlsMode::Implicit,
    };
    if kind & 8 != 0 {
        config.auth = Some(Credentials::new("tim", "secret"));
        config.auth_in_clear = kind & 16 != 0;
    }
    let mut client = Client::new(Arc::new(config), NOW);
    let (mut begun, mut settled) = (0, 0);
    for go in octets.split(|octet| *octet == 0xff) {
        assert_eq!(client.input(go, NOW), go.len());
        step(&mut client, &mut begun, &mut settled);
    }
    client.connection_lost();
    step(&mut client, &mut begun, &mut settled);
    assert!(matches!(client.step(), ClientStep::Closed(_)));
    assert_eq!(begun, settled, "messages without outcome");
}

fn step(client: &mut Client, begun: &mut usize, settled: &mut usize) {
    // Each message takes a few turns; a machine that goes on without input does not end.
    for _ in 0..10_000 {
        match client.step() {
            ClientStep::Done(outcome) => {
                assert_eq!(outcome.recipients.len(), 2);
                for recipient in &outcome.recipients {
                    let code = recipient.reply().code;
                    assert!(match recipient {
                        RecipientOutcome::Delivered(_) => code / 100 == 2,
                        // RFC 5321 section 4.5.3.1.10: 552 for too many recipients may pass.
                        RecipientOutcome::Deferred(_) => code / 100 == 4 || code == 552,
                        RecipientOutcome::Failed(_) => code / 100 == 5,
                    });
                }
                *settled += 1;
            }
            ClientStep::Ready if *begun < 20 => {
                client.begin(message(*begun), NOW);
                *begun += 1;
            }
            ClientStep::Send => client.sent(client.output().len()),
            ClientStep::StartTls => client.tls_started(NOW),
            ClientStep::Ready => client.quit(NOW),
            ClientStep::NeedInput => {
                assert!(client.deadline() < Timestamp::MAX, "waits for ever");
                return;
            }
            ClientStep::Closed(_) => return,
        }
    }
    panic!("goes on without input");
}

fn message(ordinal: usize) -> OutgoingMessage {
    let address = |local: &str| match AddrSpec::new(local, "b.example") {
        Ok(address) => address,
        Err(error) => panic!("{error}"),
    };
    let body: &[u8] = if ordinal.is_multiple_of(3) {
        b"a\r\n\0\n."
    } else {
        b"a\r\n\r\n.\r\nb\r\n"
    };
    let recipients = ["c", "d"].map(|local| RcptTo::new(ForwardPath::from(address(local))));
    OutgoingMessage::new(
        ReversePath::from(address("a")),
        recipients.to_vec(),
        Bytes::from_static(body),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds are of no use if they stop at the first reply.
    #[test]
    fn seeds_get_far() {
        for (seed, says) in
            SERVER_SEEDS
                .iter()
                .zip(["queued as Q1", "queued as Q1", "235 2.7.0", "220 2.0.0"])
        {
            let (kind, octets) = choice(seed);
            let said = String::from_utf8(talk(kind, octets, octets.len()).said).unwrap();
            assert!(said.contains(says), "{said}");
        }
    }
}
