//! The event loop of the sink.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{Backlog, listen};

use super::fault::{self, Action, Fault};
use super::store::Store;
use super::{Delivery, Shared, SinkCounts, SinkError, SinkHandle, SinkOptions};
use crate::ids::MessageId;
use crate::wire::{Link, Manners, Readiness, Receiver, Stage, Wait};

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);
const SIGNALS: Token = Token(usize::MAX - 2);

/// Octets of unread replies of a session beyond which its commands wait.
const OUTPUT_MAX: usize = 64 * 1024;

/// How long messages under way may take once the sink is to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The longest sleep: the upper bound of the delay until the loop notices delays, stops and a full descriptor table.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug)]
struct Session {
    link: Link,
    receiver: Receiver,
    /// Answers wait until then.
    resume: Option<Instant>,
    /// The fault at the open question was served; accept now.
    decided: bool,
    /// Close when the output is gone.
    closing: bool,
}

/// A sink with its listener, not yet running.
#[derive(Debug)]
pub struct Sink {
    poll: Poll,
    listener: Option<TcpListener>,
    address: SocketAddr,
    sessions: Vec<Option<Session>>,
    free: Vec<usize>,
    delayed: Vec<usize>,
    accept_again: bool,
    manners: Manners,
    sessions_max: usize,
    faults: Vec<Fault>,
    store: Store,
    remember: bool,
    fresh: Vec<Delivery>,
    fresh_counts: SinkCounts,
    shared: Arc<Shared>,
    signals: Option<SignalFd>,
}

impl Sink {
    /// Listens, and opens the folder for messages.
    ///
    /// # Errors
    ///
    /// [`SinkError::Listen`] when the address cannot be listened on, [`SinkError::Save`] when the
    /// folder cannot be written, [`SinkError::Loop`] when there are no descriptors left.
    pub fn bind(options: SinkOptions) -> Result<Self, SinkError> {
        let listen_error = |source| SinkError::Listen {
            address: options.listen,
            source,
        };
        let store = Store::open(options.save.as_deref(), options.mode)?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => StdListener::bind(options.listen).map_err(listen_error)?,
        };
        // The library asks for a backlog of 128. Of faster connections some are answered by SYN cookies and then
        // forgotten: the clients wait for a greeting until they give up.
        listen(&listener, Backlog::MAXCONN).map_err(|error| listen_error(error.into()))?;
        listener.set_nonblocking(true).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new().map_err(SinkError::Loop)?;
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(SinkError::Loop)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(SinkError::Loop)?;
        Ok(Self {
            poll,
            listener: Some(listener),
            address,
            sessions: Vec::new(),
            free: Vec::new(),
            delayed: Vec::new(),
            accept_again: false,
            manners: Manners {
                hostname: options.hostname,
                extensions: options.extensions,
                message_size_max: options.message_size_max,
            },
            sessions_max: options.sessions_max,
            faults: options.faults,
            store,
            remember: options.remember,
            fresh: Vec::new(),
            fresh_counts: SinkCounts::default(),
            shared: Arc::new(Shared::new(waker)),
            signals: None,
        })
    }

    /// The handle by which further threads watch and stop the sink.
    pub fn handle(&self) -> SinkHandle {
        SinkHandle {
            shared: Arc::clone(&self.shared),
            address: self.address,
        }
    }

    /// Makes SIGTERM and SIGINT stop the sink gracefully. Both signals are blocked for the calling thread and threads
    /// started later; no further thread of the process may exist yet.
    ///
    /// # Errors
    ///
    /// [`SinkError::Loop`] when the kernel lacks a descriptor for the signals.
    pub fn stop_on_signals(&mut self) -> Result<(), SinkError> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGTERM);
        mask.add(Signal::SIGINT);
        let failed = |error: nix::Error| SinkError::Loop(error.into());
        mask.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&mask, flags).map_err(failed)?;
        self.poll
            .registry()
            .register(
                &mut SourceFd(&signals.as_raw_fd()),
                SIGNALS,
                Interest::READABLE,
            )
            .map_err(SinkError::Loop)?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Receives until told to stop.
    ///
    /// # Errors
    ///
    /// [`SinkError::Loop`] when waiting for events fails. A failure of a session ends only the session.
    pub fn run(mut self) -> Result<SinkCounts, SinkError> {
        let mut events = Events::with_capacity(1024);
        let mut stop_at: Option<Instant> = None;
        loop {
            let hurried = stop_at.is_some() || self.accept_again || !self.delayed.is_empty();
            match self.poll.poll(&mut events, hurried.then_some(TICK)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => result.map_err(SinkError::Loop)?,
            }
            for event in &events {
                self.handle_event(event);
            }
            self.resume_delayed();
            if self.accept_again {
                self.accept();
            }
            if stop_at.is_none() && self.shared.stop.load(Ordering::Acquire) {
                stop_at = Some(Instant::now() + STOP_GRACE);
                self.listener = None;
            }
            if let Some(stop_at) = stop_at {
                self.end_idle_sessions();
                if self.sessions.iter().all(Option::is_none) || Instant::now() >= stop_at {
                    break;
                }
            }
        }
        Ok(self.handle().counts())
    }

    fn handle_event(&mut self, event: &Event) {
        match event.token() {
            LISTENER => self.accept(),
            WAKER => {}
            SIGNALS => {
                if let Some(signals) = &self.signals
                    && matches!(signals.read_signal(), Ok(Some(_)))
                {
                    self.shared.stop.store(true, Ordering::Release);
                }
            }
            Token(index) => {
                if let Some(session) = self.sessions.get_mut(index).and_then(Option::as_mut) {
                    session.link.note(event);
                    self.drive(index);
                }
            }
        }
    }

    fn accept(&mut self) {
        self.accept_again = false;
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((stream, _)) => self.open(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                // Out of descriptors or memory: the edge is gone, so look again at the next tick.
                Err(_) => {
                    self.accept_again = true;
                    return;
                }
            }
        }
    }

    fn open(&mut self, stream: mio::net::TcpStream) {
        self.fresh_counts.connections += 1;
        let index = self.free.pop().unwrap_or(self.sessions.len());
        if index == self.sessions.len() {
            self.sessions.push(None);
        }
        let Ok(link) = Link::new(stream, self.poll.registry(), Token(index)) else {
            self.free.push(index);
            return;
        };
        let mut session = Session {
            link,
            receiver: Receiver::new(),
            resume: None,
            decided: false,
            closing: false,
        };
        if self.sessions.len().saturating_sub(self.free.len()) > self.sessions_max {
            session.receiver.shut_down();
        }
        self.sessions[index] = Some(session);
        self.drive(index);
    }

    fn drive(&mut self, index: usize) {
        let Some(mut session) = self.sessions[index].take() else {
            return;
        };
        match self.converse(&mut session, index) {
            Ok(true) => self.sessions[index] = Some(session),
            Ok(false) | Err(_) => {
                // A broken connection may have brought whole messages first.
                self.publish();
                session.link.close(self.poll.registry());
                self.free.push(index);
            }
        }
    }

    /// Drives a session as far as possible; returns false at the end of the session.
    fn converse(&mut self, session: &mut Session, index: usize) -> io::Result<bool> {
        while session.resume.is_none() && !session.closing {
            if session.receiver.output.pending().len() > OUTPUT_MAX {
                self.publish();
                if !session.link.write(&mut session.receiver.output)? {
                    return Ok(true);
                }
            }
            match session.receiver.advance(&self.manners) {
                Wait::Close => session.closing = true,
                Wait::Answer(stage) => self.answer(session, stage, index),
                Wait::Input => match session.link.read(&mut session.receiver.input)? {
                    Readiness::Closed => return Ok(false),
                    Readiness::Drained => break,
                    Readiness::More => {}
                },
            }
        }
        self.publish();
        let flushed = session.link.write(&mut session.receiver.output)?;
        Ok(!(session.closing && flushed))
    }

    fn answer(&mut self, session: &mut Session, stage: Stage, index: usize) {
        let action = if session.decided || self.faults.is_empty() {
            None
        } else {
            let receiver = &session.receiver;
            let recipients = &receiver.envelope().recipients;
            fault::applicable(&mut self.faults, stage, receiver.argument(), recipients)
        };
        session.decided = false;
        self.fresh_counts.faults += u64::from(action.is_some());
        match action {
            None if stage == Stage::Message && !self.take(session) => {
                session.receiver.refuse(452, "4.3.1 cannot keep it");
            }
            None => session.receiver.accept(&self.manners),
            Some(Action::Refuse { code, text }) => session.receiver.refuse(code, &text),
            Some(Action::Delay(delay)) => {
                session.resume = Some(Instant::now() + delay);
                session.decided = true;
                self.delayed.push(index);
            }
            Some(Action::Close) => session.closing = true,
            Some(Action::Lose) => {
                if stage == Stage::Message {
                    self.take(session);
                }
                session.closing = true;
            }
        }
    }

    fn take(&mut self, session: &Session) -> bool {
        if self.store.keep(&session.receiver).is_err() {
            return false;
        }
        let message = session.receiver.message();
        self.fresh_counts.messages += 1;
        self.fresh_counts.octets += message.len() as u64;
        if self.remember
            && let Some(id) = MessageId::of_message(message)
        {
            self.fresh.push(Delivery {
                id,
                at: Instant::now(),
            });
        }
        true
    }

    fn resume_delayed(&mut self) {
        if self.delayed.is_empty() {
            return;
        }
        let now = Instant::now();
        for index in std::mem::take(&mut self.delayed) {
            let Some(session) = self.sessions[index].as_mut() else {
                continue;
            };
            match session.resume {
                Some(resume) if resume <= now => {
                    session.resume = None;
                    self.drive(index);
                }
                Some(_) => self.delayed.push(index),
                None => {}
            }
        }
    }

    fn end_idle_sessions(&mut self) {
        for index in 0..self.sessions.len() {
            if let Some(session) = self.sessions[index].as_mut()
                && session.receiver.is_idle()
            {
                session.receiver.shut_down();
                self.drive(index);
            }
        }
    }

    /// Publishes the arrived messages to watchers, before the acknowledgements leave.
    fn publish(&mut self) {
        if !self.fresh.is_empty() {
            self.shared.deliveries().append(&mut self.fresh);
        }
        let fresh = std::mem::take(&mut self.fresh_counts);
        let add = |counter: &std::sync::atomic::AtomicU64, count: u64| {
            if count > 0 {
                counter.fetch_add(count, Ordering::AcqRel);
            }
        };
        add(&self.shared.messages, fresh.messages);
        add(&self.shared.octets, fresh.octets);
        add(&self.shared.connections, fresh.connections);
        add(&self.shared.faults, fresh.faults);
    }
}
