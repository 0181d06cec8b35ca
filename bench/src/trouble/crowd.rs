//! Thousands of clients in a single thread with one epoll set: each client follows its script, then holds until the
//! end of the crowd.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::ADDRESSES;
use super::kinds::{Script, Scripts};
use crate::process::guard;
use crate::wire::connect_from;

/// Clients under way at once: more clients would only wait in the kernel's queue.
const UNDER_WAY_MAX: usize = 200;

/// How often clocks are looked at.
const TICK: Duration = Duration::from_millis(50);

/// A longer line of the server is cut.
const LINE_MAX: usize = 512;

/// The counts of a crowd.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Clients at the end of their script, in the state to hold.
    pub(crate) holding: usize,
    /// Clients under way, or not begun.
    pub(crate) under_way: usize,
    /// Clients that the server ended, by the beginning of the server's last line.
    pub(crate) ended: BTreeMap<String, usize>,
}

impl Counts {
    /// Number of all ended clients.
    pub(super) fn all_ended(&self) -> usize {
        self.ended.values().sum()
    }
}

/// A crowd of clients.
#[derive(Debug)]
pub(crate) struct Crowd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    counts: Mutex<Counts>,
}

impl Shared {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crowd {
    /// Begins to gather a crowd.
    pub(crate) fn gather(scripts: Scripts, clients: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.counts().under_way = clients;
        let mut engine = Engine {
            poll: Poll::new()?,
            shared: Arc::clone(&shared),
            clients: Vec::with_capacity(clients),
            scripts,
            wanted: clients,
            under_way: 0,
            buffer: vec![0; 64 << 10],
        };
        let run = move || {
            // A failure here is a failure of the machine: the counts then show no holding client.
            let _ = engine.run();
        };
        let thread = std::thread::Builder::new()
            .name("crowd".to_owned())
            .spawn(run)?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Whether no client is under way any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.counts().under_way == 0 || self.thread.as_ref().is_none_or(|t| t.is_finished())
    }

    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts().clone()
    }

    /// Lets go of all connections.
    pub(super) fn close_all(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }

    /// Ends the crowd; returns the counts until the end.
    pub(crate) fn end(mut self) -> Counts {
        self.join();
        self.counts()
    }

    fn join(&mut self) {
        self.close_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.join();
    }
}

struct Client {
    stream: TcpStream,
    script: Arc<Script>,
    /// The current step of the talk: the client waits for its line, or sends its text.
    step: usize,
    /// Octets of the text sent so far; `None` while the client waits for an answer.
    sent: Option<usize>,
    line: Vec<u8>,
    trickle_at: Option<Instant>,
    holds: bool,
}

/// The fate of a client.
enum Fate {
    Stays,
    Ended(String),
}

struct Engine {
    poll: Poll,
    shared: Arc<Shared>,
    clients: Vec<Option<Client>>,
    scripts: Scripts,
    wanted: usize,
    under_way: usize,
    buffer: Vec<u8>,
}

impl Engine {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1_024);
        while !self.shared.stop.load(Ordering::SeqCst) && !guard::is_stopped() {
            self.begin_some()?;
            match self.poll.poll(&mut events, Some(TICK)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                self.turn(event.token().0, event.is_read_closed() || event.is_error());
            }
            self.trickle();
        }
        Ok(())
    }

    /// Connects as many clients as may be under way.
    fn begin_some(&mut self) -> io::Result<()> {
        while self.under_way < UNDER_WAY_MAX && self.clients.len() < self.wanted {
            let number = self.clients.len();
            let Some(script) = self.scripts.of(number) else {
                return Ok(());
            };
            self.under_way += 1;
            self.clients.push(None);
            match open(number, &script) {
                Err(error) => self.lost(number, false, format!("connect: {error}")),
                Ok(mut stream) => {
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    let registry = self.poll.registry();
                    registry.register(&mut stream, Token(number), interest)?;
                    self.clients[number] = Some(Client::new(stream, script));
                }
            }
        }
        Ok(())
    }

    /// Drives a client as far as possible.
    fn turn(&mut self, number: usize, closed: bool) {
        let Some(mut client) = self.clients.get_mut(number).and_then(Option::take) else {
            return;
        };
        let held = client.holds;
        // A client that does not read would not see the end.
        let unseen = held && closed && !client.script.reads;
        let fate = match unseen {
            true => Fate::Ended("closed".to_owned()),
            false => client.go_on(&mut self.buffer),
        };
        match fate {
            Fate::Ended(said) => self.lost(number, held, said),
            Fate::Stays => {
                if client.holds && !held {
                    self.under_way -= 1;
                    let mut counts = self.shared.counts();
                    counts.under_way -= 1;
                    counts.holding += 1;
                }
                self.clients[number] = Some(client);
            }
        }
    }

    /// Records the end of a client.
    fn lost(&mut self, number: usize, held: bool, said: String) {
        self.clients[number] = None;
        let mut counts = self.shared.counts();
        match held {
            true => counts.holding -= 1,
            false => {
                counts.under_way -= 1;
                self.under_way -= 1;
            }
        }
        *counts.ended.entry(said).or_default() += 1;
    }

    /// Lets each client send its octet when the octet is due.
    fn trickle(&mut self) {
        let now = Instant::now();
        for number in 0..self.clients.len() {
            let Some(Some(client)) = self.clients.get_mut(number) else {
                continue;
            };
            if client.trickle_at.is_some_and(|at| at <= now) {
                client.say_an_octet(now);
            }
        }
    }
}

impl Client {
    fn new(stream: TcpStream, script: Arc<Script>) -> Self {
        Self {
            stream,
            script,
            step: 0,
            sent: None,
            line: Vec::new(),
            trickle_at: None,
            holds: false,
        }
    }

    fn go_on(&mut self, buffer: &mut [u8]) -> Fate {
        match self.talk(buffer) {
            Ok(()) => Fate::Stays,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Fate::Stays,
            Err(_) => Fate::Ended(self.last_words()),
        }
    }

    fn talk(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let script = Arc::clone(&self.script);
            let Some((expected, text)) = script.talk.get(self.step) else {
                self.hold();
                return self.read_on(buffer);
            };
            if self.sent.is_none() && expected.is_empty() {
                self.sent = Some(0);
            }
            match self.sent {
                None => self.wait_for(expected, buffer)?,
                Some(sent) => {
                    let rest = text.get(sent..).unwrap_or_default();
                    if rest.is_empty() {
                        self.sent = None;
                        self.step += 1;
                        continue;
                    }
                    let more = match self.stream.write(rest) {
                        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                            return Err(io::ErrorKind::WouldBlock.into());
                        }
                        Err(error) => {
                            // The last line of the server before the end.
                            let full = error.kind() == io::ErrorKind::WouldBlock;
                            self.read_on(buffer)?;
                            return Err(if full {
                                io::ErrorKind::WouldBlock.into()
                            } else {
                                error
                            });
                        }
                        other => other?,
                    };
                    self.sent = Some(sent + more);
                }
            }
        }
    }

    /// Reads lines until a line begins as expected.
    fn wait_for(&mut self, expected: &str, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let octets = self.read(buffer)?;
            for octet in buffer.get(..octets).unwrap_or_default() {
                if *octet == b'\n' {
                    if self.line.starts_with(expected.as_bytes()) {
                        self.line.clear();
                        self.sent = Some(0);
                        // A waiting server sends nothing behind the line.
                        return Ok(());
                    }
                    if is_last_word(&self.line) {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    self.line.clear();
                } else if self.line.len() < LINE_MAX {
                    self.line.push(*octet);
                }
            }
        }
    }

    /// The script is complete: from now on the client holds.
    fn hold(&mut self) {
        if !self.holds {
            self.holds = true;
            self.line.clear();
            let every = self.script.trickle.map(|(_, every)| every);
            self.trickle_at = every.map(|every| Instant::now() + every);
        }
    }

    /// Reads while the client waits for nothing, unless the client does not read.
    fn read_on(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        if self.holds && !self.script.reads {
            return Ok(());
        }
        loop {
            let octets = self.read(buffer)?;
            let said = buffer.get(..octets).unwrap_or_default();
            self.line.clear();
            self.line.extend(said.iter().take(LINE_MAX));
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            other => other,
        }
    }

    fn say_an_octet(&mut self, now: Instant) {
        if let Some((text, every)) = self.script.trickle {
            // An end is told by the next event.
            let _ = self.stream.write(text);
            self.trickle_at = Some(now + every);
        }
    }

    /// The first words of the server's last line.
    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.line);
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        let plain = words
            .iter()
            .all(|word| word.bytes().all(|octet| octet.is_ascii_graphic()));
        match words.as_slice() {
            [] => "closed".to_owned(),
            _ if !plain => "closed".to_owned(),
            words => words.join(" "),
        }
    }
}

/// Whether a line of the server announces the end of the connection.
fn is_last_word(line: &[u8]) -> bool {
    [
        &b"4"[..],
        b"5",
        b"* BYE",
        b"a NO",
        b"a BAD",
        b"b NO",
        b"b BAD",
        b"c NO",
        b"c BAD",
    ]
    .iter()
    .any(|word| line.starts_with(word))
}

/// Begins to connect client `number`, from the address whose turn has come.
fn open(number: usize, script: &Script) -> io::Result<TcpStream> {
    let place = u8::try_from(number % ADDRESSES).unwrap_or(u8::MAX);
    // Unrelated clients come from different networks: every client has a /24 of its own.
    let own = Ipv4Addr::new(127, place + 1, 1, 1);
    connect_from(own, script.address, script.receive_buffer())
}
