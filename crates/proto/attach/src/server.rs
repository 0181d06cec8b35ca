//! The MTA's side.
//!
//! | frame of the client | before `attach` | submitter | gateway |
//! |---|---|---|---|
//! | `attach` | asks the host | fault | fault |
//! | `submit`, `probe`, `ask` | fault | event, one answer due | event, one answer due |
//! | `done` | fault | fault | event, if the delivery waits for it |
//!
//! After `attach` nothing is read until the host has answered.

mod deliver;
mod done;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

pub use deliver::DeliverError;

use crate::answers::{Answer, Attached, PeerRow, Refused, Submitted};
use crate::error::Fault;
use crate::frame::{Reply, Request};
use crate::message::Message;
use crate::output::{Output, encode};
use crate::reader::Reader;
use crate::requests::{Ask, Attach, Fate, Probe, Submit};
use crate::text::cut;
use crate::{
    Bounds, ERROR_OCTETS_MAX, LINE_OCTETS_MAX, NAME_OCTETS_MAX, TAG_OCTETS_MAX, VERSION, WINDOW_MAX,
};

/// What a client wants, for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client attaches: answer with [`Server::attached`] or [`Server::end`].
    Attach {
        /// The gateway; `None` for a submitter.
        name: Option<String>,
        /// Deliveries at once.
        window: u32,
    },
    /// A delivery has its results, one for each recipient in the order of the delivery.
    Done {
        /// The id of the delivery.
        id: String,
        /// The results.
        results: Vec<PlaceResult>,
        /// Whether the gateway submits the reports about deliveries itself.
        own_reports: bool,
    },
    /// A message: answer with [`Server::submitted`] or [`Server::refuse`].
    Submit {
        /// The tag.
        tag: String,
        /// The fields of a message; `None` for an APDU.
        message: Option<Box<Message>>,
        /// The APDU, text or content.
        octets: Bytes,
    },
    /// A probe: answer with [`Server::submitted`] or [`Server::refuse`].
    Probe(Box<Probe>),
    /// A question: answer with [`Server::answer_peers`] or [`Server::refuse`].
    Ask(Ask),
    /// The client broke the rules. A `refused` is in the output: write the output and close the connection.
    End(Fault),
}

/// The result for a recipient of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceResult {
    /// The place.
    pub place: u32,
    /// The end of the attempt.
    pub result: Fate,
    /// The enhanced status code, given or usual: `2.0.0`, `4.0.0`, `5.0.0`.
    pub status: String,
    /// The text of the gateway.
    pub said: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Before `attach`.
    Begin,
    /// The host decides about `attach`.
    Asked { gateway: bool, window: u32 },
    /// Attached; a submitter has no window.
    Open { window: usize },
    /// No frame is read any more.
    Ended,
}

/// The MTA's side of a connection.
#[derive(Debug)]
pub struct Server {
    bounds: Bounds,
    reader: Reader<Request>,
    state: State,
    /// The places of deliveries without an answer, by id.
    deliveries: BTreeMap<String, Vec<u32>>,
    /// Tags without an answer.
    tags: BTreeSet<String>,
    output: Output,
}

impl Server {
    /// The machine of a new connection.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            reader: Reader::new(bounds.octets_max),
            state: State::Begin,
            deliveries: BTreeMap::new(),
            tags: BTreeSet::new(),
            output: Output::default(),
        }
    }

    /// Takes octets of the client. A host gives octets only while [`Self::wants_input`], so that memory stays within the
    /// bounds and one read.
    pub fn receive(&mut self, octets: &[u8]) {
        if self.state != State::Ended {
            self.reader.receive(octets);
        }
    }

    /// Whether a further frame can be used now.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.may_read() && self.output.asked() <= self.bounds.output_max
    }

    /// The next event; `None` until there is more input, or an answer of the host.
    pub fn event(&mut self) -> Option<ServerEvent> {
        if !self.may_read() {
            return None;
        }
        let read = self.reader.next();
        let event = read.and_then(|read| {
            read.map(|(frame, octets)| self.take(frame, octets))
                .transpose()
        });
        match event {
            Ok(event) => event,
            Err(fault) => {
                self.end(&fault.to_string());
                Some(ServerEvent::End(fault))
            }
        }
    }

    /// Octets that have come of a frame that is not whole: its line is read, and other octets are coming.
    #[must_use]
    pub fn coming(&self) -> Option<usize> {
        self.reader.coming()
    }

    /// Gives up the octets of a frame that is not whole: those that have come are freed, and the others are dropped as they come. A submission is
    /// refused, and the connection goes on. Other kinds use no octets: their event is returned.
    pub fn give_up(&mut self, temporary: bool, error: &str) -> Option<ServerEvent> {
        let frame = self.reader.give_up()?;
        match self.take(frame, Bytes::new()) {
            Ok(ServerEvent::Submit { tag, .. }) => {
                self.refuse(&tag, temporary, error);
                None
            }
            Ok(event) => Some(event),
            Err(fault) => {
                self.end(&fault.to_string());
                Some(ServerEvent::End(fault))
            }
        }
    }

    /// The end of the client's octets: an error, if a frame is incomplete.
    ///
    /// # Errors
    /// [`Fault::Cut`].
    pub fn end_of_input(&self) -> Result<(), Fault> {
        match self.state {
            State::Ended => Ok(()),
            _ if self.reader.is_between_frames() => Ok(()),
            _ => Err(Fault::Cut),
        }
    }

    /// The next piece to write.
    pub fn output(&mut self) -> Option<Bytes> {
        self.output.take()
    }

    /// Agrees to an `attach`.
    pub fn attached(&mut self, mta: &str, domain: &str) {
        let State::Asked { gateway, window } = self.state else {
            return;
        };
        let window = if gateway { window } else { 0 };
        self.state = State::Open {
            window: usize::try_from(window).unwrap_or(0),
        };
        self.write(&Reply::Attached(Attached {
            version: VERSION,
            mta: mta.to_owned(),
            domain: domain.to_owned(),
            octets_max: self.bounds.octets_max,
            tags_max: u64::try_from(self.bounds.tags_max).unwrap_or(u64::MAX),
        }));
    }

    /// Refuses an `attach`, or ends an open connection: write the output, and close the connection.
    pub fn end(&mut self, error: &str) {
        if self.state == State::Ended {
            return;
        }
        self.state = State::Ended;
        self.write(&Reply::Refused(Refused {
            tag: None,
            temporary: false,
            error: cut(error, ERROR_OCTETS_MAX).to_owned(),
        }));
    }

    /// Whether the connection is to be closed after the output.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Deliveries that the client takes now.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.state {
            State::Open { window } => window.saturating_sub(self.deliveries.len()),
            _ => 0,
        }
    }

    /// The ids of deliveries without an answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.deliveries.keys().map(String::as_str)
    }

    /// Confirms a submission or a probe. A tag that waits for no answer is passed over.
    pub fn submitted(&mut self, tag: &str, identifier: &str, id: &str) {
        if self.answers(tag) {
            self.write(&Reply::Submitted(Submitted {
                tag: tag.to_owned(),
                identifier: identifier.to_owned(),
                id: id.to_owned(),
            }));
        }
    }

    /// Refuses a submission, a probe or a question; the connection goes on.
    pub fn refuse(&mut self, tag: &str, temporary: bool, error: &str) {
        if self.answers(tag) {
            self.write(&Reply::Refused(Refused {
                tag: Some(tag.to_owned()),
                temporary,
                error: cut(error, ERROR_OCTETS_MAX).to_owned(),
            }));
        }
    }

    /// Answers a question about peers, with as many of the rows as fit in a line; `more` says whether there are further
    /// rows behind these.
    pub fn answer_peers(&mut self, tag: &str, mut rows: Vec<PeerRow>, more: bool) {
        if !self.answers(tag) {
            return;
        }
        let given = rows.len();
        let mut octets = 0_usize;
        let fits = rows.iter().take_while(|row| {
            // A comma stands between rows, and a kilobyte is left for the rest of the line.
            octets = octets.saturating_add(encode(row).len());
            octets <= LINE_OCTETS_MAX.saturating_sub(1_024)
        });
        let fitting = fits.count();
        rows.truncate(fitting);
        self.write(&Reply::Answer(Answer {
            tag: tag.to_owned(),
            peers: Some(rows),
            more: more || fitting < given,
        }));
    }

    fn may_read(&self) -> bool {
        match self.state {
            State::Begin => true,
            State::Open { .. } => self.tags.len() < self.bounds.tags_max,
            State::Asked { .. } | State::Ended => false,
        }
    }

    /// Whether the tag waits for an answer, which it gets now.
    fn answers(&mut self, tag: &str) -> bool {
        self.state != State::Ended && self.tags.remove(tag)
    }

    fn write(&mut self, reply: &Reply) {
        self.output.answer(encode(reply));
    }

    fn take(&mut self, frame: Request, octets: Bytes) -> Result<ServerEvent, Fault> {
        let expected = match self.state {
            State::Open { window: 0 } => "submit, probe or ask",
            State::Open { .. } => "done, submit, probe or ask",
            _ => "attach",
        };
        let found = frame.kind();
        let turn = Fault::Turn { expected, found };
        match (frame, &self.state) {
            (Request::Attach(attach), State::Begin) => self.attach(attach),
            (Request::Done(done), State::Open { window: 1.. }) => self.done(done),
            (Request::Submit(submit), State::Open { .. }) => self.submit(submit, octets),
            (Request::Probe(probe), State::Open { .. }) => {
                self.tag("probe", &probe.tag)?;
                Ok(ServerEvent::Probe(Box::new(probe)))
            }
            (Request::Ask(ask), State::Open { .. }) => {
                self.tag("ask", &ask.tag)?;
                Ok(ServerEvent::Ask(ask))
            }
            _ => Err(turn),
        }
    }

    fn attach(&mut self, attach: Attach) -> Result<ServerEvent, Fault> {
        let Attach {
            version,
            name,
            window,
        } = attach;
        if version != VERSION {
            return Err(Fault::Version {
                expected: VERSION,
                found: version,
            });
        }
        if !(1..=WINDOW_MAX).contains(&window) {
            return Err(Fault::Window(window));
        }
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            let what = format!(
                "expected a name of 1 to {NAME_OCTETS_MAX} octets; found {:?}",
                cut(name, NAME_OCTETS_MAX)
            );
            return Err(value("attach", what));
        }
        let gateway = name.is_some();
        self.state = State::Asked { gateway, window };
        Ok(ServerEvent::Attach { name, window })
    }

    fn submit(&mut self, submit: Submit, octets: Bytes) -> Result<ServerEvent, Fault> {
        self.tag("submit", &submit.tag)?;
        Ok(ServerEvent::Submit {
            tag: submit.tag,
            message: submit.message.map(Box::new),
            octets,
        })
    }

    /// Keeps a tag until its answer.
    fn tag(&mut self, kind: &str, tag: &str) -> Result<(), Fault> {
        if !(1..=TAG_OCTETS_MAX).contains(&tag.len()) {
            let found = tag.len();
            let what = format!("expected a tag of 1 to {TAG_OCTETS_MAX} octets; found {found}");
            return Err(value(kind, what));
        }
        if !self.tags.insert(tag.to_owned()) {
            let what = format!("expected a new tag; found {tag:?}, which waits for its answer");
            return Err(value(kind, what));
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_OCTETS_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

fn value(kind: &str, what: String) -> Fault {
    Fault::Value {
        kind: kind.to_owned(),
        what,
    }
}
