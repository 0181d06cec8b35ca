//! The loop: sockets on one side, the screen and the machines of SMTP on the other.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use vere_handoff::session::STATE_OCTETS_MAX;
use vere_process::clock::steady;
use vere_process::{secret, smtp};
use vere_screen::{Answer, Decision, Due, Greeting, Recipient, Screen, Step as Asks, Ticket};
use vere_settings::{Front, Settings};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{
    Answer as Reply, Peer, Question, Role, Server, ServerConfig, Step as Move,
};
use vere_units::Timestamp;

use super::broker::{Answered, Broker};
use super::gateway::Gateway;
use super::guest::{Guest, Next, READ_OCTETS, token_of};
use super::replies::{refusal, turned_away};
use super::terms::terms;
use super::workers::Workers;
use vere_process::refusals;

/// Tokens from here on are no connections of clients.
const LISTENERS: usize = usize::MAX - 0xFFFF;
const WAKE: Token = Token(LISTENERS + 0x1000);
const GATEWAY: Token = Token(LISTENERS + 0x1001);
const BROKER: Token = Token(LISTENERS + 0x1002);
const WORKERS: Token = Token(LISTENERS + 0x1003);

/// Connections taken before other events have their turn.
const ACCEPTS_MAX: usize = 64;
/// How often the front looks for the other processes, and says that it is alive.
const TICK: Duration = Duration::from_millis(100);
const ALIVE: Duration = Duration::from_secs(1);
/// How long sessions of workers may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The name of the service in log lines.
const SERVICE: &str = "smtp";

/// Orders from the thread of signals.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The front has to end.
    pub(crate) stop: AtomicBool,
    /// Other settings are in force.
    pub(crate) settings: std::sync::Mutex<Option<Arc<Settings>>>,
}

/// The front.
pub(crate) struct Host {
    poll: Poll,
    orders: Arc<Orders>,
    settings: Arc<Settings>,
    config: Arc<ServerConfig>,
    listeners: Vec<TcpListener>,
    screen: Screen,
    /// By the slot of the ticket.
    guests: Vec<Option<Guest>>,
    workers: Workers,
    broker: Broker,
    gateway: Gateway,
    scratch: Vec<u8>,
    /// Listeners that may have more connections.
    accepting: bool,
    /// The other processes were there once.
    is_ready: bool,
}

impl Host {
    /// Opens the sockets of the other processes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(
        settings: Arc<Settings>,
        front: Front,
        listeners: Vec<std::net::TcpListener>,
        orders: Arc<Orders>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let mut sockets = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Token(LISTENERS.saturating_add(number));
            poll.registry()
                .register(&mut listener, token, Interest::READABLE)?;
            sockets.push(listener);
        }
        let folder = settings.front_directory();
        std::fs::create_dir_all(&folder)?;
        let tasks = front.tasks_per_worker;
        let workers = Workers::new(&settings.workers_socket(), WORKERS, tasks, poll.registry())?;
        let host = Self {
            screen: Screen::new(terms(&settings, front), secret::random()),
            config: Arc::new(smtp::config(&settings, Role::Mx)),
            broker: Broker::new(settings.broker_socket(), BROKER),
            gateway: Gateway::new(settings.intake_socket(), GATEWAY),
            poll,
            orders,
            settings,
            listeners: sockets,
            guests: Vec::new(),
            workers,
            scratch: vec![0; READ_OCTETS],
            accepting: true,
            is_ready: false,
        };
        Ok((host, waker))
    }

    /// Runs until the stop is ordered. `ready` is called when the other processes are there, `alive` each second.
    ///
    /// # Errors
    /// When the system refuses to wait for sockets.
    pub(crate) fn run(mut self, ready: fn(), alive: fn()) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        let (mut tick, mut told) = (Instant::now(), Instant::now());
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
                self.event(event.token(), event.is_readable(), now);
            }
            if !self.is_ready && self.is_complete() {
                self.is_ready = true;
                ready();
            }
            self.accept(now);
            self.due(now);
            if tick.elapsed() >= TICK {
                tick = Instant::now();
                self.look_around(now);
            }
            let unanswered = self.broker.flush();
            self.answers(unanswered, now);
            if told.elapsed() >= ALIVE {
                told = Instant::now();
                alive();
            }
            if self.orders.stop.load(Ordering::Acquire) {
                let by = *stop_by.get_or_insert_with(|| {
                    self.close_all();
                    Instant::now() + STOP_PATIENCE
                });
                if self.workers.sessions() == 0 || Instant::now() >= by {
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
        self.broker.is_there() && self.workers.has_room() && self.gateway.is_there()
    }

    fn wait(&self, tick: Instant) -> Duration {
        if self.accepting && self.is_ready && !self.listeners.is_empty() {
            return Duration::ZERO;
        }
        let next = self.screen.next_due();
        let due = next.map_or(TICK, |then| then.saturating_since(steady()));
        due.min(TICK.saturating_sub(tick.elapsed()))
    }

    fn event(&mut self, token: Token, is_readable: bool, now: Timestamp) {
        match token {
            WAKE => self.reload(),
            GATEWAY => self.gateway.read(),
            BROKER => {
                let answers = self.broker.read();
                self.answers(answers, now);
            }
            WORKERS => self.workers.accept(self.poll.registry()),
            Token(number) if number >= LISTENERS => match self.workers.place(token) {
                Some(place) => {
                    let ended = self.workers.read(place);
                    self.ended(ended, now);
                }
                None => self.accepting = true,
            },
            Token(number) => {
                let ticket = Ticket::from_bits(number as u64);
                if is_readable && let Some(guest) = self.guest(ticket) {
                    guest.readable();
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
            && let Some(front) = settings.front
        {
            self.screen.set_terms(terms(&settings, front));
            self.config = Arc::new(smtp::config(&settings, Role::Mx));
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
            None => self.screen.arrive(now, address.ip()),
            Some(_) => {
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
        let peer = self.peer(address, stream.local_addr()?);
        let server = Server::new(Arc::clone(&self.config), peer, now);
        let token = Token(token_of(ticket));
        self.poll
            .registry()
            .register(&mut stream, token, Interest::READABLE)?;
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

    fn peer(&self, address: std::net::SocketAddr, local: std::net::SocketAddr) -> Peer {
        let mut peer = Peer::new(address, local);
        peer.may_relay = self.settings.relay.contains(address.ip());
        peer.may_prioritise = self.settings.priority.networks.contains(address.ip());
        peer
    }

    fn greet(&mut self, ticket: Ticket, now: Timestamp) {
        if let Some(guest) = self.guest(ticket) {
            guest.is_greeted = true;
        }
        self.serve(ticket, now);
    }

    fn guest(&mut self, ticket: Ticket) -> Option<&mut Guest> {
        let guest = self.guests.get_mut(slot(ticket))?.as_mut();
        guest.filter(|guest| guest.ticket == ticket)
    }

    /// Moves a session on as far as it goes now.
    fn serve(&mut self, ticket: Ticket, now: Timestamp) {
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
            let answer = match next {
                Next::Wait => {
                    let _ = self.screen.activity(now, ticket);
                    return;
                }
                Next::Gone | Next::Step(Move::Close) => return self.leave(ticket),
                Next::Step(Move::Ask(question)) => self.ask(ticket, question, now),
                // An answer is awaited; neither TLS nor anything else is offered.
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

    /// Gives a session an answer. False: the session has left for a worker.
    fn answer(&mut self, ticket: Ticket, answer: Result<(), Refusal>, now: Timestamp) -> bool {
        let Some(guest) = self.guest(ticket) else {
            return false;
        };
        guest.server.answer(Reply::Policy(answer), now);
        let notes = guest.server.take_notes();
        refusals::noted(SERVICE, &guest.server, &notes.refused);
        if guest.server.has_recipient() {
            self.hand_over(ticket, now);
            return false;
        }
        true
    }

    /// Answers a question of a session, if the answer is known.
    fn ask(
        &mut self,
        ticket: Ticket,
        question: Question,
        now: Timestamp,
    ) -> Option<Result<(), Refusal>> {
        match question {
            Question::Mail(mail) => {
                let sender = mail.reverse_path.as_str();
                let answer = self.mail(ticket, sender, now);
                self.log(ticket, sender, None, answer.as_ref().err());
                Some(answer)
            }
            Question::Recipient(rcpt) => {
                let address = rcpt.forward_path.as_str();
                match self.recipient(ticket, address, now) {
                    Ok(()) => None,
                    Err(refusal) => {
                        self.log_recipient(ticket, Some(address), &refusal);
                        Some(Err(refusal))
                    }
                }
            }
            // Neither authentication nor XCLIENT is offered, and text goes to a worker.
            _ => Some(Err(Refusal::LocalError)),
        }
    }

    fn mail(&mut self, ticket: Ticket, sender: &str, now: Timestamp) -> Result<(), Refusal> {
        if let Some(closed) = self.gateway.closed() {
            return Err(closed.clone());
        }
        let helo = self
            .guest(ticket)
            .and_then(|guest| guest.server.helo().cloned());
        if let Some(helo) = helo {
            // A refusal comes with MAIL as well.
            let _ = self.screen.said_helo(now, ticket, &helo.to_string());
        }
        match self.screen.mail(now, ticket, sender) {
            Ok(Asks::Decided(decision)) => self.decided(ticket, decision),
            Ok(Asks::Ask(_)) | Err(_) => Ok(()),
        }
    }

    /// Asks about a recipient. The answer comes later.
    fn recipient(&mut self, ticket: Ticket, address: &str, now: Timestamp) -> Result<(), Refusal> {
        if !self.workers.has_room() {
            return Err(Refusal::Busy);
        }
        let may_relay = self
            .guest(ticket)
            .is_some_and(|guest| guest.server.peer().may_relay);
        match self.screen.recipient(now, ticket, address) {
            Ok(Asks::Decided(decision)) => self.decided(ticket, decision),
            Ok(Asks::Ask(questions)) => {
                self.broker
                    .ask((ticket, questions.round), address, may_relay)
            }
            Err(_) => Err(Refusal::Busy),
        }
    }

    /// A decision as an answer; one that closes the connection ends the session behind the answer.
    fn decided(&mut self, ticket: Ticket, decision: Decision) -> Result<(), Refusal> {
        if matches!(decision, Decision::Close(_))
            && let Some(guest) = self.guest(ticket)
        {
            guest.server.shut_down();
        }
        refusal(decision).map_or(Ok(()), Err)
    }

    /// Takes answers of the broker.
    fn answers(&mut self, answers: Vec<Answered>, now: Timestamp) {
        for ((ticket, round), answer) in answers {
            let recipient = match &answer {
                Ok(()) => Recipient::Accepted,
                Err(Refusal::MailboxUnknown | Refusal::DomainUnknown) => Recipient::Unknown,
                Err(refusal) if refusal.is_permanent() => Recipient::Refused,
                Err(_) => Recipient::Deferred,
            };
            let decided = self
                .screen
                .answered(now, ticket, round, Answer::Recipient(recipient));
            let Ok(Some(decision)) = decided else {
                continue;
            };
            let decided = self.decided(ticket, decision);
            // The broker knows the reason better than its kind.
            let answer = match (decided, answer) {
                (Err(_), Err(refusal)) if !matches!(decision, Decision::Close(_)) => Err(refusal),
                (decided, _) => decided,
            };
            if let Err(refusal) = &answer {
                self.log_recipient(ticket, None, refusal);
            }
            if self.answer(ticket, answer, now) {
                self.serve(ticket, now);
            }
        }
    }

    /// Gives a session with an accepted recipient to a worker.
    fn hand_over(&mut self, ticket: Ticket, now: Timestamp) {
        let guest = self.guests.get_mut(slot(ticket)).and_then(Option::take);
        let Some(guest) = guest else {
            return;
        };
        let (server, mut stream, unread) = guest.into_parts();
        let _ = self.poll.registry().deregister(&mut stream);
        let _ = stream.set_nodelay(true);
        match server.hand_over() {
            Ok(handover) => {
                let mut state = Vec::new();
                handover.encode(&mut state);
                if state.len() > STATE_OCTETS_MAX {
                    tracing::warn!(octets = state.len(), "session too large for a worker");
                    let _ = self.screen.left(ticket);
                    return;
                }
                let _ = self.screen.trusted(now, ticket);
                self.workers.give(ticket, stream, &state, &unread, now);
            }
            Err((_, refused)) => {
                tracing::error!(%refused, "session cannot be handed over");
                let _ = self.screen.left(ticket);
            }
        }
    }

    /// Handles what the screen has waited for.
    fn due(&mut self, now: Timestamp) {
        while let Some((ticket, due)) = self.screen.due(now) {
            match due {
                Due::Greet => self.greet(ticket, now),
                Due::Decided(decision) => {
                    let answer = self.decided(ticket, decision);
                    if self.answer(ticket, answer, now) {
                        self.serve(ticket, now);
                    }
                }
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
    fn ended(&mut self, ended: Vec<Ticket>, now: Timestamp) {
        for ticket in ended {
            let _ = self.screen.done(now, ticket, 0);
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
    fn leave(&mut self, ticket: Ticket) {
        if self.guest(ticket).is_some()
            && let Some(place) = self.guests.get_mut(slot(ticket))
        {
            *place = None;
            let _ = self.screen.left(ticket);
        }
    }

    fn log_recipient(&mut self, ticket: Ticket, recipient: Option<&str>, refusal: &Refusal) {
        let Some(guest) = self.guest(ticket) else {
            return;
        };
        let sender = guest
            .server
            .mail_from()
            .map(|mail| mail.reverse_path.as_str());
        let sender = sender.unwrap_or_default().to_owned();
        self.log(ticket, &sender, recipient, Some(refusal));
    }

    fn log(
        &mut self,
        ticket: Ticket,
        sender: &str,
        recipient: Option<&str>,
        refusal: Option<&Refusal>,
    ) {
        if let (Some(guest), Some(refusal)) = (self.guest(ticket), refusal) {
            refusals::log(SERVICE, &guest.server, sender, recipient, refusal);
        }
    }
}

fn slot(ticket: Ticket) -> usize {
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
