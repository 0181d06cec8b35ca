//! The no-op relay: the least work of any relay, and nothing else.
//!
//! A single thread with one epoll set reads each message from a client, sends the message to the next hop over the
//! connection paired with the client's connection, and answers 250 **after** the next hop has answered 250. Nothing
//! is queued, nothing is synced, no trace field is added. The throughput and the CPU per message of the no-op relay
//! are the limits of the machine for the unavoidable work: two dialogues and two copies through the kernel.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use crate::process::{self, CpuAccount};
use crate::wire::{Link, Manners, Outcome, Readiness, Receiver, Sender, Stage, Turn, Wait};

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// The longest message relayed.
const MESSAGE_SIZE_MAX: usize = 64 * 1024 * 1024;

/// A no-op relay on its own thread, stopped when dropped.
#[derive(Debug)]
pub struct NoopRelay {
    address: SocketAddr,
    account: CpuAccount,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl NoopRelay {
    /// Starts a relay to `next_hop` on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// There is no port, descriptor or thread left.
    pub fn start(next_hop: SocketAddr) -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), next_hop)
    }

    /// Starts a relay to `next_hop` with a listener on `address`.
    ///
    /// # Errors
    ///
    /// The address is taken, or there is no descriptor or thread left.
    pub fn start_at(address: SocketAddr, next_hop: SocketAddr) -> io::Result<Self> {
        let listener = StdListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let stop = Arc::new(AtomicBool::new(false));
        let mut relay = Relay {
            poll,
            listener,
            next_hop,
            pairs: Vec::new(),
            free: Vec::new(),
            stop: Arc::clone(&stop),
            manners: Manners {
                hostname: "noop.invalid".to_owned(),
                extensions: ["PIPELINING", "8BITMIME", "SMTPUTF8"]
                    .map(str::to_owned)
                    .to_vec(),
                message_size_max: MESSAGE_SIZE_MAX,
            },
        };
        let (thread, account) = process::thread("noop", move || relay.run())?;
        Ok(Self {
            address,
            account,
            stop,
            waker,
            thread: Some(thread),
        })
    }

    /// The address of the listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CPU account of the relay's thread.
    pub const fn account(&self) -> &CpuAccount {
        &self.account
    }
}

impl Drop for NoopRelay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Upstream {
    link: Link,
    sender: Sender,
    idle: bool,
}

#[derive(Debug)]
struct Pair {
    link: Link,
    receiver: Receiver,
    upstream: Option<Upstream>,
    /// A message lies in the receiver and waits for the next hop's answer.
    waiting: bool,
}

#[derive(Debug)]
struct Relay {
    poll: Poll,
    listener: TcpListener,
    next_hop: SocketAddr,
    /// Pair n has the tokens 2n (client) and 2n + 1 (next hop).
    pairs: Vec<Option<Pair>>,
    free: Vec<usize>,
    stop: Arc<AtomicBool>,
    manners: Manners,
}

impl Relay {
    fn run(&mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.stop.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
            for event in &events {
                self.handle_event(event);
            }
        }
    }

    fn handle_event(&mut self, event: &Event) {
        match event.token() {
            LISTENER => {
                while let Ok((stream, _)) = self.listener.accept() {
                    self.open(stream);
                }
            }
            WAKER => {}
            Token(token) => {
                let index = token / 2;
                let Some(pair) = self.pairs.get_mut(index).and_then(Option::as_mut) else {
                    return;
                };
                if token % 2 == 0 {
                    pair.link.note(event);
                } else if let Some(upstream) = &mut pair.upstream {
                    upstream.link.note(event);
                }
                self.drive(index);
            }
        }
    }

    fn open(&mut self, stream: TcpStream) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            self.pairs.len() - 1
        });
        match Link::new(stream, self.poll.registry(), Token(index * 2)) {
            Ok(link) => {
                let receiver = Receiver::new();
                self.pairs[index] = Some(Pair {
                    link,
                    receiver,
                    upstream: None,
                    waiting: false,
                });
                self.drive(index);
            }
            Err(_) => self.free.push(index),
        }
    }

    fn drive(&mut self, index: usize) {
        let Some(mut pair) = self.pairs[index].take() else {
            return;
        };
        if self.converse(&mut pair, index).unwrap_or(false) {
            self.pairs[index] = Some(pair);
            return;
        }
        pair.link.close(self.poll.registry());
        if let Some(upstream) = pair.upstream {
            upstream.link.close(self.poll.registry());
        }
        self.free.push(index);
    }

    /// Takes both dialogues of a pair as far as they go; false when the client is gone.
    fn converse(&mut self, pair: &mut Pair, index: usize) -> io::Result<bool> {
        loop {
            if !self.receive(pair)? {
                pair.link.write(&mut pair.receiver.output)?;
                return Ok(false);
            }
            if !pair.waiting {
                break;
            }
            if !self.forward(pair, index) {
                break;
            }
        }
        pair.link.write(&mut pair.receiver.output)?;
        Ok(true)
    }

    /// Runs the client's side until a message is whole or input is missing.
    fn receive(&mut self, pair: &mut Pair) -> io::Result<bool> {
        while !pair.waiting {
            match pair.receiver.advance(&self.manners) {
                Wait::Answer(Stage::Message) => pair.waiting = true,
                Wait::Answer(_) => pair.receiver.accept(&self.manners),
                Wait::Close => return Ok(false),
                Wait::Input => match pair.link.read(&mut pair.receiver.input)? {
                    Readiness::Closed => return Ok(false),
                    Readiness::Drained => break,
                    Readiness::More => {}
                },
            }
        }
        Ok(true)
    }

    /// Runs the next hop's side; true when the client has received the answer.
    fn forward(&mut self, pair: &mut Pair, index: usize) -> bool {
        let answer = self.transfer(pair, index).unwrap_or_else(|_| {
            if let Some(upstream) = pair.upstream.take() {
                upstream.link.close(self.poll.registry());
            }
            Some(Outcome::Refused {
                code: 451,
                after_message: true,
            })
        });
        match answer {
            None => return false,
            Some(Outcome::Accepted) => pair.receiver.accept(&self.manners),
            Some(Outcome::Refused { code, .. }) => pair.receiver.refuse(code, "next hop refused"),
        }
        pair.waiting = false;
        true
    }

    fn transfer(&mut self, pair: &mut Pair, index: usize) -> io::Result<Option<Outcome>> {
        if pair.upstream.is_none() {
            let stream = TcpStream::connect(self.next_hop)?;
            pair.upstream = Some(Upstream {
                link: Link::new(stream, self.poll.registry(), Token(index * 2 + 1))?,
                sender: Sender::new("noop.invalid", true),
                idle: false,
            });
        }
        let Some(upstream) = &mut pair.upstream else {
            return Ok(None);
        };
        if upstream.idle {
            upstream.idle = false;
            begin(&mut upstream.sender, &pair.receiver);
        }
        loop {
            match upstream.sender.advance() {
                Turn::Ready => begin(&mut upstream.sender, &pair.receiver),
                Turn::TextQueued => {}
                Turn::Ended(outcome) => {
                    upstream.idle = true;
                    return Ok(Some(outcome));
                }
                Turn::Broken { .. } | Turn::Over => return Err(io::ErrorKind::InvalidData.into()),
                Turn::Input => {
                    upstream.link.write(&mut upstream.sender.output)?;
                    match upstream.link.read(&mut upstream.sender.input)? {
                        Readiness::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Readiness::Drained => return Ok(None),
                        Readiness::More => {}
                    }
                }
            }
        }
    }
}

fn begin(sender: &mut Sender, receiver: &Receiver) {
    let envelope = receiver.envelope();
    sender.begin(&envelope.sender, &envelope.recipients, |text| {
        text.extend_from_slice(receiver.message());
        // Whether there are octets above 127 is the client's affair; the sink takes both.
        true
    });
}

#[cfg(test)]
mod tests {
    use super::NoopRelay;
    use crate::Corpus;
    use crate::load::{LoadEnd, LoadOptions, LoadProgress, Messages, run};
    use crate::sink::{RunningSink, SaveMode, SinkOptions, read_index};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn everything_goes_through_unchanged() {
        let sink = RunningSink::start(SinkOptions::remembering());
        let sink = sink.unwrap();
        let relay = NoopRelay::start(sink.handle().address()).unwrap();
        let mut options = LoadOptions::new(relay.address(), LoadEnd::Count(1000));
        options.sessions = 20;
        let report = run(&options, &LoadProgress::default()).unwrap();
        assert_eq!((report.acked.len(), report.failures.total()), (1000, 0));
        let counts = sink.handle().counts();
        assert_eq!((counts.messages, counts.octets), (1000, report.octets));
        assert!(relay.account().total().unwrap() > Duration::ZERO);
    }

    #[test]
    fn real_mail_arrives_octet_for_octet() {
        let Some(path) = Corpus::locate() else {
            eprintln!("skipped: no corpus, name one by VERE_CORPUS");
            return;
        };
        let corpus = Arc::new(Corpus::read(&path, 500).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let options = SinkOptions {
            save: Some(dir.path().to_owned()),
            mode: SaveMode::Log,
            ..SinkOptions::default()
        };
        let sink = RunningSink::start(options).unwrap();
        let relay = NoopRelay::start(sink.handle().address()).unwrap();
        let mut options = LoadOptions::new(relay.address(), LoadEnd::Count(500));
        options.sessions = 10;
        options.messages = Messages::Corpus(Arc::clone(&corpus));
        let report = run(&options, &LoadProgress::default()).unwrap();
        assert_eq!((report.acked.len(), report.failures.total()), (500, 0));
        let kept = std::fs::read(dir.path().join("messages")).unwrap();
        let entries = read_index(dir.path()).unwrap();
        assert_eq!(entries.len(), 500);
        for entry in entries {
            let message = &kept[entry.offset as usize..(entry.offset + entry.length) as usize];
            let mut expected = Vec::new();
            let sequence = entry.id.unwrap().sequence() as usize;
            crate::wire::unstuff(corpus.message(sequence).0, &mut expected);
            assert!(message.ends_with(&expected), "message {sequence}");
        }
    }

    #[test]
    fn a_refusal_of_the_next_hop_reaches_the_client() {
        let sink = RunningSink::faulty(&["dot=554 5.7.1 no*2", "dot=close*1"]);
        let relay = NoopRelay::start(sink.handle().address()).unwrap();
        let options = LoadOptions::new(relay.address(), LoadEnd::Count(10));
        let report = run(&options, &LoadProgress::default()).unwrap();
        let codes: Vec<u16> = report.refused.iter().map(|(_, code)| *code).collect();
        assert_eq!(codes, [554, 554, 451]);
        assert_eq!(report.acked.len(), 7);
    }
}
