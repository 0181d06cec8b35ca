//! The filters of the settings.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use vere_judge::Verdict as Judged;
use vere_milter::Session;
use vere_settings::{FilterSettings, FilteredMail, Settings};

use crate::asking::Asking;
use crate::circuit::Circuit;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::findings::{Answer, Findings};
use crate::loading::{FiltersError, terms};
use crate::outcome::{Asked, Outcome, Verdict};
use crate::room::{Room, octets_max};
use crate::rspamd::Class;

/// The filters of the settings, in order.
///
/// A question holds a reference to the message, and the changed message, until the last filter has answered or its time is over: at most the sum of all
/// timeouts. See [`ASKED_MAX`](crate::ASKED_MAX) and [`octets_max`] for the bounds of all questions together.
#[derive(Debug)]
pub struct Filters {
    members: Vec<Member>,
    room: Arc<Room>,
    /// Whether a virus is refused by the judge whatever else is known.
    virus_decides: bool,
}

/// Whose message filters are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mail {
    /// A message of a stranger: the judge decides.
    Received,
    /// A message of an account, a local program or a client that may relay: the actions of the filters decide.
    Submitted,
}

/// A filter, and what its answers mean.
#[derive(Debug)]
struct Member {
    name: String,
    mail: FilteredMail,
    defers_unavailable: bool,
    /// Whether the judge refuses what the filter refuses.
    refusal_decides: bool,
    core: Arc<Core>,
}

/// What lasts over a reload of settings.
#[derive(Debug)]
struct Core {
    filter: Filter,
    learner: Option<Filter>,
    circuit: Circuit,
}

/// The end of teaching a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// The name of the filter.
    pub filter: String,
    /// Why the filter has not learned.
    pub result: Result<(), Failure>,
}

impl Filters {
    /// Makes the filters of settings, without a connection yet.
    ///
    /// # Errors
    /// A file with a password cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, FiltersError> {
        Self::of(settings, None)
    }

    /// Makes the filters of other settings. A filter whose name and terms are the same keeps its recent failures.
    ///
    /// # Errors
    /// As [`Filters::new`]; the filters so far remain usable.
    pub fn renewed(&self, settings: &Settings) -> Result<Self, FiltersError> {
        Self::of(settings, Some(self))
    }

    fn of(settings: &Settings, before: Option<&Self>) -> Result<Self, FiltersError> {
        let judging = settings.judging.as_ref();
        let follows = |name: &str| {
            let mut filters = judging.iter().flat_map(|judging| &judging.filters);
            filters.any(|filter| filter.name == name && filter.follows_action)
        };
        let member = |filter: &FilterSettings| {
            let known = before.and_then(|before| before.member(&filter.name));
            Ok(Member {
                name: filter.name.clone(),
                mail: filter.mail,
                defers_unavailable: filter.defers_unavailable,
                refusal_decides: follows(&filter.name),
                core: core(filter, known)?,
            })
        };
        let members: Result<_, FiltersError> = settings.filters.iter().map(member).collect();
        let octets_max = octets_max(settings);
        let room = before.map(|before| &before.room);
        let room = room.filter(|room| room.octets_max() == octets_max);
        Ok(Self {
            members: members?,
            room: room.map_or_else(|| Arc::new(Room::new(octets_max)), Arc::clone),
            virus_decides: judging.is_none_or(|judging| judging.virus == Judged::Reject),
        })
    }

    /// Whether there is no filter for this mail.
    #[must_use]
    pub fn is_empty(&self, mail: Mail) -> bool {
        !self.members.iter().any(|member| member.is_for(mail))
    }

    /// Returns the names of the filters, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// Asks the filters for this mail in order. Each sees the message and the envelope as those before have changed them.
    ///
    /// Further filters are not asked where nothing can come of them: after an answer by which the judge refuses the message (a virus with
    /// `judging.virus = "reject"`, a refusal by a filter with `action = "follow"`), after a refusal of a submitted message, and after a filter without an
    /// answer whose settings defer the message.
    pub async fn ask(&self, mail: Mail, message: &Bytes, session: &Session<'_>) -> Findings {
        let mut asking = Asking::new(message, session);
        if self.is_empty(mail) {
            return asking.end();
        }
        let place = self.room.enter(message.len()).await;
        for member in self.members.iter().filter(|member| member.is_for(mail)) {
            let begun = Instant::now();
            let asked = match member.skips(asking.message()) {
                Some(skipped) => skipped,
                None if place.is_none() => Asked::Unavailable(Failure::Full),
                None => member.ask(&mut asking).await,
            };
            let is_end = self.ends(mail, member, &asked);
            let answer = Answer {
                filter: member.name.clone(),
                asked,
                took: begun.elapsed(),
            };
            asking.note(answer, member.defers_unavailable);
            if is_end {
                break;
            }
        }
        asking.end()
    }

    /// Teaches a filter, or all of them that can be taught, that a message is spam or not. Returns the end for each; nothing where there is no filter of the
    /// name, or none to teach.
    pub async fn learn(&self, name: Option<&str>, message: &Bytes, class: Class) -> Vec<Learned> {
        let mut learned = Vec::new();
        for member in &self.members {
            let result = match (name, &member.core.learner) {
                (Some(name), _) if name != member.name => continue,
                (None, None) => continue,
                (_, Some(learner)) => learner.learn(message, class).await,
                (Some(_), None) => Err(Failure::NotTaught),
            };
            learned.push(Learned {
                filter: member.name.clone(),
                result,
            });
        }
        learned
    }

    /// Whether no further answer can change what becomes of the message.
    fn ends(&self, mail: Mail, member: &Member, asked: &Asked) -> bool {
        match asked {
            Asked::Answered(Outcome { virus: Some(_), .. }) if self.virus_decides => true,
            Asked::Answered(Outcome { verdict, virus, .. }) => {
                let is_refused = matches!(verdict, Verdict::Reject(_));
                is_refused
                    && match mail {
                        Mail::Received => member.refusal_decides,
                        Mail::Submitted => virus.is_none(),
                    }
            }
            Asked::Unavailable(_) => member.defers_unavailable,
            Asked::Skipped { .. } => false,
        }
    }

    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Member {
    fn is_for(&self, mail: Mail) -> bool {
        match self.mail {
            FilteredMail::All => true,
            FilteredMail::Received => mail == Mail::Received,
            FilteredMail::Submitted => mail == Mail::Submitted,
        }
    }

    fn skips(&self, message: &Bytes) -> Option<Asked> {
        let size_max = self.core.filter.terms().size_max;
        (message.len() > size_max).then_some(Asked::Skipped {
            octets: message.len(),
            size_max,
        })
    }

    /// Asks unless the filter is left alone, and applies its changes.
    async fn ask(&self, asking: &mut Asking<'_>) -> Asked {
        let Some(attempt) = self.core.circuit.begin() else {
            return Asked::Unavailable(Failure::Resting);
        };
        let asked = asking.ask(&self.core.filter).await;
        let failure = match &asked {
            Asked::Unavailable(failure) => Some(failure),
            Asked::Answered(_) | Asked::Skipped { .. } => None,
        };
        // A filter with too much to do, or with an answer that cannot be used, is alive.
        attempt.ends(failure.is_some_and(Failure::is_of_filter));
        asked
    }
}

/// The filter of settings: the known one if its terms are the same.
fn core(settings: &FilterSettings, known: Option<&Member>) -> Result<Arc<Core>, FiltersError> {
    let (asked, taught) = terms(settings)?;
    let same = |core: &&Arc<Core>| {
        let learner = core.learner.as_ref().map(Filter::terms);
        *core.filter.terms() == asked && learner == taught.as_ref()
    };
    if let Some(core) = known.map(|member| &member.core).filter(same) {
        return Ok(Arc::clone(core));
    }
    Ok(Arc::new(Core {
        filter: Filter::new(asked),
        learner: taught.map(Filter::new),
        circuit: Circuit::default(),
    }))
}
