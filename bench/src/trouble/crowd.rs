//! Thousands of clients in a single thread with one epoll set: each client follows its script, then holds until the
//! end of the crowd.

use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::ADDRESSES;
use super::counts::Counts;
use super::kinds::{Script, Scripts};
use crate::process::guard;
use crate::wire::connect_from;

/// Clients under way at once: more clients would only wait in the kernel's queue.
const UNDER_WAY_MAX: usize = 200;

/// How often clocks are looked at.
const TICK: Duration = Duration::from_millis(50);

/// A longer line of the server is cut.
const LINE_MAX: usize = 512;

/// A crowd of clients.
#[derive(Debug)]
pub(crate) struct Crowd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Whether clients begin nothing more.
    is_calm: AtomicBool,
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

    /// Clients send nothing more while they hold.
    pub(super) fn calm(&self) {
        self.shared.is_calm.store(true, Ordering::SeqCst);
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
    number: usize,
    stream: TcpStream,
    script: Arc<Script>,
    /// The current step of the talk: the client waits for its line, or sends its text.
    step: usize,
    /// Octets of the text sent so far; `None` while the client waits for an answer.
    sent: Option<usize>,
    line: Vec<u8>,
    /// Whether the line is complete: the next octet begins another.
    line_is_over: bool,
    trickle_at: Option<Instant>,
    holds: bool,
    /// Messages of a counting script, and the codes of replies, since the last addition to the crowd's.
    messages: u64,
    replies: Vec<String>,
    /// Texts sent so far while the client holds.
    turns: usize,
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
                    self.clients[number] = Some(Client::new(number, stream, script));
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
        self.add_replies(&mut client);
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

    /// Adds the messages and replies of a client to the crowd's.
    fn add_replies(&self, client: &mut Client) {
        if client.messages == 0 && client.replies.is_empty() {
            return;
        }
        let mut counts = self.shared.counts();
        counts.sent += std::mem::take(&mut client.messages);
        for code in client.replies.drain(..) {
            *counts.replies.entry(code).or_default() += 1;
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

    /// Lets each client send its text when the text is due.
    fn trickle(&mut self) {
        if self.shared.is_calm.load(Ordering::SeqCst) {
            return;
        }
        let now = Instant::now();
        for number in 0..self.clients.len() {
            let Some(slot) = self.clients.get_mut(number) else {
                continue;
            };
            let is_due = |client: &mut Client| client.trickle_at.is_some_and(|at| at <= now);
            if let Some(mut client) = slot.take_if(is_due) {
                client.say_more(now);
                self.add_replies(&mut client);
                self.clients[number] = Some(client);
            }
        }
    }
}

impl Client {
    fn new(number: usize, stream: TcpStream, script: Arc<Script>) -> Self {
        Self {
            number,
            stream,
            script,
            step: 0,
            sent: None,
            line: Vec::new(),
            line_is_over: false,
            trickle_at: None,
            holds: false,
            messages: 0,
            replies: Vec::new(),
            turns: 0,
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
                    let text = script.filled(text, self.number, 0);
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
            self.messages += u64::from(self.script.counted);
            let every = self.script.trickle.as_ref().map(|(_, every)| *every);
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
            for octet in buffer.get(..octets).unwrap_or_default() {
                if std::mem::take(&mut self.line_is_over) {
                    self.line.clear();
                }
                if *octet == b'\n' {
                    self.line_is_over = true;
                    self.note_reply();
                } else if self.line.len() < LINE_MAX {
                    self.line.push(*octet);
                }
            }
        }
    }

    /// Notes the reply to a message. The client sends commands and message in one piece, and a refused command counts for the message.
    fn note_reply(&mut self) {
        let is_last = self.line.get(3) == Some(&b' ');
        // Replies to MAIL and RCPT, and to a message without recipients.
        let of_commands: [&[u8]; 2] = [b"250 2.1.", b"554 5.5.1"];
        let is_of_command = of_commands.iter().any(|code| self.line.starts_with(code));
        if self.script.counted && is_last && !is_of_command {
            self.replies.push(self.last_words());
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

    /// Sends the text of a client that holds.
    fn say_more(&mut self, now: Instant) {
        let script = Arc::clone(&self.script);
        if let Some((text, every)) = &script.trickle {
            self.turns += 1;
            let text = script.filled(text, self.number, self.turns);
            // An end is told by the next event. A part of a message would be worse than none: the text fits into the buffers of the kernel.
            if self
                .stream
                .write(&text)
                .is_ok_and(|octets| octets == text.len())
            {
                self.messages += u64::from(script.counted);
            }
            self.trickle_at = Some(now + *every);
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
