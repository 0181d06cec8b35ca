//! How octets, answers and time move a session on.

use vere_units::Timestamp;

use crate::command::{CommandError, beginning, parse};

use super::answer::Answer;
use super::frame::{Bounds, FrameError, Framed};
use super::pace::Pace;
use super::question::{MailboxKey, Question};
use super::refusal::Refusal;
use super::sync::SyncWork;
use super::{About, Asking, Phase, Server, Session};
use crate::limits::ALIVE_INTERVAL;

impl Server {
    /// Gives the machine octets from the client, and returns the number of octets consumed.
    ///
    /// The machine consumes all octets, unless a question, a handshake or waiting output comes first.
    pub fn input(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match &mut self.phase {
                Phase::Asking(_) | Phase::Writing(_) => break,
                Phase::Closing => rest.len(),
                Phase::StartTls if self.output.is_empty() => break,
                Phase::StartTls => {
                    // Commands in the clear behind STARTTLS are somebody else's (RFC 9051 section 6.2.1).
                    self.bye("no command may follow STARTTLS");
                    rest.len()
                }
                Phase::Command | Phase::AuthResponse(_) | Phase::Idle(_) => {
                    if self.output.len() >= self.config.limits.output_octets_max {
                        break;
                    }
                    self.take(rest, now)
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        self.end_if_shutting_down();
        bytes.len().saturating_sub(rest.len())
    }

    fn take(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        let bounds = Bounds {
            limits: &self.config.limits,
            logged_in: !matches!(self.session, Session::NotAuthenticated),
        };
        let (taken, framed) = self.frames.take(bytes, bounds);
        self.wait_from(now);
        let limits = &self.config.limits;
        match (self.frames.has_much(), &mut self.pace) {
            (false, _) => self.pace = None,
            (true, Some(pace)) => pace.take(taken, limits, now),
            (true, None) => self.pace = Some(Box::new(Pace::new(limits, now))),
        }
        if let Some(framed) = framed {
            let more = taken < bytes.len();
            self.framed(framed, more);
        }
        taken
    }

    fn framed(&mut self, framed: Framed, more: bool) {
        let text = match framed {
            Framed::Continue => return self.output.line("+ OK"),
            Framed::Hopeless => return self.bye("[TOOBIG] the literal is too large"),
            Framed::Refused(text, error) => return self.refuse_frame(&text, error),
            Framed::Command(text) => text,
        };
        match std::mem::replace(&mut self.phase, Phase::Command) {
            Phase::AuthResponse(auth) => self.auth_response(*auth, &text),
            Phase::Idle(tag) if text.eq_ignore_ascii_case(b"DONE") => {
                self.complete(tag, "OK idle ended")
            }
            Phase::Idle(tag) => self.bad(Some(&tag), "expected DONE"),
            _ => self.run(text, more),
        }
    }

    fn refuse_frame(&mut self, text: &[u8], error: FrameError) {
        let (tag, _) = beginning(text);
        let tag = match std::mem::replace(&mut self.phase, Phase::Command) {
            Phase::AuthResponse(auth) => Some(auth.tag),
            Phase::Idle(tag) => Some(tag),
            _ => tag,
        };
        let no = |text: &str| tag.as_deref().map(|tag| format!("{tag} NO {text}"));
        let line = match error {
            FrameError::TooBig => no("[TOOBIG] the message is too large"),
            FrameError::NoRoom => no("[LIMIT] no room for the command now, try again later"),
            FrameError::TooLong | FrameError::BareLf | FrameError::Nul => None,
        };
        match line {
            Some(line) => self.output.line(&line),
            None => self.bad(
                tag.as_deref(),
                match error {
                    FrameError::BareLf => "a line ends with CRLF",
                    FrameError::Nul => "NUL may not stand here",
                    _ => "the command is too long",
                },
            ),
        }
    }

    fn run(&mut self, text: Vec<u8>, more: bool) {
        let parsed = parse(&text, self.enabled.rev2);
        match (parsed.tag, parsed.command) {
            (Some(tag), Ok(command)) => self.command(tag, command, text, more),
            (_, Err(CommandError::OtherProtocol)) => self.bye("this is IMAP"),
            (Some(tag), Err(CommandError::Charset)) => {
                self.output.line(&format!(
                    "{tag} NO [BADCHARSET (UTF-8 US-ASCII)] unknown charset"
                ));
            }
            (Some(tag), Err(CommandError::NameTooLong)) => {
                self.output
                    .line(&format!("{tag} NO [CANNOT] the name is too long"));
            }
            // RFC 3501 section 5.1.3: an undecodable name is no mailbox name, but no syntax error either.
            (Some(tag), Err(CommandError::NameEncoding)) => {
                self.output
                    .line(&format!("{tag} NO [CANNOT] the name is not modified UTF-7"));
            }
            (tag, Err(error)) => self.bad(tag.as_deref(), &error.to_string()),
            (None, Ok(_)) => self.bad(None, "expected a tag"),
        }
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
        self.wait_from(now);
        match (asking.about, answer) {
            (About::Password { tag, login }, Answer::Login(outcome)) => {
                self.password_answered(tag, login, outcome);
            }
            (About::ScramUser(auth), Answer::ScramUser(found)) => self.keys_answered(auth, found),
            (About::List(work), Answer::Mailboxes(result)) => self.list_answered(work, result),
            (About::ListStatus(work), Answer::Status(result)) => {
                self.list_status_answered(work, result)
            }
            (About::Status(work), Answer::Status(result)) => self.status_answered(work, result),
            (About::Change { tag, name }, Answer::Done(result)) => {
                // The removed mailbox may be the open mailbox.
                if let Some(selected) = self.selected() {
                    selected.dirty |= name == "deleted";
                }
                self.done(tag, name, result);
            }
            (About::Quota { tag, mailbox }, Answer::Quota(result)) => {
                self.quota_answered(tag, mailbox, result)
            }
            (About::Open(work), Answer::Opened(result)) => self.open_answered(work, result),
            (About::Resync(work), Answer::Changes(result)) => self.resync_answered(work, result),
            (About::Vanished(work), Answer::Changes(result)) => {
                self.vanished_answered(work, result)
            }
            (About::Seen(work), Answer::Flags(result)) => self.seen_answered(work, result),
            (About::Fetch(work), Answer::Messages(result)) => self.fetch_answered(work, result),
            (About::Piece(work), Answer::Piece(result)) => self.piece_answered(work, result),
            (About::Store(work), Answer::Flags(result)) => self.store_answered(work, result),
            (About::Expunge { tag, close }, Answer::Done(result)) => {
                self.expunge_answered(tag, close, result)
            }
            (About::Copy(work), Answer::Copied(result)) => self.copy_answered(work, result),
            (About::Append(tag), Answer::Appended(result)) => self.append_answered(tag, result),
            (About::Search(work), Answer::Found(result)) => self.search_answered(work, result),
            (About::Sync(work), Answer::Changes(result)) => self.sync_answered(work, result),
            _ => self.bye("[SERVERBUG] an answer did not fit its question"),
        }
        self.end_if_shutting_down();
    }

    /// Records that a mailbox may have changed; a client in IDLE is told at once, any other client with the
    /// next command.
    pub fn mailbox_changed(&mut self, key: MailboxKey) {
        match self.selected() {
            Some(selected) if selected.key == key => selected.dirty = true,
            _ => return,
        }
        match std::mem::replace(&mut self.phase, Phase::Command) {
            Phase::Idle(tag) => self.sync(SyncWork::idle(tag)),
            other => self.phase = other,
        }
    }

    /// The time at which [`Server::timed_out`] is due unless an event comes first.
    ///
    /// While a question is open the deadline is infinite: the host decides how long an answer takes. The
    /// deadline is infinite too while output waits for the client.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let limits = &self.config.limits;
        if let Some(due) = self.alive_due() {
            return due;
        }
        let due = match (&self.phase, &self.session) {
            (Phase::Asking(_) | Phase::Writing(_), _) => return Timestamp::MAX,
            (_, Session::NotAuthenticated) => self.began + limits.login_timeout,
            _ => self.waiting_since + limits.command_timeout,
        };
        let literal_due = self.pace.as_ref().map(|pace| pace.due(limits));
        literal_due.map_or(due, |literal_due| literal_due.min(due))
    }

    /// The time of the next keepalive response to a client in IDLE, if earlier than the timeout of the
    /// session.
    fn alive_due(&self) -> Option<Timestamp> {
        if !matches!(self.phase, Phase::Idle(_)) {
            return None;
        }
        let times = self.told_alive.checked_add(1)?;
        let span = ALIVE_INTERVAL.saturating_mul(times.into());
        let is_before = span < self.config.limits.command_timeout;
        is_before.then(|| self.waiting_since + span)
    }

    fn wait_from(&mut self, now: Timestamp) {
        self.waiting_since = now;
        self.told_alive = 0;
    }

    /// Handles a passed deadline: the session ends, or a client in IDLE gets a keepalive response.
    pub fn timed_out(&mut self) {
        if self.output.is_empty() && self.alive_due().is_some() {
            self.told_alive = self.told_alive.saturating_add(1);
            self.output.line("* OK Still here");
        } else if self.output.is_empty() && self.pace.is_some() {
            self.bye("[UNAVAILABLE] the command comes too slowly");
        } else if self.output.is_empty() {
            self.bye("[UNAVAILABLE] idle for too long");
        } else {
            // The client does not even read.
            self.output.discard();
            self.close();
        }
    }

    /// Frees and refuses the message being received: the host is out of memory.
    pub fn refuse_for_room(&mut self) {
        self.frames.refuse_for_room();
    }

    /// Records the end of the TLS handshake.
    pub fn tls_started(&mut self, now: Timestamp) {
        if matches!(self.phase, Phase::StartTls) {
            self.peer.tls = true;
            self.phase = Phase::Command;
            self.wait_from(now);
        }
    }

    /// Ends the session at the next place where a command could begin.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.end_if_shutting_down();
    }

    /// Ends the session because of a change of the account; not within a half-written response, after which
    /// the host has to call again.
    pub fn end(&mut self, reason: Refusal) {
        if !self.is_within_response() {
            self.bye(reason.text());
        }
    }

    pub(super) fn end_if_shutting_down(&mut self) {
        let between = match self.phase {
            Phase::Command => !self.frames.is_begun(),
            Phase::AuthResponse(_) | Phase::Idle(_) => true,
            _ => false,
        };
        if self.shutting_down && between {
            self.bye("[UNAVAILABLE] shutting down");
        }
    }

    pub(super) fn ask(&mut self, question: Question, about: About) {
        self.phase = Phase::Asking(Box::new(Asking {
            question: Some(question),
            about,
        }));
    }

    /// Answers BAD to a wrong command; after too many wrong commands the session ends.
    pub(super) fn bad(&mut self, tag: Option<&str>, why: &str) {
        let tag = tag.unwrap_or("*");
        self.output.line(&format!("{tag} BAD {why}"));
        self.counts.errors = self.counts.errors.saturating_add(1);
        let errors = usize::try_from(self.counts.errors).unwrap_or(usize::MAX);
        if errors > self.config.limits.errors_max {
            self.bye("too many errors");
        }
    }

    /// Passes on why something is not done.
    pub(super) fn no(&mut self, tag: String, refusal: Refusal) {
        if refusal == Refusal::Gone {
            self.lose_mailbox();
        }
        self.complete(tag, &format!("NO {}", refusal.text()));
    }

    pub(super) fn bye(&mut self, why: &str) {
        if !matches!(self.phase, Phase::Closing) {
            self.output.line(&format!("* BYE {why}"));
            self.close();
        }
    }

    /// Ends the session once the output is sent, and releases its memory.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closing;
        self.session = Session::NotAuthenticated;
        self.frames = super::FrameReader::default();
    }
}
