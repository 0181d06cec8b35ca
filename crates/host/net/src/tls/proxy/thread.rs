//! The loop of one thread over connections.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token};
use rustls::ServerConfig;

use super::counts::Counts;
use super::session::{CHUNK_OCTETS, Session, Turn};
use super::{Carrier, Job, JobName, ProxyOptions, Secured, TlsInfo};

/// The token of the waker.
pub(super) const WAKE: Token = Token(usize::MAX);
/// Events of one wait.
const EVENTS: usize = 256;

/// A deadline of a connection. The deadlines of a queue have equal lengths, so that the first is the next.
type Deadlines = VecDeque<(Instant, usize, JobName)>;

pub(super) struct Thread {
    poll: Poll,
    jobs: Receiver<Job>,
    config: Arc<ServerConfig>,
    options: ProxyOptions,
    secured: Secured,
    open: Arc<AtomicUsize>,
    counts: Arc<Counts>,
    /// By place; the tokens of a connection are twice the place, and twice the place plus one.
    sessions: Vec<Option<Session>>,
    vacant: Vec<usize>,
    handshakes: Deadlines,
    ends: Deadlines,
    /// Places of connections that go on without an event.
    busy: VecDeque<usize>,
    scratch: Box<[u8; CHUNK_OCTETS]>,
}

impl Thread {
    pub(super) fn new(
        poll: Poll,
        jobs: Receiver<Job>,
        config: Arc<ServerConfig>,
        options: ProxyOptions,
        (secured, open, counts): (Secured, Arc<AtomicUsize>, Arc<Counts>),
    ) -> Self {
        Self {
            poll,
            jobs,
            config,
            options,
            secured,
            open,
            counts,
            sessions: Vec::new(),
            vacant: Vec::new(),
            handshakes: Deadlines::new(),
            ends: Deadlines::new(),
            busy: VecDeque::new(),
            scratch: Box::new([0; CHUNK_OCTETS]),
        }
    }

    /// Runs until the proxy is gone.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            match self.poll.poll(&mut events, self.wait()) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    tracing::error!(%error, "a thread of TLS ends");
                    return;
                }
                _ => {}
            }
            for event in &events {
                self.event(event);
            }
            for _ in 0..self.busy.len() {
                if let Some(place) = self.busy.pop_front() {
                    self.turn(place);
                }
            }
            self.expire(Instant::now());
            if self.take_jobs().is_err() {
                return;
            }
        }
    }

    fn wait(&self) -> Option<Duration> {
        if !self.busy.is_empty() {
            return Some(Duration::ZERO);
        }
        let first = |deadlines: &Deadlines| deadlines.front().map(|(at, ..)| *at);
        let next = [first(&self.handshakes), first(&self.ends)];
        let next = next.into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn event(&mut self, event: &Event) {
        let Token(number) = event.token();
        let place = number / 2;
        let Some(session) = self.sessions.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let (can_read, can_write) = (event.is_readable(), event.is_writable());
        if number.is_multiple_of(2) {
            session
                .client
                .ready(can_read || event.is_read_closed(), can_write);
        } else {
            session
                .plain
                .ready(can_read || event.is_read_closed(), can_write);
            if event.is_write_closed() {
                // Nobody waits for the client any longer.
                self.ends
                    .push_back((Instant::now() + self.options.linger, place, session.name));
            }
        }
        if !session.is_busy {
            self.turn(place);
        }
    }

    /// Moves a connection on.
    fn turn(&mut self, place: usize) {
        let Some(session) = self.sessions.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let (secured, counts) = (&self.secured, &self.counts);
        let turn = session.turn(&mut self.scratch, |name, info: TlsInfo| {
            counts.done(info.is_resumed);
            secured(name, info, Carrier::Thread);
        });
        session.is_busy = matches!(turn, Turn::Again);
        match turn {
            Turn::Wait => {}
            Turn::Again => self.busy.push_back(place),
            Turn::Kernel => self.give_back(place),
            Turn::Over => self.end(place),
        }
    }

    fn end(&mut self, place: usize) {
        if let Some(session) = self.leave(place)
            && session.is_shaking_hands()
        {
            self.counts.failed();
        }
    }

    /// Takes a connection out of the thread.
    fn leave(&mut self, place: usize) -> Option<Session> {
        let session = self.sessions.get_mut(place).and_then(Option::take)?;
        self.vacant.push(place);
        self.open.fetch_sub(1, Ordering::Relaxed);
        Some(session)
    }

    /// Gives the kernel the keys, and the owner the client.
    fn give_back(&mut self, place: usize) {
        let Some(session) = self.leave(place) else {
            return;
        };
        let name = session.name;
        let given = session
            .into_kernel()
            .and_then(|(info, mut client, mut plain)| {
                let registry = self.poll.registry();
                registry.deregister(&mut client)?;
                registry.deregister(&mut plain)?;
                self.counts.done(info.is_resumed);
                let (client, plain) = (client.into(), plain.into());
                (self.secured)(name, info, Carrier::Kernel { client, plain });
                Ok(())
            });
        if let Err(error) = given {
            self.counts.failed();
            tracing::warn!(%error, "the kernel refuses to encrypt a connection");
        }
    }

    /// Ends connections beyond a deadline.
    fn expire(&mut self, now: Instant) {
        let due = |deadline: &mut (Instant, usize, JobName)| deadline.0 <= now;
        while let Some((_, place, name)) = self.handshakes.pop_front_if(due) {
            let session = self.sessions.get(place).and_then(Option::as_ref);
            if session.is_some_and(|it| it.name == name && it.is_shaking_hands()) {
                tracing::debug!("client has not finished its handshake in time");
                self.end(place);
            }
        }
        while let Some((_, place, name)) = self.ends.pop_front_if(due) {
            let session = self.sessions.get(place).and_then(Option::as_ref);
            if session.is_some_and(|it| it.name == name) {
                self.end(place);
            }
        }
    }

    /// Takes connections.
    ///
    /// # Errors
    /// When the proxy is gone.
    fn take_jobs(&mut self) -> Result<(), ()> {
        loop {
            match self.jobs.try_recv() {
                Ok(job) => match self.begin(job) {
                    Ok(place) => self.turn(place),
                    Err(error) => {
                        self.counts.failed();
                        tracing::warn!(%error, "connection cannot be encrypted");
                    }
                },
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(()),
            }
        }
    }

    fn begin(&mut self, job: Job) -> io::Result<usize> {
        let name = job.name;
        let mut client = TcpStream::from_std(job.client);
        let mut plain = UnixStream::from_std(job.plain);
        let place = self.vacant.last().copied().unwrap_or(self.sessions.len());
        let both = Interest::READABLE | Interest::WRITABLE;
        let token = place.saturating_mul(2);
        let registry = self.poll.registry();
        registry.register(&mut client, Token(token), both)?;
        registry.register(&mut plain, Token(token.saturating_add(1)), both)?;
        let until = Instant::now() + self.options.handshake_timeout;
        let config = Arc::clone(&self.config);
        let session = Session::new(name, config, client, plain, self.options.kernel)
            .map_err(io::Error::other)?;
        match self.vacant.pop() {
            Some(vacant) => {
                if let Some(slot) = self.sessions.get_mut(vacant) {
                    *slot = Some(session);
                }
            }
            None => self.sessions.push(Some(session)),
        }
        self.handshakes.push_back((until, place, name));
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(place)
    }
}
