//! The loop: sockets on one side, the screen and the machines of SMTP on the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use vere_process::clock::steady;
use vere_process::smtp;
use vere_screen::{Due, Screen, Ticket};
use vere_settings::{Front, Settings};
use vere_smtp::server::{ServerConfig, Step as Move};
use vere_units::Timestamp;

use super::broker::Broker;
use super::door::{Door, LISTENERS};
use super::gateway::Gateway;
use super::greylist;
use super::guest::{Guest, Next, READ_OCTETS};
use super::loops::{Loops, Share, WAKE};
use super::metrics::Figures;
use super::proxied::Proxied;
use super::terms::terms;
use super::tls::Tls;
use super::workers::{Ended, Room, Workers};

const GATEWAY: Token = Token(LISTENERS + 0x1001);
const BROKER: Token = Token(LISTENERS + 0x1002);
const WORKERS: Token = Token(LISTENERS + 0x1003);
const PROXIED: Token = Token(LISTENERS + 0x8000);

/// How often the front looks for its peer processes while a process is missing, and while all are there; then the front also says that
/// it is alive.
const TICK: Duration = Duration::from_millis(100);
const ALIVE: Duration = Duration::from_secs(1);
/// How often the greylist is kept.
const KEEP: Duration = Duration::from_secs(600);
/// How long sessions of workers may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// A loop of the front with all that its clients need.
pub(crate) struct Host {
    pub(crate) poll: Poll,
    /// The place of the loop.
    pub(crate) number: usize,
    pub(crate) loops: Arc<Loops>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) door: Door,
    pub(crate) share: Share,
    pub(crate) screen: Screen,
    /// By the slot of the ticket.
    pub(crate) guests: Vec<Option<Guest>>,
    pub(crate) workers: Workers,
    pub(crate) broker: Broker,
    pub(crate) gateway: Gateway,
    pub(crate) tls: Tls,
    pub(crate) proxied: Proxied,
    pub(crate) figures: Figures,
    greylist: greylist::Keeper,
    scratch: Vec<u8>,
    /// Sessions go to workers before any command.
    pub(crate) hands_over_at_once: bool,
    /// The other processes were there once.
    is_ready: bool,
}

/// What a loop is made of.
pub(crate) struct Parts {
    /// The place of the loop.
    pub(crate) number: usize,
    pub(crate) loops: Arc<Loops>,
    pub(crate) poll: Poll,
    pub(crate) door: Door,
    pub(crate) screen: Screen,
    pub(crate) tls: Tls,
    pub(crate) figures: Figures,
}

impl Host {
    /// Opens the sockets of the other processes.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new(settings: Arc<Settings>, front: &Front, parts: Parts) -> io::Result<Self> {
        let Parts {
            number,
            loops,
            poll,
            door,
            screen,
            tls,
            figures,
        } = parts;
        let room = Room {
            waiting: front.tasks_per_worker,
            sessions: front.sessions_at_once,
        };
        // Further loops have the workers of the places between.
        let paths: Vec<_> = (number..front.workers as usize)
            .step_by(loops.len())
            .map(|place| settings.worker_socket(place))
            .collect();
        Ok(Self {
            config: Arc::new(smtp::at_port_25(&settings, front)),
            broker: Broker::new(
                (settings.broker_socket(), BROKER),
                figures.clone(),
                number_of_lists(front),
            ),
            gateway: Gateway::new(settings.intake_socket(), GATEWAY),
            workers: Workers::new(&paths, WORKERS, room, poll.registry(), figures.clone())?,
            share: Share::new(Arc::clone(&loops)),
            tls,
            proxied: Proxied::new(PROXIED),
            figures,
            poll,
            number,
            loops,
            settings,
            door,
            screen,
            guests: Vec::new(),
            greylist: greylist::Keeper::default(),
            scratch: vec![0; READ_OCTETS],
            hands_over_at_once: front.hands_over_at_once,
            is_ready: false,
        })
    }

    /// Runs until the stop is ordered.
    ///
    /// # Errors
    /// When the system refuses to wait for sockets.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let has_others = self.loops.len() > 1;
        let within = || tracing::error_span!("loop", front_loop = self.number).entered();
        let _within = has_others.then(within);
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
                self.loops.complete(self.number);
            }
            self.accept(now);
            self.due(now);
            if tick.elapsed() >= self.tick() {
                tick = Instant::now();
                self.look_around(now);
            }
            let unanswered = self.broker.flush(self.poll.registry());
            self.answers(unanswered, now);
            self.workers.house();
            if told.elapsed() >= ALIVE {
                told = Instant::now();
                self.loops.beat(self.number);
                let occupancy = self.workers.occupancy();
                self.figures.look(&mut self.screen, occupancy);
                // One loop shows the counts of all: an older reading of another loop would put the counters back.
                if self.number == 0 {
                    self.figures.handshakes(self.tls.handshakes());
                }
            }
            if kept.elapsed() >= KEEP {
                kept = Instant::now();
                let (settings, number) = (&self.settings, self.number);
                self.greylist.begin(settings, number, &self.screen);
            }
            self.share.settle(self.screen.open());
            if self.loops.is_stopping(self.number) {
                let by = *stop_by.get_or_insert_with(|| {
                    self.close_all();
                    Instant::now() + STOP_PATIENCE
                });
                // The last replies may be with the threads of TLS.
                let is_quiet = self.workers.sessions() == 0 && self.tls.open() == 0;
                if is_quiet || Instant::now() >= by {
                    let (settings, number) = (&self.settings, self.number);
                    self.greylist.finish(settings, number, &self.screen);
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
        self.give_up_balancers(now);
        // A worker for whom descriptors were short is no event again, and neither is a client.
        self.workers.accept(self.poll.registry());
        self.door.look();
    }

    /// Whether all processes are there that a session may need. Clients wait until then, once.
    fn is_complete(&self) -> bool {
        self.broker.is_there()
            && self.workers.has_room()
            && self.gateway.is_there()
            && self.tls.is_there()
    }

    fn wait(&self, tick: Instant) -> Duration {
        let may_accept = self.door.has_more() && self.loops.is_complete();
        if may_accept || self.workers.is_readable() {
            return Duration::ZERO;
        }
        let longest = self.tick();
        let next = self.screen.next_due();
        let due = next.map_or(longest, |then| then.saturating_since(steady()));
        due.min(longest.saturating_sub(tick.elapsed()))
    }

    fn tick(&self) -> Duration {
        let is_stopping = self.loops.is_stopping(self.number);
        match self.is_complete() && !self.door.is_short() && !is_stopping {
            true => ALIVE,
            false => TICK,
        }
    }

    fn event(&mut self, token: Token, (is_readable, is_closed): (bool, bool), now: Timestamp) {
        match token {
            WAKE => {
                self.door.look();
                self.reload();
                self.secured(now);
            }
            GATEWAY => {
                self.gateway.read();
                // One line for all loops.
                if self.number == 0 {
                    self.gateway.log();
                }
            }
            BROKER => {
                let answers = self.broker.read();
                self.answers(answers, now);
            }
            WORKERS => self.workers.accept(self.poll.registry()),
            Token(number) if number >= PROXIED.0 => {
                if let Some(place) = self.proxied.place(token) {
                    self.read_header(place, is_closed, now);
                }
            }
            Token(number) if number >= LISTENERS => match self.workers.place(token) {
                Some(place) => self.workers.readable(place),
                None => self.door.look(),
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
        if let Some(settings) = self.loops.settings(self.number)
            && let Some(front) = &settings.front
        {
            self.screen
                .set_terms(terms(&settings, front, self.loops.len()));
            self.broker.set_lists(number_of_lists(front));
            self.config = Arc::new(smtp::at_port_25(&settings, front));
            self.settings = settings;
        }
    }

    pub(crate) fn greet(&mut self, ticket: Ticket, now: Timestamp) {
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
        self.door.close();
        self.proxied.close();
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
        let Some(guest) = self.guest(ticket) else {
            return;
        };
        guest.close();
        if let Some(place) = self.guests.get_mut(slot(ticket)) {
            *place = None;
        }
        let _ = self.screen.left(ticket);
    }
}

/// The number of lists, for the counts of each.
fn number_of_lists(front: &Front) -> u8 {
    u8::try_from(front.lists.lists.len()).unwrap_or(u8::MAX)
}

pub(crate) fn slot(ticket: Ticket) -> usize {
    (ticket.to_bits() & u64::from(u32::MAX)) as usize
}
