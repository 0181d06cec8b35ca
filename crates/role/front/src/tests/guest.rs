//! A client that is not trusted yet.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream as StdTcpStream};
use std::time::Duration;

use mio::net::{TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token};
use vere_screen::Ticket;
use vere_smtp::server::{Answer, Peer, Question, Role, Server, ServerConfig, Step, TlsInfo};
use vere_units::Timestamp;

use crate::guest::{Guest, Next, token_of};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const PATIENCE: Duration = Duration::from_secs(20);
/// Room for a read: commands need several.
const SCRATCH: usize = 16;

struct Bench {
    guest: Guest,
    client: StdTcpStream,
    poll: Poll,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// With something done to the two ends before the session begins.
    fn with(prepare: impl FnOnce(&mut TcpStream, &mut StdTcpStream)) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = StdTcpStream::connect(port.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (here, address) = port.accept().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut peer = Peer::new(address, here.local_addr().unwrap());
        peer.tls_available = true;
        let mut here = TcpStream::from_std(here);
        let poll = Poll::new().unwrap();
        let ticket = Ticket::from_bits(3);
        let token = Token(token_of(ticket));
        let registry = poll.registry();
        registry
            .register(&mut here, token, Interest::READABLE)
            .unwrap();
        prepare(&mut here, &mut client);
        let config = ServerConfig::new("mx.example.org", Role::Mx);
        let server = Server::new(config.into(), peer, NOW);
        Self {
            guest: Guest::new(ticket, server, here),
            client,
            poll,
        }
    }

    fn step(&mut self) -> Next {
        let registry = self.poll.registry();
        self.guest.step(&mut [0; SCRATCH], NOW, registry)
    }

    /// Waits for an event of the client, as the loop of the front does.
    fn event(&mut self) -> (bool, bool) {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(PATIENCE)).unwrap();
        let event = events.iter().next().expect("an event");
        assert_eq!(event.token(), Token(token_of(Ticket::from_bits(3))));
        if event.is_readable() {
            self.guest.readable(event.is_read_closed());
        }
        (event.is_readable(), event.is_writable())
    }

    /// The client says something, and the session moves on.
    fn say(&mut self, octets: &[u8]) -> Next {
        self.client.write_all(octets).unwrap();
        loop {
            self.event();
            match self.step() {
                // The rest may be on the way.
                Next::Wait if !self.hears_more() => {}
                next => return next,
            }
        }
    }

    /// Whether the client has octets to read.
    fn hears_more(&self) -> bool {
        self.client.set_nonblocking(true).unwrap();
        let hears = self.client.peek(&mut [0]).is_ok();
        self.client.set_nonblocking(false).unwrap();
        hears
    }

    /// The next line that the client reads.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut octet = [0];
            self.client.read_exact(&mut octet).unwrap();
            line.push(octet[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The reply that the client reads.
    fn reply(&mut self) -> String {
        loop {
            let line = self.line();
            if line.as_bytes()[3] == b' ' {
                return line;
            }
        }
    }

    fn greeted(mut self) -> Self {
        assert!(matches!(self.step(), Next::Wait));
        assert!(self.line().starts_with("220 "));
        self
    }

    /// The client says STARTTLS.
    fn starttls(&mut self) {
        self.client.write_all(b"EHLO a\r\nSTARTTLS\r\n").unwrap();
        let next = loop {
            self.event();
            match self.step() {
                Next::Wait => {}
                next => break next,
            }
        };
        assert!(matches!(next, Next::Step(Step::StartTls)), "{next:?}");
    }

    fn answer(&mut self) -> Next {
        self.guest.server.answer(Answer::Policy(Ok(())), NOW);
        self.step()
    }
}

fn info() -> TlsInfo {
    TlsInfo {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
        sni: None,
    }
}

#[test]
fn a_client_is_greeted_and_answered() {
    let mut bench = Bench::new().greeted();
    // Without an event there is nothing to read.
    assert!(matches!(bench.step(), Next::Wait));
    let long = format!("EHLO {}.example.net\r\n", "a".repeat(3 * SCRATCH));
    assert!(matches!(bench.say(long.as_bytes()), Next::Wait));
    assert!(bench.reply().starts_with("250 "));
    assert!(matches!(bench.say(b"NOOP\r\n"), Next::Wait));
    assert!(bench.line().starts_with("250 2.0.0"));
    assert!(!bench.guest.has_ended());
}

#[test]
fn what_the_client_has_sent_behind_a_recipient_goes_to_the_worker() {
    let mut bench = Bench::new().greeted();
    let commands = b"EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n";
    bench.client.write_all(commands).unwrap();
    bench.event();
    let next = bench.step();
    assert!(
        matches!(next, Next::Step(Step::Ask(Question::Mail(_)))),
        "{next:?}"
    );
    let next = bench.answer();
    assert!(
        matches!(next, Next::Step(Step::Ask(Question::Recipient(_)))),
        "{next:?}"
    );
    bench.guest.server.answer(Answer::Policy(Ok(())), NOW);
    let Bench {
        guest, mut client, ..
    } = bench;
    let (server, mut link, mut unread) = guest.into_parts();
    assert!(server.has_recipient());
    let mut rest = [0; SCRATCH];
    while unread.len() < 6 {
        let octets = link.read(&mut rest).unwrap();
        unread.extend_from_slice(&rest[..octets]);
    }
    assert_eq!(unread, b"DATA\r\n");
    link.write_all(b"354 go on\r\n").unwrap();
    drop((server, link));
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("354 go on\r\n"), "{said}");
}

#[test]
fn the_last_commands_of_a_client_that_closes_are_answered() {
    let mut bench = Bench::new().greeted();
    bench.client.write_all(b"NOOP\r\nNOOP\r\n").unwrap();
    bench.client.shutdown(Shutdown::Write).unwrap();
    // The kernel may tell of octets and end by one event or by two.
    while !bench.guest.has_ended() {
        bench.event();
    }
    assert!(matches!(bench.step(), Next::Gone));
    assert!(bench.line().starts_with("250 ") && bench.line().starts_with("250 "));
}

/// The end that came with octets is not told again.
#[test]
fn an_end_that_was_told_once_is_not_forgotten() {
    let mut bench = Bench::new().greeted();
    bench.client.write_all(b"NOOP\r\n").unwrap();
    bench.client.shutdown(Shutdown::Write).unwrap();
    while !bench.guest.has_ended() {
        bench.event();
    }
    bench.guest.readable(false);
    assert!(bench.guest.has_ended());
    assert!(matches!(bench.step(), Next::Gone));
}

#[test]
fn a_client_that_does_not_read_is_waited_for() {
    let mut filled = 0;
    let mut bench = Bench::with(|here, _| {
        loop {
            match here.write(&[b'-'; 65_536]) {
                Ok(octets) => filled += octets,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return;
                }
            }
        }
    });
    assert!(matches!(bench.step(), Next::Wait));
    assert!(!bench.guest.server.output().is_empty());
    bench.client.read_exact(&mut vec![0; filled]).unwrap();
    // The kernel tells that there is room.
    while !bench.event().1 {}
    assert!(matches!(bench.step(), Next::Wait));
    assert!(bench.line().starts_with("220 "));
}

#[test]
fn a_client_that_has_gone_is_not_waited_for() {
    let mut bench = Bench::with(|here, client| {
        // Octets that nobody reads make the close a reset.
        here.write_all(b"unread").unwrap();
        client.peek(&mut [0]).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        *client = StdTcpStream::connect(port.local_addr().unwrap()).unwrap();
    });
    assert!(matches!(bench.step(), Next::Gone));
}

#[test]
fn a_client_that_speaks_before_its_greeting_is_noticed() {
    let mut bench = Bench::new();
    let mut scratch = [0; SCRATCH];
    assert!(!bench.guest.has_spoken(&mut scratch, NOW).unwrap());
    bench.client.write_all(b"EHLO a\r\n").unwrap();
    bench.event();
    assert!(bench.guest.has_spoken(&mut scratch, NOW).unwrap());
}

/// RFC 3207 section 4.2: what came in the clear behind STARTTLS is nobody's.
#[test]
fn a_secured_session_goes_on_with_the_plaintext_alone() {
    let mut bench = Bench::new().greeted();
    bench.starttls();
    let (here, mut thread) = UnixStream::pair().unwrap();
    let (other, _) = UnixStream::pair().unwrap();
    let registry = bench.poll.registry();
    let client = bench.guest.encrypt(here, registry).unwrap();
    assert_eq!(
        client.unwrap().peer_addr().unwrap(),
        bench.client.local_addr().unwrap()
    );
    assert!(bench.guest.is_securing && !bench.guest.has_ended());
    assert!(bench.guest.encrypt(other, registry).unwrap().is_none());
    bench.guest.server.tls_started(info());
    thread.write_all(b"NOOP\r\n").unwrap();
    bench.event();
    assert!(matches!(bench.step(), Next::Wait));
    let mut said = [0; 9];
    thread.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"250 2.0.0");
}

/// A read of the kernel ends with a record, however many records are there.
#[test]
fn a_client_by_the_kernel_is_read_until_nothing_is_left() {
    let mut bench = Bench::new().greeted();
    bench.starttls();
    let (here, _thread) = UnixStream::pair().unwrap();
    let registry = bench.poll.registry();
    let client = bench.guest.encrypt(here, registry).unwrap().unwrap();
    bench.guest.encrypted_by_kernel(client, registry).unwrap();
    bench.guest.server.tls_started(info());
    let mut scratch = [0; SCRATCH];
    let mut events = Events::with_capacity(8);
    bench.client.write_all(b"NO").unwrap();
    bench.event();
    assert!(bench.guest.has_spoken(&mut scratch, NOW).unwrap());
    // The octets are there, and the guest is not told.
    bench.client.write_all(b"OP\r\n").unwrap();
    bench.poll.poll(&mut events, Some(PATIENCE)).unwrap();
    assert!(bench.guest.has_spoken(&mut scratch, NOW).unwrap());
    assert!(!bench.guest.has_spoken(&mut scratch, NOW).unwrap());
}
