//! What an MTA of X.400 decides: one message, probe or report at a time (X.411 clause 14).
//!
//! A unit arrives from a peer, a gateway or a local user. `Mta::transfer` says which parts of it go where, and writes the
//! report about the recipients that end here. The queues keep the parts, schedule them and try them; `Mta::outgoing` makes
//! the octets of an attempt, and `Site::report` writes what the end of an attempt means to the originator. The engine has
//! no clock, no sockets and no files: times, identifiers and the facts about a connection are arguments.
//!
//! Reading order: [`Site`], [`Peers`] and [`Routes`] (settings), `Mta` and `Outcome` (decisions), `Record` (what the queues
//! store), [`Cause`] and `Fate` (reports), `Submission` (messages from here).

mod cause;
mod destination;
mod peers;
mod reports;
mod routes;
mod site;
mod subject;
mod transfer;

pub use cause::Cause;
pub use destination::{Destination, DestinationError};
pub use peers::{
    AddressRange, Admitted, Border, Caller, Denied, Identity, PeerError, Peers, Profile, Terms, Why,
};
pub use reports::Fate;
pub use routes::{
    EVERY, Explanation, Names, RouteError, RouteFault, RouteSetting, Routes, Row, UNKNOWN,
};
pub use site::{Grades, LOCAL_IDENTIFIER_MAX, MTA_NAME_MAX, Site, User};
pub use transfer::{
    Arrival, Decision, Facts, Mta, Onward, Outcome, RecipientFact, Refusal, Source, UnitKind,
};
