//! Clients in a single thread with one epoll set, each with a connection for one session: as many at once as wanted,
//! or begun at a fixed rate however long the server takes.
//!
//! The clients wait for each reply before the next command, as mail programs do that meet a server for the first time.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Poll, Token};

use super::talk::{Said, Talk};
use super::tls::Tls;
use super::visit::{Kind, Mix, talk};
use crate::ids::MessageId;
use crate::load::{Ack, Letters, LoadError, Messages};
use crate::process::guard;
use crate::wire::{Link, connect_from};

/// Sessions open at once; a session that comes due above this number counts as lost.
const OPEN_MAX: usize = 10_000;

/// Wait of a client after a failed session, where the number of sessions is fixed.
const REST: Duration = Duration::from_millis(10);

/// The address of the load balancer.
pub(crate) const BALANCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Ticks of the clock, where sessions have times and where they have none.
const PACED_TICK: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_millis(10);

/// Longer times count as this value: 10 minutes, in microseconds.
const US_MAX: u64 = 600_000_000;

/// When sessions begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// As many at once: a closed loop.
    AtOnce(usize),
    /// So many a second: an open loop.
    PerSecond(f64),
}

/// The clients of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(super) target: SocketAddr,
    pub(super) pace: Pace,
    pub(super) mix: Mix,
    pub(super) messages: Messages,
    /// No session begins after this time.
    pub(super) time: Duration,
    /// Limit of the time of a session; the client then closes.
    pub(super) patience: Duration,
    /// The run of the messages' ids.
    pub(crate) run: u32,
    /// Sessions go on behind STARTTLS.
    pub(super) tls: Option<Tls>,
    /// No session begins after so many messages.
    count_max: Option<u32>,
    /// Addresses of the clients, in turns: a load balancer passes them on in PROXY headers.
    proxied: Option<Arc<[Ipv4Addr]>>,
}

impl Load {
    /// Sessions without TLS, with messages of both sizes.
    pub(crate) fn new(
        target: SocketAddr,
        pace: Pace,
        mix: Mix,
        time: Duration,
        patience: Duration,
    ) -> Self {
        Self {
            target,
            pace,
            mix,
            messages: Messages::mix(),
            time,
            patience,
            run: MessageId::random_run(),
            tls: None,
            count_max: None,
            proxied: None,
        }
    }

    /// The same sessions with these letters, each once.
    pub(super) fn with_letters(mut self, letters: &Arc<Letters>) -> Self {
        self.count_max = Some(letters.count());
        self.messages = Messages::Letters(Arc::clone(letters));
        self
    }

    /// The same sessions through a load balancer at [`BALANCER`].
    pub(crate) fn proxied(mut self, clients: impl Into<Arc<[Ipv4Addr]>>) -> Self {
        self.proxied = Some(clients.into());
        self
    }

    /// Begins a connection; returns it with the PROXY header of a client (version 1).
    fn connect(&self, number: usize) -> io::Result<(TcpStream, String)> {
        let clients = self.proxied.as_deref().unwrap_or_default();
        let client = number.checked_rem(clients.len());
        let Some(client) = client.and_then(|place| clients.get(place)) else {
            return Ok((TcpStream::connect(self.target)?, String::new()));
        };
        let stream = connect_from(BALANCER, self.target, None)?;
        let (server, port) = (self.target.ip(), self.target.port());
        let header = format!("PROXY TCP4 {client} {server} 40000 {port}\r\n");
        Ok((stream, header))
    }
}

/// The sessions of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Sessions that were due.
    pub(crate) due: u64,
    /// Sessions that went to their end.
    pub(crate) done: u64,
}

/// The outcome of a load.
#[derive(Debug)]
pub(crate) struct Visits {
    pub(crate) began: Instant,
    /// The end of the last session.
    pub(super) ended: Instant,
    pub(crate) good: Counts,
    /// Sessions without mail.
    pub(super) vain: Counts,
    /// Accepted messages.
    pub(crate) acked: Vec<Ack>,
    /// Microseconds from the time at which a session with mail was due to the 250 of the message.
    pub(crate) accepted_us: Histogram<u64>,
    /// Microseconds by which sessions began late: a figure of the generator.
    pub(crate) late_us: Histogram<u64>,
    /// Failed sessions by their causes.
    pub(crate) failed: BTreeMap<String, u64>,
    /// Sessions that took up a session of TLS.
    pub(super) resumed: u64,
}

impl Visits {
    /// Seconds from the first session to the end of the last session.
    pub(crate) fn seconds(&self) -> f64 {
        (self.ended - self.began).as_secs_f64().max(1e-6)
    }
}

struct Client {
    link: Link,
    talk: Talk,
    kind: Kind,
    /// The id of the first message.
    id: MessageId,
    /// Messages that were accepted.
    accepted: u32,
    due: Instant,
}

struct Engine<'a> {
    load: &'a Load,
    mix: Mix,
    poll: Poll,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    open: usize,
    next: u32,
    ends_at: Instant,
    /// Clients in the order of their deadlines.
    deadlines: VecDeque<(Instant, usize, MessageId)>,
    /// Ends of the rests after failed sessions.
    resting: VecDeque<Instant>,
    visits: Visits,
}

/// Runs all sessions of a load.
///
/// # Errors
///
/// [`LoadError`] when the machine fails, not when the server does.
pub(crate) fn run(load: &Load) -> Result<Visits, LoadError> {
    let mut engine = Engine::new(load)?;
    engine.run()?;
    Ok(engine.visits)
}

impl<'a> Engine<'a> {
    fn new(load: &'a Load) -> Result<Self, LoadError> {
        let histogram = || {
            let made = Histogram::new_with_bounds(1, US_MAX, 3);
            made.map_err(|error| LoadError::Loop(io::Error::other(error.to_string())))
        };
        let began = Instant::now();
        Ok(Self {
            load,
            mix: load.mix.clone(),
            poll: Poll::new().map_err(LoadError::Loop)?,
            clients: Vec::new(),
            free: Vec::new(),
            open: 0,
            next: 0,
            ends_at: began + load.time,
            deadlines: VecDeque::new(),
            resting: VecDeque::new(),
            visits: Visits {
                began,
                ended: began,
                good: Counts::default(),
                vain: Counts::default(),
                acked: Vec::new(),
                accepted_us: histogram()?,
                late_us: histogram()?,
                failed: BTreeMap::new(),
                resumed: 0,
            },
        })
    }

    fn run(&mut self) -> Result<(), LoadError> {
        let mut events = Events::with_capacity(1024);
        let tick = match self.load.pace {
            Pace::PerSecond(_) => PACED_TICK,
            Pace::AtOnce(_) => TICK,
        };
        loop {
            let now = Instant::now();
            self.begin_due(now);
            self.give_up(now);
            let is_over = self.is_past(now) && self.open == 0;
            if is_over || guard::is_stopped() {
                return Ok(());
            }
            match self.poll.poll(&mut events, Some(tick)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(LoadError::Loop)?,
            }
            for event in &events {
                self.turn(event);
            }
        }
    }

    /// Whether no session begins any more.
    fn is_past(&self, now: Instant) -> bool {
        let is_enough = self.load.count_max.is_some_and(|count| self.next >= count);
        now >= self.ends_at || is_enough
    }

    /// Begins the sessions whose time has come.
    fn begin_due(&mut self, now: Instant) {
        match self.load.pace {
            Pace::AtOnce(sessions) => {
                while self.resting.front().is_some_and(|until| *until <= now) {
                    self.resting.pop_front();
                }
                let sessions = sessions.max(1);
                while !self.is_past(now) && self.open + self.resting.len() < sessions {
                    self.begin(now);
                }
            }
            Pace::PerSecond(rate) => loop {
                let due = Duration::from_secs_f64(f64::from(self.next) / rate.max(1e-3));
                let due = self.visits.began + due;
                if due > now || self.is_past(due) {
                    return;
                }
                self.begin(due);
            },
        }
    }

    fn begin(&mut self, due: Instant) {
        let kind = self.mix.next();
        let id = MessageId::new(self.load.run, self.next);
        self.next += kind.messages().max(1);
        self.counts(kind).due += 1;
        if self.open >= OPEN_MAX {
            return self.fail("not begun: too many sessions open");
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        let now = Instant::now();
        record(&mut self.visits.late_us, now - due);
        let connected = self.load.connect(id.sequence() as usize);
        let link = connected.and_then(|(stream, header)| {
            let link = Link::new(stream, self.poll.registry(), Token(index))?;
            Ok((link, header))
        });
        let (link, header) = match link {
            Ok(connected) => connected,
            Err(error) => {
                self.free.push(index);
                return self.fail(&format!("connect: {}", error.kind()));
            }
        };
        let until = now + self.load.patience;
        self.deadlines.push_back((until, index, id));
        self.open += 1;
        let steps = talk(kind, id, &self.load.messages);
        let mut talk = match self.load.tls {
            Some(_) => Talk::encrypted(steps),
            None => Talk::new(steps),
        };
        talk.announce(&header);
        self.clients[index] = Some(Client {
            link,
            talk,
            kind,
            id,
            accepted: 0,
            due,
        });
    }

    fn counts(&mut self, kind: Kind) -> &mut Counts {
        match kind.is_good() {
            true => &mut self.visits.good,
            false => &mut self.visits.vain,
        }
    }

    /// Counts a failed session; where the number of sessions is fixed, its place rests.
    fn fail(&mut self, cause: &str) {
        *self.visits.failed.entry(cause.to_owned()).or_default() += 1;
        if matches!(self.load.pace, Pace::AtOnce(_)) {
            self.resting.push_back(Instant::now() + REST);
        }
    }

    fn turn(&mut self, event: &Event) {
        let Token(index) = event.token();
        let Some(Some(client)) = self.clients.get_mut(index) else {
            return;
        };
        client.link.note(event);
        self.drive(index);
    }

    /// Ends the sessions beyond their time.
    fn give_up(&mut self, now: Instant) {
        while let Some((until, index, id)) = self.deadlines.front().copied() {
            let is_there = self.client(index, id).is_some();
            if is_there && until > now {
                return;
            }
            self.deadlines.pop_front();
            if is_there {
                self.end(index, Some("no reply in time"));
            }
        }
    }

    fn client(&mut self, index: usize, id: MessageId) -> Option<&mut Client> {
        let client = self.clients.get_mut(index)?.as_mut()?;
        (client.id == id).then_some(client)
    }

    /// Drives a session as far as possible.
    fn drive(&mut self, index: usize) {
        loop {
            let Some(Some(client)) = self.clients.get_mut(index) else {
                return;
            };
            match client.talk.go_on(&mut client.link) {
                Ok(Said::Nothing) => return,
                Ok(Said::Expected) => self.step(index),
                Ok(Said::Other(code)) => return self.end(index, Some(&format!("reply {code}"))),
                Ok(Said::Closed) | Err(_) => return self.end(index, Some("connection lost")),
            }
        }
    }

    /// Takes note of an expected reply, and lets the client react.
    fn step(&mut self, index: usize) {
        let Some(Some(client)) = self.clients.get_mut(index) else {
            return;
        };
        let now = Instant::now();
        if client.talk.has_accepted() {
            record(&mut self.visits.accepted_us, now - client.due);
            let id = client.id.after(client.accepted);
            client.accepted += 1;
            self.visits.acked.push(Ack {
                id,
                at: now,
                attempts: 1,
                may_be_doubled: false,
            });
        }
        if client.talk.is_over() {
            return self.end(index, None);
        }
        if client.talk.wants_handshake()
            && let Some(tls) = &self.load.tls
            && client
                .link
                .start_tls(tls.config(index), tls.name())
                .is_err()
        {
            return self.end(index, Some("no handshake"));
        }
        client.talk.send();
    }

    /// Ends a session, which failed if there is a cause.
    fn end(&mut self, index: usize, cause: Option<&str>) {
        let Some(client) = self.clients.get_mut(index).and_then(Option::take) else {
            return;
        };
        self.visits.resumed += u64::from(client.link.is_resumed() == Some(true));
        client.link.close(self.poll.registry());
        self.free.push(index);
        self.open -= 1;
        let now = Instant::now();
        self.visits.ended = now;
        match cause {
            Some(cause) => self.fail(cause),
            None => self.counts(client.kind).done += 1,
        }
        if matches!(self.load.pace, Pace::AtOnce(_)) {
            self.begin_due(now);
        }
    }
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(US_MAX);
    histogram.saturating_record(micros.max(1));
}

#[cfg(test)]
mod tests;
