//! Drives a session: moves octets between the connection and the machine, takes the machine's questions to the host, and
//! counts the memory of the session.
//!
//! One loop serves SMTP, LMTP and IMAP (`docs/internals/sessions.md`).

#[cfg(test)]
mod tests;

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;

use super::clock::{steady, until_steady};
use super::machine::{Machine, Step};
use super::memory::Share;
use super::wire::{self, Connection};

/// Octets that a client may send while its question is being answered.
const AHEAD_MAX: usize = 64 * 1024;
/// How long an answer is awaited for a client that has closed its side: the client may still read.
const CLOSED_PATIENCE: Duration = Duration::from_secs(10);

/// Why [`drive`] returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Pause {
    /// A TLS handshake is due. Octets that arrived before the handshake are discarded (RFC 3207 section 5, RFC 9051 section
    /// 6.2.1).
    StartTls,
    /// The session is over.
    Closed,
}

/// Answers the questions of a machine.
pub trait Host<M: Machine> {
    /// An event that the session has to hear of, besides input, deadline and stop.
    type Event;

    /// Follows the machine before each step: log lines, files, memory beside the machine's own.
    fn follow(&mut self, machine: &mut M) -> impl Future<Output = ()>;

    /// Prepares for a wait of any length: lets go of what the next command can do without. False ends the session.
    fn rest(&mut self, _machine: &M) -> impl Future<Output = bool> {
        async { true }
    }

    /// Waits for an event. Dropping the future loses no event.
    fn event(&self) -> impl Future<Output = Self::Event> {
        pending()
    }

    /// Tells the machine of an event.
    fn happened(&mut self, _event: Self::Event, _machine: &mut M) {}

    /// Waits until others need what the session holds beside its memory.
    fn called(&self) -> impl Future<Output = ()> {
        pending()
    }

    /// Writes octets to the client. False ends the session: others need what a client holds that does not read.
    ///
    /// # Errors
    /// When the connection breaks, or the client is too slow.
    fn write(
        &mut self,
        line: &Line,
        stream: &mut impl Connection,
        octets: &[u8],
    ) -> impl Future<Output = io::Result<bool>> {
        async {
            tokio::select! {
                biased;
                written = line.write(stream, octets) => written,
                () = self.called() => Ok(false),
            }
        }
    }

    /// Answers a question. `None` ends the session: nobody waits for the answer.
    ///
    /// # Errors
    /// When the connection breaks.
    fn answer(
        &mut self,
        line: &mut Line,
        stream: &mut impl Connection,
        machine: &M,
        question: M::Question,
    ) -> impl Future<Output = io::Result<Option<M::Answer>>>;
}

/// The part of a session that every protocol has.
#[derive(Debug)]
pub struct Line {
    /// Octets of messages in memory.
    pub held: Share,
    /// Becomes true when the role stops: the session ends at its next command boundary.
    stop: watch::Receiver<bool>,
    /// How long a client may leave sent octets unread.
    patience: Duration,
    unread: Unread,
}

impl Line {
    /// Returns the line of a new session.
    pub fn new(held: Share, stop: watch::Receiver<bool>, patience: Duration) -> Self {
        Self {
            held,
            stop,
            patience,
            unread: Unread::default(),
        }
    }

    /// Gives the session octets of its client that were read before the session came here.
    pub fn give(&mut self, octets: Vec<u8>) {
        self.unread = octets.into();
    }

    /// Returns how long a client may leave sent octets unread.
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// Writes octets. False when others need the memory of the session while its client does not read.
    ///
    /// # Errors
    /// When the connection breaks, or the client reads nothing for the line's patience.
    pub async fn write(&self, stream: &mut impl Connection, octets: &[u8]) -> io::Result<bool> {
        tokio::select! {
            biased;
            written = wire::write(stream, octets, self.patience) => written.map(|()| true),
            () = self.held.called() => Ok(false),
        }
    }

    /// Waits for an answer while the client is there, reading what the client sends meanwhile; absent when the client has gone.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn listen_while<A, F: Future<Output = A>>(
        &mut self,
        stream: &mut impl Connection,
        answer: Pin<Box<F>>,
    ) -> io::Result<Option<A>> {
        self.unread
            .grow_while(stream, answer, CLOSED_PATIENCE)
            .await
    }

    /// Waits for octets, an event, the stop, a call for memory, or the deadline. False: the client has closed its side.
    async fn wait<M: Machine>(
        &mut self,
        stream: &mut impl Connection,
        machine: &mut M,
        host: &mut impl Host<M>,
    ) -> io::Result<bool> {
        let stopping = *self.stop.borrow();
        let patience = until_steady(machine.deadline());
        // The order matters: arrived octets are consumed before the deadline counts, and a client that sends is not
        // silenced by the events of others.
        tokio::select! {
            biased;
            _ = self.stop.changed(), if !stopping => machine.shut_down(),
            // The call takes effect at the next count.
            () = self.held.called() => {}
            read = wire::read(stream, |octets| machine.input(octets, steady())) => match read? {
                Some(rest) => self.unread = rest.into(),
                None => return Ok(false),
            },
            event = host.event() => host.happened(event, machine),
            () = tokio::time::sleep(patience) => machine.timed_out(),
        }
        Ok(true)
    }
}

/// Octets that were read, and that the machine has not taken yet.
#[derive(Debug, Default)]
struct Unread {
    octets: Vec<u8>,
    taken: usize,
}

impl From<Vec<u8>> for Unread {
    fn from(octets: Vec<u8>) -> Self {
        Self { octets, taken: 0 }
    }
}

impl Unread {
    fn rest(&self) -> &[u8] {
        self.octets.get(self.taken..).unwrap_or_default()
    }

    /// Gives the machine what is left. A machine hears also that nothing is: it may have waited for the end of a question.
    fn feed(&mut self, machine: &mut impl Machine) {
        let rest = self.rest();
        self.taken += machine.input(rest, steady()).min(rest.len());
        if self.taken == self.octets.len() {
            // An idle connection holds no buffer.
            *self = Self::default();
        }
    }

    async fn grow_while<A, F: Future<Output = A>>(
        &mut self,
        stream: &mut impl Connection,
        mut answer: Pin<Box<F>>,
        patience: Duration,
    ) -> io::Result<Option<A>> {
        while self.rest().len() < AHEAD_MAX {
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(Some(answer)),
                read = wire::read(stream, |_| 0) => match read? {
                    Some(more) => self.octets.extend_from_slice(&more),
                    None => return Ok(tokio::time::timeout(patience, answer).await.ok()),
                },
            }
        }
        Ok(Some(answer.await))
    }
}

/// Drives a session until it ends or a TLS handshake is due.
///
/// # Errors
/// When the connection breaks. What the client was told to be safe is safe.
pub async fn drive<M: Machine>(
    stream: &mut impl Connection,
    machine: &mut M,
    host: &mut impl Host<M>,
    line: &mut Line,
) -> io::Result<Pause> {
    loop {
        // Before replies go out, so that the replies to pipelined commands leave in one write.
        line.unread.feed(machine);
        host.follow(machine).await;
        match machine.step() {
            // Counting may refuse the message; then the next step changes. A question is not counted before its answer:
            // until then the message takes its memory.
            Step::Send | Step::NeedInput if line.held.count(machine) => {}
            Step::Send => {
                let octets = machine.output().len();
                if !host.write(line, stream, machine.output()).await? {
                    return Ok(Pause::Closed);
                }
                machine.sent(octets);
            }
            Step::NeedInput => {
                if !host.rest(machine).await || !line.wait(stream, machine, host).await? {
                    return Ok(Pause::Closed);
                }
            }
            Step::Ask(question) => match host.answer(line, stream, machine, question).await? {
                Some(answer) => machine.answer(answer, steady()),
                None => return Ok(Pause::Closed),
            },
            Step::StartTls => return Ok(Pause::StartTls),
            Step::NeedAnswer | Step::Close => return Ok(Pause::Closed),
        }
    }
}
