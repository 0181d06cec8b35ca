//! Upkeep of a volume: checks of rows against the mails that accounts have, repair from replicas, and garbage collection.
//!
//! A run goes by stages ([`run`]): accounts are listed ([`survey`]), rows are compared with the listings ([`compare`]), mails
//! that need a closer look are read ([`inspect`]), rows are changed through commits like any change of the mount ([`write`]),
//! copies are made by the volume's [`replicas`](super::replicas), and mails are removed last. All requests have the lowest
//! urgency.

mod check;
mod garbage;
mod look;
mod moves;
mod old;
mod open;
mod rewriting;
mod run;
mod walking;
mod write;

use vere_inventory::collection::{
    anew, clock, collect, history, listing, losers, scan, slots, walk,
};
use vere_inventory::{chain, compare, finding, fit as tree, inspect, moving, survey, verified};

pub(crate) use vere_inventory::collection::rows;
pub(crate) use vere_inventory::upkeep as state;

pub(crate) use self::clock::LastRun;
pub use self::collect::{CollectReport, CollectTerms};
pub use self::finding::{CheckReport, CheckTerms, Finding, MailPlace, Weight};
pub use self::state::Upkept;
