//! The OSI stack below X.400 P1, in both roles, without I/O: octets in, octets and events out.
//!
//! | module | layer | recommendation |
//! |---|---|---|
//! | [`transport`] | ISO transport class 0 over TCP | RFC 1006, RFC 2126, X.224 |
//! | [`session`] | session with activities, versions 1 and 2 | X.225 |
//! | [`presentation`] | contexts, normal and X.410-1984 mode | X.226 |
//! | [`acse`] | association control with authentication | X.227 |
//! | [`rtse`] | reliable transfer | X.228, X.410 |
//! | [`association`] | the facade: all of them over one TCP connection | |
//!
//! Not covered: ROSE (X.229), whose place is marked in [`rtse`]; the contents of APDUs and binds (X.411, X.419), which are
//! octets here; transport classes other than 0; typed, expedited and capability data, resynchronization, major
//! synchronization and negotiated release of the session; the alteration of contexts. The encoding, BER, is in `vere-ber`.
//!
//! The formats, the states and the bounds are drawn in `docs/internals/osi.md`. Reading order: [`Association`](association::Association)
//! and its [`Event`](association::Event), then the layers from below.
//!
//! ```
//! use bytes::Bytes;
//! use vere_osi::Limits;
//! use vere_osi::association::{
//!     AcceptRequest, Addresses, Association, Event, OpenRequest, Output, Profile, ResponderConfig,
//! };
//! use vere_osi::rtse::SessionConnectionIdentifier;
//!
//! // Two associations, and octets carried from one to the other until both are silent.
//! fn carry(from: &mut Association, to: &mut Association, events: &mut Vec<Event>) -> bool {
//!     let mut moved = false;
//!     while let Some(output) = from.poll() {
//!         moved = true;
//!         match output {
//!             Output::Write(pieces) => pieces.into_iter().for_each(|piece| to.receive(piece)),
//!             Output::Event(event) => events.push(event),
//!             Output::Close => to.ended(),
//!         }
//!     }
//!     moved
//! }
//!
//! let mut caller = Association::initiator(Limits::default());
//! let mut called = Association::responder(Limits::default(), ResponderConfig::new(Profile::mts_transfer()));
//! let name = SessionConnectionIdentifier {
//!     calling: Bytes::from_static(b"mta.example"),
//!     common: Bytes::from_static(b"261129190000Z"),
//!     additional: None,
//! };
//! caller.open(OpenRequest::new(Addresses::default(), name))?;
//! let mut events = Vec::new();
//! while carry(&mut caller, &mut called, &mut events) | carry(&mut called, &mut caller, &mut events) {}
//! assert!(matches!(events.pop(), Some(Event::OpenIndication(_))));
//! called.accept(AcceptRequest { checkpoint_size: 64, window_size: 3, ..AcceptRequest::default() })?;
//! while carry(&mut called, &mut caller, &mut events) | carry(&mut caller, &mut called, &mut events) {}
//! assert!(matches!(events.pop(), Some(Event::Opened(_))));
//!
//! // An APDU, which the receiver confirms when it is safe.
//! caller.transfer(5)?;
//! caller.supply(&mut Bytes::from_static(b"hello"))?;
//! while carry(&mut caller, &mut called, &mut events) | carry(&mut called, &mut caller, &mut events) {}
//! assert!(matches!(&events[..], [Event::TransferBegins(_), Event::Apdu(_), Event::Received(5)]));
//! called.confirm()?;
//! while carry(&mut called, &mut caller, &mut events) | carry(&mut caller, &mut called, &mut events) {}
//! assert_eq!(events.pop(), Some(Event::Transferred(1)));
//! # Ok::<(), vere_osi::association::AssociationError>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

pub mod acse;
pub mod association;
mod limits;
pub mod names;
pub mod presentation;
pub mod rtse;
pub mod session;
#[cfg(test)]
mod testing;
pub mod transport;

pub use limits::Limits;
pub use vere_ber::Pieces;
