//! Questions to the broker.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use vere_handoff::question::{
    Address, Answer, ListsAnswer, Question, Reader, Sender, Spf, SpfResults,
};
use vere_screen::Ticket;
use vere_smtp::refusal::Refusal;
use vere_telemetry::metrics::{BrokerAnswer, BrokerQuestion};

use super::metrics::Figures;

/// Octets of questions that may wait for the broker to read; then no further question is asked.
const WAITING_MAX: usize = 1 << 20;
/// How often the counts of the broker are asked for.
const FIGURES_INTERVAL: Duration = Duration::from_secs(1);

/// The connection to the broker, made again when it is lost.
#[derive(Debug)]
pub(crate) struct Broker {
    path: PathBuf,
    token: Token,
    connection: Option<UnixStream>,
    reader: Reader,
    /// Questions that were not written yet.
    waiting: Vec<u8>,
    /// Whether the kernel tells when the broker has read.
    is_told_of_room: bool,
    /// The session and round of each open question, its topic, and the time of the question.
    asked: HashMap<u64, (Asked, Topic, Instant)>,
    next: u64,
    figures: Figures,
    /// The number of lists, whose counts are asked for.
    lists: u8,
    /// When the counts of the broker are asked for next.
    figures_due: Instant,
}

/// A question that waits for its answer: the connection, and the round of its session.
pub(crate) type Asked = (Ticket, u32);

/// What a question is about.
#[derive(Debug, Clone, Copy)]
enum Topic {
    Recipient,
    Spf,
    Lists,
}

/// An answer: to whom, and what.
pub(crate) type Answered = (Asked, Told);

/// What the broker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// Whether mail for the recipient is accepted.
    Recipient(Result<(), Refusal>),
    /// The results of SPF.
    Spf(SpfResults),
    /// The entries of the client on all lists.
    Lists(ListsAnswer),
}

impl Told {
    /// The label of the answer in the metrics.
    fn result(&self) -> BrokerAnswer {
        match self {
            Self::Recipient(Ok(())) => BrokerAnswer::Accepted,
            Self::Recipient(Err(refusal)) if refusal.is_permanent() => BrokerAnswer::Refused,
            Self::Recipient(Err(_)) => BrokerAnswer::Deferred,
            Self::Spf(results) => match results.decisive() {
                Spf::Pass | Spf::None | Spf::Neutral => BrokerAnswer::Accepted,
                Spf::Fail | Spf::SoftFail | Spf::PermError => BrokerAnswer::Refused,
                Spf::TempError => BrokerAnswer::Deferred,
            },
            Self::Lists(lists) if !lists.name().is_empty() => BrokerAnswer::Refused,
            Self::Lists(lists) if !lists.is_complete() => BrokerAnswer::Deferred,
            Self::Lists(_) => BrokerAnswer::Accepted,
        }
    }
}

impl Topic {
    /// The label of the question in the metrics.
    const fn kind(self) -> BrokerQuestion {
        match self {
            Self::Recipient => BrokerQuestion::Recipient,
            Self::Spf => BrokerQuestion::Spf,
            Self::Lists => BrokerQuestion::Lists,
        }
    }

    /// What counts as said where the broker says nothing of use.
    fn silence(self) -> Told {
        match self {
            Self::Recipient => Told::Recipient(Err(Refusal::LocalError)),
            Self::Spf => Told::Spf(Spf::TempError.into()),
            Self::Lists => Told::Lists(ListsAnswer::default()),
        }
    }

    fn told(self, answer: &Answer) -> Told {
        match (self, answer) {
            (Self::Recipient, Answer::Accepted) => Told::Recipient(Ok(())),
            (Self::Recipient, Answer::Refused(number)) => Told::Recipient(Err(Refusal::of_number(
                *number,
            )
            .unwrap_or(Refusal::LocalError))),
            (Self::Spf, Answer::Spf(result)) => Told::Spf(*result),
            (Self::Lists, Answer::Lists(lists)) => Told::Lists(lists.clone()),
            _ => self.silence(),
        }
    }
}

impl Broker {
    pub(crate) fn new((path, token): (PathBuf, Token), figures: Figures, lists: u8) -> Self {
        Self {
            path,
            token,
            connection: None,
            reader: Reader::default(),
            waiting: Vec::new(),
            is_told_of_room: false,
            asked: HashMap::new(),
            next: 0,
            figures,
            lists,
            figures_due: Instant::now(),
        }
    }

    /// Asks for the counts of so many lists from now on.
    pub(crate) const fn set_lists(&mut self, lists: u8) {
        self.lists = lists;
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
            registry.register(&mut connection, self.token, Interest::READABLE)?;
            Ok(connection)
        });
        self.connection = connected.ok();
    }

    /// Asks whether the sender's domain allows the client, as [`ask`](Self::ask) does. False: nobody can be asked.
    pub(crate) fn ask_spf(&mut self, asked: Asked, sender: Sender<'_>) -> bool {
        self.put(&Question::Spf(sender), (asked, Topic::Spf))
    }

    /// Asks for the lists that have the client, as [`ask`](Self::ask) does. False: nobody can be asked.
    pub(crate) fn ask_lists(&mut self, asked: Asked, client: IpAddr) -> bool {
        self.put(&Question::Lists(client), (asked, Topic::Lists))
    }

    /// Asks whether mail for a recipient is taken; the question leaves with the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// The refusal when nobody can be asked.
    pub(crate) fn ask(
        &mut self,
        asked: Asked,
        address: &str,
        (client, may_relay): (IpAddr, bool),
    ) -> Result<(), Refusal> {
        let address = Address::new(address).map_err(|_| Refusal::MailboxUnknown)?;
        let question = Question::Recipient {
            address,
            client,
            may_relay,
        };
        match self.put(&question, (asked, Topic::Recipient)) {
            true => Ok(()),
            false => Err(Refusal::LocalError),
        }
    }

    fn put(&mut self, question: &Question<'_>, asked: (Asked, Topic)) -> bool {
        let (asked, topic) = asked;
        let can_ask = self.connection.is_some() && self.waiting.len() <= WAITING_MAX;
        match can_ask {
            true => {
                self.next = self.next.wrapping_add(1);
                question.encode(self.next, &mut self.waiting);
                self.asked.insert(self.next, (asked, topic, Instant::now()));
            }
            false => self.figures.unanswered(topic.kind()),
        }
        can_ask
    }

    /// Writes the questions that wait, and returns who gets no answer because the connection is lost.
    pub(crate) fn flush(&mut self, registry: &Registry) -> Vec<Answered> {
        self.ask_figures();
        let written = self.write().and_then(|()| self.watch(registry));
        match (written, &self.connection) {
            (Ok(()), Some(_)) => Vec::new(),
            (Err(error), _) => {
                tracing::info!(%error, "connection to the broker lost");
                self.lost()
            }
            (Ok(()), None) => self.lost(),
        }
    }

    /// Asks for the broker's counts from time to time.
    fn ask_figures(&mut self) {
        let now = Instant::now();
        let is_due = self.connection.is_some() && now >= self.figures_due;
        if is_due && self.waiting.len() <= WAITING_MAX {
            self.figures_due = now + FIGURES_INTERVAL;
            let lists = (0..self.lists).map(Question::ListFigures);
            for question in std::iter::once(Question::Figures).chain(lists) {
                self.next = self.next.wrapping_add(1);
                question.encode(self.next, &mut self.waiting);
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while let Some(connection) = &mut self.connection
            && !self.waiting.is_empty()
        {
            match connection.write(&self.waiting) {
                Ok(octets) => drop(self.waiting.drain(..octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Has the kernel tell of room while questions wait for room, and at no other time: the kernel tells each time that the broker has read
    /// (`vere_net::quiet`).
    fn watch(&mut self, registry: &Registry) -> io::Result<()> {
        let waits = !self.waiting.is_empty();
        if let Some(connection) = &mut self.connection
            && std::mem::replace(&mut self.is_told_of_room, waits) != waits
        {
            let interest = match waits {
                true => Interest::READABLE | Interest::WRITABLE,
                false => Interest::READABLE,
            };
            registry.reregister(connection, self.token, interest)?;
        }
        Ok(())
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
                let answer = Answer::decode(&frame).map_err(wrong)?;
                match &answer {
                    Answer::Figures(figures) => self.figures.broker(figures),
                    Answer::ListFigures(figures) => self.figures.list(figures),
                    _ => {}
                }
                if let Some((asked, topic, at)) = self.asked.remove(&frame.id) {
                    let told = topic.told(&answer);
                    self.figures
                        .answered(topic.kind(), told.result(), at.elapsed());
                    answers.push((asked, told));
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
        self.is_told_of_room = false;
        self.reader = Reader::default();
        self.waiting.clear();
        let asked = self.asked.drain();
        let unanswered = |(_, (asked, topic, _)): (u64, (Asked, Topic, Instant))| {
            let told = topic.silence();
            self.figures.unanswered(topic.kind());
            (asked, told)
        };
        asked.map(unanswered).collect()
    }
}
