//! A long way between clients and a system: a relay that delivers everything later, in both directions.
//!
//! Every octet, every end and the beginning of a connection reach the other side after the delay. The reply to the
//! client's SYN alone comes at once, from the kernel, so that a connection begins a round trip earlier than over a
//! real way.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token};

const LISTENER: Token = Token(usize::MAX);

/// Octets under way in a direction, above which the relay reads no more.
const UNDER_WAY_MAX: usize = 256 * 1024;

/// Octets read at once.
const READ_OCTETS: usize = 8 * 1024;

/// How often the end of the relay is looked for.
const TICK: Duration = Duration::from_millis(20);

/// A relay in a separate thread, which ends with the value.
#[derive(Debug)]
pub(super) struct Distance {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Distance {
    /// Begins to relay connections to `target`.
    pub(super) fn to(target: SocketAddr, delay: Duration) -> io::Result<Self> {
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let mut relay = Relay {
            poll,
            listener,
            target,
            delay,
            pairs: Vec::new(),
            due: VecDeque::new(),
        };
        let run = move || {
            while !stopping.load(Ordering::Acquire) && relay.turn().is_ok() {}
        };
        Ok(Self {
            address,
            stop,
            thread: Some(std::thread::Builder::new().spawn(run)?),
        })
    }

    /// The near end: the address for clients.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Distance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Relay {
    poll: Poll,
    listener: TcpListener,
    target: SocketAddr,
    delay: Duration,
    /// Connections by number; none is used again, so that no late event meets another connection.
    pairs: Vec<Option<Pair>>,
    /// When something reaches the end of its way, in order, and the pair.
    due: VecDeque<(Instant, usize)>,
}

/// A connection: the client's end, and the system's end once it has begun.
struct Pair {
    begins: Instant,
    ends: [Option<End>; 2],
}

struct End {
    stream: TcpStream,
    is_readable: bool,
    /// Octets under way to this end of the connection.
    coming: Coming,
}

#[derive(Default)]
struct Coming {
    parcels: VecDeque<(Instant, Vec<u8>)>,
    octets: usize,
    /// When the end of the stream arrives.
    end: Option<Instant>,
    is_over: bool,
}

impl Relay {
    fn turn(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let next = self.due.front();
        let wait = next.map_or(TICK, |(at, _)| at.saturating_duration_since(Instant::now()));
        match self.poll.poll(&mut events, Some(wait.min(TICK))) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &events {
            let Token(number) = event.token();
            if event.token() == LISTENER {
                self.accept();
                continue;
            }
            let pair = self.pairs.get_mut(number / 2).and_then(Option::as_mut);
            if let Some(end) = pair.and_then(|pair| pair.ends[number % 2].as_mut()) {
                end.is_readable |= event.is_readable() || event.is_read_closed();
                self.go_on(number / 2);
            }
        }
        while let Some((at, place)) = self.due.front().copied() {
            if at > Instant::now() {
                break;
            }
            self.due.pop_front();
            self.go_on(place);
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let place = self.pairs.len();
            let begins = Instant::now() + self.delay;
            if let Ok(client) = End::new(stream, self.poll.registry(), place * 2) {
                let ends = [Some(client), None];
                self.pairs.push(Some(Pair { begins, ends }));
                self.due.push_back((begins, place));
            }
        }
    }

    /// Moves a connection on; one that is broken or over is closed.
    fn go_on(&mut self, place: usize) {
        let Some(Some(pair)) = self.pairs.get_mut(place) else {
            return;
        };
        let now = Instant::now();
        let is_there = pair.begin(now, self.target, self.poll.registry(), place);
        let moved = is_there.and_then(|()| pair.move_on(now, now + self.delay));
        match moved {
            Ok(true) => self.due.push_back((now + self.delay, place)),
            Ok(false) => {}
            Err(_) => self.pairs[place] = None,
        }
    }
}

impl Pair {
    /// Connects to the system, once the client's SYN would be there.
    fn begin(
        &mut self,
        now: Instant,
        target: SocketAddr,
        registry: &Registry,
        place: usize,
    ) -> io::Result<()> {
        if self.ends[1].is_none() && self.begins <= now {
            let stream = TcpStream::connect(target)?;
            self.ends[1] = Some(End::new(stream, registry, place * 2 + 1)?);
        }
        Ok(())
    }

    /// Reads what has come and delivers what is due. True: something is on the way now, and arrives at `then`.
    fn move_on(&mut self, now: Instant, then: Instant) -> io::Result<bool> {
        let [Some(client), Some(system)] = &mut self.ends else {
            return Ok(false);
        };
        // Delivered first: a way that was full has room then, and no further event would tell.
        client.deliver(now)?;
        system.deliver(now)?;
        let mut has_sent = client.read(&mut system.coming, then)?;
        has_sent |= system.read(&mut client.coming, then)?;
        match client.coming.is_over && system.coming.is_over {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(has_sent),
        }
    }
}

impl End {
    fn new(mut stream: TcpStream, registry: &Registry, token: usize) -> io::Result<Self> {
        let _ = stream.set_nodelay(true);
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut stream, Token(token), interest)?;
        Ok(Self {
            stream,
            is_readable: true,
            coming: Coming::default(),
        })
    }

    /// Sends what is there to the other end. True: something was there.
    fn read(&mut self, to: &mut Coming, then: Instant) -> io::Result<bool> {
        let mut some = [0; READ_OCTETS];
        let mut has_read = false;
        while self.is_readable && to.octets < UNDER_WAY_MAX {
            match self.stream.read(&mut some) {
                Ok(0) => {
                    to.end = Some(then);
                    self.is_readable = false;
                }
                Ok(octets) => {
                    to.parcels.push_back((then, some[..octets].to_vec()));
                    to.octets += octets;
                }
                Err(error) if is_for_later(&error) => {
                    self.is_readable = false;
                    break;
                }
                Err(error) => return Err(error),
            }
            has_read = true;
        }
        Ok(has_read)
    }

    /// Writes what has arrived.
    fn deliver(&mut self, now: Instant) -> io::Result<()> {
        let coming = &mut self.coming;
        while let Some((at, octets)) = coming.parcels.front_mut() {
            if *at > now {
                return Ok(());
            }
            match self.stream.write(octets) {
                Ok(written) => {
                    octets.drain(..written);
                    coming.octets -= written;
                }
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if octets.is_empty() {
                coming.parcels.pop_front();
            }
        }
        if !coming.is_over && coming.end.is_some_and(|at| at <= now) {
            coming.is_over = true;
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
}

/// Whether an event comes when the call can go on: no octets, no room, or a connection that is still being made.
fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const DELAY: Duration = Duration::from_millis(20);

    #[test]
    fn everything_arrives_in_order_and_no_earlier_than_after_the_delay() {
        let system = TcpListener::bind("127.0.0.1:0").unwrap();
        let distance = Distance::to(system.local_addr().unwrap(), DELAY).unwrap();
        let began = Instant::now();
        let mut client = TcpStream::connect(distance.address()).unwrap();
        let (mut served, _) = system.accept().unwrap();
        assert!(began.elapsed() >= DELAY);
        // More than may be under way, from a system that does not wait.
        let text: Vec<u8> = (0..3 * UNDER_WAY_MAX).map(|at| (at % 251) as u8).collect();
        let sent = text.clone();
        let began = Instant::now();
        let writer = std::thread::spawn(move || {
            served.write_all(&sent).unwrap();
            served.shutdown(Shutdown::Write).unwrap();
            let mut asked = Vec::new();
            served.read_to_end(&mut asked).unwrap();
            asked
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(began.elapsed() >= DELAY);
        assert!(got == text, "{} octets", got.len());
        client.write_all(b"thanks").unwrap();
        drop(client);
        assert_eq!(writer.join().unwrap(), b"thanks");
    }

    #[test]
    fn a_system_that_refuses_ends_the_connection() {
        let system = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = system.local_addr().unwrap();
        drop(system);
        let distance = Distance::to(address, DELAY).unwrap();
        let mut client = TcpStream::connect(distance.address()).unwrap();
        // The end comes as an end or as a reset.
        assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0);
    }
}
