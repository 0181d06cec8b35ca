//! The decisions of an MTA of X.400 about a message, a probe or a report (X.411 clause 14).
//!
//! A unit arrives from a peer, a gateway or a local user. [`Mta::transfer`] splits the unit into parts by
//! destination, and writes the report about recipients that end here. The queues keep, schedule and try the parts;
//! [`Mta::outgoing`] makes the unit for an attempt, and [`Site::report`] writes the report about the result. The engine
//! has no clock, sockets or files: times, identifiers and facts about connections are arguments.
//!
//! Reading order: [`Site`], [`Peers`] and [`Routes`] (settings), [`Mta`] and [`Outcome`] (decisions), [`Record`] (queues),
//! [`Cause`] and [`Fate`] (reports), [`Submission`] (local messages).
//!
//! ```
//! use vere_mta400::*;
//! use vere_x400::{Apdu, GlobalDomainIdentifier, Time};
//!
//! let site = Site::new(GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme"))?, "mta1")?;
//! let mut names = Names::default();
//! names.users.insert("smith".to_owned());
//! let row = RouteSetting {
//!     address: "S=Smith;P=Acme;A=Carrier;C=GB".to_owned(),
//!     to: "store:smith".to_owned(),
//!     whole: true,
//! };
//! let mta = Mta { site, peers: Peers::default(), routes: Routes::new(&[row], &names)? };
//! let submission = Submission {
//!     originator: "S=Jones;P=Acme;A=Carrier;C=GB".parse()?,
//!     recipients: vec!["S=Smith;P=Acme;A=Carrier;C=GB".parse()?],
//!     ..Submission::default()
//! };
//! let message = mta.site.compose(&submission, "Lunch", "At noon?\r\n", "260504.1")?;
//! let arrival = Arrival { source: Source::Local, at: Time::from_unix(1_777_777_777), id: "260504.2" };
//! let outcome = mta.transfer(Apdu::Message(message), arrival)?;
//! assert_eq!(outcome.onward[0].destination.to_string(), "store:smith");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cause;
mod destination;
mod history;
mod peers;
mod record;
mod reports;
mod routes;
mod site;
mod subject;
mod submission;
mod transfer;

#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use destination::{Destination, DestinationError};
pub use peers::{
    AddressRange, Admitted, Border, Caller, Denied, Identity, PeerError, Peers, Profile, Terms, Why,
};
pub use record::{Outgoing, Record, RecordError, RecordRecipient};
pub use reports::Fate;
pub use routes::{
    EVERY, Explanation, Names, RouteError, RouteFault, RouteSetting, Routes, Row, UNKNOWN,
};
pub use site::{Grades, LOCAL_IDENTIFIER_MAX, MTA_NAME_MAX, Site, User};
pub use submission::{Reports, Submission, SubmissionError};
pub use transfer::{
    Arrival, Decision, Facts, Mta, Onward, Outcome, RecipientFact, Refusal, Source, UnitKind,
};
