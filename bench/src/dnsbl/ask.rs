//! The load: queries over UDP from several sockets, with a fixed number in flight.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};

use super::questions::Question;
use super::wire;
use crate::process::guard;

/// Sockets of the load: resolvers that ask one server.
const SOCKETS: usize = 8;

/// Queries in flight on each socket.
const WINDOW: usize = 8;

/// Largest answer.
const ANSWER_MAX: usize = 1_500;

/// How often unanswered queries are looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Time after which a resolver gives a query up.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The end of a load.
#[derive(Debug, Clone, Copy)]
pub(super) enum End<'a> {
    /// After so many queries.
    Count(u64),
    /// When another thread says so.
    When(&'a AtomicBool),
}

/// The outcome of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Asked {
    /// Queries with an answer or without, after the patience of a resolver.
    pub(super) queries: u64,
    /// Answers that are not the expected ones.
    pub(super) wrong: u64,
    /// Queries without an answer in time.
    pub(super) missed: u64,
    pub(super) seconds: f64,
    /// The longest time of an answer, that of a missed one included.
    pub(super) slowest: Duration,
}

impl Asked {
    /// Answers with the expected content.
    pub(super) const fn right(&self) -> u64 {
        self.queries - self.wrong - self.missed
    }

    pub(super) fn per_second(&self) -> f64 {
        self.right() as f64 / self.seconds.max(1e-6)
    }
}

/// A query in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    question: usize,
    since: Instant,
}

/// A socket and its queries. The place of a query is the lower part of the id, the upper part counts the uses: an
/// answer after the patience has a different id.
struct Resolver {
    socket: UdpSocket,
    flights: [Option<Flight>; WINDOW],
    uses: [u16; WINDOW],
    queries: Vec<Vec<u8>>,
    answers: Vec<[u8; ANSWER_MAX]>,
    headers: MultiHeaders<()>,
}

impl Resolver {
    fn new(server: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        socket.connect(server)?;
        Ok(Self {
            socket,
            flights: [None; WINDOW],
            uses: [0; WINDOW],
            queries: vec![Vec::new(); WINDOW],
            answers: vec![[0; ANSWER_MAX]; WINDOW],
            headers: MultiHeaders::preallocate(WINDOW, None),
        })
    }

    /// Sends the next questions for all free places; returns how many.
    fn send(
        &mut self,
        next: &mut impl FnMut() -> Option<usize>,
        questions: &[Question],
    ) -> io::Result<()> {
        let now = Instant::now();
        let mut fresh = Vec::with_capacity(WINDOW);
        for place in 0..WINDOW {
            if self.flights[place].is_some() {
                continue;
            }
            let Some(question) = next() else { break };
            self.flights[place] = Some(Flight {
                question,
                since: now,
            });
            self.uses[place] = self.uses[place].wrapping_add(1);
            let id = self.uses[place].wrapping_mul(WINDOW as u16) + place as u16;
            let query = &mut self.queries[place];
            query.clone_from(&questions[question].query);
            query[..2].copy_from_slice(&id.to_be_bytes());
            fresh.push(place);
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let slices: Vec<[IoSlice<'_>; 1]> = fresh
            .iter()
            .map(|place| [IoSlice::new(&self.queries[*place])])
            .collect();
        let addresses = vec![None; slices.len()];
        let socket = self.socket.as_raw_fd();
        match sendmmsg(
            socket,
            &mut self.headers,
            &slices,
            &addresses,
            [],
            MsgFlags::MSG_DONTWAIT,
        ) {
            // What the kernel does not take is a query without an answer.
            Ok(_) | Err(Errno::EAGAIN | Errno::ECONNREFUSED) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the answers that have come; returns how many datagrams have come.
    fn receive(&mut self, questions: &[Question], asked: &mut Asked) -> io::Result<usize> {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = self
            .answers
            .iter_mut()
            .map(|answer| [IoSliceMut::new(answer)])
            .collect();
        let socket = self.socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let lengths: Vec<usize> =
            match recvmmsg(socket, &mut self.headers, slices.iter_mut(), flags, None) {
                Ok(received) => received.map(|message| message.bytes).collect(),
                Err(Errno::EAGAIN | Errno::ECONNREFUSED | Errno::EINTR) => return Ok(0),
                Err(error) => return Err(error.into()),
            };
        let now = Instant::now();
        for (number, length) in lengths.iter().enumerate() {
            let answer = &self.answers[number][..(*length).min(ANSWER_MAX)];
            let Some(id) = wire::id(answer) else { continue };
            let place = usize::from(id) % WINDOW;
            let Some(flight) = self.flights[place] else {
                continue;
            };
            let Some(said) = wire::read(answer, &self.queries[place]) else {
                continue;
            };
            self.flights[place] = None;
            asked.queries += 1;
            asked.slowest = asked.slowest.max(now - flight.since);
            let expected = questions[flight.question].expected;
            asked.wrong += u64::from(expected.is_some_and(|expected| expected != said));
        }
        Ok(lengths.len())
    }

    /// Gives up the queries beyond the patience.
    fn give_up(&mut self, patience: Duration, asked: &mut Asked) {
        for flight in &mut self.flights {
            if flight.is_some_and(|flight| flight.since.elapsed() > patience) {
                *flight = None;
                asked.queries += 1;
                asked.missed += 1;
                asked.slowest = asked.slowest.max(patience);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.flights.iter().all(Option::is_none)
    }
}

/// Asks a server all questions again and again until the end; then waits for the last answers.
///
/// # Errors
/// The kernel refuses a socket or a datagram.
pub(super) fn load(
    server: SocketAddr,
    questions: &[Question],
    end: End<'_>,
    patience: Duration,
) -> io::Result<Asked> {
    let mut poll = Poll::new()?;
    let mut resolvers = (0..SOCKETS)
        .map(|_| Resolver::new(server))
        .collect::<io::Result<Vec<_>>>()?;
    for (number, resolver) in resolvers.iter_mut().enumerate() {
        let registry = poll.registry();
        registry.register(&mut resolver.socket, Token(number), Interest::READABLE)?;
    }
    let mut events = Events::with_capacity(SOCKETS);
    let (began, mut looked) = (Instant::now(), Instant::now());
    let mut asked = Asked::default();
    let mut sent = 0_u64;
    loop {
        let is_over = guard::is_stopped()
            || match end {
                End::Count(count) => sent >= count,
                End::When(is_over) => is_over.load(Ordering::Relaxed),
            };
        let mut next = || {
            let may_send = !is_over && !matches!(end, End::Count(count) if sent >= count);
            let question = (sent % questions.len().max(1) as u64) as usize;
            sent += u64::from(may_send);
            (may_send && !questions.is_empty()).then_some(question)
        };
        let mut received = 0;
        for resolver in &mut resolvers {
            resolver.send(&mut next, questions)?;
            received += resolver.receive(questions, &mut asked)?;
        }
        if is_over && resolvers.iter().all(Resolver::is_idle) {
            asked.seconds = began.elapsed().as_secs_f64();
            return Ok(asked);
        }
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            resolvers
                .iter_mut()
                .for_each(|one| one.give_up(patience, &mut asked));
        }
        if received == 0 {
            match poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }
}

/// Asks one question, once; `None` without an answer in time.
pub(super) fn once(
    server: SocketAddr,
    question: &Question,
    patience: Duration,
) -> Option<wire::Said> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    socket.connect(server).ok()?;
    socket.set_read_timeout(Some(patience)).ok()?;
    socket.send(&question.query).ok()?;
    let mut answer = [0; ANSWER_MAX];
    let length = socket.recv(&mut answer).ok()?;
    wire::read(answer.get(..length)?, &question.query)
}

#[cfg(test)]
mod tests;
