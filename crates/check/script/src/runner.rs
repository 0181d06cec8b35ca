//! Goes through a script, statement by statement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use vere_sasl::client::{Credentials, Exchange};
use vere_sasl::{Mechanism, NonceSource};

use crate::parse::{Action, Requirement, Script, Side, Statement};
use crate::template::{Template, Variables};

/// Lines of the transcript shown with a failure.
const TRANSCRIPT_LINES: usize = 30;

/// Octets of a line shown in a transcript.
const SHOWN_OCTETS: usize = 200;

/// The system under test.
pub trait Subject {
    /// Says why the script cannot run here, if so.
    fn lacks(&self, requirement: &Requirement) -> Option<String>;

    /// Says why such a wait cannot be made here, if so.
    fn lacks_wait(&self, time: Duration) -> Option<String>;

    /// The dialect of the subject.
    fn dialect(&self) -> Dialect {
        Dialect::Smtp
    }

    /// Sends octets on a connection, opening the connection if necessary.
    ///
    /// # Errors
    ///
    /// [`SubjectError`] when the connection cannot be opened.
    fn send(&mut self, connection: u32, octets: &[u8]) -> Result<(), SubjectError>;

    /// Takes the next line of the server, without its CRLF; the connection is made if need be.
    ///
    /// # Errors
    ///
    /// [`SubjectError`] when there can be no connection.
    fn hear(&mut self, connection: u32) -> Result<Heard, SubjectError>;

    /// Says whether anything is left to hear, waiting no longer than makes sense.
    fn has_more(&mut self, connection: u32) -> bool;

    /// Lets time pass.
    fn wait(&mut self, time: Duration);

    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// [`SubjectError`] when the handshake fails or the server is not ready for it.
    fn start_tls(&mut self, connection: u32) -> Result<(), SubjectError>;

    /// Closes a connection from the client's side.
    fn close(&mut self, connection: u32);

    /// Tells the server to go down; false where that cannot be done.
    fn shut_down(&mut self) -> bool;

    /// Describes the message stored last, where known: `from <a@b> to <c@d> size 12 with ESMTP`,
    /// followed by ` account NAME` and ` client ADDRESS` if present.
    fn message(&mut self) -> Option<String>;
}

/// How an authentication exchange is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `AUTH`, and challenges behind `334`.
    Smtp,
    /// `AUTHENTICATE` with the tag `scram`, and challenges behind `+`.
    Imap,
}

/// Output of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line without CRLF.
    Line(Vec<u8>),
    /// The server has closed.
    Closed,
    /// No output within the given time.
    Nothing,
}

/// Takes the first line of the output, without CRLF. A lone LF ends no line: messages may contain LF.
pub(crate) fn take_line(said: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = said.windows(2).position(|two| two == b"\r\n")?;
    let line = said.drain(..end).collect();
    said.drain(..2);
    Some(line)
}

/// Why a subject cannot do something; the text says it all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SubjectError(pub String);

/// The result of a script without failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as written.
    Passed,
    /// The script was skipped, for this reason.
    Skipped(String),
}

/// Where and how a script went another way than written.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The script.
    pub script: String,
    /// The line of the script, from 1.
    pub line: usize,
    /// What was wrong.
    pub problem: String,
    /// The last lines of the talk.
    pub transcript: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: {}", self.script, self.line, self.problem)?;
        self.transcript
            .iter()
            .try_for_each(|line| writeln!(f, "    {line}"))
    }
}

impl std::error::Error for Failure {}

/// Runs a script.
///
/// # Errors
///
/// [`Failure`] at the first line at which the subject does something else.
pub fn run<S: Subject>(script: &Script, subject: &mut S) -> Result<Verdict, Failure> {
    let waits = script
        .statements
        .iter()
        .filter_map(|statement| match statement.action {
            Action::Wait(time) => subject.lacks_wait(time),
            _ => None,
        });
    let mut lacking = script
        .requirements
        .iter()
        .filter_map(|needed| subject.lacks(needed))
        .chain(waits);
    if let Some(reason) = lacking.next() {
        return Ok(Verdict::Skipped(reason));
    }
    let mut runner = Runner {
        subject,
        variables: Variables::new(),
        pending: BTreeMap::new(),
        reply: BTreeMap::new(),
        held: BTreeMap::new(),
        seen: BTreeSet::new(),
        transcript: VecDeque::new(),
    };
    let mut last = 0;
    let result = script.statements.iter().try_for_each(|statement| {
        last = statement.line;
        runner.step(statement)
    });
    result
        .and_then(|()| runner.finish())
        .map_err(|problem| Failure {
            script: script.name.clone(),
            line: last,
            problem,
            transcript: runner.transcript.into_iter().collect(),
        })?;
    Ok(Verdict::Passed)
}

struct Runner<'a, S> {
    subject: &'a mut S,
    variables: Variables,
    /// Octets to send, by connection.
    pending: BTreeMap<u32, Vec<u8>>,
    /// The lines of the reply that `S+` and `S-` are about.
    reply: BTreeMap<u32, Vec<Vec<u8>>>,
    /// A line heard and not yet expected, by connection.
    held: BTreeMap<u32, Vec<u8>>,
    seen: BTreeSet<u32>,
    transcript: VecDeque<String>,
}

impl<S: Subject> Runner<'_, S> {
    fn step(&mut self, statement: &Statement) -> Result<(), String> {
        let connection = statement.connection;
        self.seen.insert(connection);
        if !matches!(statement.action, Action::Has(_) | Action::HasNot(_)) {
            self.reply.remove(&connection);
        }
        if let Action::Send { text, line_end } = &statement.action {
            let mut octets = text
                .expand(&self.variables)
                .map_err(|error| error.to_string())?;
            if *line_end {
                octets.extend_from_slice(b"\r\n");
            }
            self.pending
                .entry(connection)
                .or_default()
                .extend_from_slice(&octets);
            return Ok(());
        }
        self.flush()?;
        match &statement.action {
            Action::Line(pattern) => self.expect_line(connection, pattern),
            Action::Has(pattern) => self.expect_in_reply(connection, pattern, true),
            Action::HasNot(pattern) => self.expect_in_reply(connection, pattern, false),
            Action::Wait(time) => {
                self.subject.wait(*time);
                Ok(())
            }
            Action::Tls => self
                .subject
                .start_tls(connection)
                .map_err(|error| error.to_string()),
            Action::Closed => match self.hear(connection)? {
                Heard::Closed => Ok(()),
                other => Err(format!(
                    "expected the connection to be closed, got {}",
                    shown(&other)
                )),
            },
            Action::Close => {
                self.subject.close(connection);
                Ok(())
            }
            Action::Silent => self.expect_silence(connection),
            Action::Scram { user, password } => self.scram(connection, user, password),
            Action::ShutDown => {
                if self.subject.shut_down() {
                    Ok(())
                } else {
                    Err("cannot shut down".to_owned())
                }
            }
            Action::Message(pattern) => self.expect_message(pattern),
            Action::Send { .. } | Action::Flush => Ok(()),
        }
    }

    /// Checks that no output is left unread, where the subject can tell.
    fn finish(&mut self) -> Result<(), String> {
        self.flush()?;
        for connection in self.seen.clone() {
            if self.held.contains_key(&connection) || self.subject.has_more(connection) {
                let heard = self.hear(connection)?;
                return Err(format!(
                    "the script ends, and the server says {}",
                    shown(&heard)
                ));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        for (connection, octets) in std::mem::take(&mut self.pending) {
            self.note(Side::Client, connection, &octets);
            self.subject
                .send(connection, &octets)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn hear(&mut self, connection: u32) -> Result<Heard, String> {
        if let Some(line) = self.held.remove(&connection) {
            return Ok(Heard::Line(line));
        }
        let heard = self
            .subject
            .hear(connection)
            .map_err(|error| error.to_string())?;
        if let Heard::Line(line) = &heard {
            self.note(Side::Server, connection, line);
        }
        Ok(heard)
    }

    fn hear_line(&mut self, connection: u32) -> Result<Vec<u8>, String> {
        match self.hear(connection)? {
            Heard::Line(line) => Ok(line),
            other => Err(format!("expected a line, got {}", shown(&other))),
        }
    }

    fn expect_line(&mut self, connection: u32, pattern: &Template) -> Result<(), String> {
        let line = self.hear_line(connection)?;
        if pattern.matches(&line, &mut self.variables) {
            Ok(())
        } else {
            Err(format!("unexpected line: {}", printable(&line)))
        }
    }

    fn expect_in_reply(
        &mut self,
        connection: u32,
        pattern: &Template,
        wanted: bool,
    ) -> Result<(), String> {
        if !self.reply.contains_key(&connection) {
            let mut lines = Vec::new();
            loop {
                let line = self.hear_line(connection)?;
                let last = line.get(3) != Some(&b'-');
                lines.push(line.get(4..).unwrap_or_default().to_vec());
                if last {
                    break;
                }
            }
            self.reply.insert(connection, lines);
        }
        let variables = &mut self.variables;
        let mut lines = self.reply.get(&connection).into_iter().flatten();
        if lines.any(|line| pattern.matches(line, variables)) == wanted {
            Ok(())
        } else if wanted {
            Err("the reply has no such line".to_owned())
        } else {
            Err("the reply has such a line".to_owned())
        }
    }

    fn expect_silence(&mut self, connection: u32) -> Result<(), String> {
        if !self.subject.has_more(connection) {
            return Ok(());
        }
        let heard = self.hear(connection)?;
        Err(format!("expected silence, got {}", shown(&heard)))
    }

    fn expect_message(&mut self, pattern: &Template) -> Result<(), String> {
        match self.subject.message() {
            Some(message) if !pattern.matches(message.as_bytes(), &mut self.variables) => {
                Err(format!("the message stored is: {message}"))
            }
            _ => Ok(()),
        }
    }

    /// Talks until the server no longer challenges; its last line is left to be expected.
    fn scram(
        &mut self,
        connection: u32,
        user: &Template,
        password: &Template,
    ) -> Result<(), String> {
        let text = |template: &Template| {
            let octets = template
                .expand(&self.variables)
                .map_err(|error| error.to_string())?;
            String::from_utf8(octets).map_err(|error| error.to_string())
        };
        let credentials = Credentials::new(text(user)?, text(password)?);
        let nonce = NonceSource::new([7; 32]).next();
        let (mut exchange, initial) = Exchange::begin(Mechanism::ScramSha256, &credentials, nonce)
            .map_err(|error| error.to_string())?;
        let mut line = format!(
            "{} SCRAM-SHA-256 {}",
            match self.subject.dialect() {
                Dialect::Smtp => "AUTH",
                Dialect::Imap => "scram AUTHENTICATE",
            },
            vere_sasl::encode(&initial.unwrap_or_default())
        );
        // Two challenges: the server-first-message and the server-final-message.
        for _ in 0..2 {
            line.push_str("\r\n");
            self.pending
                .entry(connection)
                .or_default()
                .extend_from_slice(line.as_bytes());
            self.flush()?;
            let Some(challenge) = self.challenge(connection)? else {
                return Ok(());
            };
            let response = exchange
                .respond(&challenge)
                .map_err(|error| error.to_string())?;
            line = vere_sasl::encode(&response);
        }
        line.push_str("\r\n");
        self.pending
            .entry(connection)
            .or_default()
            .extend_from_slice(line.as_bytes());
        self.flush()
    }

    /// Takes the next line if the line is a challenge, and leaves any other line.
    fn challenge(&mut self, connection: u32) -> Result<Option<Vec<u8>>, String> {
        let line = self.hear_line(connection)?;
        let mark: &[u8] = match self.subject.dialect() {
            Dialect::Smtp => b"334 ",
            Dialect::Imap => b"+ ",
        };
        match line.strip_prefix(mark) {
            Some(challenge) => {
                let challenge = vere_sasl::decode(challenge).map_err(|error| error.to_string())?;
                Ok(Some(challenge))
            }
            None => {
                self.held.insert(connection, line);
                Ok(None)
            }
        }
    }

    fn note(&mut self, side: Side, connection: u32, octets: &[u8]) {
        let letter = match side {
            Side::Client => 'C',
            Side::Server => 'S',
        };
        if self.transcript.len() == TRANSCRIPT_LINES {
            self.transcript.pop_front();
        }
        self.transcript
            .push_back(format!("{letter}{connection}: {}", printable(octets)));
    }
}

fn shown(heard: &Heard) -> String {
    match heard {
        Heard::Line(line) => format!("the line {}", printable(line)),
        Heard::Closed => "the end of the connection".to_owned(),
        Heard::Nothing => "nothing".to_owned(),
    }
}

fn printable(octets: &[u8]) -> String {
    let shown = octets.get(..SHOWN_OCTETS).unwrap_or(octets);
    let more = if shown.len() < octets.len() {
        "..."
    } else {
        ""
    };
    format!("{}{more}", shown.escape_ascii())
}
