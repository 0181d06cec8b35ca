//! The process that parses messages. The process reads messages from its standard input, a socket, and has no other
//! resources: no files, no settings, no secrets.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use vere_mime::wire::{HEAD_OCTETS, Request, WireError, answer, read_request_head, ready};
use vere_sandbox::{Layers, Sandbox, calls};

use super::terms::OCTETS_A_SECOND;
pub use super::terms::{ENVIRONMENT, ROLE};

/// Seconds of processor time for a message, in addition to the time for its length. Texts have a shorter limit for all
/// messages of a request, because a search waits for the answer.
const SECONDS_MAX: u64 = 10;
const TEXT_SECONDS_MAX: u64 = 3;
/// Octets of memory in addition to those for the length of a message.
const WORK_OCTETS: u64 = 32 << 20;
/// Octets of memory for each octet of a message: the octet itself and the parsed structure; or the texts, which exist
/// decoded, as characters, in the form for comparison, and in the answer.
const OCTETS_EACH: u64 = 8;
/// Messages up to this size share one memory limit and one buffer.
const ORDINARY_OCTETS: usize = 4 << 20;

/// Why the process cannot begin, or ended early.
#[derive(Debug)]
pub enum ChildError {
    /// The kernel refused a limit of the process.
    Limit(Errno),
    /// The kernel does not report how much memory the process has.
    MemoryUnknown,
    /// The socket failed or brought no request, or the system refused.
    System(io::Error),
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(error) => error.fmt(f),
            Self::MemoryUnknown => f.write_str("the kernel does not tell how much memory there is"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for ChildError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Limit(error) => error.source(),
            Self::MemoryUnknown => None,
            Self::System(error) => error.source(),
        }
    }
}

impl From<Errno> for ChildError {
    fn from(error: Errno) -> Self {
        Self::Limit(error)
    }
}

impl From<io::Error> for ChildError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Serves until the socket is closed.
///
/// # Errors
/// When the socket breaks, the input breaks the protocol, or limits cannot be set.
pub fn run() -> Result<(), ChildError> {
    let input = io::stdin();
    let stream = UnixStream::from(input.as_fd().try_clone_to_owned()?);
    let limits = Limits::set(SECONDS_MAX, TEXT_SECONDS_MAX)?;
    serve(stream, limits, answer)?;
    Ok(())
}

/// Answers each request by `answer`.
///
/// # Errors
/// When the store breaks the protocol, or the stream fails.
pub fn serve(
    mut stream: UnixStream,
    mut limits: Limits,
    answer: impl Fn(Request, &[u8]) -> Result<Vec<u8>, WireError>,
) -> io::Result<()> {
    stream.write_all(&ready(limits.layers.octet()))?;
    let mut message = Vec::new();
    let mut head = [0; HEAD_OCTETS];
    loop {
        match stream.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let wrong = |error| io::Error::new(ErrorKind::InvalidData, error);
        let (request, octets) = read_request_head(&head).map_err(wrong)?;
        limits.renew(request, octets)?;
        message.clear();
        message.try_reserve_exact(octets)?;
        let length = u64::try_from(octets).unwrap_or(u64::MAX);
        (&stream).take(length).read_to_end(&mut message)?;
        if message.len() < octets {
            return Ok(());
        }
        stream.write_all(&answer(request, &message).map_err(wrong)?)?;
        if octets > ORDINARY_OCTETS {
            message = Vec::new();
        }
    }
}

/// What the process may do: answer requests. Standard input is open already.
const SANDBOX: Sandbox<'_> = Sandbox {
    files: 0,
    calls: &[calls::ORDINARY, calls::STREAM],
    refused: calls::LOOKING,
};

/// The limits of the process.
#[derive(Debug)]
pub struct Limits {
    /// The layers of the sandbox that hold.
    layers: Layers,
    /// Seconds of processor time for a message, and for texts.
    seconds: u64,
    text_seconds: u64,
    /// Octets of memory at the start of the process: the program itself.
    before: u64,
    /// The current memory limit.
    memory: u64,
}

impl Limits {
    /// Enters the sandbox, and limits the first request. The arguments are seconds of processor time for a message and for texts.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(seconds: u64, text_seconds: u64) -> Result<Self, ChildError> {
        // When memory is short, the kernel prefers to end this process; a failure here does no harm.
        let _ = std::fs::write("/proc/self/oom_score_adj", "500");
        let before = memory()?;
        let mut limits = Self {
            // The sandbox opens no files: the memory was read before.
            layers: SANDBOX.enter().held,
            seconds,
            text_seconds,
            before,
            memory: 0,
        };
        limits.renew(Request::Texts, 0)?;
        Ok(limits)
    }

    /// Renews time and memory for a request with `octets` octets of messages.
    fn renew(&mut self, request: Request, octets: usize) -> io::Result<()> {
        let seconds = match request {
            Request::Parse(_) => self.seconds,
            Request::Texts | Request::Zones | Request::Field => self.text_seconds,
        };
        let octets = u64::try_from(octets.max(ORDINARY_OCTETS)).unwrap_or(u64::MAX);
        let memory = octets
            .saturating_mul(OCTETS_EACH)
            .saturating_add(WORK_OCTETS)
            .saturating_add(self.before);
        if memory != self.memory {
            soften(Resource::RLIMIT_DATA, memory)?;
            self.memory = memory;
        }
        let used = getrusage(UsageWho::RUSAGE_SELF)?;
        let used = used.user_time().tv_sec() + used.system_time().tv_sec();
        let used = u64::try_from(used).unwrap_or(0).saturating_add(1);
        let each = u64::try_from(OCTETS_A_SECOND).unwrap_or(u64::MAX);
        let time = used.saturating_add(seconds + octets / each);
        soften(Resource::RLIMIT_CPU, time)
    }
}

/// Sets a soft limit, which the process may raise again.
fn soften(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    setrlimit(resource, limit.min(hard), hard)?;
    Ok(())
}

/// Returns the octets of private writable memory, as `RLIMIT_DATA` counts them (since Linux 4.7). Reserved address
/// space, such as the allocator's, does not count.
fn memory() -> Result<u64, ChildError> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .map(|kib| kib.saturating_mul(1024))
        .ok_or(ChildError::MemoryUnknown)
}
