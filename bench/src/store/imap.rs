//! The client of the mail store's benchmark: one blocking connection, alike for every system.
//!
//! The client reads a reply to its tagged line and passes over literals by their length, so that the content of a
//! message is never parsed as a response. The counts during a reply do not depend on the command.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest silence of a server.
const PATIENCE: Duration = Duration::from_secs(120);

/// The date of messages that need no date of their own.
const FIRST_DATE: &str = "01-Feb-2024 10:00:00 +0000";

/// Octets read at once.
const READ_OCTETS: usize = 256 * 1024;

/// Why a dialogue ended early.
#[derive(Debug)]
pub enum ImapError {
    /// The connection.
    Io(io::Error),
    /// The server did not say OK.
    Refused {
        /// The command of the client.
        command: String,
        /// The line of the server.
        line: String,
    },
    /// A mailbox does not have the messages put into the mailbox.
    Count {
        /// So many messages.
        expected: usize,
        /// Number of messages found.
        found: usize,
    },
}

impl fmt::Display for ImapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(source) => source.fmt(f),
            Self::Refused { command, line } => write!(f, "{command}: {line}"),
            Self::Count { expected, found } => {
                write!(f, "{found} messages where {expected} were put")
            }
        }
    }
}

impl std::error::Error for ImapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            Self::Refused { .. } | Self::Count { .. } => None,
        }
    }
}

impl From<io::Error> for ImapError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Time from the first octet of the command to the last octet of the reply.
    pub(crate) took: Duration,
    /// Octets of the reply.
    pub(crate) octets: u64,
    /// `FETCH` responses.
    pub(crate) fetched: u64,
    /// The numbers in `SEARCH` responses.
    pub(crate) found: Vec<u32>,
    /// The last number of an `EXISTS` response.
    pub(crate) exists: u64,
    /// `EXPUNGE` responses.
    pub(crate) expunged: u64,
}

/// A connection, with or without a login.
#[derive(Debug)]
pub(crate) struct Imap {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Octets of the buffer with content, and octets inspected so far.
    filled: usize,
    at: usize,
    commands: u64,
    /// Whether the greeting was PREAUTH.
    pub(crate) is_authenticated: bool,
}

impl Imap {
    /// Connects and takes the greeting.
    pub(crate) fn connect(address: SocketAddr) -> Result<Self, ImapError> {
        Self::with_buffer(address, READ_OCTETS)
    }

    /// Connects with a small buffer, for thousands of connections.
    pub(crate) fn connect_lean(address: SocketAddr) -> Result<Self, ImapError> {
        Self::with_buffer(address, 1024)
    }

    fn with_buffer(address: SocketAddr, octets: usize) -> Result<Self, ImapError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut imap = Self {
            stream,
            buffer: vec![0; octets],
            filled: 0,
            at: 0,
            commands: 0,
            is_authenticated: false,
        };
        let mut greeting = imap.line(&mut Reply::default())?;
        // Courier complains of missing files before the greeting.
        while greeting.starts_with(b"* OK [ALERT]") {
            greeting = imap.line(&mut Reply::default())?;
        }
        imap.is_authenticated = greeting.starts_with(b"* PREAUTH");
        Ok(imap)
    }

    /// Sends a command and reads the reply, which must be OK.
    pub(crate) fn ok(&mut self, command: &str) -> Result<Reply, ImapError> {
        let started = Instant::now();
        let tag = self.send(command)?;
        self.finish(&tag, command, started)
    }

    /// Sends a command, and returns the beginning of each response too.
    pub(crate) fn responses(&mut self, command: &str) -> Result<Vec<Vec<u8>>, ImapError> {
        let tag = self.send(command)?;
        let mut responses = Vec::new();
        let keep = |line: &[u8]| responses.push(line.to_vec());
        self.finish_with(&tag, command, Instant::now(), keep)?;
        Ok(responses)
    }

    /// Whether the server announces a capability.
    pub(crate) fn can(&mut self, capability: &str) -> Result<bool, ImapError> {
        let lines = self.responses("CAPABILITY")?;
        let mut words = lines
            .iter()
            .flat_map(|line| line.split(u8::is_ascii_whitespace));
        Ok(words.any(|word| word.eq_ignore_ascii_case(capability.as_bytes())))
    }

    /// Adds a message, without waiting for leave (RFC 7888).
    pub(crate) fn append(&mut self, mailbox: &str, message: &[u8]) -> Result<Reply, ImapError> {
        self.append_at_once(mailbox, &[(FIRST_DATE.to_owned(), message)])
    }

    /// Appends all messages with their dates by a single command (RFC 3502), or no message at all.
    pub(crate) fn append_at_once(
        &mut self,
        mailbox: &str,
        messages: &[(String, &[u8])],
    ) -> Result<Reply, ImapError> {
        let started = Instant::now();
        let tag = self.tag();
        let mut command = format!("{tag} APPEND {mailbox}").into_bytes();
        for (date, message) in messages {
            let octets = message.len();
            command.extend_from_slice(format!(" \"{date}\" {{{octets}+}}\r\n").as_bytes());
            command.extend_from_slice(message);
        }
        command.extend_from_slice(b"\r\n");
        self.stream.write_all(&command)?;
        self.finish(&tag, "APPEND", started)
    }

    /// Appends messages with their dates by a command for each, and waits after the last command; returns the
    /// server's answer for each message.
    pub(crate) fn append_in_a_row(
        &mut self,
        mailbox: &str,
        messages: &[(String, &[u8])],
    ) -> Result<Vec<Result<Reply, ImapError>>, ImapError> {
        let started = Instant::now();
        let mut commands = Vec::new();
        let mut tags = Vec::with_capacity(messages.len());
        for (date, message) in messages {
            let (tag, octets) = (self.tag(), message.len());
            let head = format!("{tag} APPEND {mailbox} \"{date}\" {{{octets}+}}\r\n");
            commands.extend_from_slice(head.as_bytes());
            commands.extend_from_slice(message);
            commands.extend_from_slice(b"\r\n");
            tags.push(tag);
        }
        self.stream.write_all(&commands)?;
        let mut replies = Vec::with_capacity(tags.len());
        for tag in tags {
            match self.finish(&tag, "APPEND", started) {
                Err(error @ ImapError::Io(_)) => return Err(error),
                reply => replies.push(reply),
            }
        }
        Ok(replies)
    }

    /// Begins to idle; `true` once the server agreed.
    pub(crate) fn idle(&mut self) -> Result<(), ImapError> {
        self.send("IDLE")?;
        let line = self.line(&mut Reply::default())?;
        if line.starts_with(b"+") {
            return Ok(());
        }
        Err(refused("IDLE", &line))
    }

    /// Waits for the next EXISTS during IDLE, and returns the time of its arrival.
    pub(crate) fn wait_exists(&mut self) -> Result<Instant, ImapError> {
        let mut reply = Reply::default();
        while reply.exists == 0 {
            self.line(&mut reply)?;
        }
        Ok(Instant::now())
    }

    /// Ends idling.
    pub(crate) fn done(&mut self) -> Result<(), ImapError> {
        self.stream.write_all(b"DONE\r\n")?;
        let tag = format!("t{}", self.commands);
        self.finish(&tag, "DONE", Instant::now()).map(drop)
    }

    fn tag(&mut self) -> String {
        self.commands += 1;
        format!("t{}", self.commands)
    }

    /// Sends a command without waiting; returns its tag.
    pub(crate) fn send(&mut self, command: &str) -> Result<String, ImapError> {
        let tag = self.tag();
        self.stream
            .write_all(format!("{tag} {command}\r\n").as_bytes())?;
        Ok(tag)
    }

    /// Reads the reply of a command that was sent.
    pub(crate) fn finish(
        &mut self,
        tag: &str,
        command: &str,
        started: Instant,
    ) -> Result<Reply, ImapError> {
        self.finish_with(tag, command, started, |_| ())
    }

    /// Reads to the end of a command, giving the beginning of each response before it to `keep`.
    fn finish_with(
        &mut self,
        tag: &str,
        command: &str,
        started: Instant,
        mut keep: impl FnMut(&[u8]),
    ) -> Result<Reply, ImapError> {
        let mut reply = Reply::default();
        loop {
            let line = self.line(&mut reply)?;
            let tagged = line.strip_prefix(tag.as_bytes());
            let Some(rest) = tagged.and_then(|rest| rest.strip_prefix(b" ")) else {
                keep(&line);
                continue;
            };
            if !rest.starts_with(b"OK") {
                return Err(refused(command, &line));
            }
            reply.took = started.elapsed();
            return Ok(reply);
        }
    }

    /// Reads and counts a response with its literals; returns the beginning of the response's first line.
    fn line(&mut self, reply: &mut Reply) -> Result<Vec<u8>, ImapError> {
        let mut first = None;
        loop {
            let end = self.line_end()?;
            let line = self.buffer.get(self.at..end).unwrap_or_default();
            reply.octets += line.len() as u64;
            let literal = literal(line);
            if first.is_none() {
                count(line, reply);
                first = Some(line.get(..line.len().min(200)).unwrap_or(line).to_vec());
            }
            self.at = end;
            match literal {
                None => return Ok(first.unwrap_or_default()),
                Some(octets) => {
                    reply.octets += octets;
                    self.skip(octets)?;
                }
            }
        }
    }

    /// The end of the line that begins here, once the line is complete.
    fn line_end(&mut self) -> Result<usize, ImapError> {
        let mut looked = self.at;
        loop {
            let unseen = self.buffer.get(looked..self.filled).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', unseen) {
                return Ok(looked + at + 1);
            }
            looked = self.filled - self.at;
            self.fill()?;
            looked += self.at;
        }
    }

    fn skip(&mut self, octets: u64) -> Result<(), ImapError> {
        let mut left = octets;
        loop {
            let here = (self.filled - self.at) as u64;
            let taken = here.min(left);
            self.at += usize::try_from(taken).unwrap_or(usize::MAX);
            left -= taken;
            if left == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Reads more octets behind the content of the buffer.
    fn fill(&mut self) -> Result<(), ImapError> {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.filled, 0);
            self.filled -= self.at;
            self.at = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.stream.read(room)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            octets => {
                self.filled += octets;
                Ok(())
            }
        }
    }
}

fn refused(command: &str, line: &[u8]) -> ImapError {
    ImapError::Refused {
        command: command.to_owned(),
        line: String::from_utf8_lossy(line).trim_end().to_owned(),
    }
}

/// The length of the literal at the end of a line.
fn literal(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?.strip_suffix(b"}")?;
    let open = memchr::memrchr(b'{', line)?;
    std::str::from_utf8(line.get(open + 1..)?)
        .ok()?
        .parse()
        .ok()
}

fn count(line: &[u8], reply: &mut Reply) {
    let Some(rest) = line.strip_prefix(b"* ") else {
        return;
    };
    if let Some(found) = rest.strip_prefix(b"SEARCH") {
        let words = found.split(u8::is_ascii_whitespace);
        let numbers = words.filter_map(|word| std::str::from_utf8(word).ok()?.parse::<u32>().ok());
        reply.found.extend(numbers);
        return;
    }
    let mut words = rest.splitn(3, |octet| matches!(octet, b' ' | b'\r'));
    let number = words.next().and_then(|word| std::str::from_utf8(word).ok());
    let number = number.and_then(|word| word.parse::<u64>().ok());
    match (number, words.next()) {
        (Some(_), Some(b"FETCH")) => reply.fetched += 1,
        (Some(_), Some(b"EXPUNGE")) => reply.expunged += 1,
        (Some(number), Some(b"EXISTS")) => reply.exists = number,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn responses_are_counted_and_literals_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"* OK hello\r\n").unwrap();
            let mut command = [0; 64];
            let octets = stream.read(&mut command).unwrap();
            assert_eq!(&command[..octets], b"t1 FETCH 1:2 X\r\n");
            let body = b"t1 OK no\r\n* 9 FETCH (\r\n";
            let mut reply = Vec::new();
            for part in [
                &b"* 3 EXISTS\r\n* 1 FETCH (X {22}\r\n"[..],
                body,
                b" Y {0}\r\n)\r\n",
            ] {
                reply.extend_from_slice(part);
            }
            reply.extend_from_slice(
                b"* 2 FETCH ()\r\n* SEARCH 4 5\r\n* 1 EXPUNGE\r\nt1 OK done\r\n",
            );
            for octet in reply.chunks(7) {
                stream.write_all(octet).unwrap();
            }
        });
        let mut imap = Imap::with_buffer(address, 8).unwrap();
        let reply = imap.ok("FETCH 1:2 X").unwrap();
        server.join().unwrap();
        assert_eq!(
            (reply.fetched, reply.found, reply.exists, reply.expunged),
            (2, vec![4, 5], 3, 1)
        );
    }
}
