//! The host of a spool node: one thread with a readiness loop, and one that syncs the logs.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use vere_disk::log::{LogOptions, NodeDirectory, Wake, octets_read};
use vere_disk::spill::{SpillFile, SpillOptions};
use vere_net::tls::Line;
use vere_ports::spool_log::SpoolLogStore;
use vere_spool::node::{ConnectionId, NoLog, Node, NodeConfig};
use vere_spoolwire::Incarnation;
use vere_units::Timestamp;

use super::complaints::Complaints;
pub use super::error::NodeError;
use super::error::io_error;
use super::renewals::Renewals;
use super::restore::{restore, tell};
use super::socket::{Listener, Socket};
use vere_process::boot_clock::Clock;
use vere_process::encryption::Encryption;
use vere_process::recovering::Recovering;

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// How often silence and disk room are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How long connections may take to hear that the node stops.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// Ranges written by one system call.
const SLICES: usize = 64;

/// When a record counts as safe.
#[derive(Debug, Clone)]
pub enum Durability {
    /// When it is in the synced log in this directory.
    Synced {
        /// Made when it does not exist.
        directory: PathBuf,
        /// Sizes of the logs.
        log: LogOptions,
    },
    /// When it is in memory.
    Memory,
}

/// What a node is told at its start.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Limits and secret.
    pub config: NodeConfig,
    /// When it acknowledges.
    pub durability: Durability,
    /// The directory of a file for what its memory does not hold, and how large that may be.
    pub spill: Option<(PathBuf, SpillOptions)>,
    /// Which connections are encrypted; `None`: none.
    pub encryption: Option<Encryption>,
    /// Called about once a second from the loop that does the work.
    pub alive: fn(),
}

/// Ends a node from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    asked: AtomicBool,
    waker: OnceLock<Arc<Waker>>,
}

impl Stop {
    /// Asks the node to end: the node acknowledges its messages and tells its connections.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        if let Some(waker) = self.0.waker.get() {
            // The loop looks once a second anyway.
            let _ = waker.wake();
        }
    }

    fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }
}

/// Runs a node on this thread until `stop` is asked or it cannot go on. `ready` is called when its
/// queues are back and it accepts connections.
///
/// # Errors
///
/// [`NodeError`].
pub fn serve(
    options: NodeOptions,
    listeners: Vec<std::net::TcpListener>,
    stop: Stop,
    ready: impl FnOnce(),
) -> Result<(), NodeError> {
    let poll = Poll::new().map_err(io_error("make a readiness queue"))?;
    let waker = Waker::new(poll.registry(), WAKE).map_err(io_error("make a waker"))?;
    let waker = Arc::new(waker);
    // Whoever asked before this is heard by the first look.
    let _ = stop.0.waker.set(Arc::clone(&waker));
    let NodeOptions {
        config,
        durability,
        spill,
        encryption,
        alive,
    } = options;
    let listeners = listeners
        .into_iter()
        .map(|socket| Listener::new(socket, encryption.as_ref()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(io_error("use a listening socket"))?;
    let wake: Wake = Arc::new(move || {
        // It fails only when the loop is gone.
        let _ = waker.wake();
    });
    let spill = match spill {
        Some((directory, options)) => {
            let spill = SpillFile::open(&directory, options, &wake);
            Some(spill.map_err(io_error("make the spill file"))?)
        }
        None => None,
    };
    match durability {
        Durability::Memory => {
            let mut node = Node::<NoLog>::new(
                config,
                Incarnation(vere_process::secret::random_number()),
                None,
            );
            if let Some(spill) = spill {
                node.set_spill_store(Box::new(spill));
            }
            Host::new(poll, listeners, node, stop, alive)?.run(ready)
        }
        Durability::Synced { directory, log } => {
            let recovering = Recovering::of(&directory, octets_read);
            let logs = NodeDirectory::open(&directory, log, wake)?;
            let node = restore(config, logs, spill)?;
            drop(recovering);
            Host::new(poll, listeners, node, stop, alive)?.run(ready)
        }
    }
}

/// Sockets and the node.
struct Host<S: SpoolLogStore> {
    poll: Poll,
    listeners: Vec<Listener>,
    node: Node<S>,
    stop: Stop,
    alive: fn(),
    clock: Clock,
    sockets: Vec<Option<Socket>>,
    /// Sockets with something to do.
    queue: VecDeque<usize>,
    /// Connections may be waiting to be accepted.
    accepting: bool,
    failure_told: bool,
    complaints: Complaints,
    renewals: Renewals,
}

impl<S: SpoolLogStore> Host<S> {
    fn new(
        poll: Poll,
        mut listeners: Vec<Listener>,
        node: Node<S>,
        stop: Stop,
        alive: fn(),
    ) -> Result<Self, NodeError> {
        for listener in &mut listeners {
            poll.registry()
                .register(&mut listener.socket, LISTENER, Interest::READABLE)
                .map_err(io_error("use a listening socket"))?;
        }
        Ok(Self {
            poll,
            listeners,
            node,
            stop,
            alive,
            clock: Clock::start(),
            sockets: Vec::new(),
            queue: VecDeque::new(),
            accepting: true,
            failure_told: false,
            complaints: Complaints::default(),
            renewals: Renewals::default(),
        })
    }

    fn run(mut self, ready: impl FnOnce()) -> Result<(), NodeError> {
        let mut events = Events::with_capacity(256);
        let mut next_tick = Instant::now() + TICK;
        let mut stop_by = None;
        for listener in &self.listeners {
            listener.tell();
        }
        ready();
        loop {
            let busy = !self.queue.is_empty() || self.node.is_busy();
            let wait = if busy {
                Duration::ZERO
            } else {
                self.wait(next_tick)
            };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other.map_err(io_error("wait for sockets"))?,
            }
            for event in &events {
                self.note(event);
            }
            let now = self.clock.now();
            self.turn(now);
            while let Some(denial) = self.node.take_denial() {
                tracing::warn!(%denial, "turned an account away");
            }
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + TICK;
                self.tick(now);
            }
            if self.stop.is_asked() {
                let by = *stop_by.get_or_insert_with(|| {
                    self.node.shut_down();
                    self.serve_touched();
                    Instant::now() + STOP_PATIENCE
                });
                if self.node.is_idle() || Instant::now() >= by {
                    return Ok(());
                }
            }
        }
    }

    /// How long there is nothing to do unless something happens.
    fn wait(&self, next_tick: Instant) -> Duration {
        let tick = next_tick.saturating_duration_since(Instant::now());
        let due = self.node.deadline();
        due.map_or(tick, |due| tick.min(due.saturating_since(self.clock.now())))
    }

    fn note(&mut self, event: &mio::event::Event) {
        match event.token() {
            LISTENER => self.accepting = true,
            WAKE => {}
            Token(index) => {
                if let Some(Some(socket)) = self.sockets.get_mut(index) {
                    socket.ended |= event.is_read_closed();
                    socket.readable |= event.is_readable() || event.is_error() || socket.ended;
                    socket.writable |= event.is_writable() || event.is_error();
                    self.enqueue(index);
                }
            }
        }
    }

    fn enqueue(&mut self, index: usize) {
        if let Some(Some(socket)) = self.sockets.get_mut(index)
            && !std::mem::replace(&mut socket.queued, true)
        {
            self.queue.push_back(index);
        }
    }

    /// Serves every socket that was ready once, and then what came of it.
    fn turn(&mut self, now: Timestamp) {
        if self.accepting {
            self.accept(now);
        }
        for _ in 0..self.queue.len() {
            let Some(index) = self.queue.pop_front() else {
                break;
            };
            self.serve_socket(index, now);
        }
        self.node.end_turn(now);
        self.serve_touched();
        while let Some(notice) = self.node.take_notice() {
            tell(&notice);
        }
        if let Some(reason) = self.node.take_spill_trouble() {
            tracing::warn!(reason, "cannot write out what memory does not hold");
        }
        if let Some((group, error)) = self.node.failure()
            && !self.failure_told
        {
            tracing::error!(group, %error, "spool group failed: nothing is acknowledged any more");
            self.failure_told = true;
        }
    }

    fn serve_touched(&mut self) {
        while let Some(ConnectionId(index)) = self.node.next_touched() {
            self.write(index);
            // It may take input again, if some is there: an event tells of what comes.
            let socket = self.sockets.get(index).and_then(Option::as_ref);
            if socket.is_some_and(|socket| socket.readable)
                && self.node.takes_input(ConnectionId(index))
            {
                self.enqueue(index);
            }
        }
    }

    fn tick(&mut self, now: Timestamp) {
        self.node.tick(now);
        self.serve_touched();
        self.accepting = true;
        (self.alive)();
    }

    fn accept(&mut self, now: Timestamp) {
        for number in 0..self.listeners.len() {
            let error = loop {
                match self.listeners[number].accept() {
                    Ok((stream, peer, Ok(line))) => self.add(stream, peer, line, now),
                    Ok((_, peer, Err(error))) => {
                        tracing::error!(%peer, %error, "connection dropped");
                    }
                    Err(error) => break error,
                }
            };
            if error.kind() != io::ErrorKind::WouldBlock {
                tracing::warn!(%error, "cannot accept a connection");
            }
        }
        // Out of descriptors, perhaps: the next tick tries again.
        self.accepting = false;
    }

    fn add(&mut self, mut stream: TcpStream, peer: SocketAddr, line: Option<Line>, now: Timestamp) {
        // Without it acknowledgements wait; a socket that refuses is only slower.
        let _ = stream.set_nodelay(true);
        let Some(id) = self.node.accept(vere_process::secret::random(), now) else {
            tracing::warn!(%peer, "connection dropped: there are too many");
            return;
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self
            .poll
            .registry()
            .register(&mut stream, Token(id.0), interest)
        {
            tracing::warn!(%peer, %error, "connection dropped");
            self.node.closed(id);
            return;
        }
        let socket = Socket::new(stream, peer, line);
        if self.sockets.len() <= id.0 {
            self.sockets.resize_with(id.0 + 1, || None);
        }
        self.sockets[id.0] = Some(socket);
        self.enqueue(id.0);
    }

    fn serve_socket(&mut self, index: usize, now: Timestamp) {
        if let Some(Some(socket)) = self.sockets.get_mut(index) {
            socket.queued = false;
        }
        self.read(index, now);
        let socket = self.sockets.get_mut(index).and_then(Option::as_mut);
        if socket.is_some_and(Socket::take_renewal) {
            return self.hand_over(index);
        }
        self.write(index);
    }

    /// Gives a connection that brings the next certificate to a thread of its own.
    fn hand_over(&mut self, index: usize) {
        let Some(mut socket) = self.sockets.get_mut(index).and_then(Option::take) else {
            return;
        };
        // The socket goes with its registration in any case.
        let _ = self.poll.registry().deregister(&mut socket.stream);
        self.node.closed(ConnectionId(index));
        let tls = self.listeners.iter().find_map(|one| one.tls.clone());
        if let (Some(line), Some(tls)) = (socket.tls, tls) {
            self.renewals
                .start(socket.stream.into(), *line, tls, socket.peer);
        }
    }

    /// Reads one block, straight to where it stays.
    fn read(&mut self, index: usize, now: Timestamp) {
        let id = ConnectionId(index);
        let Some(Some(socket)) = self.sockets.get_mut(index) else {
            return;
        };
        if !socket.readable {
            return;
        }
        let buffer = self.node.buffer(id);
        if buffer.is_empty() {
            return;
        }
        let room = buffer.len();
        match socket.read(buffer) {
            Ok(0) => self.close(index),
            Ok(count) => {
                let more = !socket.is_drained(count, room);
                socket.readable = more;
                self.node.received(id, count, now);
                if more {
                    self.enqueue(index);
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => socket.readable = false,
                io::ErrorKind::Interrupted => self.enqueue(index),
                _ => self.close(index),
            },
        }
    }

    /// Writes what is pending, as far as the socket takes it.
    fn write(&mut self, index: usize) {
        let id = ConnectionId(index);
        loop {
            let Some(Some(socket)) = self.sockets.get_mut(index) else {
                return;
            };
            // What is to be closed need not wait until its peer reads.
            if !socket.writable && !self.node.is_finished(id) {
                return;
            }
            if socket.is_handshaking() {
                // Closed by the node, which waits for nobody longer than it may take.
                if !self.node.takes_input(id) {
                    socket.part(false);
                    self.close(index);
                }
                return;
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.node.output(id, &mut slices);
            let written = if count == 0 {
                socket.flush().map(|()| None)
            } else {
                socket.write(&slices[..count]).map(Some)
            };
            match written {
                Ok(None) => break,
                Ok(Some(written)) => self.node.sent(id, written),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        socket.writable = false;
                        return;
                    }
                    io::ErrorKind::Interrupted => {}
                    _ => return self.close(index),
                },
            }
        }
        if self.node.is_finished(id) {
            self.close(index);
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(mut socket) = self.sockets[index].take() {
            if let Some(parting) = self.node.parting(ConnectionId(index)) {
                self.complaints.note(socket.peer, &parting, Instant::now());
            }
            socket.part(true);
            // The socket goes with its registration in any case.
            let _ = self.poll.registry().deregister(&mut socket.stream);
            self.node.closed(ConnectionId(index));
        }
    }
}
