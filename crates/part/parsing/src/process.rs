//! A process that parses messages, as the store sees it.

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
    HEAD_OCTETS, Item, Question, READY_OCTETS, Scope, Texts, WireError, answer_head, found, holds,
    holds_head, read_ready, request, request_head, texts, texts_head,
};
use vere_sandbox::Layers;

use super::terms::{ENVIRONMENT, OCTETS_A_SECOND, ROLE};

/// How long a process may take to start on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a process with a closed socket may take to end.
const END_PATIENCE: Duration = Duration::from_millis(200);
/// Memory for answers that is kept between requests.
const KEPT_OCTETS: usize = 64 * 1024;

/// Why there is no answer: because of the message, or of an event in the process.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The process ended, or its socket broke.
    Ended(io::Error),
    /// The process took too long.
    Silent,
    /// The answer violates the protocol, or does not match the message.
    Wrong(WireError),
    /// The request is too long.
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

/// How processes are started; each process finds its socket at its standard input.
#[derive(Clone)]
pub struct Launch(Arc<dyn Fn() -> Command + Send + Sync>);

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Launch")
    }
}

impl Launch {
    /// Runs this very program, even if its file was replaced meanwhile.
    pub(super) fn own() -> Self {
        Self::new(|| {
            let mut command = Command::new("/proc/self/exe");
            let (name, value) = ENVIRONMENT;
            command.args(["role", ROLE]).env_clear();
            command.env(name, value);
            command
        })
    }

    /// Starts processes by commands that `command` makes.
    pub fn new(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self(Arc::new(command))
    }

    /// The command to run.
    pub(super) fn command(&self) -> Command {
        (self.0)()
    }

    /// Starts a process and waits until the process is ready.
    ///
    /// # Errors
    /// When the process cannot be started, ends at once, or greets wrongly.
    pub(super) fn process(&self) -> io::Result<Process> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_read_timeout(Some(START_PATIENCE))?;
        let mut command = self.command();
        let child = command
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .spawn()?;
        // The command's copy of the other end is closed with the command.
        drop(command);
        let mut process = Process {
            child,
            stream,
            patience: START_PATIENCE,
            answer: Vec::new(),
            layers: Layers::default(),
        };
        let mut ready = [0; READY_OCTETS];
        process.stream.read_exact(&mut ready)?;
        let layers = read_ready(&ready);
        let layers = layers.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        process.layers = Layers::of_octet(layers);
        Ok(process)
    }
}

/// A running process, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stream: UnixStream,
    /// Timeout of the stream for each read or write.
    patience: Duration,
    answer: Vec<u8>,
    /// The layers of its sandbox that hold, as the process said before its first message.
    pub(super) layers: Layers,
}

/// How a process ended, for the log.
#[derive(Debug)]
pub(super) struct Ended(Option<ExitStatus>);

impl Ended {
    /// Whether the process was killed from outside: by the kernel when the machine has no memory left, or by an
    /// administrator. Faults of the process and its limits end a process in other ways.
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
    /// Whether the process still runs.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks for the parser record of a message. After any trouble the process is useless.
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

    /// Asks for the texts of messages. After any trouble the process is useless.
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

    /// Asks which messages match a question. After any trouble the process is useless.
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

    /// Sends a request in two pieces, and reads the answer. `length` decodes the length of the answer from its head,
    /// and `read` decodes the answer.
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

    /// Whether somebody stopped the process (proc(5): the state after the name).
    pub(super) fn is_stopped(&self) -> bool {
        let path = format!("/proc/{}/stat", self.child.id());
        let said = std::fs::read_to_string(path).unwrap_or_default();
        let behind = said.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        behind.is_some_and(|rest| rest.starts_with(['T', 't']))
    }

    /// Ends the process, and returns how the process ended if it did so by itself.
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
        // Both fail only if the process has ended and was collected.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When a request began, and how long the request may take.
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
