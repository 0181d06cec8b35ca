//! The loop: sockets on one side, the screen and the machines of SMTP on the other.

use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use vere_net::listen::send_at_once;
use vere_process::clock::steady;
use vere_process::{accept, smtp};
use vere_screen::{Due, Greeting, Screen, Ticket};
use vere_settings::{Front, Settings};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Peer, Server, ServerConfig, Step as Move};
use vere_units::Timestamp;

use super::broker::Broker;
use super::gateway::Gateway;
use super::greylist;
use super::guest::{Guest, Next, READ_OCTETS, token_of};
use super::metrics::Figures;
use super::orders::Orders;
use super::replies::turned_away;
use super::terms::terms;
use super::tls::Tls;
use super::workers::{Ended, Room, Workers};

/// The first token that belongs to no connection of a client.
const LISTENERS: usize = usize::MAX - 0xFFFF;
const WAKE: Token = Token(LISTENERS + 0x1000);
const GATEWAY: Token = Token(LISTENERS + 0x1001);
const BROKER: Token = Token(LISTENERS + 0x1002);
const WORKERS: Token = Token(LISTENERS + 0x1003);

/// Connections taken before other events have their turn.
const ACCEPTS_MAX: usize = 64;
/// How often the front looks for the other processes while one of them is missing, and while all are there; then it also says that it is
/// alive.
const TICK: Duration = Duration::from_millis(100);
const ALIVE: Duration = Duration::from_secs(1);
/// How often the greylist is kept.
const KEEP: Duration = Duration::from_secs(600);
/// How long sessions of workers may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The name of the service in log lines.
pub(crate) const SERVICE: &str = "smtp";

/// The front.
pub(crate) struct Host {
    pub(crate) poll: Poll,
    orders: Arc<Orders>,
    settings: Arc<Settings>,
    config: Arc<ServerConfig>,
    listeners: Vec<TcpListener>,
    pub(crate) screen: Screen,
    /// By the slot of the ticket.
    pub(crate) guests: Vec<Option<Guest>>,
    pub(crate) workers: Workers,
    pub(crate) broker: Broker,
    pub(crate) gateway: Gateway,
    pub(crate) tls: Tls,
    figures: Figures,
    scratch: Vec<u8>,
    /// Listeners that may have more connections.
    accepting: bool,
    /// Sessions go to workers before any command.
    hands_over_at_once: bool,
    /// The other processes were there once.
    is_ready: bool,
    /// Descriptors were short at the last accept.
    is_short: bool,
}

impl Host {
    /// Opens the sockets of the other processes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(
        settings: Arc<Settings>,
        front: &Front,
        listeners: Vec<std::net::TcpListener>,
        orders: Arc<Orders>,
        figures: Figures,
    ) -> io::Result<(Self, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let mut sockets = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            // A reply of a worker waits for no acknowledgement of the reply before.
            send_at_once(&listener)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Token(LISTENERS.saturating_add(number));
            poll.registry()
                .register(&mut listener, token, Interest::READABLE)?;
            sockets.push(listener);
        }
        let folder = settings.front_directory();
        accept::private_folder(&folder)?;
        let room = Room {
            waiting: front.tasks_per_worker,
            sessions: front.sessions_at_once,
        };
        let terms = terms(&settings, front);
        let mut tls = Tls::start(&settings, front, &[Arc::clone(&waker)])?;
        let tls = tls.pop().ok_or(io::ErrorKind::NotFound)?;
        let (_, mut screens) = greylist::screens(&settings, &terms, NonZeroU32::MIN);
        let screen = screens.pop().ok_or(io::ErrorKind::NotFound)?;
        let path = settings.workers_socket();
        let workers = Workers::new(&path, WORKERS, room, poll.registry(), figures.clone())?;
        let host = Self {
            screen,
            config: Arc::new(smtp::at_port_25(&settings, front)),
            broker: Broker::new(settings.broker_socket(), BROKER, figures.clone()),
            gateway: Gateway::new(settings.intake_socket(), GATEWAY),
            tls,
            figures,
            poll,
            orders,
            settings,
            listeners: sockets,
            guests: Vec::new(),
            workers,
            scratch: vec![0; READ_OCTETS],
            accepting: true,
            hands_over_at_once: front.hands_over_at_once,
            is_ready: false,
            is_short: false,
        };
        Ok((host, waker))
    }

    /// Runs until the stop is ordered. `ready` is called when the other processes are there, `alive` each second.
    ///
    /// # Errors
    /// When the system refuses to wait for sockets.
    pub(crate) fn run(mut self, ready: impl Fn(), alive: fn()) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        let [mut tick, mut told, mut kept] = [Instant::now(); 3];
        self.look_around(steady());
        let mut stop_by = None;
        loop {
            let wait = self.wait(tick);
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => other?,
            }
            let now = steady();
            for event in &events {
                let readable = (event.is_readable(), event.is_read_closed());
                self.event(event.token(), readable, now);
            }
            let ended = self.workers.read();
            self.ended(ended, now);
            if !self.is_ready && self.is_complete() {
                self.is_ready = true;
                ready();
            }
            self.accept(now);
            self.due(now);
            if tick.elapsed() >= self.tick() {
                tick = Instant::now();
                self.look_around(now);
            }
            let unanswered = self.broker.flush();
            self.answers(unanswered, now);
            if told.elapsed() >= ALIVE {
                told = Instant::now();
                alive();
                let occupancy = self.workers.occupancy();
                self.figures.look(&mut self.screen, occupancy);
            }
            if kept.elapsed() >= KEEP {
                kept = Instant::now();
                greylist::keep(&self.settings, 0, &self.screen);
            }
            if self.orders.stop.load(Ordering::Acquire) {
                let by = *stop_by.get_or_insert_with(|| {
                    self.close_all();
                    Instant::now() + STOP_PATIENCE
                });
                // The last replies may be with the threads of TLS.
                let is_quiet = self.workers.sessions() == 0 && self.tls.open() == 0;
                if is_quiet || Instant::now() >= by {
                    greylist::keep(&self.settings, 0, &self.screen);
                    return Ok(());
                }
            }
        }
    }

    /// Connects to processes that are not there yet, hears orders, and gives up what has waited for too long.
    fn look_around(&mut self, now: Timestamp) {
        self.broker.connect(self.poll.registry());
        self.gateway.connect(self.poll.registry());
        self.reload();
        let ended = self.workers.give_up(now);
        self.ended(ended, now);
        // A connection that could not be accepted is no event again.
        self.accepting = true;
    }

    /// Whether all processes are there that a session may need. Clients wait until then, once.
    fn is_complete(&self) -> bool {
        self.broker.is_there()
            && self.workers.has_room()
            && self.gateway.is_there()
            && self.tls.is_there()
    }

    fn wait(&self, tick: Instant) -> Duration {
        let may_accept = self.accepting && self.is_ready && !self.listeners.is_empty();
        if may_accept || self.workers.is_readable() {
            return Duration::ZERO;
        }
        let longest = self.tick();
        let next = self.screen.next_due();
        let due = next.map_or(longest, |then| then.saturating_since(steady()));
        due.min(longest.saturating_sub(tick.elapsed()))
    }

    fn tick(&self) -> Duration {
        let is_stopping = self.orders.stop.load(Ordering::Relaxed);
        match self.is_complete() && !self.is_short && !is_stopping {
            true => ALIVE,
            false => TICK,
        }
    }

    fn event(&mut self, token: Token, (is_readable, is_closed): (bool, bool), now: Timestamp) {
        match token {
            WAKE => {
                self.reload();
                self.secured(now);
            }
            GATEWAY => self.gateway.read(),
            BROKER => {
                let answers = self.broker.read();
                self.answers(answers, now);
            }
            WORKERS => self.workers.accept(self.poll.registry()),
            Token(number) if number >= LISTENERS => match self.workers.place(token) {
                Some(place) => self.workers.readable(place),
                None => self.accepting = true,
            },
            Token(number) => {
                let ticket = Ticket::from_bits(number as u64);
                if is_readable && let Some(guest) = self.guest(ticket) {
                    guest.readable(is_closed);
                }
                self.serve(ticket, now);
            }
        }
    }

    fn reload(&mut self) {
        let settings = self.orders.settings.lock();
        let settings = settings
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(settings) = settings
            && let Some(front) = &settings.front
        {
            self.screen.set_terms(terms(&settings, front));
            self.config = Arc::new(smtp::at_port_25(&settings, front));
            self.settings = settings;
        }
    }

    /// Takes connections, a bounded number at once.
    fn accept(&mut self, now: Timestamp) {
        if !self.accepting || !self.is_ready {
            return;
        }
        self.accepting = false;
        let (mut arrived, mut short) = (Vec::new(), false);
        for listener in &self.listeners {
            for _ in 0..ACCEPTS_MAX {
                match listener.accept() {
                    Ok(connection) => arrived.push(connection),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, service = SERVICE, "cannot accept a connection");
                        short = true;
                        break;
                    }
                }
            }
            self.accepting |= arrived.len() >= ACCEPTS_MAX;
        }
        self.is_short = short;
        if short && let Some(ticket) = self.screen.evict() {
            self.leave(ticket);
        }
        for (stream, address) in arrived {
            // A client that is gone already costs nothing further.
            let _ = self.arrive(stream, address, now);
        }
    }

    fn arrive(
        &mut self,
        mut stream: TcpStream,
        address: std::net::SocketAddr,
        now: Timestamp,
    ) -> io::Result<()> {
        let admitted = match self.gateway.closed() {
            None | Some(Refusal::StorageFull) => self.screen.arrive(now, address.ip()),
            Some(_) => {
                self.figures.closed();
                let hostname = &self.settings.hostname;
                let shut =
                    format!("421 4.3.2 {hostname} takes no mail for now, try again later\r\n");
                return stream.write_all(shut.as_bytes());
            }
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(away) => {
                tracing::debug!(peer = %address, reason = away.0.name(), "turned away");
                let line = turned_away(&self.settings.hostname, away.0);
                return stream.write_all(line.as_bytes());
            }
        };
        let ticket = admitted.ticket;
        if self.hands_over_at_once {
            return self.give_at_once(ticket, stream, now);
        }
        let registered = self.register(&mut stream, ticket);
        if registered.is_err() {
            let _ = self.screen.left(ticket);
        }
        let peer = self.peer(address, registered?);
        let server = Server::new(Arc::clone(&self.config), peer, now);
        let guest = Guest::new(ticket, server, stream);
        let slot = slot(ticket);
        if self.guests.len() <= slot {
            self.guests.resize_with(slot.saturating_add(1), || None);
        }
        if let Some(place) = self.guests.get_mut(slot) {
            *place = Some(guest);
        }
        if admitted.greeting == Greeting::Now {
            self.greet(ticket, now);
        }
        Ok(())
    }

    /// Has the kernel tell of the connection, and returns our address.
    fn register(&self, stream: &mut TcpStream, ticket: Ticket) -> io::Result<std::net::SocketAddr> {
        let token = Token(token_of(ticket));
        let registry = self.poll.registry();
        registry.register(stream, token, Interest::READABLE)?;
        stream.local_addr()
    }

    fn peer(&self, address: std::net::SocketAddr, local: std::net::SocketAddr) -> Peer {
        let mut peer = smtp::peer(&self.settings, address, local);
        peer.tls_available = self.tls.is_offered();
        peer
    }

    fn greet(&mut self, ticket: Ticket, now: Timestamp) {
        if let Some(guest) = self.guest(ticket) {
            guest.is_greeted = true;
        }
        self.serve(ticket, now);
    }

    pub(crate) fn guest(&mut self, ticket: Ticket) -> Option<&mut Guest> {
        let guest = self.guests.get_mut(slot(ticket))?.as_mut();
        guest.filter(|guest| guest.ticket == ticket)
    }

    /// Moves a session on as far as it goes now.
    pub(crate) fn serve(&mut self, ticket: Ticket, now: Timestamp) {
        loop {
            let registry = self.poll.registry();
            let guest = self.guests.get_mut(slot(ticket)).and_then(Option::as_mut);
            let Some(guest) = guest.filter(|guest| guest.ticket == ticket) else {
                return;
            };
            let next = match guest.is_greeted {
                true => guest.step(&mut self.scratch, now, registry),
                false => match guest.has_spoken(&mut self.scratch, now) {
                    Ok(true) => {
                        // The machine answers it by the end of the session.
                        guest.is_greeted = true;
                        let _ = self.screen.spoke_early(ticket);
                        continue;
                    }
                    Ok(false) => Next::Wait,
                    Err(_) => Next::Gone,
                },
            };
            self.note(ticket);
            let answer = match next {
                Next::Wait => return self.waits(ticket, now),
                Next::Gone | Next::Step(Move::Close) => return self.leave(ticket),
                Next::Step(Move::Ask(question)) => self.ask(ticket, question, now),
                Next::Step(Move::StartTls) => return self.secure(ticket, now),
                // An answer is awaited.
                Next::Step(_) => return,
            };
            match answer {
                Some(answer) => {
                    if !self.answer(ticket, answer, now) {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// The client has to send or to read. One that the screen has given up is not waited for.
    pub(crate) fn waits(&mut self, ticket: Ticket, now: Timestamp) {
        let is_named = self
            .guest(ticket)
            .is_some_and(|guest| guest.server.helo().is_some());
        let known = match is_named {
            true => self.screen.command(now, ticket),
            false => self.screen.activity(now, ticket),
        };
        if known.is_err() {
            self.leave(ticket);
        }
    }

    /// Handles what the screen has waited for.
    fn due(&mut self, now: Timestamp) {
        while let Some((ticket, due)) = self.screen.due(now) {
            match due {
                Due::Greet => self.greet(ticket, now),
                Due::Decided(decision) => self.conclude(ticket, decision, now),
                Due::Close(reason) => {
                    tracing::debug!(reason = reason.name(), "connection closed");
                    if let Some(guest) = self.guest(ticket) {
                        guest.server.timed_out();
                    }
                    self.serve(ticket, now);
                    // A client that does not read is not waited for.
                    self.leave(ticket);
                }
            }
        }
    }

    /// Sessions of workers have ended.
    fn ended(&mut self, ended: Vec<Ended>, now: Timestamp) {
        for Ended { ticket, refused } in ended {
            let _ = self.screen.done(now, ticket, refused);
        }
    }

    /// Ends every session that is not trusted, and takes no further one.
    fn close_all(&mut self) {
        self.listeners.clear();
        let now = steady();
        let tickets: Vec<Ticket> = self
            .guests
            .iter()
            .flatten()
            .map(|guest| guest.ticket)
            .collect();
        for ticket in tickets {
            if let Some(guest) = self.guest(ticket) {
                guest.server.shut_down();
            }
            self.serve(ticket, now);
            self.leave(ticket);
        }
    }

    /// Forgets a connection, which closes it.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        if self.guest(ticket).is_some()
            && let Some(place) = self.guests.get_mut(slot(ticket))
        {
            *place = None;
            let _ = self.screen.left(ticket);
        }
    }
}

pub(crate) fn slot(ticket: Ticket) -> usize {
    (ticket.to_bits() & u64::from(u32::MAX)) as usize
}

/// Whether accept(2) failed for the one connection only.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
