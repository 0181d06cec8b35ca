//! Decides about each connection to port 25 until the client is trusted (fork-after-trust).
//!
//! Most connections bring no mail: recipients that do not exist, listed clients, sessions that stop in the middle.
//! [`Screen`] hears of their events and gives decisions, so that a process is only spent on a client that has named a
//! recipient of this system. The engine has no sockets and reads no SMTP: the host runs the SMTP machine, asks the
//! [`Questions`] of the engine in the DNS and the directory, and turns each [`Decision`] into a reply.
//!
//! | step | event | result |
//! |---|---|---|
//! | a client connects | [`Screen::arrive`] | a [`Ticket`], or [`TurnedAway`] |
//! | octets before the greeting | [`Screen::spoke_early`] | perhaps the end |
//! | the delay is over | [`Screen::due`] | [`Due::Greet`] |
//! | HELO, EHLO | [`Screen::said_helo`] | perhaps a refusal |
//! | MAIL | [`Screen::mail`] | questions: lists, SPF |
//! | RCPT | [`Screen::recipient`] | a question: the recipient |
//! | answers | [`Screen::answered`] | a decision, once all are there |
//! | hand-over | [`Screen::trusted`], [`Screen::done`] | the connection counts until the worker is done |
//! | the end | [`Screen::left`] | |
//!
//! Memory is bounded by the [`Limits`]: 114 octets for each connection, 72 octets and an index of 5 to 20 for each
//! address and network, 40 and the index for each entry of the greylist. No event searches a table, but rules
//! of access are compared in turn. An operation on the timers costs the same for any number of connections.
//!
//! A host with several threads has an engine for each, and gives each client to the engine that [`Partition`] says: all clients of a
//! network have the same engine, so that engines share no count of an address or a network.
//!
//! Not covered: content, DKIM and DMARC, the queries themselves, replies as text.
//!
//! ```
//! use vere_screen::{Answer, Decision, Due, Recipient, Screen, Step, Terms};
//! use vere_units::Timestamp;
//!
//! let mut screen = Screen::new(Terms::default(), [7; 32]);
//! let start = Timestamp::from_millis(1_800_000_000_000);
//! let ticket = screen.arrive(start, "192.0.2.1".parse()?)?.ticket;
//!
//! let now = screen.next_due().unwrap_or(start);
//! assert_eq!(screen.due(now), Some((ticket, Due::Greet)));
//! assert_eq!(screen.said_helo(now, ticket, "mx.example.org")?, None);
//! screen.mail(now, ticket, "alice@example.org")?;
//! let Step::Ask(questions) = screen.recipient(now, ticket, "bob@example.net")? else {
//!     return Err("no question".into());
//! };
//! let answer = Answer::Recipient(Recipient::Accepted);
//! let decision = screen.answered(now, ticket, questions.round, answer)?;
//! assert_eq!(decision, Some(Decision::Accept));
//! screen.trusted(now, ticket)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod chain;
mod clock;
mod connection;
mod crowd;
mod deciding;
mod decision;
mod dialogue;
mod greylist;
mod judge;
mod partition;
mod place;
mod question;
mod rate;
mod screen;
mod secret;
mod slab;
mod table;
mod tally;
mod terms;
mod wheel;

pub use access::{Access, Rule, Subject, access};
pub use decision::{Decision, Reason, TurnedAway};
pub use dialogue::Step;
pub use greylist::Greylisted;
pub use greylist::snapshot::{GreylistSnapshot, SnapshotError};
pub use partition::{Part, Partition};
pub use place::Network;
pub use question::{Answer, Listing, Questions, Recipient, Spf};
pub use rate::Rate;
pub use screen::{Admitted, Due, Findings, Greeting, Screen};
pub use slab::{StaleTicket, Ticket};
pub use tally::Tally;
pub use terms::{
    Banner, Deadlines, EarlyTalk, Greylisting, Limits, ListPolicy, SpfPolicy, Terms, Treatment,
    WhenUnavailable,
};

#[cfg(test)]
mod tests;
