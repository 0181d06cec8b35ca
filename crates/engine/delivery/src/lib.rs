//! Deliveries: the life of a record between the commit that makes the record and the change that ends
//! the record.
//!
//! [`vere_queue`] decides what is due and what a result means; this crate brings these decisions into the spool in an
//! order that survives a crash at every point: a record ends after its delivery and together with its reports, a hold
//! counts once its record says so, a queue is made before its first message and ended after its last.
//!
//! The sequences are `async` functions over ports ([`Spool`], [`Author`], [`Courier`], [`Host`]). No function reads a
//! clock, a socket or a file, and nothing here depends on an executor: the gateway runs the functions on tokio, the
//! simulator (`vere-sim`) on a separate scheduler that picks the next step by a seed and kills the gateway at any
//! await.
//!
//! Reading order: [`host`] (the ports), [`group`] (the state), [`storing`](Group::store) (new records),
//! `scheduler`, [`courier`] (a worker and its connection), `settling`, `ending` and `reporting` (the end of an attempt), `behind`
//! (messages behind the head of a queue), `overdue` (messages with an end of their own), `known` (the queues themselves), `recovery` (after a start), `hold`,
//! `sweep` and `quarantine` (operators), `lines` and `ledger` (lines for other systems).

mod backlog;
mod behind;
mod bell;
pub mod courier;
mod desk;
mod ending;
pub mod group;
mod hold;
pub mod host;
mod known;
mod ledger;
mod lines;
mod notice;
mod orders;
mod overdue;
mod quarantine;
mod reading;
mod recovery;
mod reporting;
mod scheduler;
mod settling;
mod storing;
mod sweep;
mod worker;

pub use courier::{BeforeMessage, Courier, Session, Unroutable, file_each, work};
pub use desk::QueueDesk;
pub use group::Group;
pub use hold::{HoldOutcome, Holding, MessageChange};
pub use host::{Author, DirectoryAway, Happened, Host, Leaving, Spool};
pub use known::Expected;
pub use lines::{EventLines, Lines, is_lines};
pub use notice::{Notice, Part};
pub use orders::{Change, Unkept};
pub use quarantine::{Aside, Released};
pub use reading::{POST_RETRY, own, readable, record};
pub use recovery::Recovered;
pub use sweep::{Acted, Action, Selection, Sweep, is_meant};
pub use worker::Worker;
