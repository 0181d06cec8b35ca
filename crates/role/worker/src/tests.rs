//! The connections of a worker; the far ends belong to the tests.

mod front;
mod gateway;
mod links;
mod parts;

use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::LocalSet;
use vere_handoff::message::{Answer, Frame, OPENING_OCTETS, Opening};
use vere_net::quiet;
use vere_smtp::server::{
    Answer as Reply, Message, Peer, Question, Role, Server, ServerConfig, Step,
};
use vere_units::Timestamp;

use super::gateway::Gateway;

/// For what has to happen.
const PATIENCE: Duration = Duration::from_secs(20);
const NOW: Timestamp = Timestamp::from_millis(1_000_000);
/// The commands of a client until the first recipient.
const OPENING: &[u8] =
    b"EHLO mx.example.net\r\nMAIL FROM:<ann@example.net>\r\nRCPT TO:<bob@example.org>\r\n";

/// Runs a test beside the tasks of the test.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(async {
        let test = tokio::time::timeout(PATIENCE, test);
        LocalSet::new().run_until(test).await
    });
    done.expect("the end of the test");
}

/// The gateway's end of the connection of a worker.
struct Intake(UnixStream);

impl Intake {
    /// The worker's end and the test's.
    fn pair() -> (Rc<Gateway>, Self) {
        let (here, there) = UnixStream::pair().unwrap();
        let gateway = Gateway::new(quiet::split(here).unwrap());
        (Rc::new(gateway), Self(there))
    }

    /// The next frame, and the octets behind its fields.
    async fn next(&mut self) -> (Frame, Vec<u8>) {
        let mut opening = [0; OPENING_OCTETS];
        self.0.read_exact(&mut opening).await.unwrap();
        let opening = Opening::decode(&opening, usize::MAX).unwrap();
        let fields = self.octets(opening.fields()).await;
        let frame = opening.frame(&fields, usize::MAX).unwrap();
        let behind = match frame {
            Frame::Message(prefix) => prefix.head + prefix.body,
            Frame::Part(part) => part.octets,
            Frame::Forget { .. } => 0,
        };
        (frame, self.octets(behind).await)
    }

    async fn octets(&mut self, count: usize) -> Vec<u8> {
        let mut octets = vec![0; count];
        self.0.read_exact(&mut octets).await.unwrap();
        octets
    }

    async fn say(&mut self, answer: &Answer) {
        let mut frame = Vec::new();
        answer.encode(&mut frame);
        self.0.write_all(&frame).await.unwrap();
    }

    /// Says no more, and returns the last octets of the worker.
    async fn rest(mut self) -> Vec<u8> {
        self.0.shutdown().await.unwrap();
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.unwrap();
        rest
    }
}

/// The session of a client that has said so much.
fn session(octets: &[u8]) -> Server {
    let config = ServerConfig::new("mx.example.org", Role::Mx);
    let address = |text: &str| text.parse().unwrap();
    let peer = Peer::new(address("192.0.2.7:4711"), address("192.0.2.25:25"));
    let mut server = Server::new(config.into(), peer, NOW);
    say(&mut server, octets);
    server
}

/// Gives a session the octets of a client and the answers to questions, until the replies are sent or a message is whole.
fn say(server: &mut Server, mut octets: &[u8]) -> (String, Option<Message>) {
    let mut replies = Vec::new();
    let message = loop {
        match server.step() {
            Step::Send => {
                replies.extend_from_slice(server.output());
                server.sent(server.output().len());
            }
            Step::NeedInput if octets.is_empty() => break None,
            Step::NeedInput => {
                let taken = server.input(octets, NOW);
                octets = &octets[taken..];
            }
            Step::Ask(Question::Message(message)) => break Some(*message),
            Step::Ask(_) => server.answer(Reply::Policy(Ok(())), NOW),
            Step::Close => break None,
            step => panic!("{step:?}"),
        }
    };
    (String::from_utf8(replies).unwrap(), message)
}

/// A message with this text.
fn message(text: &str) -> Message {
    let mut server = session(&[OPENING, b"DATA\r\n"].concat());
    let (_, message) = say(&mut server, format!("{text}\r\n.\r\n").as_bytes());
    message.expect("a whole message")
}
