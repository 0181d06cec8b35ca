//! Honest clients in sequence: a new connection, one message or one view of a mailbox, and good-bye.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::mta as x400;
use super::system::{DOMAIN, HONEST, LISTED, System, ZONE, message};
use crate::dns_wire::{self as wire, Said};
use crate::process::guard;
use crate::store::ImapError;
use crate::store::imap::Imap;
use crate::store::systems::PASSWORD;
use crate::wire::Dialogue;

/// How long an honest client waits for a reply; mail programs give up about then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of successive refusals after which no further client is tried: later clients would wait for nothing.
const REFUSED_MAX: usize = 20;

/// One client of this many also files a message, of this many octets: small messages are accepted whatever the load
/// of memory.
const FILING: usize = 10;
const FILED_OCTETS: usize = 128 << 10;

/// How long a resolver waits for an answer by UDP before the next try, and the number of tries.
const RESOLVER_PATIENCE: Duration = Duration::from_secs(1);
const RESOLVER_TRIES: usize = 3;

/// The results of honest clients; times from the shortest to the longest.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// From the greeting to the 250 of the message.
    pub(super) smtp: Vec<Duration>,
    /// From the greeting to the end of the FETCH.
    pub(super) imap: Vec<Duration>,
    /// From the query to the answer of the block list, repetitions included.
    pub(super) udp: Vec<Duration>,
    /// The same with a TCP connection for the query.
    pub(super) tcp: Vec<Duration>,
    /// From the connection to the confirmation of a unit of X.400.
    pub(super) x400: Vec<Duration>,
    /// The answers to refused clients.
    pub(super) refused: Vec<String>,
}

/// So many clients of each protocol.
///
/// Each message gets the reply `expected`.
pub(super) fn measure(system: &System, count: usize, expected: &str) -> Times {
    let mut times = Times::default();
    for number in 0..count {
        if times.refused.len() >= REFUSED_MAX || guard::is_stopped() {
            break;
        }
        match send(system, expected) {
            Ok(took) => times.smtp.push(took),
            Err(error) => times.refused.push(format!("SMTP: {error}")),
        }
        match look(system) {
            Ok(took) => times.imap.push(took),
            Err(error) => times.refused.push(format!("IMAP: {error}")),
        }
        if system.shape.has_lists {
            times.look_up(system.lists);
        }
        if system.shape.has_x400 {
            times.transfer(system.x400, number);
        }
        if number % FILING == 0
            && let Err(error) = file(system)
        {
            times.refused.push(format!("APPEND: {error}"));
        }
    }
    times.smtp.sort_unstable();
    times.imap.sort_unstable();
    times.udp.sort_unstable();
    times.tcp.sort_unstable();
    times.x400.sort_unstable();
    times
}

impl Times {
    fn transfer(&mut self, mta: SocketAddr, number: usize) {
        match x400::send(mta, u64::try_from(number).unwrap_or_default()) {
            Ok(took) => self.x400.push(took),
            Err(error) => self.refused.push(format!("X.400: {error}")),
        }
    }

    fn look_up(&mut self, server: SocketAddr) {
        match ask(server) {
            Ok(took) => self.udp.push(took),
            Err(error) => self.refused.push(format!("DNS by UDP: {error}")),
        }
        match ask_by_tcp(server) {
            Ok(took) => self.tcp.push(took),
            Err(error) => self.refused.push(format!("DNS by TCP: {error}")),
        }
    }
}

fn query() -> Vec<u8> {
    let name = wire::name_of_address(LISTED, ZONE);
    wire::query(&name, wire::Kind::A, true)
}

fn is_right(answer: &[u8], query: &[u8]) -> io::Result<()> {
    match wire::read(answer, query) {
        Some(Said::Address(_)) => Ok(()),
        other => Err(io::Error::other(format!(
            "expected the entry of {LISTED}; found {other:?}"
        ))),
    }
}

/// Asks the block list as a resolver does; returns the time until the answer.
pub(super) fn ask(server: SocketAddr) -> io::Result<Duration> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(RESOLVER_PATIENCE))?;
    let (query, mut answer) = (query(), [0; 1_500]);
    let began = Instant::now();
    for _ in 0..RESOLVER_TRIES {
        socket.send(&query)?;
        if let Ok(length) = socket.recv(&mut answer) {
            return is_right(answer.get(..length).unwrap_or_default(), &query)
                .map(|()| began.elapsed());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn ask_by_tcp(server: SocketAddr) -> io::Result<Duration> {
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let query = query();
    let length = u16::try_from(query.len()).unwrap_or(u16::MAX);
    stream.write_all(&[&length.to_be_bytes()[..], &query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    is_right(&answer, &query).map(|()| began.elapsed())
}

/// Sends a message; returns the time from the greeting to the expected reply.
pub(super) fn send(system: &System, expected: &str) -> io::Result<Duration> {
    let mut client = Dialogue::connect(system.smtp, PATIENCE)?;
    let began = Instant::now();
    client.ask("EHLO honest.test\r\n", "250")?;
    client.ask("MAIL FROM:<ann@elsewhere.test>\r\n", "250")?;
    client.ask(&format!("RCPT TO:<{HONEST}@{DOMAIN}>\r\n"), "250")?;
    client.ask("DATA\r\n", "354")?;
    let text = "From: ann@elsewhere.test\r\nSubject: hello\r\n\r\nHow are you?\r\n.\r\n";
    client.ask(text, expected)?;
    let took = began.elapsed();
    if expected.starts_with('2') {
        system.acknowledged.set(system.acknowledged.get() + 1);
    }
    client.ask("QUIT\r\n", "221")?;
    Ok(took)
}

/// Logs in and looks at the newest message.
fn look(system: &System) -> Result<Duration, ImapError> {
    let mut imap = Imap::connect(system.imap)?;
    let began = Instant::now();
    imap.ok(&format!("LOGIN {HONEST}@{DOMAIN} {PASSWORD}"))?;
    imap.ok("SELECT INBOX")?;
    imap.ok("FETCH * (FLAGS BODY.PEEK[])")?;
    let took = began.elapsed();
    imap.ok("LOGOUT")?;
    Ok(took)
}

/// Files a message of some size.
fn file(system: &System) -> Result<(), ImapError> {
    let message = message("filed", FILED_OCTETS / 78 * 78);
    let mut imap = Imap::connect(system.imap)?;
    imap.ok(&format!("LOGIN {HONEST}@{DOMAIN} {PASSWORD}"))?;
    imap.append("Filed", &message).or_else(|_| {
        imap.ok("CREATE Filed")
            .and_then(|_| imap.append("Filed", &message))
    })?;
    imap.ok("LOGOUT")?;
    Ok(())
}
