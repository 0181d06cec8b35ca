//! Findings of lists about a client.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use vere_handoff::question::{Listing, ListsAnswer};

/// The entry of a client on a list, or its absence.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name of the list for people.
    pub name: Rc<str>,
    /// The zone of the list.
    pub zone: Rc<str>,
    /// The weight of an entry.
    pub weight: i16,
    /// What the list says.
    pub outcome: Outcome,
    /// Where the answer is from.
    pub origin: Origin,
    /// How long the answer took.
    pub took: Duration,
}

/// What a list says about a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The client is listed.
    Listed {
        /// The codes that count; absent where the map suffices.
        codes: Vec<Ipv4Addr>,
        /// Whether a map says so.
        by_map: bool,
    },
    /// The client is not listed, or by codes that do not count.
    Unlisted {
        /// Whether a map says so.
        by_map: bool,
    },
    /// The list did not answer, or with an error.
    Failed,
    /// The list refuses to answer this resolver, by this code.
    Refused(Ipv4Addr),
    /// The list was not asked: it rests after failures, or has too many queries under way.
    Skipped,
    /// The answer did not come by the deadline.
    Late,
    /// The list lists 127.0.0.1, and so everybody (RFC 5782 section 5): it was not asked, or its entry does not count.
    ListsEverybody,
    /// The list has an entry, and has not answered a check yet, so that the entry does not count.
    Unchecked,
}

impl Outcome {
    pub(crate) const fn of_failure(origin: Origin) -> Self {
        match origin {
            Origin::NotAsked => Self::Skipped,
            _ => Self::Failed,
        }
    }

    /// Returns the outcome in words for people.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Listed { .. } => "listed",
            Self::Unlisted { .. } => "not listed",
            Self::Failed => "failed",
            Self::Refused(_) => "refuses to answer",
            Self::Skipped => "not asked",
            Self::Late => "too late",
            Self::ListsEverybody => "left out: lists 127.0.0.1, and so everybody",
            Self::Unchecked => "left out: listed, but the check of the list got no answer",
        }
    }

    /// Whether the list says that the client is listed.
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        matches!(self, Self::Listed { .. })
    }

    /// Whether the list has answered.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Listed { .. } | Self::Unlisted { .. })
    }
}

/// Where an answer is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An earlier query.
    Kept,
    /// A query that another question had begun.
    Shared,
    /// A query of its own.
    Asked,
    /// Nowhere: the list was not asked.
    NotAsked,
}

/// What all lists say.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The lists in the order of the settings; absent for a client that is not asked about.
    pub entries: Vec<Entry>,
    /// Sum of the weights.
    pub sum: i32,
    /// The place of the list with the largest weight against the client.
    pub worst: Option<usize>,
    /// Whether the sum reaches the threshold.
    pub is_listed: bool,
    /// Whether every list has answered.
    pub is_complete: bool,
    /// The text of the list with the largest weight, fit for a reply.
    pub text: String,
}

impl Findings {
    pub(crate) const fn nobody_asked(is_complete: bool) -> Self {
        Self {
            entries: Vec::new(),
            sum: 0,
            worst: None,
            is_listed: false,
            is_complete,
            text: String::new(),
        }
    }

    pub(crate) fn new(entries: Vec<Entry>, threshold: i32) -> Self {
        let listed = || entries.iter().filter(|entry| entry.outcome.is_listed());
        let sum = listed().fold(0, |sum: i32, entry| sum.saturating_add(entry.weight.into()));
        // The first of the heaviest, as the screen has it.
        let heaviest = listed().map(|entry| entry.weight).max();
        let heaviest = heaviest.filter(|weight| *weight > 0);
        let worst = entries
            .iter()
            .position(|entry| entry.outcome.is_listed() && Some(entry.weight) == heaviest);
        Self {
            sum,
            worst,
            is_listed: sum >= threshold && worst.is_some(),
            is_complete: entries.iter().all(|entry| entry.outcome.is_answer()),
            text: String::new(),
            entries,
        }
    }

    /// The entries with their weights, for the log: `bl.example=2 good.example=-1`.
    #[must_use]
    pub fn listings(&self) -> String {
        let listed = self
            .entries
            .iter()
            .filter(|entry| entry.outcome.is_listed());
        let listed = listed.map(|entry| format!("{}={}", entry.name, entry.weight));
        listed.collect::<Vec<_>>().join(" ")
    }

    /// The answer to the front.
    #[must_use]
    pub fn answer(&self) -> ListsAnswer {
        let numbered = (0..=u8::MAX).zip(&self.entries);
        let listed = numbered.filter(|(_, entry)| entry.outcome.is_listed());
        let listings = listed.map(|(list, entry)| Listing {
            list,
            weight: entry.weight,
        });
        let worst = self.worst.and_then(|worst| self.entries.get(worst));
        let name = worst.map(|entry| &*entry.name).unwrap_or_default();
        ListsAnswer::new(self.is_complete, listings.collect(), name, &self.text)
    }
}
