//! A client that is not trusted yet.

use std::io::{self, Read as _, Write as _};
use std::time::Instant;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use vere_handoff::question::Spf;
use vere_screen::Ticket;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Server, Step};
use vere_units::Timestamp;

use super::link::Link;

/// Octets read at once: several pipelined commands.
pub(crate) const READ_OCTETS: usize = 4_096;

/// A connection with its session.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) ticket: Ticket,
    pub(crate) server: Server,
    link: Link,
    /// Octets that the session has not consumed, while a question is open.
    unread: Vec<u8>,
    /// Whether octets may be there to be read.
    is_readable: bool,
    /// Whether the client has closed its side.
    is_closed: bool,
    /// The recipient of the open question.
    pub(crate) asked: String,
    /// The time of the question.
    pub(crate) asked_at: Instant,
    /// The round in which SPF has to be asked for, until a recipient comes.
    pub(crate) spf_round: Option<u32>,
    /// The round of the question for SPF of the present sender; an answer of another round is of a sender before.
    pub(crate) spf_asked: Option<u32>,
    /// The result of SPF for the HELO name beside the reverse-path.
    pub(crate) spf_helo: Option<Spf>,
    /// The list with the largest weight against the client, and its text.
    pub(crate) listed: Option<Box<(String, String)>>,
    /// The round of the question about it.
    pub(crate) round: u32,
    /// The broker's refusal of the recipient, while the decision waits for other answers.
    pub(crate) refusal: Option<Refusal>,
    /// Whether the greeting may leave.
    pub(crate) is_greeted: bool,
    /// Whether the kernel tells when the client reads again.
    is_told_of_room: bool,
    /// Whether a handshake of TLS is under way.
    pub(crate) is_securing: bool,
}

/// What a guest does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// The client has to send or to read first.
    Wait,
    /// The machine has stepped.
    Step(Step),
    /// The client has closed its side, or the connection is broken.
    Gone,
}

impl Guest {
    pub(crate) fn new(ticket: Ticket, server: Server, stream: TcpStream) -> Self {
        Self {
            ticket,
            server,
            link: Link::Clear(stream),
            unread: Vec::new(),
            is_readable: false,
            is_closed: false,
            asked: String::new(),
            asked_at: Instant::now(),
            spf_round: None,
            spf_asked: None,
            spf_helo: None,
            listed: None,
            round: 0,
            refusal: None,
            is_greeted: false,
            is_told_of_room: false,
            is_securing: false,
        }
    }

    /// The kernel reports octets, perhaps with the end of the client behind the octets.
    pub(crate) const fn readable(&mut self, is_closed: bool) {
        self.is_readable = true;
        self.is_closed |= is_closed;
    }

    /// Whether the client, or the thread of TLS, has closed the connection.
    pub(crate) const fn has_ended(&self) -> bool {
        self.is_closed
    }

    /// Puts plaintext in the place of the client, and returns the client, once. Clear octets behind STARTTLS are dropped
    /// (RFC 3207 section 4.2).
    ///
    /// # Errors
    /// When the readiness queue refuses.
    pub(crate) fn encrypt(
        &mut self,
        mut plain: UnixStream,
        registry: &Registry,
    ) -> io::Result<Option<TcpStream>> {
        let Link::Clear(client) = &mut self.link else {
            return Ok(None);
        };
        registry.deregister(client)?;
        registry.register(&mut plain, Token(token_of(self.ticket)), Interest::READABLE)?;
        self.unread = Vec::new();
        (self.is_securing, self.is_readable, self.is_closed) = (true, false, false);
        self.is_told_of_room = false;
        match std::mem::replace(&mut self.link, Link::Encrypted(plain)) {
            Link::Clear(client) => Ok(Some(client)),
            Link::Encrypted(_) | Link::Kernel { .. } => Ok(None),
        }
    }

    /// Puts the client, whose octets the kernel encrypts, in the place of the plaintext.
    ///
    /// # Errors
    /// When the readiness queue refuses.
    pub(crate) fn encrypted_by_kernel(
        &mut self,
        client: TcpStream,
        registry: &Registry,
    ) -> io::Result<()> {
        let token = Token(token_of(self.ticket));
        let mut plain = std::mem::replace(&mut self.link, Link::by_kernel(client));
        registry.deregister(plain.source())?;
        registry.register(self.link.source(), token, Interest::READABLE)
    }

    /// Moves the session on until a question, the end, or a wait.
    pub(crate) fn step(&mut self, scratch: &mut [u8], now: Timestamp, registry: &Registry) -> Next {
        loop {
            match self.server.step() {
                Step::Send => match self.write() {
                    Ok(true) => {}
                    Ok(false) => return self.wait_for_room(registry),
                    Err(_) => return Next::Gone,
                },
                Step::NeedInput => match self.feed(scratch, now) {
                    Ok(Fed::Some) => {}
                    Ok(Fed::Nothing) => return Next::Wait,
                    Ok(Fed::End) | Err(_) => return Next::Gone,
                },
                step => return Next::Step(step),
            }
        }
    }

    /// Writes replies. False: the client does not read.
    fn write(&mut self) -> io::Result<bool> {
        let output = self.server.output();
        let written = match self.server.is_closing() {
            true => self.link.write_last(output),
            false => self.link.write(output),
        };
        match written {
            Ok(octets) => {
                self.server.sent(octets);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Nearly every client reads its replies, so that the kernel is asked to tell only where one does not.
    fn wait_for_room(&mut self, registry: &Registry) -> Next {
        if !self.is_told_of_room {
            self.is_told_of_room = true;
            let interest = Interest::READABLE | Interest::WRITABLE;
            let token = Token(token_of(self.ticket));
            if registry
                .reregister(self.link.source(), token, interest)
                .is_err()
            {
                return Next::Gone;
            }
        }
        Next::Wait
    }

    /// Gives the session octets.
    fn feed(&mut self, scratch: &mut [u8], now: Timestamp) -> io::Result<Fed> {
        if !self.unread.is_empty() {
            let taken = self.server.input(&self.unread, now);
            self.unread.drain(..taken.min(self.unread.len()));
            if self.unread.is_empty() {
                self.unread = Vec::new();
            }
            return Ok(Fed::Some);
        }
        if !self.is_readable {
            return Ok(Fed::Nothing);
        }
        let octets = match self.link.read(scratch) {
            Ok(0) => return Ok(Fed::End),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_readable = false;
                return Ok(Fed::Nothing);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Fed::Some),
            read => read?,
        };
        // Fewer octets than there was room for are all, unless a read ends with a record; the kernel tells of more. The end was
        // told already.
        self.is_readable =
            octets == scratch.len() || self.is_closed || self.link.is_encrypted_by_kernel();
        let octets = scratch.get(..octets).unwrap_or_default();
        let taken = self.server.input(octets, now);
        self.unread = octets.get(taken..).unwrap_or_default().to_vec();
        Ok(Fed::Some)
    }

    /// Whether the client has sent octets before its greeting.
    pub(crate) fn has_spoken(&mut self, scratch: &mut [u8], now: Timestamp) -> io::Result<bool> {
        Ok(matches!(self.feed(scratch, now)?, Fed::Some))
    }

    /// Says the end to a client that has not heard of it.
    pub(crate) fn close(&mut self) {
        self.link.close();
    }

    /// Takes the guest apart for a worker: the session, the connection, the octets not consumed.
    pub(crate) fn into_parts(self) -> (Server, Link, Vec<u8>) {
        (self.server, self.link, self.unread)
    }
}

/// The user data of a connection in the readiness queue.
pub(crate) fn token_of(ticket: Ticket) -> usize {
    usize::try_from(ticket.to_bits()).unwrap_or(usize::MAX)
}

enum Fed {
    Some,
    Nothing,
    End,
}
