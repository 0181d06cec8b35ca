//! Sessions of the SMTP machine over pipes in memory.

use std::cell::RefCell;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;
use vere_smtp::server::{Answer, Peer, Question, Role, Server, ServerConfig};

use super::*;
use crate::memory::{BodyMemory, MEMORY, MemoryFigures};
use crate::places::Client;

/// Room of a pipe.
const PIPE: usize = 4 * AHEAD_MAX;

/// Accepts everything, and notes what was asked.
#[derive(Debug, Default)]
struct Desk {
    asked: RefCell<Vec<String>>,
    /// An event that ends the session.
    ring: Rc<Notify>,
    /// Whether questions are for nobody.
    is_deaf: bool,
}

impl Host<Server> for Desk {
    type Event = ();

    async fn follow(&mut self, _: &mut Server) {}

    async fn event(&self) {
        self.ring.notified().await;
    }

    fn happened(&mut self, (): (), machine: &mut Server) {
        machine.shut_down();
    }

    async fn answer(
        &mut self,
        _: &mut Line,
        _: &mut impl Connection,
        _: &Server,
        question: Question,
    ) -> io::Result<Option<Answer>> {
        // Meanwhile other sessions move.
        tokio::task::yield_now().await;
        let (asked, answer) = match question {
            Question::Mail(mail) => (
                format!("from {}", mail.reverse_path.as_str()),
                Answer::Policy(Ok(())),
            ),
            Question::Recipient(rcpt) => (
                format!("to {}", rcpt.forward_path.as_str()),
                Answer::Policy(Ok(())),
            ),
            Question::Message(message) => (
                String::from_utf8_lossy(&message.body).into_owned(),
                Answer::Stored(Ok("q1".to_owned())),
            ),
            other => panic!("{other:?}"),
        };
        self.asked.borrow_mut().push(asked);
        Ok((!self.is_deaf).then_some(answer))
    }
}

/// A session and what rules it.
struct World {
    memory: Rc<BodyMemory>,
    stop: watch::Sender<bool>,
    config: ServerConfig,
    tls_available: bool,
    desk: Desk,
}

impl World {
    fn new() -> Self {
        let memory = BodyMemory::new(MEMORY, MemoryFigures::default());
        memory.set_max(1 << 20);
        let mut config = ServerConfig::new("mx.example", Role::Mx);
        config.early_talkers_refused = false;
        Self {
            memory: Rc::new(memory),
            stop: watch::Sender::new(false),
            config,
            tls_available: false,
            desk: Desk::default(),
        }
    }

    fn line(&self) -> Line {
        let client = Client::at(Ipv4Addr::LOCALHOST.into());
        let held = self.memory.share(Some(client));
        Line::new(held, self.stop.subscribe(), Duration::from_secs(5))
    }

    /// Serves one session, and returns why it ended and what the client's side read.
    async fn serve(&mut self, own: DuplexStream) -> (io::Result<Pause>, Line) {
        let mut own = own;
        let mut line = self.line();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 25));
        let mut peer = Peer::new(address, address);
        peer.tls_available = self.tls_available;
        let mut server = Server::new(Arc::new(self.config.clone()), peer, steady());
        let pause = drive(&mut own, &mut server, &mut self.desk, &mut line).await;
        (pause, line)
    }

    /// Serves a client that sends `octets` and then closes its side if `ends`; the replies' codes.
    async fn replies(&mut self, octets: &[u8]) -> (Pause, Vec<String>) {
        let (own, mut client) = duplex(PIPE);
        client.write_all(octets).await.unwrap();
        let (pause, _line) = self.serve(own).await;
        let mut replies = String::new();
        client.read_to_string(&mut replies).await.unwrap();
        let last = |line: &&str| line.as_bytes().get(3) == Some(&b' ');
        let codes = replies
            .lines()
            .filter(last)
            .map(|line| line[..3].to_owned());
        (pause.unwrap(), codes.collect())
    }
}

#[tokio::test]
async fn pipelined_commands_are_answered_in_order_with_a_question_between_any_two() {
    let mut world = World::new();
    let octets = b"EHLO a.example\r\nMAIL FROM:<a@a.example>\r\nRCPT TO:<b@b.example>\r\nRCPT TO:<c@b.example>\r\n\
        BDAT 4 LAST\r\nab\r\nMAIL FROM:<>\r\nRSET\r\nQUIT\r\n";
    let (pause, codes) = world.replies(octets).await;
    assert_eq!(pause, Pause::Closed);
    assert_eq!(
        codes,
        [
            "220", "250", "250", "250", "250", "250", "250", "250", "221"
        ]
    );
    let asked = world.desk.asked.take();
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert_eq!(asked[0], "from a@a.example");
    assert_eq!(asked[2], "to c@b.example");
    assert!(asked[3].ends_with("ab\r\n"), "{asked:?}");
    assert_eq!(asked[4], "from ");
}

#[tokio::test]
async fn a_session_pauses_for_the_handshake() {
    let mut world = World::new();
    world.tls_available = true;
    let (pause, codes) = world.replies(b"EHLO a.example\r\nSTARTTLS\r\n").await;
    assert_eq!(pause, Pause::StartTls);
    assert_eq!(codes, ["220", "250", "220"]);
}

#[tokio::test]
async fn a_session_ends_by_stop_event_deadline_and_the_client() {
    let mut world = World::new();
    world.stop.send_replace(true);
    let (own, mut client) = duplex(PIPE);
    // The session began after the stop: its deadline ends it, as that of any other silent client.
    world.config.limits.command_timeout = Duration::from_millis(20);
    assert_eq!(world.serve(own).await.0.unwrap(), Pause::Closed);
    let mut replies = String::new();
    client.read_to_string(&mut replies).await.unwrap();
    assert!(replies.contains("\r\n421 "), "{replies}");

    let mut world = World::new();
    let stop = world.stop.clone();
    let ring = Rc::clone(&world.desk.ring);
    for end in 0..3 {
        stop.send_replace(false);
        let (own, mut client) = duplex(PIPE);
        let served = world.serve(own);
        let acts = async {
            let mut greeting = [0; 3];
            client.read_exact(&mut greeting).await.unwrap();
            match end {
                0 => drop(stop.send_replace(true)),
                1 => ring.notify_one(),
                _ => client.shutdown().await.unwrap(),
            }
            let mut replies = String::new();
            client.read_to_string(&mut replies).await.unwrap();
            replies
        };
        let served = async { served.await.0 };
        let (pause, replies) = tokio::join!(served, acts);
        assert_eq!(pause.unwrap(), Pause::Closed);
        assert_eq!(replies.contains("\r\n421 "), end < 2, "{end}: {replies}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_lets_go_of_memory_that_others_need() {
    let mut world = World::new();
    let memory = Rc::clone(&world.memory);
    let (own, mut client) = duplex(600);
    let served = async { world.serve(own).await.0 };
    let others = async {
        client
            .write_all(b"EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:<b@b.example>\r\n")
            .await
            .unwrap();
        // The replies to these chunks fill the pipe, while their octets are held.
        let mut chunk = b"BDAT 400\r\n".to_vec();
        chunk.resize(chunk.len() + 400, b'x');
        let flood = async { while client.write_all(&chunk).await.is_ok() {} };
        let neighbour = async {
            // Until the session writes and nobody reads.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            assert!(memory.held() > 0);
            memory.set_max(0);
            let mut share = memory.share(Some(Client::at(Ipv4Addr::new(192, 0, 2, 1).into())));
            assert!(!share.keep(100, false));
            memory.held()
        };
        tokio::join!(flood, neighbour).1
    };
    let all = async { tokio::join!(served, others) };
    let (pause, _) = tokio::time::timeout(Duration::from_secs(4), all)
        .await
        .unwrap();
    assert_eq!(pause.unwrap(), Pause::Closed);
    assert_eq!(memory.held(), 0);
}

#[tokio::test]
async fn a_question_for_nobody_ends_the_session() {
    let mut world = World::new();
    world.desk.is_deaf = true;
    let octets = b"EHLO a.example\r\nMAIL FROM:<>\r\nMAIL FROM:<>\r\n";
    let (pause, _) = world.replies(octets).await;
    assert_eq!(pause, Pause::Closed);
    assert_eq!(world.desk.asked.take().len(), 1);
}

#[tokio::test]
async fn an_answer_for_nobody_is_not_awaited() {
    let (mut own, mut client) = duplex(1_024);
    let mut unread = Unread::from(b"a".to_vec());
    client.write_all(b"b NOOP\r\n").await.unwrap();
    drop(client);
    let never = Box::pin(pending::<()>());
    let answer = unread.grow_while(&mut own, never, Duration::ZERO).await;
    assert!(answer.unwrap().is_none());
    assert_eq!(unread.rest(), b"ab NOOP\r\n");
    // The client may still read what is there soon.
    let soon = Box::pin(tokio::task::yield_now());
    let answer = unread.grow_while(&mut own, soon, CLOSED_PATIENCE).await;
    assert!(answer.unwrap().is_some());
}

#[tokio::test]
async fn not_all_is_read_while_a_question_is_open() {
    let (mut own, mut client) = duplex(PIPE);
    client.write_all(&vec![b'x'; PIPE]).await.unwrap();
    let mut unread = Unread::default();
    // As long as octets can be read.
    let answer = Box::pin(async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    });
    let answer = unread.grow_while(&mut own, answer, CLOSED_PATIENCE).await;
    assert!(answer.unwrap().is_some());
    assert!(unread.rest().len() < 2 * AHEAD_MAX);
}
