//! Packets between the front and a worker, over a SOCK_SEQPACKET socket (unix(7)): one packet per read and write.
//!
//! The front gives a worker sessions, each with the descriptor of its connection (SCM_RIGHTS). The worker says which layers of its sandbox hold, which sessions it has
//! begun, which have ended and how many recipients it has refused in each, many at once, and in the end that it takes no more.
//!
//! ```text
//! 0   u8   version = 1
//! 1   u8   kind
//! 2        by kind:
//!   1 SESSION  u64 number of the session, chosen by the front
//!              u32 octets of the state, at most 65,536
//!              u32 octets of the client that were read behind the state, at most 65,536
//!              state, octets of the client
//!   2 BEGUN    u32 count, at most 1,024; u64 number of each session
//!   3 DONE     u32 count, at most 1,024; for each session u64 number, u32 recipients that the worker has refused for good
//!   4 LAST     nothing
//!   5 LINKS    nothing
//!   6 READY    nothing
//!   7 CONFINED u8 layers of the sandbox that hold, a bit for each (`docs/internals/sandbox.md`)
//! ```
//!
//! LINKS, READY and LAST go over another such socket, the standard input of a worker: the keeper that has started the worker sends LINKS with three
//! descriptors, connections to the front, to the gateway and to the broker; the worker says READY once it is in its sandbox, and LAST
//! when the keeper has to start another in its place.

use crate::octets::{HandoffError, Reader, put_length};

/// The version of the packets.
pub const VERSION: u8 = 1;
/// The most octets of a state, and of octets that were read and not consumed.
pub const STATE_OCTETS_MAX: usize = 65_536;
/// The most sessions in a notice.
pub const NOTICE_MAX: usize = 1_024;
/// The most octets of a packet.
pub const PACKET_OCTETS_MAX: usize = 18 + 2 * STATE_OCTETS_MAX;

const SESSION: u8 = 1;
const BEGUN: u8 = 2;
const DONE: u8 = 3;
const LAST: u8 = 4;
const CONFINED: u8 = 7;

/// The packet with the connections of a worker.
pub const LINKS: [u8; 2] = [VERSION, 5];

/// The packet by which a worker tells its keeper that it serves.
pub const READY: [u8; 2] = [VERSION, 6];

/// A session for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'a> {
    /// The number by which the worker speaks of the session.
    pub number: u64,
    /// The state: a hand-over of `vere_smtp`. Empty: nothing was said, and the worker greets the client.
    pub state: &'a [u8],
    /// Octets of the client behind the last command of the state.
    pub unread: &'a [u8],
}

impl<'a> Task<'a> {
    /// Appends the packet.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[VERSION, SESSION]);
        to.extend_from_slice(&self.number.to_le_bytes());
        put_length(to, self.state.len());
        put_length(to, self.unread.len());
        to.extend_from_slice(self.state);
        to.extend_from_slice(self.unread);
    }

    /// Decodes the packet.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no session.
    pub fn decode(packet: &'a [u8]) -> Result<Self, HandoffError> {
        let mut reader = Reader(packet);
        match head(&mut reader)? {
            SESSION => {}
            other => return Err(HandoffError::Kind(other)),
        }
        let number = reader.long("number of the session")?;
        let state = reader.length("length of the state", STATE_OCTETS_MAX)?;
        let unread = reader.length("length of unread octets", STATE_OCTETS_MAX)?;
        let task = Self {
            number,
            state: reader.take("state", state)?,
            unread: reader.take("unread octets", unread)?,
        };
        reader.end()?;
        Ok(task)
    }
}

/// The end of a session in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The number of the session.
    pub number: u64,
    /// Number of recipients refused for good by the worker.
    pub refused: u32,
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// These sessions are the worker's from now on.
    Begun(Vec<u64>),
    /// These sessions have ended.
    Done(Vec<Done>),
    /// The layers of the worker's sandbox, a bit for each.
    Confined(u8),
    /// The worker takes no further session. Sessions that are on their way to the worker are served.
    Last,
}

impl Notice {
    /// Appends the packet. A notice has [`NOTICE_MAX`] sessions at most.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Begun(numbers) => {
                to.extend_from_slice(&[VERSION, BEGUN]);
                put_length(to, numbers.len());
                for number in numbers {
                    to.extend_from_slice(&number.to_le_bytes());
                }
            }
            Self::Done(sessions) => {
                to.extend_from_slice(&[VERSION, DONE]);
                put_length(to, sessions.len());
                for session in sessions {
                    to.extend_from_slice(&session.number.to_le_bytes());
                    to.extend_from_slice(&session.refused.to_le_bytes());
                }
            }
            Self::Confined(layers) => to.extend_from_slice(&[VERSION, CONFINED, *layers]),
            Self::Last => to.extend_from_slice(&[VERSION, LAST]),
        }
    }

    /// Decodes the packet.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no notice.
    pub fn decode(packet: &[u8]) -> Result<Self, HandoffError> {
        let mut reader = Reader(packet);
        let notice = match head(&mut reader)? {
            BEGUN => Self::Begun(many(&mut reader, number)?),
            DONE => Self::Done(many(&mut reader, done)?),
            CONFINED => Self::Confined(reader.octet("layers")?),
            LAST => Self::Last,
            other => return Err(HandoffError::Kind(other)),
        };
        reader.end()?;
        Ok(notice)
    }
}

fn many<T>(
    reader: &mut Reader<'_>,
    one: fn(&mut Reader<'_>) -> Result<T, HandoffError>,
) -> Result<Vec<T>, HandoffError> {
    let count = reader.length("number of sessions", NOTICE_MAX)?;
    (0..count).map(|_| one(reader)).collect()
}

fn number(reader: &mut Reader<'_>) -> Result<u64, HandoffError> {
    reader.long("number of a session")
}

fn done(reader: &mut Reader<'_>) -> Result<Done, HandoffError> {
    Ok(Done {
        number: number(reader)?,
        refused: reader.count("refused recipients of a session")?,
    })
}

fn head(reader: &mut Reader<'_>) -> Result<u8, HandoffError> {
    match reader.octet("version")? {
        VERSION => reader.octet("kind"),
        found => Err(HandoffError::Version {
            expected: VERSION,
            found,
        }),
    }
}

#[cfg(test)]
mod tests;
