//! Asks content filters about a whole message: rspamd (`/checkv2` over HTTP), ClamAV (`INSTREAM`), and any milter.
//!
//! Every question is bounded: in octets of the message ([`Terms::size_max`]; a longer message is not shown to the filter), in
//! time ([`Terms::timeout`], one deadline for place, connection and talk), in octets and number of the answers
//! ([`Bounds`]), and in connections at once. Every way of failing is [`Asked::Unavailable`] with the reason; the caller
//! decides the consequence.
//!
//! [`Filters`] are those of the settings: they are asked in order, each about the message as the ones before have changed it, and give
//! [`Findings`] for the judge. A filter that fails again and again is left alone for some seconds.
//!
//! Not covered: the effect of a verdict.

mod address;
mod asking;
mod bounds;
mod circuit;
mod clamd;
mod failure;
mod filter;
mod findings;
mod loading;
mod milter;
mod outcome;
mod room;
mod rspamd;
mod set;
mod stream;
mod terms;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use bounds::Bounds;
pub use clamd::Clamd;
pub use failure::Failure;
pub use filter::Filter;
pub use findings::{Answer, Deferral, Findings};
pub use loading::FiltersError;
pub use outcome::{Asked, Outcome, Symbol, Verdict};
pub use room::{ASKED_MAX, octets_max};
pub use rspamd::{Class, Rspamd, read_answer as read_rspamd_answer};
pub use set::{Filters, Learned, Mail};
pub use terms::{Kind, Terms};
pub use vere_milter::{Change, Session, apply, apply_to_recipients};
