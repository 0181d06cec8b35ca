//! Associations of X.400 P1 over sockets, in both roles.
//!
//! | module | what it does |
//! |---|---|
//! | `driver` | octets between a stream and one machine of `vere-osi`, with a bound for each wait |
//! | `initiate` | [`initiate()`]: connects to a [`Peer`] and binds |
//! | `respond` | [`respond()`]: the bind of a peer, and the answer |
//! | `open` | [`OpenAssociation`]: events, the turn, the end |
//! | `transfer`, `outcome` | APDUs of this side, and what became of them |
//! | `receive` | APDUs of the peer |
//! | `history` | [`History`]: transfers of a peer that may be resumed |
//! | `pool` | [`Pool`]: several associations with one peer, for callers |
//!
//! An association is driven by whoever waits on it: no task, no channel and no lock is in the way of its octets, and a host that
//! does not ask holds the peer. Queues and retries are not here. Who is responsible when, and the bounds:
//! `docs/internals/associations.md`.

mod bounds;
mod driver;
mod end;
mod history;
mod initiate;
mod names;
mod open;
mod outcome;
mod pool;
mod receive;
mod respond;
mod transfer;
mod value;

#[cfg(test)]
mod tests;

pub use bounds::{Bounds, Wait};
pub use driver::Stream;
pub use end::End;
pub use history::{History, Known};
pub use initiate::{Expected, OpenError, Peer, Refusal, initiate, introduction, open_over};
pub use names::Names;
pub use open::{Activity, Facts, Next, OpenAssociation, Remote, Resumption};
pub use outcome::{NotTransferred, Outcome};
pub use pool::{Begun, Lent, Pool, PoolError, PoolSettings, ReservedLane};
pub use receive::{NotReceived, Part, Partial};
pub use respond::{Asked, Caller, Decision, NotOpen, Responder, respond};
pub use transfer::Checkpoints;
pub use value::unwrapped;
