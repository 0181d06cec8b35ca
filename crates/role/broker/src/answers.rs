//! The answers: at once from the directory and the routes of the settings, later from next hops and the DNS.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use vere_handoff::question::{Address, Answer, Frame, Question, Reader, WireError};
use vere_lists::Lists;
use vere_net::resolver::Resolver;
use vere_routing::{Found, Router};
use vere_settings::Settings;
use vere_smtp::address::ForwardPath;
use vere_smtp::refusal::Refusal;

use super::call_ahead::{CallAhead, Later, Places};
use super::error::BrokerError;
use super::known::{Known, Stranger, Verdict};
use super::listed;
use super::lookups::{Lookup, Lookups};

/// Answers questions. All tasks run on one thread, so no locks are needed.
#[derive(Debug)]
pub(super) struct Answers {
    router: Router,
    settings: RefCell<Arc<Settings>>,
    known: RefCell<Known>,
    pub(super) lookups: Rc<Lookups>,
    call_ahead: CallAhead,
    pub(super) lists: Option<Lists>,
}

impl Answers {
    /// # Errors
    /// When what connections to next hops are made with cannot be read.
    pub(super) fn new(
        router: Router,
        settings: Arc<Settings>,
        resolver: Resolver,
    ) -> Result<Self, BrokerError> {
        Ok(Self {
            router,
            call_ahead: CallAhead::new(&settings, &resolver)?,
            lists: listed::lists(&settings)?,
            settings: RefCell::new(settings),
            known: RefCell::default(),
            lookups: Rc::new(Lookups::new(resolver)),
        })
    }

    /// Applies other settings, from the next question on.
    ///
    /// # Errors
    /// When names cannot be looked up or next hops not asked by the settings; then the settings before stay.
    pub(super) fn set_settings(&self, settings: Settings) -> Result<(), BrokerError> {
        let resolver = vere_outbound::resolver(&settings)?;
        self.call_ahead.set_settings(&settings, &resolver)?;
        if let (Some(lists), Some(front)) = (&self.lists, &settings.front) {
            lists.set_settings(&settings, &front.lists)?;
        }
        self.lookups.set_resolver(resolver);
        self.settings.replace(Arc::new(settings));
        self.known.borrow_mut().forget();
        Ok(())
    }

    /// Appends the answers that are known at once to all whole questions of a reader, and adds the others to `pending`.
    ///
    /// # Errors
    /// [`WireError`] for a malformed frame, behind which nothing is read: the connection is unusable.
    pub(super) fn batch(
        &self,
        (reader, places): (&mut Reader, &Places),
        out: &mut Vec<u8>,
        pending: &mut Vec<Later>,
    ) -> Result<(), WireError> {
        // Answers see every change of the directory that was reported as done before the questions were read.
        let revision = self.router.directory().store().revision();
        self.known.borrow_mut().follow(revision.ok());
        while let Some(frame) = reader.frame()? {
            match self.answer(&frame, places)? {
                Ok(answer) => answer.encode(frame.id, out),
                Err(later) => pending.push(later),
            }
        }
        Ok(())
    }

    fn answer(
        &self,
        frame: &Frame<'_>,
        places: &Places,
    ) -> Result<Result<Answer, Later>, WireError> {
        match Question::decode(frame) {
            Ok(Question::Recipient {
                address,
                client,
                may_relay,
            }) => Ok(match may_relay {
                true => Ok(self.recipient(address).relaying),
                false => self.recipient_of_stranger(frame.id, address, (client, places)),
            }),
            Ok(Question::Spf(sender)) => Ok(self.look_up(frame.id, sender.into())),
            Ok(Question::Resolve { client, name, kind }) => {
                Ok(self.look_up(frame.id, (client, name, kind).into()))
            }
            Ok(Question::Figures) => Ok(Ok(Answer::Figures(self.call_ahead.figures()))),
            Ok(
                question @ (Question::Lists(_) | Question::ListFigures(_) | Question::Keeping(_)),
            ) => Ok(listed::answer(self.lists.as_ref(), frame.id, question)),
            Err(WireError::Kind(kind)) => {
                tracing::debug!(kind, "question of an unknown kind");
                Ok(Ok(Answer::Unknown))
            }
            Err(error) => Err(error),
        }
    }

    fn look_up(&self, id: u64, lookup: Lookup) -> Result<Answer, Later> {
        let asked = self.lookups.ask(id, lookup);
        asked.map_err(|pending| -> Later { Box::pin(Rc::clone(&self.lookups).answer(*pending)) })
    }

    fn recipient_of_stranger(
        &self,
        id: u64,
        address: Address<'_>,
        asker: (IpAddr, &Places),
    ) -> Result<Answer, Later> {
        match self.recipient(address).stranger {
            Stranger::Told(answer) => Ok(answer),
            Stranger::NextHop(asked) => self.call_ahead.ask(id, (&asked.0, &asked.1), asker),
        }
    }

    fn recipient(&self, address: Address<'_>) -> Verdict {
        let mut known = self.known.borrow_mut();
        if let Some(verdict) = known.find(address.as_str()) {
            return verdict;
        }
        let settings = self.settings.borrow();
        let found = path(address).and_then(|path| self.router.find(&settings, &path));
        let answer = |may_relay| {
            let found = found.as_ref().map_err(Refusal::clone);
            match found.and_then(|found| found.permit(may_relay)) {
                Ok(()) => Answer::Accepted,
                Err(refusal) => refused(&refusal),
            }
        };
        let next_hop = found.as_ref().ok().and_then(Found::asks_next_hop);
        let verdict = Verdict {
            stranger: match next_hop {
                Some((place, address)) => {
                    Stranger::NextHop(Rc::new((place.clone(), address.into())))
                }
                None => Stranger::Told(answer(false)),
            },
            relaying: answer(true),
        };
        // What fails now may succeed with the next question.
        let is_lasting = !matches!(&found, Err(refusal) if !refusal.is_permanent());
        if is_lasting {
            known.keep(address.as_str(), verdict.clone());
        }
        verdict
    }
}

/// Parses an address as the client has done before the question; the fault of a client that has not is not the sender's.
fn path(address: Address<'_>) -> Result<ForwardPath, Refusal> {
    ForwardPath::parse(&format!("<{}>", address.as_str())).map_err(|error| {
        tracing::debug!(%error, "question about a malformed address");
        Refusal::LocalError
    })
}

/// A number that nobody knows stands for a local error, and so does a refusal without a number.
fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.number().unwrap_or_default())
}
