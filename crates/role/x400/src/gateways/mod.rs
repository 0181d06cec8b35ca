//! The socket of the gateway API (docs/internals/attach.md).
//!
//! `listen` accepts connections, `connection` serves one, `compose` makes messages and probes of plain fields, `courier`
//! gives the messages of a queue to an attached gateway, [`Gateways`](crate::attached::Gateways) knows the attached gateways. The modules use the MTA through the
//! trait [`Desk`].

mod compose;
mod connection;
mod courier;
mod desk;
mod listen;
mod mta;

#[cfg(test)]
mod tests;

pub(crate) use courier::GatewayCourier;
use desk::{Accepted, Desk, Unaccepted};
pub(crate) use listen::serve;
pub(crate) use mta::MtaDesk;
