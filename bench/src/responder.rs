//! The bare responder: the least work of any mail exchanger, and nothing else.
//!
//! A single thread with one epoll set speaks the replies of Veredarius to lines of SMTP. Nothing is parsed beyond the
//! verb and the beginning of a recipient, nothing is counted, logged or stored; the text of a message is read and
//! forgotten. The CPU time of a session at the responder is the limit of the machine for the unavoidable work: a
//! connection, four replies and the end.
//!
//! With `--takers` the responder hands each connection with a known recipient to another process (`responder/handing.rs`): the
//! limit of the machine for a hand-over.

mod handing;

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use clap::Args;
use memchr::{memchr, memmem};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use handing::{Giver, Taking};

use crate::peer::mx::GOOD;
use crate::wire::{Buffer, Link, Output, Readiness};

const LISTENER: Token = Token(usize::MAX - 1);
/// The token of the process that hands connections over; takers have the tokens from `TAKERS` on.
const GIVER: Token = Token(usize::MAX - 2);
const TAKERS: usize = 1 << 32;

/// Longest accepted line; a client that sends more is disconnected.
const LINE_MAX: usize = 4096;

const GREETING: &[u8] = b"220 vere.bench.test ESMTP Veredarius\r\n";
const HELLO: &[u8] =
    b"250-vere.bench.test\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n\
    250-CHUNKING\r\n250-BINARYMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n250-MT-PRIORITY\r\n\
    250-LIMITS MAILMAX=1000 RCPTMAX=1000\r\n250 ENHANCEDSTATUSCODES\r\n";
const SENDER: &[u8] = b"250 2.1.0 sender ok\r\n";
const RECIPIENT: &[u8] = b"250 2.1.5 recipient ok\r\n";
const UNKNOWN: &[u8] = b"550 5.1.1 no such mailbox here\r\n";
const DATA: &[u8] = b"354 end with a dot\r\n";
const ACCEPTED: &[u8] = b"250 2.0.0 accepted\r\n";
const BYE: &[u8] = b"221 2.0.0 closing connection\r\n";
const WRONG: &[u8] = b"500 5.5.2 command unrecognized\r\n";

/// Answers SMTP clients with as little work as possible, until a signal.
#[derive(Debug, Args)]
pub struct ResponderArgs {
    /// The address to listen at.
    #[arg(required_unless_present = "taker")]
    listen: Option<SocketAddr>,
    /// Hand connections with a known recipient to so many processes.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    takers: usize,
    /// Take connections from the responder behind the standard input.
    #[arg(long, conflicts_with = "listen")]
    taker: bool,
}

/// Runs the responder; returns only after a failure, or in a taker with the end of the responder.
///
/// # Errors
///
/// The address is taken, a taker does not start or has ended, or the event loop failed.
pub fn run(args: &ResponderArgs) -> io::Result<()> {
    match args.listen {
        Some(address) => Responder::bind(address, args.takers)?.run(),
        None => match Responder::taker()?.run() {
            // The responder has ended.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            ended => ended,
        },
    }
}

struct Session {
    link: Link,
    input: Buffer,
    output: Output,
    in_text: bool,
    /// The number by which the giver knows a connection that was taken.
    number: Option<u32>,
}

/// The outcome of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The client has to speak.
    Waits,
    /// A recipient is known, and others answer from here.
    Known,
    Over,
}

/// Where connections come from.
#[derive(Debug)]
enum Source {
    /// Clients; connections with a known recipient go to the takers, if takers there are.
    Clients(TcpListener, Option<Giver>),
    /// Another process.
    Giver(Taking),
}

struct Responder {
    poll: Poll,
    source: Source,
    sessions: Vec<Option<Session>>,
    free: Vec<usize>,
}

impl Responder {
    fn bind(address: SocketAddr, takers: usize) -> io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let giver = match takers {
            0 => None,
            takers => Some(Giver::start(takers, registry, TAKERS)?),
        };
        Ok(Self::new(poll, Source::Clients(listener, giver)))
    }

    fn taker() -> io::Result<Self> {
        let poll = Poll::new()?;
        let taking = Taking::new(poll.registry(), GIVER)?;
        Ok(Self::new(poll, Source::Giver(taking)))
    }

    const fn new(poll: Poll, source: Source) -> Self {
        Self {
            poll,
            source,
            sessions: Vec::new(),
            free: Vec::new(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    GIVER => self.take()?,
                    Token(token) if token >= TAKERS => self.hear(token - TAKERS)?,
                    Token(index) => {
                        if let Some(Some(session)) = self.sessions.get_mut(index) {
                            session.link.note(event);
                            self.drive(index);
                        }
                    }
                }
            }
            match &mut self.source {
                Source::Clients(_, Some(giver)) => giver.send()?,
                Source::Clients(_, None) => {}
                Source::Giver(taking) => taking.tell()?,
            }
        }
    }

    fn accept(&mut self) {
        while let Source::Clients(listener, _) = &self.source
            && let Ok((stream, _)) = listener.accept()
        {
            self.open(stream, None, GREETING);
        }
    }

    fn take(&mut self) -> io::Result<()> {
        while let Source::Giver(taking) = &mut self.source
            && let Some(connections) = taking.take()?
        {
            for (number, stream) in connections {
                self.open(stream, Some(number), RECIPIENT);
            }
        }
        Ok(())
    }

    fn hear(&mut self, taker: usize) -> io::Result<()> {
        match &mut self.source {
            Source::Clients(_, Some(giver)) => giver.hear(taker),
            _ => Ok(()),
        }
    }

    fn open(&mut self, stream: TcpStream, number: Option<u32>, reply: &[u8]) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        let Ok(link) = Link::new(stream, self.poll.registry(), Token(index)) else {
            return self.free.push(index);
        };
        let mut session = Session {
            link,
            input: Buffer::default(),
            output: Output::default(),
            in_text: false,
            number,
        };
        session.output.push(reply);
        self.sessions[index] = Some(session);
        self.drive(index);
    }

    fn drive(&mut self, index: usize) {
        let Some(mut session) = self.sessions[index].take() else {
            return;
        };
        let gives = matches!(self.source, Source::Clients(_, Some(_)));
        let outcome = session.converse(gives).unwrap_or(Outcome::Over);
        if outcome == Outcome::Waits {
            self.sessions[index] = Some(session);
            return;
        }
        self.free.push(index);
        let registry = self.poll.registry();
        match (&mut self.source, session.number) {
            (Source::Clients(_, Some(giver)), _) if outcome == Outcome::Known => {
                giver.give(session.link.part(registry));
            }
            (Source::Giver(taking), Some(number)) => {
                // The giver has a duplicate.
                session.link.end(registry);
                taking.ended(number);
            }
            _ => session.link.close(registry),
        }
    }
}

impl Session {
    /// Answers as far as possible. A known recipient is left to a taker where the responder gives connections away.
    fn converse(&mut self, gives: bool) -> io::Result<Outcome> {
        loop {
            while self.answer() {
                // The clients wait for each reply, so that nothing is read behind the recipient.
                if gives && self.output.pending() == RECIPIENT {
                    return Ok(Outcome::Known);
                }
            }
            let over = self.output.pending().ends_with(BYE);
            self.link.write(&mut self.output)?;
            if over {
                return Ok(Outcome::Over);
            }
            match self.link.read(&mut self.input)? {
                Readiness::Closed => return Ok(Outcome::Over),
                Readiness::Drained if self.in_text || self.input.data().len() < LINE_MAX => {
                    return Ok(Outcome::Waits);
                }
                Readiness::Drained => return Ok(Outcome::Over),
                Readiness::More => {}
            }
        }
    }

    /// Answers a line, or takes a part of a text; false when more octets are needed.
    fn answer(&mut self) -> bool {
        let data = self.input.data();
        if self.in_text {
            let Some(end) = memmem::find(data, b"\r\n.\r\n") else {
                // The last octets may be the beginning of the end.
                let spare = data.len().saturating_sub(4);
                self.input.consume(spare);
                return false;
            };
            self.input.consume(end + 5);
            self.in_text = false;
            self.output.push(ACCEPTED);
            return true;
        }
        let Some(end) = memchr(b'\n', data) else {
            return false;
        };
        let (reply, in_text) = reply_to(&data[..end]);
        self.in_text = in_text;
        self.output.push(reply);
        self.input.consume(end + 1);
        true
    }
}

/// The reply to a line, and whether the text of a message follows.
fn reply_to(line: &[u8]) -> (&'static [u8], bool) {
    match line.get(..4).unwrap_or_default() {
        b"EHLO" => (HELLO, false),
        b"MAIL" => (SENDER, false),
        b"RCPT" => {
            let address = line.get("RCPT TO:<".len()..).unwrap_or_default();
            let known = address.starts_with(GOOD.as_bytes());
            (if known { RECIPIENT } else { UNKNOWN }, false)
        }
        b"DATA" => (DATA, true),
        b"QUIT" => (BYE, false),
        _ => (WRONG, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Dialogue;
    use std::time::Duration;

    #[test]
    fn a_session_is_answered_as_an_exchanger_answers() {
        let address = crate::peer::free_address().unwrap();
        let mut responder = Responder::bind(address, 0).unwrap();
        // The thread ends with the process of the tests.
        std::thread::spawn(move || responder.run());
        let mut client = Dialogue::connect(address, Duration::from_secs(10)).unwrap();
        client.ask("EHLO a.test\r\n", "250").unwrap();
        client.ask("MAIL FROM:<a@a.test>\r\n", "250").unwrap();
        client
            .ask("RCPT TO:<nobody@front.test>\r\n", "550")
            .unwrap();
        client.ask("RCPT TO:<good1@front.test>\r\n", "250").unwrap();
        client.ask("DATA\r\n", "354").unwrap();
        client.send(b"Subject: a\r\n\r\nb\r").unwrap();
        client.ask("\n.\r\n", "250").unwrap();
        client.ask("QUIT\r\n", "221").unwrap();
    }
}
