//! The client machine: delivers messages to an SMTP or LMTP server (RFC 5321, RFC 2033).
//!
//! ```text
//!            greeting, EHLO            begin              replies
//!  Opening ────────────────► Idle ───────────────► Busy ──────────► Done, Idle
//!    │  ▲                      │
//!    ▼  │ tls_started          │ quit, or the server's MAILMAX
//!  AwaitTls, Authenticating    ▼
//!                           Quitting ──► Closed      (from everywhere: Closed with its reason)
//! ```
//!
//! The host sends [`Client::output`], reports the sent octets by [`Client::sent`], gives received octets to
//! [`Client::input`] and carries out [`Client::step`]. Input may be given at any time, and must be while output
//! waits: a pipelining server may stop reading until its replies are taken.
//!
//! Replies are matched to commands by order alone (RFC 2920), so a reply without a command, or before its
//! command was sent, ends the connection. Every recipient of a begun message gets an outcome in any case, and a
//! connection that ends behind the message without a reply leaves the recipients deferred: a duplicate is better
//! than a loss.
//!
//! ```
//! use std::sync::Arc;
//! use vere_smtp::client::{Client, ClientConfig, ClientStep};
//! use vere_units::Timestamp;
//!
//! let now = Timestamp::from_millis(0);
//! let config = Arc::new(ClientConfig::new("mx.example.org", [0; 32]));
//! let mut client = Client::new(config, now);
//! assert!(matches!(client.step(), ClientStep::NeedInput));
//! client.input(b"220 mx.example.net ESMTP\r\n", now);
//! assert!(matches!(client.step(), ClientStep::Send));
//! assert_eq!(client.output(), b"EHLO mx.example.org\r\n");
//! ```

mod body;
mod close;
mod config;
mod extensions;
mod message;
mod session;
mod transaction;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use vere_units::Timestamp;

use crate::reply::{Reply, ReplyParser};

pub use close::{CloseReason, Misbehaviour, Stage};
pub use config::{ClientConfig, Timeouts, TlsMode};
pub use extensions::Extensions;
pub use message::{OutgoingMessage, RecipientOutcome, TransactionOutcome};

use session::{Authentication, Session};
use transaction::{Flow, Transaction};
use wire::{Awaited, Wire};

/// A server that replied within this time will hardly have closed the connection since.
///
/// A server that closes silently may have accepted a message sent together with its envelope, since replies may
/// be held back until all commands are read (RFC 2920 section 3.2): the server must then get the message again
/// (RFC 1047, RFC 5321 section 4.5.3.2.6). Where a silent close is likely, the envelope goes first, because
/// losing the envelope does no harm.
const RECENT: Duration = Duration::from_secs(1);

/// The next step of the host.
#[derive(Debug)]
pub enum ClientStep {
    /// Wait for input or the deadline.
    NeedInput,
    /// Send [`Client::output`], and take input meanwhile.
    Send,
    /// Shake hands as a TLS client, then call [`Client::tls_started`]. Octets that were read already
    /// must not be given to the handshake; a failed handshake is [`Client::connection_lost`].
    StartTls,
    /// Give a message to [`Client::begin`], or [`Client::quit`], or keep the connection.
    Ready,
    /// A message is settled.
    Done(Box<TransactionOutcome>),
    /// Close the connection; the state is final.
    Closed(CloseReason),
}

/// Where the connection stands.
#[derive(Debug)]
enum Phase {
    /// Greeting, EHLO, STARTTLS; the awaited reply tells the stages apart.
    Opening,
    /// The server is ready for the handshake.
    AwaitTls,
    /// AUTH.
    Authenticating(Box<Authentication>),
    /// Between messages.
    Idle,
    /// A message is being sent.
    Busy(Box<Transaction>),
    /// QUIT was sent, and the reply is awaited.
    Quitting,
    /// QUIT goes out, and no reply is waited for.
    Closing(CloseReason),
    /// It is over.
    Closed(CloseReason),
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    parser: ReplyParser,
    wire: Wire,
    phase: Phase,
    session: Session,
    finished: VecDeque<Box<TransactionOutcome>>,
    quit_when_idle: bool,
    deadline: Timestamp,
    /// When the server replied last.
    heard: Timestamp,
    /// Whether output went since the deadline was set.
    moved: bool,
}

impl Client {
    /// Begins with a connection that has just been made; the server speaks first.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>, now: Timestamp) -> Self {
        let secured = config.tls == TlsMode::Implicit;
        let mut client = Self {
            config,
            parser: ReplyParser::default(),
            wire: Wire::default(),
            phase: Phase::Opening,
            session: Session::new(secured),
            finished: VecDeque::new(),
            quit_when_idle: false,
            deadline: Timestamp::MAX,
            heard: now,
            moved: false,
        };
        client.wire.await_reply(Awaited::Greeting);
        client.rearm(now);
        client
    }

    /// Returns the next step. Without an event in between, a second call returns the same step, except that each
    /// outcome is returned once.
    pub fn step(&mut self) -> ClientStep {
        if let Some(outcome) = self.finished.pop_front() {
            return ClientStep::Done(outcome);
        }
        match &self.phase {
            Phase::Closed(reason) => ClientStep::Closed(reason.clone()),
            _ if !self.wire.is_empty() => ClientStep::Send,
            Phase::Closing(reason) => ClientStep::Closed(reason.clone()),
            Phase::AwaitTls => ClientStep::StartTls,
            Phase::Idle => ClientStep::Ready,
            Phase::Opening | Phase::Authenticating(_) | Phase::Busy(_) | Phase::Quitting => {
                ClientStep::NeedInput
            }
        }
    }

    /// Takes octets from the server and returns the number consumed, always all octets: replies are few and
    /// bounded, and the machine never has to wait.
    pub fn input(&mut self, octets: &[u8], now: Timestamp) -> usize {
        let mut rest = octets;
        let mut replied = false;
        while !rest.is_empty() {
            if self.is_over() {
                return octets.len();
            }
            if matches!(self.phase, Phase::AwaitTls) {
                self.close(CloseReason::InjectedBeforeTls);
                break;
            }
            match self.parser.parse(rest) {
                Ok((taken, reply)) => {
                    rest = rest.get(taken..).unwrap_or_default();
                    if let Some(reply) = reply {
                        self.on_reply(reply);
                        replied = true;
                    }
                }
                Err(error) => {
                    self.close(CloseReason::Misbehaved(Misbehaviour::Malformed(error)));
                }
            }
        }
        if replied {
            self.heard = now;
            self.pump();
            self.rearm(now);
        }
        octets.len()
    }

    /// The octets to send next; more octets may follow after these are sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.wire.output()
    }

    /// Records that the first `octets` of [`Client::output`] were sent.
    pub fn sent(&mut self, octets: usize) {
        if octets == 0 {
            return;
        }
        self.wire.sent(octets);
        self.moved = true;
        self.pump();
        if let (Phase::Closing(reason), true) = (&self.phase, self.wire.is_empty()) {
            self.close(reason.clone());
        }
    }

    /// Begins a message, whose end is reported by [`ClientStep::Done`].
    ///
    /// Without [`ClientStep::Ready`] the message is settled at once: deferred, or with the outcome of the reason
    /// for the close.
    pub fn begin(&mut self, message: OutgoingMessage, now: Timestamp) {
        self.session.recent = now.saturating_since(self.heard) <= RECENT;
        let transaction = Transaction::new(message, &self.session, &self.config);
        match &self.phase {
            Phase::Idle => {
                self.phase = Phase::Busy(Box::new(transaction));
                self.pump();
                self.rearm(now);
            }
            Phase::Closed(reason) | Phase::Closing(reason) => {
                let outcome = transaction.abandon(reason.reply());
                self.finished.push_back(Box::new(outcome));
            }
            _ => {
                let outcome = transaction.abandon(close::transient(3, 2, "connection is busy"));
                self.finished.push_back(Box::new(outcome));
            }
        }
    }

    /// Ends the connection with QUIT, once the message under way is settled.
    pub fn quit(&mut self, now: Timestamp) {
        self.quit_when_idle = true;
        if matches!(self.phase, Phase::Idle) {
            self.become_idle();
            self.rearm(now);
        }
    }

    /// Continues after the handshake requested by [`ClientStep::StartTls`]. All earlier announcements of the
    /// server are dropped (RFC 3207 section 4.2).
    pub fn tls_started(&mut self, now: Timestamp) {
        if matches!(self.phase, Phase::AwaitTls) {
            self.parser = ReplyParser::default();
            self.wire.clear();
            self.session = Session::new(true);
            self.phase = Phase::Opening;
            self.say_hello();
            self.rearm(now);
        }
    }

    /// When to call [`Client::timed_out`] unless something happens before; [`Timestamp::MAX`] while
    /// nothing is waited for.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Gives the connection up because [`Client::deadline`] has passed, or sets a later deadline if
    /// the message still moves.
    pub fn timed_out(&mut self) {
        if self.moved && matches!(self.phase, Phase::Busy(_)) {
            self.moved = false;
            self.deadline = self.deadline + self.patience();
            return;
        }
        let stage = self.stage();
        self.end(CloseReason::TimedOut(stage));
    }

    /// Records the loss of the connection: a close by the server, a reset, or a failed handshake. Octets read
    /// before the loss must already have been given to [`Client::input`].
    pub fn connection_lost(&mut self) {
        let stage = self.stage();
        self.end(CloseReason::Lost(stage));
    }

    /// The extensions announced by the server so far.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.session.extensions
    }

    /// The server's reply to EHLO, LHLO or HELO, as it came.
    #[must_use]
    pub fn hello(&self) -> Option<&Reply> {
        self.session.hello.as_ref()
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.session.secured
    }

    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closing(_) | Phase::Closed(_))
    }

    fn on_reply(&mut self, reply: Reply) {
        if reply.code == 421 {
            return self.end(CloseReason::ServerClosing(reply));
        }
        let Some((awaited, early)) = self.wire.take_awaited() else {
            return self.close(CloseReason::Misbehaved(Misbehaviour::Unasked(reply)));
        };
        match &mut self.phase {
            Phase::Busy(transaction) => {
                let flow =
                    transaction.on_reply(awaited, early, reply, &mut self.wire, &mut self.session);
                if let Flow::Close(reason) = flow {
                    self.close(reason);
                }
            }
            Phase::Quitting => self.close(CloseReason::Quit),
            _ if early => {
                let early = Misbehaviour::TooEarly(awaited.stage());
                self.close(CloseReason::Misbehaved(early));
            }
            _ => self.on_session_reply(awaited, reply),
        }
    }

    /// Makes more output of a message, and settles the message after the last output.
    fn pump(&mut self) {
        let Phase::Busy(transaction) = &mut self.phase else {
            return;
        };
        if transaction.pump(&mut self.wire, &mut self.session) {
            return;
        }
        if let Phase::Busy(transaction) = std::mem::replace(&mut self.phase, Phase::Idle) {
            self.become_idle();
            let usable = matches!(self.phase, Phase::Idle);
            self.finished
                .push_back(Box::new(transaction.finish(usable)));
        }
    }

    /// Between messages: quits if that was asked for or the server takes no more.
    fn become_idle(&mut self) {
        self.phase = Phase::Idle;
        self.wire.shrink();
        if self.quit_when_idle || self.session.mails_left == Some(0) {
            self.wire
                .command(Awaited::Quit, |out| out.extend_from_slice(b"QUIT\r\n"));
            self.phase = Phase::Quitting;
        }
    }

    /// Closes because of something from outside, which no longer matters if we are leaving anyway.
    fn end(&mut self, reason: CloseReason) {
        let reason = match &self.phase {
            Phase::Quitting => CloseReason::Quit,
            Phase::Closing(reason) | Phase::Closed(reason) => reason.clone(),
            _ => reason,
        };
        self.close(reason);
    }

    /// Closes at once and settles the message under way.
    fn close(&mut self, reason: CloseReason) {
        let reply = reason.reply();
        let timed_out = matches!(reason, CloseReason::TimedOut(_));
        let phase = std::mem::replace(&mut self.phase, Phase::Closed(reason));
        if let Phase::Busy(transaction) = phase {
            let mut outcome = transaction.abandon(reply);
            // A server that goes on without a word may be busy with the message.
            outcome.untried &= !timed_out;
            self.finished.push_back(Box::new(outcome));
        }
        self.wire.clear();
        self.parser = ReplyParser::default();
        self.deadline = Timestamp::MAX;
    }

    /// Closes behind a QUIT, for which no reply is waited: only before the first message.
    fn close_politely(&mut self, reason: CloseReason) {
        self.wire.clear();
        self.wire.put(|out| out.extend_from_slice(b"QUIT\r\n"));
        self.phase = Phase::Closing(reason);
    }

    /// Sets the deadline anew.
    fn rearm(&mut self, now: Timestamp) {
        self.moved = false;
        self.deadline = match self.phase {
            Phase::Idle | Phase::Closed(_) => Timestamp::MAX,
            _ => now + self.patience(),
        };
    }

    fn stage(&self) -> Stage {
        match &self.phase {
            Phase::AwaitTls => Stage::StartTls,
            Phase::Closing(_) => Stage::Quit,
            _ => match self.wire.awaited() {
                Some(Awaited::Final) if !self.wire.is_empty() => Stage::Body,
                awaited => awaited.map_or(Stage::Idle, Awaited::stage),
            },
        }
    }

    fn patience(&self) -> Duration {
        let timeouts = &self.config.timeouts;
        match self.stage() {
            Stage::Greeting => timeouts.greeting,
            Stage::Hello | Stage::StartTls | Stage::Auth | Stage::Reset | Stage::Idle => {
                timeouts.command
            }
            Stage::Mail => timeouts.mail,
            Stage::Recipient => timeouts.recipient,
            Stage::Data => timeouts.data,
            Stage::Body => timeouts.data_block,
            Stage::Final => timeouts.data_end,
            Stage::Quit => timeouts.quit,
        }
    }
}

#[cfg(test)]
mod tests;
