//! A process that takes messages apart, as the store sees it.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use vere_mime::Parsed;
use vere_mime::wire::{
    HEAD_OCTETS, Item, Question, READY_FRAME, Scope, Texts, WireError, answer_head, found, holds,
    holds_head, request, request_head, texts, texts_head,
};

use super::child::ENVIRONMENT;

/// How long a process may take to begin on a machine that has much else to do.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Octets of a message that may take a second more.
pub(super) const OCTETS_A_SECOND: usize = 4 << 20;
/// How long a process whose socket is closed may take to end.
const END_PATIENCE: Duration = Duration::from_millis(200);
/// Memory for answers that is kept.
const KEPT_OCTETS: usize = 64 * 1024;

/// Why there is no answer: the message's fault, or that of what happened to the process.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It ended, or its socket broke.
    Ended(io::Error),
    /// It took too long.
    Silent,
    /// What it says is not the protocol, or not in the message.
    Wrong(WireError),
    /// What is asked about is too long.
    TooLong,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(error) => write!(f, "the process ended: {error}"),
            Self::Silent => f.write_str("the process took too long"),
            Self::Wrong(error) => write!(f, "the process answers nonsense: {error}"),
            Self::TooLong => f.write_str("what is asked about is too long"),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Ended(error),
        }
    }
}

impl From<WireError> for Trouble {
    fn from(error: WireError) -> Self {
        Self::Wrong(error)
    }
}

/// How processes are started; each finds its socket at its standard input.
#[derive(Clone)]
pub(super) struct Launch(Arc<dyn Fn() -> Command + Send + Sync>);

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Launch")
    }
}

impl Launch {
    /// This very program, also when its file was replaced meanwhile.
    pub(super) fn own() -> Self {
        Self::new(|| {
            let mut command = Command::new("/proc/self/exe");
            let (name, value) = ENVIRONMENT;
            command.args(["role", "parser"]).env_clear();
            command.env(name, value);
            command
        })
    }

    pub(super) fn new(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self(Arc::new(command))
    }

    /// What is run.
    pub(super) fn command(&self) -> Command {
        (self.0)()
    }

    /// Starts a process and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, or ends or says other things at once.
    pub(super) fn process(&self) -> io::Result<Process> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_read_timeout(Some(START_PATIENCE))?;
        let mut command = self.command();
        let child = command
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .spawn()?;
        // Its copy of the other end is closed with the command.
        drop(command);
        let mut process = Process {
            child,
            stream,
            patience: START_PATIENCE,
            answer: Vec::new(),
        };
        let mut ready = [0; HEAD_OCTETS];
        process.stream.read_exact(&mut ready)?;
        match ready == READY_FRAME {
            true => Ok(process),
            false => Err(io::Error::new(
                ErrorKind::InvalidData,
                "it is another program",
            )),
        }
    }
}

/// A process; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stream: UnixStream,
    /// How long the stream waits at each step.
    patience: Duration,
    answer: Vec<u8>,
}

/// How a process ended, for the log.
#[derive(Debug)]
pub(super) struct Ended(Option<ExitStatus>);

impl Ended {
    /// Whether somebody else killed it: the kernel when there is no memory left on the machine, or an
    /// administrator. What it does itself, and its limits, end it in other ways.
    pub(super) fn was_killed(&self) -> bool {
        let signal = self.0.and_then(|status| status.signal());
        signal == Some(Signal::SIGKILL as i32)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => write!(f, "{status}"),
            None => f.write_str("it was ended"),
        }
    }
}

impl Process {
    /// Whether it has not ended.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks what is in a message. After any trouble the process is of no more use.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) fn ask(
        &mut self,
        scope: Scope,
        message: &[u8],
        patience: Duration,
    ) -> Result<Parsed, Trouble> {
        let head = request_head(scope, message.len()).ok_or(Trouble::TooLong)?;
        let length = |head: &_| answer_head(head, message.len());
        self.talk((&head, message), patience, length, |answer| {
            found(answer, message)
        })
    }

    /// Asks for the texts of messages. After any trouble the process is of no more use.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) fn texts(
        &mut self,
        items: &[Item<'_>],
        patience: Duration,
    ) -> Result<Vec<Texts>, Trouble> {
        let all = || items.iter().copied();
        let frame = request(Question::Texts, all()).ok_or(Trouble::TooLong)?;
        let length = |head: &_| texts_head(head, all());
        self.talk((&frame, &[]), patience, length, |answer| {
            texts(answer, items.len())
        })
    }

    /// Asks which messages have something. After any trouble the process is of no more use.
    ///
    /// # Errors
    /// [`Trouble`].
    pub(super) fn holds(
        &mut self,
        question: Question<'_>,
        items: &[Item<'_>],
        patience: Duration,
    ) -> Result<Vec<bool>, Trouble> {
        let frame = request(question, items.iter().copied()).ok_or(Trouble::TooLong)?;
        let length = |head: &_| holds_head(head, items.len());
        self.talk((&frame, &[]), patience, length, holds)
    }

    /// Sends a request, in two pieces, and reads the answer to it: how many octets it has, and what they
    /// say.
    fn talk<T>(
        &mut self,
        (head, message): (&[u8], &[u8]),
        patience: Duration,
        length: impl FnOnce(&[u8; HEAD_OCTETS]) -> Result<usize, WireError>,
        read: impl FnOnce(&[u8]) -> Result<T, WireError>,
    ) -> Result<T, Trouble> {
        if self.patience != patience {
            self.stream.set_read_timeout(Some(patience))?;
            self.stream.set_write_timeout(Some(patience))?;
            self.patience = patience;
        }
        let octets = head.len().saturating_add(message.len());
        let seconds = u64::try_from(octets / OCTETS_A_SECOND).unwrap_or(u64::MAX);
        let longest = patience.saturating_add(Duration::from_secs(seconds));
        let deadline = Deadline(Instant::now(), longest);
        self.send(head, message, deadline)?;
        let mut head = [0; HEAD_OCTETS];
        self.receive(&mut head, deadline)?;
        let octets = length(&head)?;
        let mut answer = std::mem::take(&mut self.answer);
        answer.resize(octets, 0);
        self.receive(&mut answer, deadline)?;
        let said = read(&answer)?;
        answer.clear();
        answer.shrink_to(KEPT_OCTETS);
        self.answer = answer;
        Ok(said)
    }

    fn send(
        &mut self,
        mut head: &[u8],
        mut message: &[u8],
        deadline: Deadline,
    ) -> Result<(), Trouble> {
        while !head.is_empty() || !message.is_empty() {
            let both = [IoSlice::new(head), IoSlice::new(message)];
            let sent = match self.stream.write_vectored(&both) {
                Ok(0) => return Err(Trouble::Ended(ErrorKind::WriteZero.into())),
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                sent => sent?,
            };
            let of_head = sent.min(head.len());
            head = &head[of_head..];
            message = &message[sent - of_head..];
            deadline.check()?;
        }
        Ok(())
    }

    fn receive(&mut self, mut into: &mut [u8], deadline: Deadline) -> Result<(), Trouble> {
        while !into.is_empty() {
            let octets = match self.stream.read(into) {
                Ok(0) => return Err(Trouble::Ended(ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                octets => octets?,
            };
            into = &mut into[octets..];
            deadline.check()?;
        }
        Ok(())
    }

    /// Whether somebody made it stand still (proc(5): the state behind the name).
    pub(super) fn is_stopped(&self) -> bool {
        let path = format!("/proc/{}/stat", self.child.id());
        let said = std::fs::read_to_string(path).unwrap_or_default();
        let behind = said.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        behind.is_some_and(|rest| rest.starts_with(['T', 't']))
    }

    /// Ends it, and tells how it ended where it did so by itself.
    pub(super) fn end(mut self) -> Ended {
        let began = Instant::now();
        while began.elapsed() < END_PATIENCE {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ended(Some(status)),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => break,
            }
        }
        Ended(None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended and is collected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When something began, and how long it may take.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant, Duration);

impl Deadline {
    fn check(self) -> Result<(), Trouble> {
        match self.0.elapsed() <= self.1 {
            true => Ok(()),
            false => Err(Trouble::Silent),
        }
    }
}
