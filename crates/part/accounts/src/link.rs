//! A session with an IMAP server, a command after the other: the stream and the client machine.

use std::collections::HashMap;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use vere_imap::client::{
    AppendTo, Client, ClientLimits, Command, Condition, Event, Response, Status, Token,
};
use vere_process::failure::Failure;

use crate::deflate::Deflated;
use crate::progress::{Progress, Times};
use crate::session::{SessionEnd, UNASKED_MAX};
use crate::stream::Stream;

/// Octets of a message in the send buffer.
const UNSENT_MAX: usize = 256 * 1024;

/// Octets read at once.
const PIECE: usize = 64 * 1024;

/// A session.
pub struct Link {
    stream: Option<Box<dyn Stream>>,
    client: Client,
    buffer: Vec<u8>,
    /// The part of the buffer with received and unparsed octets.
    unread: std::ops::Range<usize>,
    greeting: Option<Status>,
    done: HashMap<Token, Status>,
    progress: Progress,
    /// Whether the server owes something.
    waits: bool,
    /// Octets since the last end of a command, where the answers are short.
    unasked: Option<usize>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// The receiver of all responses other than the end of a command.
pub type Hear<'a> = &'a mut (dyn FnMut(Event<'_>) -> Result<(), Failure> + Send);

/// Ignores every response.
///
/// # Errors
/// Never.
pub fn deaf(_: Event<'_>) -> Result<(), Failure> {
    Ok(())
}

impl Link {
    /// A session over a stream whose server has not greeted yet.
    #[must_use]
    pub fn over(stream: Box<dyn Stream>) -> Self {
        Self {
            stream: Some(stream),
            client: Client::new(ClientLimits::default()),
            buffer: vec![0; PIECE],
            unread: 0..0,
            greeting: None,
            done: HashMap::new(),
            progress: Progress::new(Times::LINK),
            waits: false,
            unasked: None,
        }
    }

    /// Sets whether the answers to commands are short, as those of a login: a server that talks without an end is given up.
    pub(crate) const fn asks_for_little(&mut self, is_little: bool) {
        self.unasked = if is_little { Some(0) } else { None };
    }

    /// Sets how long the server may take; 5 minutes without progress, unless set.
    pub const fn patience(&mut self, times: Times) {
        self.progress = Progress::new(times);
    }

    /// The stream, the machine, and the received octets without a parse.
    pub(crate) fn into_parts(mut self) -> Option<(Box<dyn Stream>, Client, Vec<u8>)> {
        self.buffer.truncate(self.unread.end);
        let unread = self
            .buffer
            .split_off(self.unread.start.min(self.unread.end));
        Some((self.stream?, self.client, unread))
    }

    pub(crate) const fn machine(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Takes the stream for the handshake of TLS; nothing may have come in the clear behind STARTTLS.
    pub(crate) fn stream_for_tls(&mut self) -> Result<Box<dyn Stream>, Failure> {
        if !self.unread.is_empty() {
            return Err(Failure::new(
                "something came between STARTTLS and the handshake: perhaps somebody else speaks",
            ));
        }
        self.client.tls_started();
        self.stream.take().ok_or_else(closed)
    }

    /// Lets all further octets travel compressed, if the server agrees.
    pub(crate) async fn compress(&mut self) -> Result<(), Failure> {
        let token = self.send(&Command::Compress);
        if !self.wait(token, &mut deaf).await?.is_ok() {
            return Ok(());
        }
        let stream = self.stream.take().ok_or_else(closed)?;
        if !self.unread.is_empty() {
            return Err(Failure::new(
                "expected compressed octets; found others behind the answer to COMPRESS",
            ));
        }
        self.stream = Some(Box::new(Deflated::over(stream)));
        Ok(())
    }

    pub(crate) fn secured(&mut self, stream: Box<dyn Stream>) {
        self.stream = Some(stream);
    }

    /// Waits for the greeting.
    ///
    /// # Errors
    /// When the server does not greet, or greets with BYE.
    pub async fn greeted(&mut self) -> Result<Status, Failure> {
        let greeting = self.greeting().await?;
        match greeting.condition {
            Condition::Bye => Err(Failure::new(format!(
                "the server does not serve: {}",
                greeting.text
            ))),
            _ => Ok(greeting),
        }
    }

    /// Waits for the greeting, which may be BYE.
    pub(crate) async fn greeting(&mut self) -> Result<Status, Failure> {
        loop {
            if let Some(greeting) = self.greeting.take() {
                return Ok(greeting);
            }
            self.pump(&mut deaf).await?;
        }
    }

    /// Whether the server announces a capability.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.client.can(capability)
    }

    /// The value of a capability of the form `NAME=value`.
    pub(crate) fn value(&self, capability: &str) -> Option<&str> {
        self.client.capability_value(capability)
    }

    /// Sends a command that need not end before the next command.
    pub fn send(&mut self, command: &Command) -> Token {
        self.client.send(command)
    }

    /// Waits for the end of a command, which may be `NO`.
    ///
    /// # Errors
    /// When the connection fails, or `hear` does.
    pub async fn wait(&mut self, token: Token, hear: Hear<'_>) -> Result<Status, Failure> {
        loop {
            if let Some(status) = self.done.remove(&token) {
                return Ok(status);
            }
            self.pump(hear).await?;
        }
    }

    /// Runs a command that must succeed.
    ///
    /// # Errors
    /// When the server refuses, the connection fails, or `hear` does.
    pub async fn run(&mut self, command: &Command, hear: Hear<'_>) -> Result<Status, Failure> {
        let token = self.send(command);
        let status = self.wait(token, hear).await?;
        match status.is_ok() {
            true => Ok(status),
            false => Err(Failure::new(format!("the server refused: {}", status.text))),
        }
    }

    /// Begins an APPEND of several messages in one transaction; the host gives the octets by [`Link::give`].
    pub fn append_several(&mut self, to: &AppendTo, octets: u64, messages: usize) -> Token {
        self.client.append_several(to, octets, messages)
    }

    /// Begins the next message of an APPEND of several.
    pub fn append_next(&mut self, to: &AppendTo, octets: u64) {
        self.client.append_next(to, octets);
    }

    /// Sends octets of the message at hand, which `read` gives until its end; stops when the server has refused the
    /// APPEND.
    ///
    /// # Errors
    /// When the connection or the reading fails.
    pub async fn give(
        &mut self,
        token: Token,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; PIECE];
        loop {
            self.flush().await?;
            while self.client.waits_for_leave() {
                self.pump(&mut deaf).await?;
                self.flush().await?;
            }
            if self.done.contains_key(&token) {
                // Refused before the message was sent.
                return Ok(());
            }
            while self.client.unsent() < UNSENT_MAX {
                match read(&mut buffer)? {
                    0 => return Ok(()),
                    octets => self
                        .client
                        .append_octets(buffer.get(..octets).unwrap_or_default()),
                }
            }
        }
    }

    /// Sends the octets allowed by the machine.
    async fn flush(&mut self) -> Result<(), Failure> {
        let stream = self.stream.as_mut();
        let stream = stream.ok_or_else(closed)?;
        if !std::mem::replace(&mut self.waits, true) {
            self.progress.restart();
        }
        while !self.client.output().is_empty() {
            let write = stream.write(self.client.output());
            let octets = in_time(&mut self.progress, write).await?;
            if octets == 0 {
                return Err(Failure::from(io::Error::from(io::ErrorKind::WriteZero)));
            }
            self.progress.moved(octets, true);
            self.client.sent(octets);
        }
        in_time(&mut self.progress, stream.flush()).await
    }

    /// Sends the allowed octets, and processes the received octets.
    pub(crate) async fn pump(&mut self, hear: Hear<'_>) -> Result<(), Failure> {
        self.flush().await?;
        if self.unread.is_empty() {
            let stream = self.stream.as_mut();
            let stream = stream.ok_or_else(closed)?;
            let read = stream.read(&mut self.buffer);
            let octets = in_time(&mut self.progress, read).await?;
            if octets == 0 {
                return Err(Failure::new("the server closed the connection"));
            }
            self.progress.moved(octets, true);
            self.unread = 0..octets;
        }
        while !self.unread.is_empty() {
            let unread = self.buffer.get(self.unread.clone());
            let (taken, event) = self.client.input(unread.unwrap_or_default())?;
            self.unread.start = self.unread.start.saturating_add(taken);
            count(&mut self.unasked, taken)?;
            match event {
                None => {}
                Some(Event::Greeting(status)) => {
                    self.greeting = Some(status);
                    self.waits = false;
                    return Ok(());
                }
                Some(Event::Done(token, status)) => {
                    self.done.insert(token, status);
                    self.unasked = self.unasked.map(|_| 0);
                    self.progress.restart();
                    self.waits = self.client.under_way() > 0;
                    return Ok(());
                }
                Some(Event::Said(Response::Status(status)))
                    if status.condition == Condition::Bye && self.client.under_way() > 0 =>
                {
                    return Err(Failure::new(format!("the server ended: {}", status.text)));
                }
                Some(event) => {
                    if matches!(event, Event::Said(_)) {
                        self.progress.said();
                    }
                    hear(event)?;
                }
            }
        }
        Ok(())
    }
}

/// Counts octets of an answer with a bound.
fn count(unasked: &mut Option<usize>, octets: usize) -> Result<(), Failure> {
    *unasked = unasked.map(|unasked| unasked.saturating_add(octets));
    match *unasked {
        Some(unasked) if unasked > UNASKED_MAX => Err(SessionEnd::Unasked.into()),
        _ => Ok(()),
    }
}

/// Waits for the stream, as long as the server is not given up.
async fn in_time<T>(
    progress: &mut Progress,
    of: impl Future<Output = io::Result<T>>,
) -> Result<T, Failure> {
    let begin = Instant::now();
    let done = timeout(progress.left(), of).await;
    progress.spent(begin.elapsed());
    match done {
        Ok(done) => Ok(done?),
        Err(_) => Err(Failure::new(progress.reason())),
    }
}

fn closed() -> Failure {
    Failure::new("the connection is closed")
}
