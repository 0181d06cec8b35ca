//! The client's side of a session (RFC 3501, RFC 9051), as a machine without sockets.
//!
//! The host drives a [`Client`] in a loop: the host sends [`Client::output`], reports the sent octets by
//! [`Client::sent`], and gives received octets to [`Client::input`], which consumes octets up to the next [`Event`].
//! The host may give several commands without waiting for answers; the machine keeps the commands in order, waits for
//! leave before a literal where the server demands it, and reports the end of each command.
//!
//! Large literals, such as messages, are passed on as they arrive, and the host gives messages in pieces
//! ([`Client::append_octets`]): no message is ever in memory as a whole.
//!
//! Extensions in use where offered: LITERAL+ and LITERAL- (RFC 7888), SASL-IR (RFC 4959), UIDPLUS (RFC 4315),
//! MULTIAPPEND (RFC 3502), IDLE (RFC 2177), QUOTA (RFC 9208), APPENDLIMIT (RFC 7889), COMPRESS (RFC 4978, over a stream of the host), NAMESPACE (RFC 9051 section 6.3.10), SPECIAL-USE (RFC 6154), BINARY (RFC 3516) for
//! messages with NUL.

mod command;
mod output;
mod reader;
mod response;
mod value;

use std::collections::VecDeque;
use std::io::IoSlice;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use vere_sasl::client::{Exchange, ExchangeError};

use output::Output;
use reader::{Read, Reader};
use response::Said;

pub use command::{AppendTo, Command};
pub use response::{Code, Condition, Fetched, Listed, Namespace, Quota, Response, Section, Status};
pub use value::Value;

/// The bounds of a session.
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// Octets of a response without literals that are passed on; a longer response is [`ProtocolError::TooLong`].
    pub response_octets_max: usize,
    /// Literals up to this many octets are kept within the response.
    pub literal_kept_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            response_octets_max: 1 << 20,
            literal_kept_max: 4_096,
        }
    }
}

/// An error that ends the session; always the server's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A response exceeds the length limit.
    #[error("the server's response is too long")]
    TooLong,
    /// A response is not in its form; the part is named.
    #[error("the server sent a malformed {0}")]
    Malformed(&'static str),
    /// The server completed a command that was never sent, or gave leave without a literal waiting.
    #[error("the server sent {0} out of place")]
    Unexpected(&'static str),
}

/// A command given to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u32);

/// A message from the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The greeting.
    Greeting(Status),
    /// An untagged response.
    Said(Response),
    /// A literal of this many octets begins; the response around the literal follows as a later event.
    Literal(u64),
    /// Its next octets.
    Piece(&'a [u8]),
    /// A command has ended.
    Done(Token, Status),
}

/// A session with one server.
#[derive(Debug)]
pub struct Client {
    limits: ClientLimits,
    reader: Reader,
    output: Output,
    greeted: bool,
    capabilities: Vec<String>,
    /// Unfinished commands, in the order of the calls.
    under_way: VecDeque<Token>,
    last: Token,
    login: Option<Login>,
    /// The APPEND in progress.
    giving: Option<Giving>,
    /// The IDLE that DONE has not ended.
    idle: Option<Token>,
}

/// An APPEND whose messages the host is giving.
#[derive(Debug)]
struct Giving {
    token: Token,
    /// Octets of the current message still to come; `None` between two messages.
    left: Option<u64>,
    /// Messages behind it.
    behind: usize,
}

/// An authentication exchange.
#[derive(Debug)]
struct Login {
    token: Token,
    exchange: Option<Exchange>,
    /// The initial response, where it could not stand in the command.
    initial: Option<Vec<u8>>,
}

impl Client {
    /// Begins a session in the state before the greeting.
    #[must_use]
    pub fn new(limits: ClientLimits) -> Self {
        Self {
            limits,
            reader: Reader::default(),
            output: Output::default(),
            greeted: false,
            capabilities: Vec::new(),
            under_way: VecDeque::new(),
            last: Token(0),
            login: None,
            giving: None,
            idle: None,
        }
    }

    /// Whether the server announced this capability; false before any announcement.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities
            .iter()
            .any(|own| own.eq_ignore_ascii_case(capability))
    }

    /// The value of a capability of the form `NAME=value`, such as `APPENDLIMIT` (RFC 7889).
    #[must_use]
    pub fn capability_value(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find_map(|own| {
            let (key, value) = own.split_once('=')?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Whether the server has announced its capabilities.
    #[must_use]
    pub fn knows_capabilities(&self) -> bool {
        !self.capabilities.is_empty()
    }

    /// The number of unfinished commands.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// The octets to send now, in order; possibly a part of the waiting octets.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// The octets to send now, in at most `max` pieces: more than [`Client::output`] returns where a message is among
    /// the octets.
    #[must_use]
    pub fn output_slices(&self, max: usize) -> Vec<IoSlice<'_>> {
        self.output.slices(max)
    }

    /// Takes note that the first `octets` of the output were sent.
    pub fn sent(&mut self, octets: usize) {
        self.output.sent(octets);
    }

    /// Octets that wait to be sent, including the octets behind a literal that still needs leave.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Whether sending stops until the server gives leave.
    #[must_use]
    pub fn waits_for_leave(&self) -> bool {
        self.output.waits_for_leave()
    }

    /// Forgets what was said in the clear: TLS begins (RFC 9051 section 6.2.1).
    pub fn tls_started(&mut self) {
        self.capabilities.clear();
        self.reader = Reader::default();
    }

    /// Gives a command.
    pub fn send(&mut self, command: &Command) -> Token {
        let token = self.next_token();
        let literals = self.literals();
        self.output.command(token.0, &command.parts(), literals);
        token
    }

    /// Begins IDLE (RFC 2177): the server reports changes of the open mailbox until [`Client::end_idle`], which the
    /// next command of any kind implies.
    pub fn idle(&mut self) -> Token {
        let token = self.next_token();
        let line = [command::Part::Text(b"IDLE".to_vec())];
        self.output.command(token.0, &line, output::Literals::Wait);
        // Nothing may follow before the server has said that it idles.
        self.output.hold(token.0);
        self.idle = Some(token);
        token
    }

    /// Ends IDLE by DONE, once the server has said that it idles; the command ends later.
    pub fn end_idle(&mut self) {
        if let Some(token) = self.idle.take() {
            self.output.octets(token.0, b"DONE\r\n");
        }
    }

    /// Begins an APPEND of a message of `octets`; the host gives the message by [`Client::append_octets`]. Any
    /// earlier message must be complete.
    pub fn append(&mut self, to: &AppendTo, octets: u64) -> Token {
        self.append_several(to, octets, 1)
    }

    /// Begins an APPEND of several messages, stored by the server completely or not at all (RFC 3502); the first
    /// message is given as in [`Client::append`], each later message begins with [`Client::append_next`].
    pub fn append_several(&mut self, to: &AppendTo, octets: u64, messages: usize) -> Token {
        debug_assert!(self.giving.is_none(), "one command after the other");
        let token = self.next_token();
        let literals = self.literals();
        self.output
            .command_without_end(token.0, &to.parts(), literals);
        self.giving = Some(Giving {
            token,
            left: None,
            behind: messages,
        });
        self.begin_message(to, octets);
        token
    }

    /// Begins the next message of an APPEND of several; the mailbox is that of the first. Does nothing if the server
    /// has already refused the APPEND.
    pub fn append_next(&mut self, to: &AppendTo, octets: u64) {
        let between = |giving: &&Giving| giving.left.is_none();
        if let Some(token) = self.giving.as_ref().filter(between).map(|of| of.token) {
            self.output.octets(token.0, to.message().as_bytes());
            self.begin_message(to, octets);
        }
    }

    fn begin_message(&mut self, to: &AppendTo, octets: u64) {
        let literals = self.literals();
        if let Some(giving) = &mut self.giving {
            self.output
                .literal_head(giving.token.0, octets, to.binary, literals);
            giving.left = Some(octets);
            giving.behind = giving.behind.saturating_sub(1);
        }
        self.append_octets(&[]);
    }

    /// Gives octets of the current message; octets beyond the announced size are ignored. Octets of a message that
    /// the server has already refused are dropped.
    pub fn append_octets(&mut self, octets: &[u8]) {
        if let Some((number, room)) = self.wanted() {
            let taken = octets.get(..room).unwrap_or(octets);
            self.output.octets(number, taken);
            self.given(taken.len());
        }
    }

    /// Gives octets as [`Client::append_octets`], without a copy of long ones.
    pub fn append_bytes(&mut self, mut octets: Bytes) {
        if let Some((number, room)) = self.wanted() {
            octets.truncate(room);
            let taken = octets.len();
            self.output.shared(number, octets);
            self.given(taken);
        }
    }

    /// The command whose message wants octets, and how many octets.
    fn wanted(&self) -> Option<(u32, usize)> {
        let giving = self.giving.as_ref()?;
        let room = usize::try_from(giving.left?).unwrap_or(usize::MAX);
        Some((giving.token.0, room))
    }

    fn given(&mut self, octets: usize) {
        let Some(giving) = &mut self.giving else {
            return;
        };
        let left = giving.left.unwrap_or_default();
        let left = left.saturating_sub(u64::try_from(octets).unwrap_or(left));
        giving.left = (left > 0).then_some(left);
        if left == 0 && giving.behind == 0 {
            self.output.octets(giving.token.0, b"\r\n");
            self.giving = None;
        }
    }

    /// Begins AUTHENTICATE with an exchange of [`Exchange::begin`]; `mechanism` is its name.
    pub fn authenticate(
        &mut self,
        mechanism: &str,
        exchange: Exchange,
        initial: Option<Vec<u8>>,
    ) -> Token {
        let token = self.next_token();
        let mut line = format!("AUTHENTICATE {mechanism}");
        let mut held = initial;
        if self.can("SASL-IR")
            && let Some(initial) = held.take()
        {
            line.push(' ');
            match initial.is_empty() {
                true => line.push('='),
                false => STANDARD.encode_string(&initial, &mut line),
            }
        }
        let parts = [command::Part::Text(line.into_bytes())];
        self.output.command(token.0, &parts, output::Literals::Wait);
        self.login = Some(Login {
            token,
            exchange: Some(exchange),
            initial: held,
        });
        token
    }

    /// Takes octets up to the next event: how many, and the event.
    ///
    /// # Errors
    /// The session cannot go on.
    pub fn input<'a>(
        &mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, Option<Event<'a>>), ProtocolError> {
        let (taken, read) = self.reader.take(bytes, &self.limits)?;
        let event = match read {
            None => None,
            Some(Read::Literal(octets)) => Some(Event::Literal(octets)),
            Some(Read::Piece(piece)) => Some(Event::Piece(piece)),
            Some(Read::Line(line)) => match Said::parse(&line)? {
                Said::Continue(text) => self.go_on(&text)?,
                Said::Tagged(tag, status) => Some(self.ended(&tag, status)?),
                Said::Untagged(response) => Some(self.heard(response)?),
            },
        };
        Ok((taken, event))
    }

    fn next_token(&mut self) -> Token {
        self.end_idle();
        self.last = Token(self.last.0.wrapping_add(1));
        self.under_way.push_back(self.last);
        self.last
    }

    fn literals(&self) -> output::Literals {
        if self.can("LITERAL+") {
            output::Literals::Go
        } else if self.can("LITERAL-") || self.can("IMAP4REV2") {
            output::Literals::GoSmall
        } else {
            output::Literals::Wait
        }
    }

    fn heard<'a>(&mut self, response: Response) -> Result<Event<'a>, ProtocolError> {
        match &response {
            Response::Capability(list) => self.capabilities.clone_from(list),
            Response::Status(status) => self.learn(status),
            _ => {}
        }
        if std::mem::replace(&mut self.greeted, true) {
            return Ok(Event::Said(response));
        }
        match response {
            Response::Status(status) => Ok(Event::Greeting(status)),
            _ => Err(ProtocolError::Unexpected("something before its greeting")),
        }
    }

    fn learn(&mut self, status: &Status) {
        if let Some(Code::Capability(list)) = &status.code {
            self.capabilities.clone_from(list);
        }
    }

    fn ended<'a>(&mut self, tag: &[u8], mut status: Status) -> Result<Event<'a>, ProtocolError> {
        let unknown = ProtocolError::Unexpected("the end of an unknown command");
        let token = output::number(tag).map(Token).ok_or(unknown)?;
        let at = self.under_way.iter().position(|own| *own == token);
        self.under_way.remove(at.ok_or(unknown)?);
        self.learn(&status);
        self.idle.take_if(|idle| *idle == token);
        if self.output.ended(token.0) {
            self.giving.take_if(|giving| giving.token == token);
        }
        if let Some(login) = self.login.take_if(|login| login.token == token)
            && status.is_ok()
            && let Err(error) = proven(login)
        {
            status.condition = Condition::No;
            status.text = error.to_string();
        }
        Ok(Event::Done(token, status))
    }

    /// The server wants more of the command at hand.
    fn go_on<'a>(&mut self, text: &[u8]) -> Result<Option<Event<'a>>, ProtocolError> {
        let Some(login) = &mut self.login else {
            return match self.output.leave() {
                true => Ok(None),
                false => Err(ProtocolError::Unexpected("leave to go on")),
            };
        };
        let response = match login.initial.take() {
            Some(initial) => Ok(initial),
            None => STANDARD
                .decode(text)
                .map_err(|_| ExchangeError::Malformed("challenge"))
                .and_then(|challenge| match &mut login.exchange {
                    Some(exchange) => exchange.respond(&challenge),
                    None => Err(ExchangeError::Surplus),
                }),
        };
        let line = match response {
            Ok(response) => STANDARD.encode(response),
            Err(_) => {
                // The server answers the cancellation with BAD, which ends the command.
                login.exchange = None;
                "*".to_owned()
            }
        };
        let token = login.token.0;
        self.output.octets(token, line.as_bytes());
        self.output.octets(token, b"\r\n");
        Ok(None)
    }
}

/// Whether the server, having reported a successful login, has proved its identity where the mechanism demands the
/// proof.
fn proven(login: Login) -> Result<(), ExchangeError> {
    login
        .exchange
        .map_or(Err(ExchangeError::Unproven), Exchange::succeeded)
}

#[cfg(test)]
mod tests;
