//! The side of a gateway or a command.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::answers::{Answer, Attached, Deliver, Refused, Submitted};
use crate::error::{Fault, Misuse};
use crate::frame::{Reply, Request};
use crate::message::Message;
use crate::output::{Output, encode};
use crate::reader::Reader;
use crate::requests::{Ask, Attach, Done, Probe, Submit};
use crate::{Bounds, LINE_OCTETS_MAX, TAG_OCTETS_MAX, VERSION};

/// What the MTA says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// The MTA agrees to `attach`.
    Attached(Attached),
    /// A message, report or probe: answer with [`Client::done`].
    Deliver {
        /// The facts.
        deliver: Box<Deliver>,
        /// The APDU.
        octets: Bytes,
    },
    /// A submission is safe.
    Submitted(Submitted),
    /// A submission or question is refused.
    Refused {
        /// The tag.
        tag: String,
        /// Whether the same may be accepted later.
        temporary: bool,
        /// The reason.
        error: String,
    },
    /// The answer to a question.
    Answer(Answer),
    /// The MTA ended the connection ([`Fault::Refused`]) or broke the rules. Nothing follows.
    End(Fault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    /// `attach` is written; the client may write further frames.
    Asked {
        window: usize,
    },
    /// Attached. A submitter has no window.
    Open {
        window: usize,
    },
    Ended,
}

/// The side of a gateway or a command.
#[derive(Debug)]
pub struct Client {
    reader: Reader<Reply>,
    state: State,
    /// Deliveries without an answer.
    deliveries: BTreeSet<String>,
    /// Tags without an answer.
    tags: BTreeSet<String>,
    output: Output,
}

impl Client {
    /// The machine of a new connection; of the bounds, `octets_max` counts.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            reader: Reader::new(bounds.octets_max),
            state: State::Begin,
            deliveries: BTreeSet::new(),
            tags: BTreeSet::new(),
            output: Output::default(),
        }
    }

    /// Takes octets of the server.
    pub fn receive(&mut self, octets: &[u8]) {
        if self.state != State::Ended {
            self.reader.receive(octets);
        }
    }

    /// The next event; `None` until there is more input.
    pub fn event(&mut self) -> Option<ClientEvent> {
        if self.state == State::Ended {
            return None;
        }
        let read = self.reader.next();
        let event = read.and_then(|read| {
            read.map(|(frame, octets)| self.take(frame, octets))
                .transpose()
        });
        event.unwrap_or_else(|fault| {
            self.state = State::Ended;
            Some(ClientEvent::End(fault))
        })
    }

    /// The next piece to write.
    pub fn output(&mut self) -> Option<Bytes> {
        self.output.take()
    }

    /// Attaches as a gateway with a name, or as a submitter. Further frames may be written before the answer.
    ///
    /// # Errors
    /// [`Misuse::Attach`] at a second call.
    pub fn attach(&mut self, name: Option<&str>, window: u32) -> Result<(), Misuse> {
        if self.state != State::Begin {
            return Err(Misuse::Attach);
        }
        self.write(&Request::Attach(Attach {
            version: VERSION,
            name: name.map(str::to_owned),
            window,
        }))?;
        let window = name.map_or(0, |_| usize::try_from(window).unwrap_or(0));
        self.state = State::Asked { window };
        Ok(())
    }

    /// Submits an APDU, or with a message its text or content.
    ///
    /// # Errors
    /// [`Misuse`]; nothing is written.
    pub fn submit(
        &mut self,
        tag: &str,
        message: Option<Message>,
        octets: Bytes,
    ) -> Result<(), Misuse> {
        let submit = Submit {
            tag: tag.to_owned(),
            message,
            octets: u64::try_from(octets.len()).unwrap_or(u64::MAX),
        };
        self.tagged(tag, &Request::Submit(submit))?;
        self.output.piece(octets);
        Ok(())
    }

    /// Submits a probe.
    ///
    /// # Errors
    /// [`Misuse`]; nothing is written.
    pub fn probe(&mut self, probe: Probe) -> Result<(), Misuse> {
        let tag = probe.tag.clone();
        self.tagged(&tag, &Request::Probe(probe))
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Misuse`]; nothing is written.
    pub fn ask(&mut self, ask: Ask) -> Result<(), Misuse> {
        let tag = ask.tag.clone();
        self.tagged(&tag, &Request::Ask(ask))
    }

    /// Answers a delivery.
    ///
    /// # Errors
    /// [`Misuse`]; nothing is written.
    pub fn done(&mut self, done: Done) -> Result<(), Misuse> {
        self.may_write()?;
        if !self.deliveries.contains(&done.id) {
            return Err(Misuse::Delivery);
        }
        let id = done.id.clone();
        self.write(&Request::Done(done))?;
        self.deliveries.remove(&id);
        Ok(())
    }

    fn may_write(&self) -> Result<(), Misuse> {
        match self.state {
            State::Begin => Err(Misuse::Attach),
            State::Ended => Err(Misuse::Ended),
            State::Asked { .. } | State::Open { .. } => Ok(()),
        }
    }

    fn tagged(&mut self, tag: &str, request: &Request) -> Result<(), Misuse> {
        self.may_write()?;
        if !(1..=TAG_OCTETS_MAX).contains(&tag.len()) || self.tags.contains(tag) {
            return Err(Misuse::Tag);
        }
        self.write(request)?;
        self.tags.insert(tag.to_owned());
        Ok(())
    }

    fn write(&mut self, request: &Request) -> Result<(), Misuse> {
        let line = encode(request);
        if line.len() > LINE_OCTETS_MAX {
            return Err(Misuse::LineTooLong);
        }
        self.output.piece(line.into());
        Ok(())
    }

    fn take(&mut self, frame: Reply, octets: Bytes) -> Result<ClientEvent, Fault> {
        let found = frame.kind();
        let turn = |expected| Err(Fault::Turn { expected, found });
        match (frame, self.state) {
            (
                Reply::Refused(Refused {
                    tag: None, error, ..
                }),
                State::Asked { .. } | State::Open { .. },
            ) => Err(Fault::Refused(error)),
            (Reply::Attached(attached), State::Asked { window }) => {
                if attached.version != VERSION {
                    return Err(Fault::Version {
                        expected: VERSION,
                        found: attached.version,
                    });
                }
                self.state = State::Open { window };
                Ok(ClientEvent::Attached(attached))
            }
            (_, State::Begin | State::Ended) => turn("nothing before attach"),
            (_, State::Asked { .. }) => turn("attached or refused"),
            (Reply::Attached(_), _) => turn("deliver, submitted, answer or refused"),
            (Reply::Deliver(deliver), State::Open { window }) => {
                self.delivery(deliver, octets, window)
            }
            (Reply::Submitted(submitted), _) => {
                self.answered("submitted", &submitted.tag)?;
                Ok(ClientEvent::Submitted(submitted))
            }
            (Reply::Answer(answer), _) => {
                self.answered("answer", &answer.tag)?;
                Ok(ClientEvent::Answer(answer))
            }
            (Reply::Refused(refused), _) => {
                let tag = refused.tag.unwrap_or_default();
                self.answered("refused", &tag)?;
                Ok(ClientEvent::Refused {
                    tag,
                    temporary: refused.temporary,
                    error: refused.error,
                })
            }
        }
    }

    fn delivery(
        &mut self,
        deliver: Deliver,
        octets: Bytes,
        window: usize,
    ) -> Result<ClientEvent, Fault> {
        let what = if self.deliveries.len() >= window {
            "expected at most as many deliveries as the window has"
        } else if !self.deliveries.insert(deliver.id.clone()) {
            "expected a new id"
        } else {
            let deliver = Box::new(deliver);
            return Ok(ClientEvent::Deliver { deliver, octets });
        };
        Err(Fault::Value {
            kind: "deliver".to_owned(),
            what: what.to_owned(),
        })
    }

    fn answered(&mut self, kind: &str, tag: &str) -> Result<(), Fault> {
        if self.tags.remove(tag) {
            return Ok(());
        }
        Err(Fault::Value {
            kind: kind.to_owned(),
            what: "expected a tag without an answer".to_owned(),
        })
    }
}
