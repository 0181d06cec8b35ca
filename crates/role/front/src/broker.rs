//! Questions to the broker.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use vere_handoff::question::{Address, Answer, Question, Reader};
use vere_screen::Ticket;
use vere_smtp::refusal::Refusal;

use super::metrics::Figures;

/// Octets of questions that may wait for the broker to read; then no further question is asked.
const WAITING_MAX: usize = 1 << 20;

/// The connection to the broker, made again when it is lost.
#[derive(Debug)]
pub(crate) struct Broker {
    path: PathBuf,
    token: Token,
    connection: Option<UnixStream>,
    reader: Reader,
    /// Questions that were not written yet.
    waiting: Vec<u8>,
    /// Who asked, and in which round.
    asked: HashMap<u64, (Asked, Instant)>,
    next: u64,
    figures: Figures,
}

/// A question that waits for its answer: the connection, and the round of its session.
pub(crate) type Asked = (Ticket, u32);

/// An answer: to whom, and what.
pub(crate) type Answered = (Asked, Result<(), Refusal>);

impl Broker {
    pub(crate) fn new(path: PathBuf, token: Token, figures: Figures) -> Self {
        Self {
            path,
            token,
            connection: None,
            reader: Reader::default(),
            waiting: Vec::new(),
            asked: HashMap::new(),
            next: 0,
            figures,
        }
    }

    /// Whether there is a connection.
    pub(crate) const fn is_there(&self) -> bool {
        self.connection.is_some()
    }

    /// Connects if there is no connection. A broker that does not listen yet is tried again with the next call.
    pub(crate) fn connect(&mut self, registry: &Registry) {
        if self.connection.is_some() {
            return;
        }
        let connected = UnixStream::connect(&self.path).and_then(|mut connection| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut connection, self.token, interest)?;
            Ok(connection)
        });
        self.connection = connected.ok();
    }

    /// Asks whether mail for a recipient is taken; the question leaves with the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// The refusal when nobody can be asked.
    pub(crate) fn ask(
        &mut self,
        asked: Asked,
        address: &str,
        may_relay: bool,
    ) -> Result<(), Refusal> {
        let address = Address::new(address).map_err(|_| Refusal::MailboxUnknown)?;
        if self.connection.is_none() || self.waiting.len() > WAITING_MAX {
            return Err(Refusal::LocalError);
        }
        self.next = self.next.wrapping_add(1);
        Question::Recipient { address, may_relay }.encode(self.next, &mut self.waiting);
        self.asked.insert(self.next, (asked, Instant::now()));
        Ok(())
    }

    /// Writes the questions that wait, and returns who gets no answer because the connection is lost.
    pub(crate) fn flush(&mut self) -> Vec<Answered> {
        let Some(connection) = &mut self.connection else {
            return self.lost();
        };
        while !self.waiting.is_empty() {
            match connection.write(&self.waiting) {
                Ok(octets) => drop(self.waiting.drain(..octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::info!(%error, "connection to the broker lost");
                    return self.lost();
                }
            }
        }
        Vec::new()
    }

    /// Reads the answers that are there.
    pub(crate) fn read(&mut self) -> Vec<Answered> {
        let mut answers = Vec::new();
        if let Err(error) = self.take(&mut answers) {
            tracing::info!(%error, "connection to the broker lost");
            answers.append(&mut self.lost());
        }
        answers
    }

    fn take(&mut self, answers: &mut Vec<Answered>) -> io::Result<()> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let space = self.reader.space();
            let room = space.len();
            let octets = match connection.read(space) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            self.reader.filled(octets);
            while let Some(frame) = self.reader.frame().map_err(wrong)? {
                let answer = match Answer::decode(&frame).map_err(wrong)? {
                    Answer::Accepted => Ok(()),
                    Answer::Refused(number) => {
                        Err(Refusal::of_number(number).unwrap_or(Refusal::LocalError))
                    }
                    Answer::Unknown => Err(Refusal::LocalError),
                };
                if let Some((asked, at)) = self.asked.remove(&frame.id) {
                    self.figures.answered(&answer, at.elapsed());
                    answers.push((asked, answer));
                }
            }
            // Fewer octets than there was room for are all; more will be told.
            if octets < room {
                return Ok(());
            }
        }
    }

    fn lost(&mut self) -> Vec<Answered> {
        self.connection = None;
        self.reader = Reader::default();
        self.waiting.clear();
        let asked = self.asked.drain();
        let unanswered = |(_, (asked, _))| {
            self.figures.unanswered();
            (asked, Err(Refusal::LocalError))
        };
        asked.map(unanswered).collect()
    }
}
