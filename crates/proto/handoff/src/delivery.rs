//! Frames between the gateway and a courier, over a stream socket.
//!
//! The gateway gives a courier messages, and hears the results. The gateway chooses numbers. A number stands for the hosts of a destination
//! and for at most one connection to a host, and has at most one request under way.
//!
//! ```text
//! 0  u32  octets behind this field
//! 4  u8   version = 1
//! 5  u8   kind
//! 6       by kind, from the gateway:
//!   1 FIND     u64 number, text: the destination, in the form of the spool's queues
//!   2 OPEN     u64 number
//!   3 SEND     u64 number
//!              u64 latest begin, in milliseconds since the start of the machine
//!              u32 octets of the envelope, at most 16,777,216; envelope, in the form of the spool's records
//!              text of the message
//!   4 QUIT     u64 number
//!   5 FORGET   u64 number
//!         by kind, from the courier:
//!   129 FOUND      u64 number, text: the site
//!   130 UNROUTABLE u64 number, u8 extent (0 for now, 1 for now and for the whole site, 2 for good), u8 number of the status,
//!                  text: the reply
//!   131 OPENED     u64 number, u32 octets of the host, host, text: the encryption
//!   132 SENT       u64 number, u8 flags (1 another message is taken, 2 the host reports), u32 results, at most 65,535; each:
//!                    u8  disposition (0 delivered, 1 deferred, 2 failed)
//!                    u8  1 when the host said so
//!                    u32 octets of the status, at most 64; status
//!                    u32 octets of the reply, at most 4,096; reply
//!   133 UNSENT     u64 number, u8 1 when another message is taken
//!   134 CLOSED     u64 number
//!   135 FAILED     u64 number
//!   136 COUNTS     u32 counters, at most 256; each: u8 number of the counter, u32 increase
//!   137 BEAT       nothing
//!   138 SESSIONS   u32 connections of a kind, for reports about TLS (RFC 8460)
//!                  u8 policy (0 DANE, 1 MTA-STS, 2 none)
//!                  u32 octets of the domain, at most 255; domain
//!                  u32 lines of the policy, at most 16; each: u32 octets, at most 255; line
//!                  u32 patterns of hosts, at most 16; each as a line
//!                  u8 1 when the connections failed; then
//!                    u8 kind of the failure, at most 10, in the order of RFC 8460 section 4.3
//!                    u8 1 when our address is known; then 16 octets, of which an IPv4 address is mapped
//!                    u8 1 when the address of the host is known; then 16 octets
//!                    u32 octets of the host, at most 255; host
//!                    u32 octets of the reason, at most 255; reason
//! ```
//!
//! FIND is answered by FOUND or UNROUTABLE, OPEN by OPENED or UNROUTABLE, SEND by SENT or, where nothing is known against the message, by
//! UNSENT; any of them by FAILED where the courier has lost the number or cannot read the destination or envelope. QUIT is answered by CLOSED, FORGET has
//! no answer. SESSIONS comes only under settings with reports about TLS. CLOSED without a request says that an idle connection is closed. A silent courier, without even BEAT, holds still.

mod answer;
mod head;
mod sessions;
mod texts;

pub use answer::{Answer, Extent, Outcome, Outcomes, answer_length};
pub use head::{LENGTH_OCTETS, VERSION};
pub use sessions::{FAILURES, TlsFailed, TlsSessions};

use crate::octets::{HandoffError, Reader, put_length};
use head::head;

/// The most octets of a frame without a message.
pub const SHORT_OCTETS_MAX: usize = 4_096;
/// The most octets of a destination.
pub const DESTINATION_OCTETS_MAX: usize = SHORT_OCTETS_MAX - (2 + 8);
/// The most octets of an envelope.
pub const ENVELOPE_OCTETS_MAX: usize = 16 << 20;
/// The most octets of a message, by the spool's records.
pub const BODY_OCTETS_MAX: usize = 1 << 31;
/// The octets of a frame with a message before the envelope.
const SEND_OCTETS: usize = 2 + 8 + 8 + 4;

const FIND: u8 = 1;
const OPEN: u8 = 2;
const SEND: u8 = 3;
const QUIT: u8 = 4;
const FORGET: u8 = 5;

/// A request of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Find the hosts of a destination.
    Find {
        /// The number, which is new.
        number: u64,
        /// The destination.
        destination: &'a str,
    },
    /// Connect to one of the hosts.
    Open {
        /// The number.
        number: u64,
    },
    /// Send a message over the connection.
    Send(Message<'a>),
    /// Say goodbye and close the connection.
    Quit {
        /// The number.
        number: u64,
    },
    /// Close the connection, if any, and forget the hosts.
    Forget {
        /// The number.
        number: u64,
    },
}

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The number of the connection.
    pub number: u64,
    /// The latest begin, in milliseconds since the start of the machine. A courier that stood still must not begin later: another gateway may
    /// deliver the message by then.
    pub until: u64,
    /// The envelope, encoded.
    pub envelope: &'a [u8],
    /// The text.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Appends the frame up to the text. The caller appends the text.
    pub fn encode_before_body(&self, to: &mut Vec<u8>) {
        let before = SEND_OCTETS.saturating_add(self.envelope.len());
        put_length(to, before.saturating_add(self.body.len()));
        to.extend_from_slice(&[VERSION, SEND]);
        to.extend_from_slice(&self.number.to_le_bytes());
        to.extend_from_slice(&self.until.to_le_bytes());
        put_length(to, self.envelope.len());
        to.extend_from_slice(self.envelope);
    }
}

impl<'a> Request<'a> {
    /// Appends the frame.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let (kind, number, text) = match *self {
            Self::Send(message) => {
                message.encode_before_body(to);
                return to.extend_from_slice(message.body);
            }
            Self::Find {
                number,
                destination,
            } => (FIND, number, destination),
            Self::Open { number } => (OPEN, number, ""),
            Self::Quit { number } => (QUIT, number, ""),
            Self::Forget { number } => (FORGET, number, ""),
        };
        put_length(to, text.len().saturating_add(2 + 8));
        to.extend_from_slice(&[VERSION, kind]);
        to.extend_from_slice(&number.to_le_bytes());
        to.extend_from_slice(text.as_bytes());
    }

    /// Decodes a frame without its length.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no request.
    pub fn decode(frame: &'a [u8]) -> Result<Self, HandoffError> {
        let mut reader = Reader(frame);
        let kind = head(&mut reader)?;
        if kind != SEND && frame.len() > SHORT_OCTETS_MAX {
            return Err(HandoffError::TooMuch {
                field: "frame without a message",
                max: SHORT_OCTETS_MAX,
                found: frame.len(),
            });
        }
        let number = reader.long("number")?;
        let request = match kind {
            FIND => {
                let destination = reader.text("destination")?;
                return Ok(Self::Find {
                    number,
                    destination,
                });
            }
            SEND => {
                let until = reader.long("latest begin")?;
                let octets = reader.length("length of the envelope", ENVELOPE_OCTETS_MAX)?;
                return Ok(Self::Send(Message {
                    number,
                    until,
                    envelope: reader.take("envelope", octets)?,
                    body: reader.0,
                }));
            }
            OPEN => Self::Open { number },
            QUIT => Self::Quit { number },
            FORGET => Self::Forget { number },
            other => return Err(HandoffError::Kind(other)),
        };
        reader.end()?;
        Ok(request)
    }
}

/// Parses the length before a request.
///
/// # Errors
///
/// [`HandoffError::TooMuch`] for more octets than a request has.
pub fn request_length(octets: [u8; LENGTH_OCTETS]) -> Result<usize, HandoffError> {
    let max = SEND_OCTETS + ENVELOPE_OCTETS_MAX + BODY_OCTETS_MAX;
    Reader(&octets).length("length of the request", max)
}

#[cfg(test)]
mod tests;
