//! The receiving side of an SMTP dialogue, without sockets.
//!
//! Deliberately not the machine of `vere-smtp`: the sink as the judge of the product must not share the product's
//! mistakes. The receiver is minimal (RFC 5321 with PIPELINING, SIZE, 8BITMIME, SMTPUTF8, CHUNKING and BINARYMIME),
//! strict about line ends, and asks its host before each positive answer, so that a host can refuse, wait or break
//! off at any step.

use memchr::{memchr, memmem};

use super::{Buffer, Output};

/// The longest command line taken, CRLF included: RFC 5321 section 4.5.3.1.4 with room for
/// parameters.
const COMMAND_LINE_MAX: usize = 8 * 1024;

/// The step of a dialogue at which the machine asks its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The connection was opened; the answer is the greeting.
    Connect,
    /// EHLO or HELO.
    Hello,
    /// MAIL.
    Mail,
    /// RCPT.
    Recipient,
    /// DATA; the answer asks for the text.
    Data,
    /// The end of the message: the final dot, or the last chunk of BDAT.
    Message,
    /// QUIT.
    Quit,
}

/// The event that the machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// More octets.
    Input,
    /// [`Receiver::accept`] or [`Receiver::refuse`].
    Answer(Stage),
    /// Nothing: the host sends the queued octets, then closes.
    Close,
}

/// The announcements and limits of a receiver.
#[derive(Debug, Clone)]
pub(crate) struct Manners {
    /// Named in the greeting.
    pub(crate) hostname: String,
    /// Keywords after EHLO, `SIZE` apart.
    pub(crate) extensions: Vec<String>,
    /// The longest message, in octets.
    pub(crate) message_size_max: usize,
}

/// Sender and recipients of the message under way.
#[derive(Debug, Default, Clone)]
pub(crate) struct Envelope {
    /// The reverse-path without brackets; empty for the null path.
    pub(crate) sender: String,
    /// Accepted forward-paths without brackets.
    pub(crate) recipients: Vec<String>,
}

#[derive(Debug)]
enum State {
    Command,
    /// In the text after DATA; the first `scanned` octets of the input hold no end of it.
    Text {
        scanned: usize,
        too_long: bool,
    },
    /// In a chunk: `left` octets are missing.
    Chunk {
        left: usize,
        last: bool,
        refused: bool,
    },
    Asked(Stage),
    Closing,
}

/// The receiving machine of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) input: Buffer,
    pub(crate) output: Output,
    state: State,
    in_transaction: bool,
    envelope: Envelope,
    /// The argument of the command asked about: an address for MAIL and RCPT, a name for EHLO.
    argument: String,
    /// Octets of the input to consume once the open question is answered.
    pending: usize,
    /// Length of the message text at the front of the input while [`Stage::Message`] is open.
    text_length: usize,
    chunks: Vec<u8>,
    in_chunks: bool,
    extended: bool,
}

impl Receiver {
    /// A machine for a connection just accepted; the machine asks about [`Stage::Connect`] first.
    pub(crate) fn new() -> Self {
        Self {
            input: Buffer::default(),
            output: Output::default(),
            state: State::Asked(Stage::Connect),
            in_transaction: false,
            envelope: Envelope::default(),
            argument: String::new(),
            pending: 0,
            text_length: 0,
            chunks: Vec::new(),
            in_chunks: false,
            extended: false,
        }
    }

    /// The envelope as far as accepted.
    pub(crate) fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The argument of the command the host is asked about.
    pub(crate) fn argument(&self) -> &str {
        &self.argument
    }

    /// The message while [`Stage::Message`] is open. After DATA the message is in wire format, with doubled dots; see
    /// [`Receiver::is_stuffed`].
    pub(crate) fn message(&self) -> &[u8] {
        if self.in_chunks {
            &self.chunks
        } else {
            &self.input.data()[..self.text_length]
        }
    }

    /// Whether lines of [`Receiver::message`] that begin with a dot have an additional dot.
    pub(crate) fn is_stuffed(&self) -> bool {
        !self.in_chunks
    }

    /// Whether the receiver is idle: no transaction and no unread octets.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Command) && !self.in_transaction && self.input.data().is_empty()
    }

    /// Ends the dialogue with a 421 line.
    pub(crate) fn shut_down(&mut self) {
        self.output.push(b"421 4.3.2 closing\r\n");
        self.state = State::Closing;
    }

    /// Runs until the host is needed.
    pub(crate) fn advance(&mut self, manners: &Manners) -> Wait {
        loop {
            let waits = match self.state {
                State::Command => self.command(manners),
                State::Text { .. } => self.text(manners),
                State::Chunk { .. } => self.chunk(),
                State::Asked(stage) => Some(Wait::Answer(stage)),
                State::Closing => Some(Wait::Close),
            };
            if let Some(wait) = waits {
                return wait;
            }
        }
    }

    fn command(&mut self, manners: &Manners) -> Option<Wait> {
        let data = self.input.data();
        let Some(end) = memchr(b'\n', data) else {
            if data.len() > COMMAND_LINE_MAX {
                return self.fail_and_close(b"500 5.5.6 line too long\r\n");
            }
            return Some(Wait::Input);
        };
        if end == 0 || data[end - 1] != b'\r' || memchr(b'\r', &data[..end - 1]).is_some() {
            return self.fail_and_close(b"500 5.5.2 lines end in CRLF\r\n");
        }
        let line = data[..end - 1].to_vec();
        self.pending = end + 1;
        let (verb, argument) = line.split_at(memchr(b' ', &line).unwrap_or(line.len()));
        let argument = argument.trim_ascii();
        match verb.to_ascii_uppercase().as_slice() {
            b"EHLO" => self.hello(argument, true),
            b"HELO" => self.hello(argument, false),
            b"MAIL" => self.mail(argument, manners),
            b"RCPT" => self.recipient(argument),
            b"DATA" => self.data(),
            b"BDAT" => self.bdat(argument, manners),
            b"RSET" => {
                self.forget_transaction();
                self.reply(b"250 2.0.0 ok\r\n");
            }
            b"NOOP" => self.reply(b"250 2.0.0 ok\r\n"),
            b"VRFY" => self.reply(b"252 2.0.0 send it and see\r\n"),
            b"QUIT" => self.ask(Stage::Quit, ""),
            _ => self.reply(b"500 5.5.1 unknown command\r\n"),
        }
        None
    }

    fn hello(&mut self, name: &[u8], extended: bool) {
        self.extended = extended;
        self.ask(Stage::Hello, &String::from_utf8_lossy(name));
    }

    fn mail(&mut self, argument: &[u8], manners: &Manners) {
        if self.in_transaction {
            return self.reply(b"503 5.5.1 sender already given\r\n");
        }
        let Some((path, parameters)) = path_after(argument, b"FROM:") else {
            return self.reply(b"501 5.5.4 MAIL FROM:<address>\r\n");
        };
        let declared = parameters
            .split(|octet| *octet == b' ')
            .filter_map(|word| std::str::from_utf8(word).ok())
            .filter_map(|word| {
                word.to_ascii_uppercase()
                    .strip_prefix("SIZE=")
                    .map(str::to_owned)
            })
            .find_map(|size| size.parse::<usize>().ok());
        if declared.is_some_and(|size| size > manners.message_size_max) {
            return self.reply(b"552 5.3.4 too large\r\n");
        }
        self.ask(Stage::Mail, &String::from_utf8_lossy(path));
    }

    fn recipient(&mut self, argument: &[u8]) {
        if !self.in_transaction {
            return self.reply(b"503 5.5.1 MAIL first\r\n");
        }
        match path_after(argument, b"TO:") {
            Some((path, _)) if !path.is_empty() => {
                self.ask(Stage::Recipient, &String::from_utf8_lossy(path));
            }
            _ => self.reply(b"501 5.5.4 RCPT TO:<address>\r\n"),
        }
    }

    fn data(&mut self) {
        if self.envelope.recipients.is_empty() || self.in_chunks {
            return self.reply(b"503 5.5.1 RCPT first\r\n");
        }
        self.ask(Stage::Data, "");
    }

    /// BDAT (RFC 3030): a refused chunk is still eaten, never run as commands.
    fn bdat(&mut self, argument: &[u8], manners: &Manners) {
        let words = String::from_utf8_lossy(argument).to_ascii_uppercase();
        let mut words = words.split_ascii_whitespace();
        let Some(left) = words.next().and_then(|size| size.parse::<usize>().ok()) else {
            // The chunk's length is unknown, so commands behind the chunk cannot be found.
            let _ = self.fail_and_close(b"501 5.5.4 BDAT size\r\n");
            return;
        };
        let last = words.next() == Some("LAST");
        let refused = self.envelope.recipients.is_empty()
            || self.chunks.len().saturating_add(left) > manners.message_size_max;
        self.input.consume(self.pending);
        self.pending = 0;
        self.in_chunks = true;
        self.state = State::Chunk {
            left,
            last,
            refused,
        };
    }

    fn chunk(&mut self) -> Option<Wait> {
        let State::Chunk {
            left,
            last,
            refused,
        } = self.state
        else {
            return None;
        };
        let taken = left.min(self.input.data().len());
        if !refused {
            self.chunks.extend_from_slice(&self.input.data()[..taken]);
        }
        self.input.consume(taken);
        if taken < left {
            self.state = State::Chunk {
                left: left - taken,
                last,
                refused,
            };
            return Some(Wait::Input);
        }
        self.state = State::Command;
        if refused {
            self.forget_transaction();
            self.output.push(b"503 5.5.1 chunk refused\r\n");
        } else if last {
            self.state = State::Asked(Stage::Message);
        } else {
            self.output.push(b"250 2.0.0 chunk taken\r\n");
        }
        None
    }

    /// Looks for the only end a text has, CRLF.CRLF (RFC 5321 section 4.1.1.4).
    fn text(&mut self, manners: &Manners) -> Option<Wait> {
        let State::Text { scanned, too_long } = self.state else {
            return None;
        };
        let data = self.input.data();
        // The CRLF before the first line was the end of the DATA command.
        let end = if scanned == 0 && data.starts_with(b".\r\n") {
            Some((0, 3))
        } else {
            memmem::find(&data[scanned..], b"\r\n.\r\n")
                .map(|at| (scanned + at + 2, scanned + at + 5))
        };
        if let Some((length, whole)) = end {
            self.text_length = length;
            self.pending = whole;
            if too_long || length > manners.message_size_max {
                self.forget_transaction();
                self.reply(b"552 5.3.4 too large\r\n");
            } else {
                self.state = State::Asked(Stage::Message);
            }
            return None;
        }
        // "." CR LF may still come in parts while no further octet has arrived.
        let mut scanned = if data.len() < 3 {
            0
        } else {
            data.len() - 4.min(data.len())
        };
        let too_long = too_long || data.len() > manners.message_size_max;
        if too_long {
            self.input.consume(scanned);
            // Anything but zero: the text's first line is gone.
            scanned = 0;
            if self.input.data().starts_with(b".\r") {
                scanned = 1;
            }
        }
        self.state = State::Text { scanned, too_long };
        Some(Wait::Input)
    }

    fn ask(&mut self, stage: Stage, argument: &str) {
        self.argument.clear();
        self.argument.push_str(argument);
        self.state = State::Asked(stage);
    }

    fn reply(&mut self, line: &[u8]) {
        self.output.push(line);
        self.input.consume(self.pending);
        self.pending = 0;
        self.state = State::Command;
    }

    fn fail_and_close(&mut self, line: &[u8]) -> Option<Wait> {
        self.output.push(line);
        self.state = State::Closing;
        Some(Wait::Close)
    }

    fn forget_transaction(&mut self) {
        self.in_transaction = false;
        self.envelope.sender.clear();
        self.envelope.recipients.clear();
        self.chunks.clear();
        self.in_chunks = false;
    }

    /// Answers the open question positively.
    pub(crate) fn accept(&mut self, manners: &Manners) {
        let State::Asked(stage) = self.state else {
            return;
        };
        match stage {
            Stage::Connect => {
                let greeting = format!("220 {} ESMTP vere sink\r\n", manners.hostname);
                self.reply(greeting.as_bytes());
            }
            Stage::Hello => self.accept_hello(manners),
            Stage::Mail => {
                self.in_transaction = true;
                self.envelope.sender.clone_from(&self.argument);
                self.reply(b"250 2.1.0 ok\r\n");
            }
            Stage::Recipient => {
                self.envelope.recipients.push(self.argument.clone());
                self.reply(b"250 2.1.5 ok\r\n");
            }
            Stage::Data => {
                self.reply(b"354 go ahead\r\n");
                self.state = State::Text {
                    scanned: 0,
                    too_long: false,
                };
            }
            Stage::Message => {
                self.forget_transaction();
                self.reply(b"250 2.0.0 taken\r\n");
            }
            Stage::Quit => {
                self.reply(b"221 2.0.0 bye\r\n");
                self.state = State::Closing;
            }
        }
    }

    fn accept_hello(&mut self, manners: &Manners) {
        self.forget_transaction();
        if !self.extended {
            return self.reply(format!("250 {}\r\n", manners.hostname).as_bytes());
        }
        let mut lines = format!("250-{}\r\n", manners.hostname);
        for keyword in &manners.extensions {
            lines.push_str(&format!("250-{keyword}\r\n"));
        }
        lines.push_str(&format!("250 SIZE {}\r\n", manners.message_size_max));
        self.reply(lines.as_bytes());
    }

    /// Answers the open question with `code` and `text`, a text without CR and LF.
    pub(crate) fn refuse(&mut self, code: u16, text: &str) {
        let State::Asked(stage) = self.state else {
            return;
        };
        if stage == Stage::Message {
            self.forget_transaction();
        }
        self.reply(format!("{code} {text}\r\n").as_bytes());
        if matches!(stage, Stage::Connect | Stage::Quit) || code == 421 {
            self.state = State::Closing;
        }
    }
}

/// Splits `FROM:<path> parameters` into the path without brackets and the parameters.
///
/// ```text
/// Path = "<" [ A-d-l ":" ] Mailbox ">"      RFC 5321 section 4.1.2
/// ```
fn path_after<'a>(argument: &'a [u8], prefix: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (head, rest) = argument.split_at_checked(prefix.len())?;
    if !head.eq_ignore_ascii_case(prefix) {
        return None;
    }
    let rest = rest.trim_ascii_start().strip_prefix(b"<")?;
    let mut quoted = false;
    let mut escaped = false;
    for (at, octet) in rest.iter().enumerate() {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'>' if !quoted => return Some((&rest[..at], rest[at + 1..].trim_ascii())),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
