//! The gateway API of the X.400 MTA, version 1: programs attach to the MTA, get messages and submit messages.
//!
//! A frame is one line of JSON, an object with one field: the kind of the frame. A value with a field `octets` has as many
//! octets behind the newline. The page docs/internals/attach.md has all kinds with their fields; a gateway can be written
//! from the page alone.
//!
//! Both sides are machines without sockets: [`Server`] is the MTA, [`Client`] is a gateway or a command. The host gives
//! received octets to `receive`, takes events from `event` until there are none, and writes all pieces of `output`. A machine
//! checks who is allowed to say what: `attach` comes first, a delivery has one answer, so has a tag.
//!
//! Addresses, times and identifiers are texts here; the host reads them.
//!
//! ```
//! use bytes::Bytes;
//! use vere_attach::{Attached, Bounds, Client, ClientEvent, Message, Server, ServerEvent};
//!
//! let (mut server, mut client) = (Server::new(Bounds::default()), Client::new(Bounds::default()));
//! client.attach(None, 1)?;
//! let message = Message {
//!     originator: "S=Jones;P=Acme;A=Carrier;C=GB".to_owned(),
//!     recipients: vec!["S=Smith;P=Acme;A=Carrier;C=GB".to_owned()],
//!     ..Message::default()
//! };
//! client.submit("1", Some(message), Bytes::from_static(b"At noon?\n"))?;
//! while let Some(piece) = client.output() {
//!     server.receive(&piece);
//! }
//! assert_eq!(server.event(), Some(ServerEvent::Attach { name: None, window: 1 }));
//! server.attached("mta1", "/PRMD=Acme/ADMD=Carrier/C=GB/");
//! let Some(ServerEvent::Submit { tag, octets, .. }) = server.event() else { panic!("a submission") };
//! assert_eq!(octets, "At noon?\n");
//! server.submitted(&tag, "[/PRMD=Acme/ADMD=Carrier/C=GB/;1]", "01HXYZ0000000");
//! while let Some(piece) = server.output() {
//!     client.receive(&piece);
//! }
//! assert!(matches!(client.event(), Some(ClientEvent::Attached(Attached { .. }))));
//! assert!(matches!(client.event(), Some(ClientEvent::Submitted(submitted)) if submitted.tag == "1"));
//! # Ok::<(), vere_attach::Misuse>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod answers;
mod client;
mod error;
mod frame;
mod head;
mod message;
mod output;
mod reader;
mod requests;
mod server;
mod text;

#[cfg(test)]
mod tests;

pub use answers::{
    Answer, Attached, Deliver, PeerRow, PeerState, Recipient, Refused, Submitted, UnitKind,
};
pub use client::{Client, ClientEvent};
pub use error::{Fault, Misuse};
pub use message::{Message, Priority, Reports};
pub use requests::{Ask, Attach, Done, Fate, Probe, RecipientResult, Submit};
pub use server::{DeliverError, PlaceResult, Server, ServerEvent};

/// The version of this code.
pub const VERSION: u32 = 1;
/// Octets of a line, at most, without the newline.
pub const LINE_OCTETS_MAX: usize = 256 * 1024;
/// Octets of a tag, at most.
pub const TAG_OCTETS_MAX: usize = 64;
/// Octets of the name of a gateway, at most.
pub const NAME_OCTETS_MAX: usize = 64;
/// Deliveries without an answer on one connection, at most.
pub const WINDOW_MAX: u32 = 64;
/// Recipients of one `deliver`, at most: a message for more recipients comes in several frames.
pub const RECIPIENTS_MAX: usize = 500;
/// Octets of the recipients of one `deliver` as JSON, at most.
pub const RECIPIENTS_OCTETS_MAX: usize = 128 * 1024;
/// Octets of an address in a `deliver`, at most; a longer one is cut, and whole in the APDU.
pub const ADDRESS_OCTETS_MAX: usize = 4_096;
/// Octets of `said`, at most; a longer text is cut.
pub const SAID_OCTETS_MAX: usize = 256;
/// Octets of an error, at most; a longer text is cut.
pub const ERROR_OCTETS_MAX: usize = 1_024;

/// The bounds of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Octets behind a line, at most.
    pub octets_max: u64,
    /// Tags without an answer, at most. The server reads no further frame until one of them is answered.
    pub tags_max: usize,
    /// Octets of answers in the output, beyond which the server takes no input. Deliveries do not count.
    pub output_max: usize,
}

impl Default for Bounds {
    /// 64 MiB, 64 tags, 1 MiB.
    fn default() -> Self {
        Self {
            octets_max: 64 << 20,
            tags_max: 64,
            output_max: 1 << 20,
        }
    }
}
