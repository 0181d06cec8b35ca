//! The client: a common loop for every server, so that no comparison measures the skill of a client.
//!
//! A [`Lane`] is a stream of requests to a server, or the same stream to several servers (replicas): a unit counts as
//! done when every server has confirmed the unit. Requests come ready-made from a [`Dialect`], are pipelined, and are
//! bounded by the octets in flight. One thread, one epoll set, no busy polling.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// Limit of the servers of a lane.
const LINKS_MAX: usize = 16;

/// Time without a reply after which a server counts as stuck.
const STALL: Duration = Duration::from_secs(30);

/// Octets of replies read at once.
const INPUT_LEN: usize = 64 << 10;

/// A protocol: builds requests and parses replies.
pub(super) trait Dialect: Debug {
    /// Octets of the requests of a unit, equal for all units.
    fn unit_octets(&self) -> usize;

    /// Messages stored (and deleted) by a unit.
    fn unit_messages(&self) -> u64 {
        1
    }

    /// Prepares the next requests, at least one unit and at most `units`, and returns the number of units.
    fn prepare(&mut self, units: usize) -> usize;

    /// The requests made ready last.
    fn octets(&self) -> &[u8];

    /// Parses the input from a server.
    ///
    /// # Errors
    ///
    /// The fault of the input: a refused request, or a malformed reply.
    fn replies(&mut self, server: usize, input: &[u8]) -> Result<Replied, String>;
}

/// The sum of parsed replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replied {
    /// Octets of input that were whole replies.
    pub(super) consumed: usize,
    /// Units finished by the server since the lane began.
    pub(super) done: u64,
}

/// When a load ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// At a time after the beginning of the count.
    After {
        /// Time before the count begins.
        warm: Duration,
        /// Time of the count.
        time: Duration,
    },
    /// After this number of units on each lane; the meter counts every unit.
    Units(u64),
}

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Messages finished during the count.
    pub(super) messages: u64,
    /// Seconds of the count.
    pub(super) seconds: f64,
}

impl Load {
    /// Messages a second.
    pub(super) fn rate(&self) -> f64 {
        self.messages as f64 / self.seconds.max(1e-9)
    }
}

#[derive(Debug)]
struct Link {
    stream: TcpStream,
    input: Vec<u8>,
    fill: usize,
    readable: bool,
    writable: bool,
    /// Octets of the prepared requests written so far.
    sent: usize,
    done: u64,
}

/// A stream of requests to a server or several.
#[derive(Debug)]
pub(super) struct Lane {
    dialect: Box<dyn Dialect>,
    links: Vec<Link>,
    prepared: u64,
}

impl Lane {
    /// A lane over connections that are ready for requests. All connections get the same requests.
    ///
    /// # Errors
    ///
    /// The kernel refuses the sockets; or the list of sockets is empty or too long.
    pub(super) fn new(
        dialect: Box<dyn Dialect>,
        streams: Vec<std::net::TcpStream>,
    ) -> Result<Self, BenchError> {
        let failed = BenchError::io("connect");
        if streams.is_empty() || streams.len() > LINKS_MAX {
            return Err(failed(ErrorKind::InvalidInput.into()));
        }
        let link = |stream: std::net::TcpStream| {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            Ok(Link {
                stream: TcpStream::from_std(stream),
                input: vec![0; INPUT_LEN],
                fill: 0,
                readable: true,
                writable: true,
                sent: 0,
                done: 0,
            })
        };
        let links: io::Result<Vec<Link>> = streams.into_iter().map(link).collect();
        Ok(Self {
            dialect,
            links: links.map_err(failed)?,
            prepared: 0,
        })
    }

    /// Units finished by every server.
    fn done(&self) -> u64 {
        self.links.iter().map(|link| link.done).min().unwrap_or(0)
    }

    /// Reads the available replies of every server.
    fn receive(&mut self) -> Result<(), BenchError> {
        for (server, link) in self.links.iter_mut().enumerate() {
            while link.readable {
                let room = link.input.len() - link.fill;
                match link.stream.read(&mut link.input[link.fill..]) {
                    Ok(0) => {
                        return Err(BenchError::protocol("a server closed the connection"));
                    }
                    Ok(count) => {
                        link.fill += count;
                        // Later input causes a separate event.
                        link.readable = count == room;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => link.readable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(BenchError::io("read replies")(error)),
                }
                let replied = self
                    .dialect
                    .replies(server, &link.input[..link.fill])
                    .map_err(BenchError::protocol)?;
                link.done = replied.done;
                link.input.copy_within(replied.consumed..link.fill, 0);
                link.fill -= replied.consumed;
            }
        }
        Ok(())
    }

    /// Sends as much as the window allows. `most`: limit of units sent in all.
    fn send(&mut self, window: u64, most: u64) -> Result<(), BenchError> {
        loop {
            let len = self.dialect.octets().len();
            if self.links.iter().all(|link| link.sent == len) {
                let in_flight = self.prepared - self.done();
                let room = window
                    .saturating_sub(in_flight)
                    .min(most.saturating_sub(self.prepared));
                // Not for every little acknowledgement: a quarter of the window at once.
                if room == 0 || room < (window / 4).min(most - self.prepared) {
                    return Ok(());
                }
                let units = usize::try_from(room).unwrap_or(usize::MAX);
                self.prepared += self.dialect.prepare(units) as u64;
                self.links.iter_mut().for_each(|link| link.sent = 0);
            }
            if !self.write()? {
                return Ok(());
            }
        }
    }

    /// Writes the prepared requests as far as the sockets accept octets; returns whether a socket did.
    fn write(&mut self) -> Result<bool, BenchError> {
        let octets = self.dialect.octets();
        let mut progress = false;
        for link in &mut self.links {
            while link.writable && link.sent < octets.len() {
                match link.stream.write(&octets[link.sent..]) {
                    Ok(count) => {
                        link.sent += count;
                        progress = true;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => link.writable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(BenchError::io("send requests")(error)),
                }
            }
        }
        Ok(progress)
    }
}

/// The counted events, and the end of the count.
struct Meter {
    until: Until,
    began: Instant,
    counted_from: Option<(Instant, u64)>,
    result: Option<Load>,
}

impl Meter {
    fn new(until: Until) -> Self {
        let began = Instant::now();
        Self {
            until,
            began,
            counted_from: matches!(until, Until::Units(_)).then_some((began, 0)),
            result: None,
        }
    }

    /// Limit of units that a lane sends in all.
    const fn most(&self) -> u64 {
        match self.until {
            _ if self.result.is_some() => 0,
            Until::After { .. } => u64::MAX,
            Until::Units(units) => units,
        }
    }

    fn look(&mut self, messages: impl Fn() -> u64) {
        let Until::After { warm, time } = self.until else {
            return;
        };
        let now = Instant::now();
        match self.counted_from {
            None if now - self.began >= warm => self.counted_from = Some((now, messages())),
            Some((from, before)) if self.result.is_none() && now - from >= time => {
                self.result = Some(Load {
                    messages: messages() - before,
                    seconds: (now - from).as_secs_f64(),
                });
            }
            _ => {}
        }
    }

    /// Whether a lane has nothing left to send or to wait for.
    fn is_over(&self, lane: &Lane) -> bool {
        let sent = match self.until {
            Until::After { .. } => self.result.is_some(),
            Until::Units(units) => lane.prepared >= units,
        };
        sent && lane.done() == lane.prepared
    }

    fn end(self, messages: u64) -> Load {
        let (from, before) = self.counted_from.unwrap_or((self.began, 0));
        self.result.unwrap_or_else(|| Load {
            messages: messages - before,
            seconds: from.elapsed().as_secs_f64(),
        })
    }
}

/// Runs a load over all lanes with `window` octets in flight on each, and waits until everything sent
/// is answered.
///
/// # Errors
///
/// A server refused something, closed a connection, or is stuck.
pub(super) fn drive(lanes: &mut [Lane], window: usize, until: Until) -> Result<Load, BenchError> {
    let failed = BenchError::io;
    let mut poll = Poll::new().map_err(failed("make a readiness queue"))?;
    register(&poll, lanes).map_err(failed("watch the connections"))?;
    let mut events = Events::with_capacity(256);
    let mut meter = Meter::new(until);
    let mut last_event = Instant::now();
    let mut touched: Vec<usize> = (0..lanes.len()).collect();
    loop {
        for index in touched.drain(..) {
            let lane = &mut lanes[index];
            lane.receive()?;
            let window = (window / lane.dialect.unit_octets()).max(1) as u64;
            lane.send(window, meter.most().max(lane.prepared))?;
        }
        meter.look(|| messages(lanes));
        if lanes.iter().all(|lane| meter.is_over(lane)) {
            break;
        }
        poll.poll(&mut events, Some(Duration::from_millis(100)))
            .or_else(|error| match error.kind() {
                ErrorKind::Interrupted => Ok(()),
                _ => Err(BenchError::io("wait for replies")(error)),
            })?;
        for event in &events {
            let Token(token) = event.token();
            let (index, server) = (token / LINKS_MAX, token % LINKS_MAX);
            let link = &mut lanes[index].links[server];
            link.readable |= event.is_readable() || event.is_error();
            link.writable |= event.is_writable() || event.is_error();
            if touched.last() != Some(&index) {
                touched.push(index);
            }
        }
        if events.is_empty() {
            if last_event.elapsed() > STALL {
                return Err(BenchError::protocol("a server does not answer"));
            }
        } else {
            last_event = Instant::now();
        }
    }
    let total = messages(lanes);
    for lane in lanes {
        for link in &mut lane.links {
            poll.registry()
                .deregister(&mut link.stream)
                .map_err(BenchError::io("leave the connections"))?;
        }
    }
    Ok(meter.end(total))
}

fn messages(lanes: &[Lane]) -> u64 {
    lanes
        .iter()
        .map(|lane| lane.done() * lane.dialect.unit_messages())
        .sum()
}

fn register(poll: &Poll, lanes: &mut [Lane]) -> io::Result<()> {
    for (index, lane) in lanes.iter_mut().enumerate() {
        for (server, link) in lane.links.iter_mut().enumerate() {
            let token = Token(index * LINKS_MAX + server);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry()
                .register(&mut link.stream, token, interest)?;
        }
    }
    Ok(())
}
