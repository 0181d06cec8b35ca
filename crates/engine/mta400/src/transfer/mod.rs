//! One protocol data unit through the MTA (X.411 clause 14.3): what arrived, and what goes where.
//!
//! The order of the decisions is that of docs/internals/mta400.md: [`arrival`] for the message as a whole, [`routing`] and
//! [`redirection`] for each recipient, [`split`] for the parts, [`passage`] for reports of others.

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

/// The MTA: its own names and users, its peers, its routes.
#[derive(Debug, Clone)]
pub struct Mta {
    /// The MTA itself.
    pub site: Site,
    /// The other MTAs.
    pub peers: Peers,
    /// The routes.
    pub routes: Routes,
}

/// Where a protocol data unit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// This MTA: a submission, or a report of its own.
    Local,
    /// The gateway with this name.
    Gateway(&'a str),
    /// The peer with this name.
    Peer(&'a str),
}

/// The arrival of a protocol data unit.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Where it comes from.
    pub source: Source<'a>,
    /// When.
    pub at: Time,
    /// A text that no other arrival has, at most 32 characters: the local identifier of a report about it.
    pub id: &'a str,
}

/// What happens to a protocol data unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The unit to store: trace added, alternate recipients in place. Responsibility is on for recipients of `onward`.
    pub apdu: Apdu,
    /// The parts, one for each destination.
    pub onward: Vec<Onward>,
    /// The report about the recipients that this MTA ends; a unit of its own, from [`Source::Local`].
    pub report: Option<Box<Report>>,
    /// For the audit log.
    pub facts: Facts,
}

/// A part: the recipients that go to one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onward {
    /// The destination.
    pub destination: Destination,
    /// The places of the recipients in the envelope, from 0. Recipient numbers do not serve: members of a distribution list
    /// share one.
    pub recipients: Vec<u32>,
    /// The time until which the part waits (deferred delivery).
    pub not_before: Option<Time>,
    /// The time at which attempts end.
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

/// Why the responsibility for a protocol data unit is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The settings have no such peer any more.
    #[error("expected a peer of the settings; found {0}")]
    UnknownPeer(String),
    /// No recipient at all.
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
    /// [`Refusal`]: the unit stays with the sender.
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

    /// Whether the sender is an MTA of the domain of this one.
    fn is_inside(&self, from: Sender<'_>) -> bool {
        from.terms
            .is_some_and(|terms| self.site.is_own(&terms.domain))
    }
}

/// An arrival, and what is agreed with the sender.
#[derive(Debug, Clone, Copy)]
struct Sender<'a> {
    arrival: Arrival<'a>,
    terms: Option<&'a Terms>,
}
