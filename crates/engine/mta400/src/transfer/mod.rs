//! Decisions about a protocol data unit (X.411 clause 14.3).
//!
//! Reading order: [`arrival`] for the message as a whole, [`routing`], [`step`] and [`redirection`] for each
//! recipient, [`split`] for the parts, [`passage`] for reports of other MTAs. The page docs/internals/mta400.md lists
//! the decisions in order.

mod arrival;
mod facts;
mod legacy;
mod passage;
mod redirection;
mod routing;
mod split;
mod step;
mod trace;

use vere_x400::{Apdu, Priority, Report, Time};

pub use facts::{Decision, Facts, RecipientFact, UnitKind};
pub(crate) use legacy::downgraded;
pub(crate) use trace::{leave_domain, mark_redirected};

use crate::peers::Terms;
use crate::subject::Subject;
use crate::{Destination, Peers, Routes, Site};

/// The settings of an MTA: names and users, peers, routes.
#[derive(Debug, Clone)]
pub struct Mta {
    /// Names, limits, users.
    pub site: Site,
    /// The peers.
    pub peers: Peers,
    /// The routes.
    pub routes: Routes,
}

/// The origin of a protocol data unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A submission or a report of this MTA.
    Local,
    /// The gateway with this name.
    Gateway(&'a str),
    /// The peer with this name.
    Peer(&'a str),
}

/// The arrival of a protocol data unit.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The origin.
    pub source: Source<'a>,
    /// The time.
    pub at: Time,
    /// A unique text of at most 32 characters, the local identifier of a report about the unit.
    pub id: &'a str,
}

/// The decisions about a protocol data unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The unit to store, with trace and alternate recipients. The recipients of `onward` have the responsibility bit.
    pub apdu: Apdu,
    /// The parts, one for each destination.
    pub onward: Vec<Onward>,
    /// The report about all recipients that end here; pass the report to [`Mta::transfer`] from [`Source::Local`].
    pub report: Option<Box<Report>>,
    /// For the audit log.
    pub facts: Facts,
}

/// A part: recipients with a common destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onward {
    /// The destination.
    pub destination: Destination,
    /// The places of the recipients in the envelope, from 0. Members of a distribution list share a recipient number,
    /// so numbers do not identify recipients.
    pub recipients: Vec<u32>,
    /// The time of a deferred delivery.
    pub not_before: Option<Time>,
    /// The end of attempts.
    pub expires: Time,
    /// The grade of delivery.
    pub priority: Priority,
}

impl Onward {
    /// The grade as a number for queues (RFC 6710 with the levels of MIXER): 4 urgent, 0 normal, -4 non-urgent.
    #[must_use]
    pub const fn mt_priority(&self) -> i8 {
        match self.priority {
            Priority::Urgent => 4,
            Priority::NonUrgent => -4,
            Priority::Normal | Priority::Other(_) => 0,
        }
    }
}

/// The reason to leave the responsibility with the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A peer outside the settings.
    #[error("expected a peer of the settings; found {0}")]
    UnknownPeer(String),
    /// No recipients.
    #[error("expected a recipient; found none")]
    NoRecipients,
    /// Too many recipients.
    #[error("expected at most {0} recipients; found {1}")]
    TooManyRecipients(usize, usize),
}

impl Mta {
    /// Decides about a protocol data unit.
    ///
    /// # Errors
    /// [`Refusal`]: the sender keeps the responsibility.
    pub fn transfer(&self, apdu: Apdu, arrival: Arrival<'_>) -> Result<Outcome, Refusal> {
        let from = self.sender(arrival)?;
        match Subject::of(apdu) {
            Ok(subject) => self.transfer_subject(subject, from),
            Err(report) => Ok(self.transfer_report(report, from)),
        }
    }

    fn sender<'a>(&'a self, arrival: Arrival<'a>) -> Result<Sender<'a>, Refusal> {
        let terms = match arrival.source {
            Source::Local | Source::Gateway(_) => None,
            Source::Peer(name) => Some(
                self.peers
                    .get(name)
                    .ok_or_else(|| Refusal::UnknownPeer(name.to_owned()))?,
            ),
        };
        Ok(Sender { arrival, terms })
    }

    fn transfer_subject(&self, mut subject: Subject, from: Sender<'_>) -> Result<Outcome, Refusal> {
        let (found, most) = (
            subject.envelope.per_recipient_fields.len(),
            self.site.recipients_max,
        );
        if found == 0 {
            return Err(Refusal::NoRecipients);
        }
        if found > most {
            return Err(Refusal::TooManyRecipients(most, found));
        }
        let facts = Facts::of(&subject);
        let arrived = self.arrive(&mut subject, from);
        let decisions = self.route(&mut subject, from, &arrived);
        Ok(self.split(subject, from, &arrived, decisions, facts))
    }

    /// Whether the sender is an MTA of the local domain.
    fn is_inside(&self, from: Sender<'_>) -> bool {
        from.terms
            .is_some_and(|terms| self.site.is_own(&terms.domain))
    }
}

/// An arrival, and the terms of the sender.
#[derive(Debug, Clone, Copy)]
struct Sender<'a> {
    arrival: Arrival<'a>,
    terms: Option<&'a Terms>,
}
