//! The sending side of an SMTP dialogue, without sockets.

use memchr::memchr;

use super::{Buffer, Output};

/// Octets of the longest accepted reply, all lines together.
const REPLY_MAX: usize = 64 * 1024;

/// The peer sent a malformed reply.
struct Nonsense;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The final dot was answered 2xx: the peer has the message.
    Accepted,
    /// A reply with this code refused the message.
    Refused {
        /// The code, 400 to 599.
        code: u16,
        /// Whether the reply answered the final dot, after which the peer may hold the message.
        after_message: bool,
    },
}

/// The next step of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// More octets are needed.
    Input,
    /// The message text has just been queued; the last octets are the final dot.
    TextQueued,
    /// A transaction may begin.
    Ready,
    /// The transaction ended.
    Ended(Outcome),
    /// The dialogue cannot go on: refused greeting, 421, or nonsense.
    Broken {
        /// The code of the unexpected reply; 0 for a malformed reply.
        code: u16,
    },
    /// The peer answered QUIT.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Hello,
    Ready,
    Mail,
    Recipients,
    Data,
    Message,
    /// Waiting for the answer to RSET after a transaction failed.
    Reset,
    Quit,
    Over,
}

/// The sending machine of a connection: EHLO, then successive transactions.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) input: Buffer,
    pub(crate) output: Output,
    state: State,
    name: &'static str,
    pipelining: bool,
    eight_bit: bool,
    /// Unsent commands, held back because the peer does not accept pipelining.
    held: Vec<Vec<u8>>,
    recipients: usize,
    taken: usize,
    failed: Option<Outcome>,
    text: Vec<u8>,
}

impl Sender {
    /// A machine for a connection just opened, with `name` for EHLO. Without `pipelining` the machine waits for every
    /// reply, whatever the peer announces.
    pub(crate) fn new(name: &'static str, pipelining: bool) -> Self {
        Self {
            input: Buffer::default(),
            output: Output::default(),
            state: State::Greeting,
            name,
            pipelining,
            eight_bit: false,
            held: Vec::new(),
            recipients: 0,
            taken: 0,
            failed: None,
            text: Vec::new(),
        }
    }

    /// Begins a transaction; only after [`Turn::Ready`] or [`Turn::Ended`]. `write_text` appends
    /// the message as it goes over the wire (CRLF lines, dots doubled, ending in CRLF, without the
    /// final dot) and says whether it has octets above 127.
    pub(crate) fn begin(
        &mut self,
        sender: &str,
        recipients: &[String],
        write_text: impl FnOnce(&mut Vec<u8>) -> bool,
    ) {
        self.text.clear();
        let has_eight_bit = write_text(&mut self.text);
        self.text.extend_from_slice(b".\r\n");
        self.recipients = recipients.len();
        self.taken = 0;
        self.failed = None;
        self.held.clear();
        let body = if has_eight_bit && self.eight_bit {
            " BODY=8BITMIME"
        } else {
            ""
        };
        self.output
            .push(format!("MAIL FROM:<{sender}>{body}\r\n").as_bytes());
        for recipient in recipients {
            self.command(format!("RCPT TO:<{recipient}>\r\n"));
        }
        self.command("DATA\r\n".to_owned());
        self.held.reverse();
        self.state = State::Mail;
    }

    fn command(&mut self, line: String) {
        if self.pipelining {
            self.output.push(line.as_bytes());
        } else {
            self.held.push(line.into_bytes());
        }
    }

    /// Asks for the end of the dialogue; only after [`Turn::Ready`] or [`Turn::Ended`].
    pub(crate) fn quit(&mut self) {
        self.output.push(b"QUIT\r\n");
        self.state = State::Quit;
    }

    /// Whether the message text was queued and its reply is outstanding.
    pub(crate) fn awaits_verdict(&self) -> bool {
        self.state == State::Message
    }

    /// Processes the arrived replies until the host must act or more octets are needed.
    pub(crate) fn advance(&mut self) -> Turn {
        loop {
            match self.next_reply() {
                Ok(Some(code)) => {
                    if let Some(turn) = self.reply(code) {
                        return turn;
                    }
                }
                Ok(None) => return Turn::Input,
                Err(Nonsense) => return Turn::Broken { code: 0 },
            }
        }
    }

    /// The code of the next whole reply; the keywords of EHLO's reply are recorded too.
    fn next_reply(&mut self) -> Result<Option<u16>, Nonsense> {
        let data = self.input.data();
        let mut at = 0;
        loop {
            let Some(length) = memchr(b'\n', &data[at..]) else {
                return if data.len() > REPLY_MAX {
                    Err(Nonsense)
                } else {
                    Ok(None)
                };
            };
            let line = &data[at..at + length];
            at += length + 1;
            let code = line
                .get(..3)
                .filter(|digits| digits.iter().all(u8::is_ascii_digit))
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| digits.parse::<u16>().ok())
                .ok_or(Nonsense)?;
            if line.get(3) == Some(&b'-') {
                continue;
            }
            if self.state == State::Hello {
                let lines = data[..at].to_ascii_uppercase();
                let has = |keyword: &[u8]| memchr::memmem::find(&lines, keyword).is_some();
                self.pipelining = self.pipelining && has(b"PIPELINING\r\n");
                self.eight_bit = has(b"8BITMIME\r\n");
            }
            self.input.consume(at);
            return Ok(Some(code));
        }
    }

    fn reply(&mut self, code: u16) -> Option<Turn> {
        if code == 421 {
            self.state = State::Over;
            return Some(Turn::Broken { code });
        }
        let positive = (200..400).contains(&code);
        match self.state {
            State::Greeting | State::Hello if !positive => Some(Turn::Broken { code }),
            State::Greeting => {
                self.output
                    .push(format!("EHLO {}\r\n", self.name).as_bytes());
                self.state = State::Hello;
                None
            }
            State::Hello => {
                self.state = State::Ready;
                Some(Turn::Ready)
            }
            State::Mail => {
                if !positive {
                    self.note_failure(code);
                }
                self.state = State::Recipients;
                self.step_on()
            }
            State::Recipients => {
                self.recipients -= 1;
                if positive {
                    self.taken += 1;
                } else {
                    self.note_failure(code);
                }
                self.step_on()
            }
            State::Data => self.data_reply(code),
            State::Message => Some(self.message_reply(code)),
            State::Reset => {
                self.state = State::Ready;
                let failed = Outcome::Refused {
                    code,
                    after_message: false,
                };
                Some(Turn::Ended(self.failed.take().unwrap_or(failed)))
            }
            State::Quit => {
                self.state = State::Over;
                Some(Turn::Over)
            }
            // A reply without a command.
            State::Ready | State::Over => Some(Turn::Broken { code }),
        }
    }

    fn note_failure(&mut self, code: u16) {
        self.failed.get_or_insert(Outcome::Refused {
            code,
            after_message: false,
        });
    }

    /// After MAIL or RCPT: the next command where commands go singly.
    fn step_on(&mut self) -> Option<Turn> {
        if self.recipients == 0 {
            self.state = State::Data;
        }
        if self.pipelining {
            return None;
        }
        if self.state == State::Data && self.taken == 0 {
            return self.reset();
        }
        if let Some(line) = self.held.pop() {
            self.output.push(&line);
        }
        None
    }

    fn reset(&mut self) -> Option<Turn> {
        self.output.push(b"RSET\r\n");
        self.state = State::Reset;
        None
    }

    fn data_reply(&mut self, code: u16) -> Option<Turn> {
        if code != 354 {
            self.note_failure(code);
            return self.reset();
        }
        self.state = State::Message;
        if self.taken == 0 {
            // DATA was pipelined and accepted without a recipient: an empty text ends the transaction.
            self.output.push(b".\r\n");
            return None;
        }
        self.output.push_whole(&mut self.text);
        Some(Turn::TextQueued)
    }

    fn message_reply(&mut self, code: u16) -> Turn {
        self.state = State::Ready;
        let positive = (200..300).contains(&code);
        Turn::Ended(match self.failed.take() {
            Some(failed) if self.taken == 0 => failed,
            _ if positive => Outcome::Accepted,
            _ => Outcome::Refused {
                code,
                after_message: true,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Sender, Turn};
    use crate::wire::{Manners, Receiver, Stage, Wait};

    fn recipients() -> Vec<String> {
        vec!["a@one.test".to_owned(), "b@two.test".to_owned()]
    }

    /// Lets a sender and a receiver talk; the receiver refuses `refusals`.
    fn talk(pipelining: bool, refusals: &[(Stage, u16)]) -> (Outcome, Vec<Vec<u8>>) {
        let manners = Manners {
            hostname: "sink.test".to_owned(),
            extensions: vec!["PIPELINING".to_owned()],
            message_size_max: 1000,
        };
        let (mut sender, mut receiver) = (Sender::new("client.test", pipelining), Receiver::new());
        let mut messages = Vec::new();
        for _ in 0..100 {
            while let Wait::Answer(stage) = receiver.advance(&manners) {
                if stage == Stage::Message {
                    messages.push(receiver.message().to_vec());
                }
                match refusals.iter().find(|(refused, _)| *refused == stage) {
                    Some((_, code)) => receiver.refuse(*code, "no"),
                    None => receiver.accept(&manners),
                }
            }
            let octets = receiver.output.pending().to_vec();
            receiver.output.sent(octets.len());
            sender.input.space()[..octets.len()].copy_from_slice(&octets);
            sender.input.filled(octets.len());
            match sender.advance() {
                Turn::Ready => sender.begin("s@x.test", &recipients(), |text| {
                    text.extend_from_slice(b"A: b\r\n\r\nc\r\n");
                    false
                }),
                Turn::Ended(outcome) => return (outcome, messages),
                Turn::Input | Turn::TextQueued => {}
                turn @ (Turn::Broken { .. } | Turn::Over) => panic!("{turn:?}"),
            }
            let octets = sender.output.pending().to_vec();
            sender.output.sent(octets.len());
            receiver.input.space()[..octets.len()].copy_from_slice(&octets);
            receiver.input.filled(octets.len());
        }
        panic!("the dialogue does not end");
    }

    #[test]
    fn a_message_goes_over_with_and_without_pipelining() {
        for pipelining in [true, false] {
            let (outcome, messages) = talk(pipelining, &[]);
            assert_eq!(outcome, Outcome::Accepted);
            assert_eq!(messages, [b"A: b\r\n\r\nc\r\n".to_vec()]);
        }
    }

    #[test]
    fn the_first_refusal_is_the_outcome() {
        for pipelining in [true, false] {
            for (stage, after_message) in [
                (Stage::Mail, false),
                (Stage::Recipient, false),
                (Stage::Data, false),
                (Stage::Message, true),
            ] {
                let (outcome, _) = talk(pipelining, &[(stage, 451)]);
                assert_eq!(
                    outcome,
                    Outcome::Refused {
                        code: 451,
                        after_message
                    },
                    "{stage:?}"
                );
            }
        }
    }
}
