//! The machine: octets to the filter, octets from the filter, and the verdict.

use vere_mime::{Fields, fields, header_len};

use crate::MilterError;
use crate::answer::{Answer, Refusal};
use crate::change::Change;
use crate::options::{Options, protocol, without_braces};
use crate::packet::{DATA_OCTETS_MAX, Packet, put, put_text};
use crate::session::{Event, Session};

/// Octets that [`Client::output`] collects before returning.
const OUTPUT_OCTETS: usize = 64 * 1024;

/// Bounds of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most changes.
    pub changes: usize,
    /// The most octets of changed headers and addresses together.
    pub octets: usize,
    /// The most octets of a replaced body.
    pub body: usize,
}

/// The decision of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The message goes on.
    Accept,
    /// A command was refused: the command, the recipient of RCPT, and how.
    Refuse(Event, Option<String>, Refusal),
    /// The message is accepted and not delivered.
    Discard,
    /// The message is held, for this reason.
    Quarantine(String),
}

/// The end of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The decision.
    pub verdict: Verdict,
    /// The changes, in the order of the filter; empty for a message that is refused or discarded.
    pub changes: Vec<Change>,
}

/// The next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Negotiate,
    Connect,
    Helo,
    Mail,
    Recipient(usize),
    Data,
    Header,
    EndOfHeader,
    Body,
    EndOfMessage,
    Quit,
    Over,
}

/// The answer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Negotiation,
    Event(Event),
}

/// A message on the way through a filter. Write the octets of [`output`](Self::output), read when there are no octets, give the answers
/// to [`input`](Self::input), until [`is_over`](Self::is_over).
#[derive(Debug)]
pub struct Client<'a> {
    session: Session<'a>,
    fields: Fields<'a>,
    body: &'a [u8],
    limits: Limits,
    options: Option<Options>,
    next: Next,
    due: Option<Due>,
    /// Octets of a packet that is not there as a whole.
    received: Vec<u8>,
    verdict: Option<Verdict>,
    changes: Vec<Change>,
    changed: usize,
    /// The place of the replaced body among the changes.
    replaced: Option<usize>,
    quarantine: Option<String>,
}

impl<'a> Client<'a> {
    /// A client for a new connection. Behind the message the connection ends: SMFIC_QUIT_NC, by which it could serve another client, breaks filters
    /// by python3-milter 1.0.6 without a callback for CONNECT, and neither Postfix nor Sendmail uses the command.
    #[must_use]
    pub fn new(session: Session<'a>, message: &'a [u8], limits: Limits) -> Self {
        Self {
            session,
            fields: fields(message),
            body: message.get(header_len(message)..).unwrap_or_default(),
            limits,
            options: None,
            next: Next::Negotiate,
            due: None,
            received: Vec::new(),
            verdict: None,
            changes: Vec::new(),
            changed: 0,
            replaced: None,
            quarantine: None,
        }
    }

    /// Returns the next octets for the filter; `None` if an answer is due, or everything is said.
    pub fn output(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while self.due.is_none() && self.next != Next::Over && out.len() < OUTPUT_OCTETS {
            self.advance(&mut out);
        }
        (!out.is_empty()).then_some(out)
    }

    /// Whether everything is said and answered.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next == Next::Over && self.due.is_none()
    }

    /// The command whose answer is due; `None` for the negotiation, and if no answer is due.
    #[must_use]
    pub fn waits_for(&self) -> Option<Event> {
        match self.due? {
            Due::Negotiation => None,
            Due::Event(event) => Some(event),
        }
    }

    /// Takes octets of the filter, in pieces of any size.
    ///
    /// # Errors
    /// The filter broke the protocol or a bound.
    pub fn input(&mut self, octets: &[u8]) -> Result<(), MilterError> {
        let mut received = std::mem::take(&mut self.received);
        received.extend_from_slice(octets);
        let mut rest = received.as_slice();
        while let Some((packet, behind)) = Packet::read(rest)? {
            self.answer(&packet)?;
            rest = behind;
        }
        if !rest.is_empty() && self.due.is_none() {
            return Err(MilterError::Unasked);
        }
        self.received = rest.to_vec();
        Ok(())
    }

    /// Ends the message; `None` before [the end](Self::is_over).
    #[must_use]
    pub fn end(self) -> Option<Ending> {
        let verdict = match (self.verdict?, self.quarantine) {
            (Verdict::Accept, Some(reason)) => Verdict::Quarantine(reason),
            (verdict, _) => verdict,
        };
        let changes = match verdict {
            Verdict::Accept | Verdict::Quarantine(_) => self.changes,
            Verdict::Refuse(..) | Verdict::Discard => Vec::new(),
        };
        Some(Ending { verdict, changes })
    }

    fn advance(&mut self, out: &mut Vec<u8>) {
        match self.next {
            Next::Negotiate => {
                Options::offer(out);
                self.due = Some(Due::Negotiation);
                self.next = Next::Connect;
            }
            Next::Connect => self.send(out, Event::Connect, &self.connect(), Next::Helo),
            Next::Helo => self.send(out, Event::Helo, &texts(&[self.session.helo]), Next::Mail),
            Next::Mail => {
                let path = format!("<{}>", self.session.reverse_path);
                self.send(out, Event::Mail, &texts(&[&path]), Next::Recipient(0));
            }
            Next::Recipient(number) => match self.session.recipients.get(number) {
                Some(recipient) => {
                    let next = Next::Recipient(number.saturating_add(1));
                    let path = format!("<{recipient}>");
                    self.send(out, Event::Recipient, &texts(&[&path]), next);
                }
                None => self.next = Next::Data,
            },
            Next::Data => self.send(out, Event::Data, &[], Next::Header),
            Next::Header => match self.fields.next() {
                Some(field) if field.is_named() => {
                    let data = self.field(field.name, field.value);
                    self.send(out, Event::Header, &data, Next::Header);
                }
                Some(_) => {}
                None => self.next = Next::EndOfHeader,
            },
            Next::EndOfHeader => self.send(out, Event::EndOfHeader, &[], Next::Body),
            Next::Body => {
                let end = self.body.len().min(DATA_OCTETS_MAX);
                let (piece, rest) = self.body.split_at_checked(end).unwrap_or_default();
                self.body = rest;
                match piece {
                    [] => self.next = Next::EndOfMessage,
                    piece => self.send(out, Event::Body, piece, Next::Body),
                }
            }
            Next::EndOfMessage => self.send(out, Event::EndOfMessage, &[], Next::Quit),
            Next::Quit => {
                put(out, b'Q', &[]);
                self.next = Next::Over;
            }
            Next::Over => {}
        }
    }

    /// Appends a command with macros, if the filter wants the command.
    fn send(&mut self, out: &mut Vec<u8>, event: Event, data: &[u8], next: Next) {
        let recipients = self.session.recipients;
        let recipient = match self.next {
            Next::Recipient(number) => recipients.get(number).copied().unwrap_or_default(),
            _ => "",
        };
        self.next = next;
        let Some(options) = self.options.as_ref().filter(|options| options.sends(event)) else {
            return;
        };
        let symbols = self.symbols(options, event, recipient);
        if !symbols.is_empty() {
            let mut data = vec![event.code()];
            data.extend_from_slice(&symbols);
            put(out, b'D', &data);
        }
        put(out, event.code(), data);
        if options.answers(event) {
            self.due = Some(Due::Event(event));
        }
    }

    /// Names and values of macros, those that the filter named or those that are usual.
    fn symbols(&self, options: &Options, event: Event, recipient: &str) -> Vec<u8> {
        let usual = || {
            event
                .symbols()
                .iter()
                .map(|name| without_braces(name))
                .collect()
        };
        let names = options
            .symbols(event)
            .map_or_else(usual, <[String]>::to_vec);
        let mut data = Vec::new();
        for name in names {
            if let Some(value) = self.session.symbol(&name, recipient) {
                match name.len() {
                    1 => put_text(&mut data, name.as_bytes()),
                    _ => put_text(&mut data, format!("{{{name}}}").as_bytes()),
                }
                put_text(&mut data, value.as_bytes());
            }
        }
        data
    }

    fn connect(&self) -> Vec<u8> {
        let mut data = texts(&[&self.session.name()]);
        let client = self.session.client.to_canonical();
        data.push(if client.is_ipv4() { b'4' } else { b'6' });
        data.extend_from_slice(&self.session.port.to_be_bytes());
        put_text(&mut data, client.to_string().as_bytes());
        data
    }

    /// Line ends are LF in the protocol. A field longer than a packet is cut.
    fn field(&self, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        put_text(&mut data, name);
        let options = self.options.as_ref();
        let spaced = options.is_some_and(|options| options.has(protocol::LEADING_SPACE));
        let value = if spaced { value } else { trim_blanks(value) };
        let is_kept = |octet: &u8| !matches!(octet, 0 | b'\r');
        let room = DATA_OCTETS_MAX.saturating_sub(data.len()).saturating_sub(1);
        data.extend(value.iter().copied().filter(is_kept).take(room));
        data.push(0);
        data
    }

    fn answer(&mut self, packet: &Packet<'_>) -> Result<(), MilterError> {
        let event = match self.due {
            None => return Err(MilterError::Unasked),
            Some(Due::Negotiation) if packet.code != b'O' => {
                return Err(MilterError::NotNegotiated(packet.code));
            }
            Some(Due::Negotiation) => {
                self.options = Some(Options::read(packet)?);
                self.due = None;
                return Ok(());
            }
            Some(Due::Event(event)) => event,
        };
        let Some(options) = &self.options else {
            return Err(MilterError::NotNegotiated(packet.code));
        };
        let answer = Answer::read(packet, options)?;
        let is_last = event == Event::EndOfMessage;
        match answer {
            Answer::Progress => return Ok(()),
            Answer::Change(change) if is_last => return self.change(change),
            Answer::Body(piece) if is_last => return self.replace(&piece),
            Answer::Quarantine(reason) if is_last => {
                self.quarantine = Some(reason);
                return Ok(());
            }
            Answer::Continue if is_last => {
                self.verdict = Some(Verdict::Accept);
            }
            Answer::Continue => {}
            Answer::Skip => match event {
                Event::Recipient => self.next = Next::Data,
                Event::Header => self.next = Next::EndOfHeader,
                Event::Body => self.next = Next::EndOfMessage,
                _ => return Err(unexpected(packet, event)),
            },
            Answer::Accept => self.finish(Verdict::Accept),
            Answer::Discard => self.finish(Verdict::Discard),
            Answer::Refuse(refusal) => {
                let recipient = self.recipient(event);
                self.finish(Verdict::Refuse(event, recipient, refusal));
            }
            Answer::Change(_) | Answer::Body(_) | Answer::Quarantine(_) => {
                return Err(unexpected(packet, event));
            }
        }
        self.due = None;
        Ok(())
    }

    fn finish(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
        self.next = Next::Quit;
    }

    /// The recipient whose command was answered.
    fn recipient(&self, event: Event) -> Option<String> {
        let Next::Recipient(next) = self.next else {
            return None;
        };
        let number = next.checked_sub(1).filter(|_| event == Event::Recipient)?;
        self.session
            .recipients
            .get(number)
            .map(|recipient| (*recipient).to_owned())
    }

    fn change(&mut self, change: Change) -> Result<(), MilterError> {
        if self.changes.len() >= self.limits.changes {
            return Err(MilterError::Changes(self.limits.changes));
        }
        self.changed = self.changed.saturating_add(change.octets());
        if self.changed > self.limits.octets {
            return Err(MilterError::ChangedOctets(self.limits.octets));
        }
        self.changes.push(change);
        Ok(())
    }

    /// Appends a piece to the replaced body; the first piece decides the body's place among the changes.
    fn replace(&mut self, piece: &[u8]) -> Result<(), MilterError> {
        let place = match self.replaced {
            Some(place) => place,
            None => {
                let place = self.changes.len();
                self.change(Change::ReplaceBody(Vec::new()))?;
                self.replaced = Some(place);
                place
            }
        };
        if let Some(Change::ReplaceBody(body)) = self.changes.get_mut(place) {
            if body.len().saturating_add(piece.len()) > self.limits.body {
                return Err(MilterError::Body(self.limits.body));
            }
            body.extend_from_slice(piece);
        }
        Ok(())
    }
}

const fn unexpected(packet: &Packet<'_>, event: Event) -> MilterError {
    MilterError::Unexpected {
        code: packet.code,
        event,
    }
}

fn texts(texts: &[&str]) -> Vec<u8> {
    let mut data = Vec::new();
    for text in texts {
        put_text(&mut data, text.as_bytes());
    }
    data
}

/// Without blanks at the beginning, as filters get values without SMFIP_HDR_LEADSPC.
fn trim_blanks(value: &[u8]) -> &[u8] {
    let is_blank = |octet: &u8| matches!(octet, b' ' | b'\t');
    let begin = value.iter().position(|octet| !is_blank(octet));
    value
        .get(begin.unwrap_or(value.len())..)
        .unwrap_or_default()
}
