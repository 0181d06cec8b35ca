//! How octets, answers and time move a session on.

use std::borrow::Cow;

use vere_units::Timestamp;

use crate::command::{Command, CommandError};
use crate::refusal::Refusal;

use super::bdat::collector_of;
use super::collector::{Collector, Fault};
use super::config::Role;
use super::line::{Expect, Line, LineError};
use super::output::Fixed;
use super::question::{Answer, Question};
use super::{About, Asking, Phase, Server, replies};

impl Server {
    /// Takes octets from the client, and returns the number consumed.
    ///
    /// The machine stops at an open question, at the limit of the output, and behind STARTTLS; the host keeps the
    /// rest for the next call. After [`Step::Close`](super::Step::Close) the machine consumes and ignores all octets.
    pub fn input(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        if self.greeting_pending && self.config.early_talkers_refused && !bytes.is_empty() {
            self.refuse_early_talker();
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match &mut self.phase {
                Phase::Asking(_) => break,
                Phase::Closing => rest.len(),
                Phase::StartTls if self.output.is_empty() => break,
                Phase::StartTls => {
                    self.close_with(replies::TLS_INJECTION);
                    rest.len()
                }
                Phase::Data(_) => self.take_text(rest, now),
                Phase::Chunk(_) => self.take_chunk(rest, now),
                Phase::Command | Phase::AuthResponse(_) => {
                    if self.output.len() >= self.config.limits.output_octets_max {
                        break;
                    }
                    self.take_line(rest, now)
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
            self.end_if_shutting_down();
        }
        bytes.len().saturating_sub(rest.len())
    }

    /// Processes the answer to the open question; without an open question the call does nothing.
    pub fn answer(&mut self, answer: Answer, now: Timestamp) {
        let asking = match std::mem::replace(&mut self.phase, Phase::Command) {
            Phase::Asking(asking) => asking,
            other => {
                self.phase = other;
                return;
            }
        };
        self.waiting_since = now;
        match (asking.about, answer) {
            (About::Mail(mail), Answer::Policy(result)) => self.mail_answered(mail, result),
            (About::Recipient(rcpt), Answer::Policy(result)) => self.rcpt_answered(rcpt, result),
            (About::Message(_), Answer::Stored(result)) => self.message_answered(result),
            (About::Message(recipients), Answer::Filed(results)) => {
                self.filed_answered(recipients, results);
            }
            (About::Password(login), Answer::Password(outcome)) => {
                self.password_answered(*login, outcome);
            }
            (About::ScramUser(auth), Answer::ScramUser(found)) => self.keys_answered(*auth, found),
            (About::Client(client), Answer::Client(result)) => {
                self.client_answered(*client, result)
            }
            _ => self.refuse(&Refusal::LocalError),
        }
        self.end_if_shutting_down();
    }

    /// When [`Server::timed_out`] is due unless something happens before.
    ///
    /// While a question is open there is no such time: how long an answer takes is up to the host.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let limits = &self.config.limits;
        let due = match &self.phase {
            Phase::Asking(_) => return Timestamp::MAX,
            Phase::Data(collector) => collector.due(limits),
            Phase::Chunk(chunk) => self.chunk_due(chunk),
            _ => {
                return self
                    .chunks_due()
                    .min(self.waiting_since + limits.command_timeout);
            }
        };
        due.min(self.waiting_since + limits.data_timeout)
    }

    /// Takes note that the deadline has passed: the session ends, with 421 unless the client does not
    /// even read.
    pub fn timed_out(&mut self) {
        if matches!(self.phase, Phase::Closing) || !self.output.is_empty() {
            self.output.discard();
            self.phase = Phase::Closing;
        } else {
            self.close_with(replies::TIMED_OUT);
        }
    }

    /// Frees the text of the current message, then refused with `452 4.3.1` at the end: the host is out of memory.
    /// Without a current message the call does nothing.
    pub fn refuse_for_room(&mut self) {
        if let Phase::Data(collector) = &mut self.phase {
            collector.fail(Fault::NoRoom);
        } else if let Some(collector) = collector_of(&mut self.session.transaction) {
            collector.fail(Fault::NoRoom);
        }
    }

    /// Hands out the octets received so far of the current message, for the host to keep elsewhere. Later octets come
    /// with the next call, or with the message, which gives the number of octets handed out. [`Server::aside`] tells
    /// whether the octets are still needed.
    pub fn set_aside(&mut self) -> Vec<u8> {
        match &mut self.phase {
            Phase::Data(collector) => collector.set_aside(),
            _ => match collector_of(&mut self.session.transaction) {
                Some(collector) => collector.set_aside(),
                None => Vec::new(),
            },
        }
    }

    /// The host holds octets of its own for the text handed out by [`Server::set_aside`]: the octets count as memory of the message until the message
    /// ends or is refused.
    pub fn hold_beside(&mut self, octets: usize) {
        match &mut self.phase {
            Phase::Data(collector) => collector.hold(octets),
            _ => {
                if let Some(collector) = collector_of(&mut self.session.transaction) {
                    collector.hold(octets);
                }
            }
        }
    }

    /// Octets handed out by [`Server::set_aside`] of the message being received or to be asked about: zero after a
    /// refusal, or after the end of the transaction.
    #[must_use]
    pub fn aside(&self) -> u64 {
        if let Phase::Asking(asking) = &self.phase
            && let Some(Question::Message(message)) = &asking.question
        {
            return message.aside;
        }
        self.coming().map_or(0, Collector::aside)
    }

    /// Ends the session with 421 at the next command boundary; a message being received is accepted and answered
    /// before.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.end_if_shutting_down();
    }

    fn end_if_shutting_down(&mut self) {
        if self.shutting_down && matches!(self.phase, Phase::Command | Phase::AuthResponse(_)) {
            self.close_with(replies::SHUTTING_DOWN);
        }
    }

    /// The greeting is of no use to a client that did not wait for the greeting.
    fn refuse_early_talker(&mut self) {
        if !self.output.is_begun() {
            self.output.discard();
        }
        self.greeting_pending = false;
        self.close_with(replies::EARLY_TALKER);
    }

    fn take_line(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        let expect = match self.phase {
            Phase::AuthResponse(_) => Expect::AuthResponse,
            _ => Expect::Command,
        };
        let (taken, line) = self.lines.take(bytes, expect, &self.config.limits);
        if let Some(line) = line {
            self.waiting_since = now;
            let more = taken < bytes.len();
            match std::mem::replace(&mut self.phase, Phase::Command) {
                Phase::AuthResponse(auth) => self.auth_response(*auth, line.content),
                _ => self.run_line(line, more, now),
            }
        }
        taken
    }

    fn run_line(&mut self, line: Line<'_>, more: bool, now: Timestamp) {
        let chunk_follows = line.announces_chunk();
        match parse(line.content, self.config.workarounds) {
            Ok(Ok(command)) => self.run(command, more, now),
            Ok(Err(CommandError::OtherProtocol)) => self.close_with(replies::OTHER_PROTOCOL),
            Ok(Err(error)) => {
                self.output.reply(&replies::command_error(error));
                self.count_error();
                self.close_if(chunk_follows);
            }
            Err(error) => {
                self.fail_line(error);
                self.close_if(chunk_follows);
            }
        }
    }

    /// Refuses a malformed line. Behind an LF without CR the session ends: for the server before, the line continues
    /// (RFC 5321 section 2.3.8), and the rest of the line must not run as a command.
    pub(super) fn fail_line(&mut self, error: LineError) {
        let reply = replies::line_error(error);
        match error {
            LineError::BareLf => self.close_with(reply),
            _ => self.fail(reply),
        }
    }

    /// The end of the chunk is unknown, and no octet of the chunk may run as a command.
    fn close_if(&mut self, chunk_follows: bool) {
        if chunk_follows {
            self.close();
        }
    }

    fn run(&mut self, command: Command, more: bool, now: Timestamp) {
        let early = more && self.config.strict_pipelining;
        match command {
            Command::Quit => return self.close_with(replies::BYE),
            Command::Ehlo(_)
            | Command::Helo(_)
            | Command::Lhlo(_)
            | Command::Auth(_)
            | Command::Data
                if early =>
            {
                return self.close_with(replies::EARLY_TALKER);
            }
            Command::Bdat(bdat) => return self.bdat(bdat, now),
            _ => {}
        }
        let lmtp = self.config.role == Role::Lmtp;
        let introduction = match &command {
            Command::Ehlo(_) | Command::Helo(_) => Some(false),
            Command::Lhlo(_) => Some(true),
            _ => None,
        };
        // RFC 2033 section 4.1: each protocol has its own word, and neither knows the other's.
        if introduction.is_some_and(|lhlo| lhlo != lmtp) {
            return self.fail(replies::UNRECOGNIZED);
        }
        if self.lacks_tls() {
            match command {
                Command::Ehlo(_)
                | Command::Helo(_)
                | Command::Lhlo(_)
                | Command::Noop
                | Command::StartTls => {}
                _ => return self.fail(replies::TLS_FIRST),
            }
        }
        match command {
            Command::Ehlo(helo) | Command::Lhlo(helo) => self.helo_command(helo, true),
            Command::Helo(helo) => self.helo_command(helo, false),
            Command::Mail(mail) => self.mail(mail),
            Command::Rcpt(rcpt) => self.rcpt(rcpt),
            Command::Data => self.data(now),
            Command::Rset => self.rset(),
            Command::Noop => self.idle(replies::NOOP_OK),
            Command::Vrfy => self.idle(replies::VRFY),
            Command::Help => self.idle(replies::HELP),
            Command::Expn => self.fail(replies::EXPN_OFF),
            Command::StartTls => self.starttls(more),
            Command::Auth(auth) => self.auth(&auth),
            Command::Xclient(attributes) => self.xclient(attributes),
            Command::Quit | Command::Bdat(_) => {}
        }
    }

    fn rset(&mut self) {
        self.session.transaction = None;
        self.idle(replies::RSET_OK);
    }

    pub(super) fn lacks_tls(&self) -> bool {
        self.config.tls_required && self.peer.tls.is_none()
    }

    /// Answers a command without progress; the number of such commands in a row is limited.
    pub(super) fn idle(&mut self, reply: Fixed) {
        self.output.fixed(reply);
        self.count_idle();
    }

    pub(super) fn count_idle(&mut self) {
        self.counts.idle_commands = self.counts.idle_commands.saturating_add(1);
        if self.counts.idle_commands > self.config.limits.idle_commands_max {
            self.close_with(replies::TOO_MANY_IDLE);
        }
    }

    /// Refuses a command that the client should not have sent so or now.
    pub(super) fn fail(&mut self, reply: Fixed) {
        self.output.fixed(reply);
        self.count_error();
    }

    fn count_error(&mut self) {
        self.counts.errors = self.counts.errors.saturating_add(1);
        if self.counts.errors > self.config.limits.errors_max {
            self.close_with(replies::TOO_MANY_ERRORS);
        }
    }

    /// Sends a refusal of the host; a 421 ends the session.
    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        let reply = refusal.reply();
        self.output.reply(&reply);
        if reply.code == 421 {
            self.close();
        }
    }

    pub(super) fn close_with(&mut self, reply: Fixed) {
        if !matches!(self.phase, Phase::Closing) {
            self.output.fixed(reply);
            self.close();
        }
    }

    /// Ends the session once the output is sent, and releases its memory.
    fn close(&mut self) {
        self.phase = Phase::Closing;
        self.session.transaction = None;
        self.lines.clear();
    }

    pub(super) fn ask(&mut self, question: Question, about: About) {
        self.phase = Phase::Asking(Box::new(Asking {
            question: Some(question),
            about,
        }));
    }
}

fn parse(
    line: Result<Cow<'_, [u8]>, LineError>,
    workarounds: crate::command::Workarounds,
) -> Result<Result<Command, CommandError>, LineError> {
    line.map(|line| Command::parse(&line, workarounds))
}
