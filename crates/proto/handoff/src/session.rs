//! Packets between the front and a worker, over a SOCK_SEQPACKET socket (unix(7)): one packet per read and write.
//!
//! The front gives a worker sessions, several in a packet, with the descriptors of the connections beside the packet, in the order of the
//! sessions (SCM_RIGHTS). The worker reports the layers of the sandbox; begun sessions, and ended sessions with the number of refused
//! recipients, many at once; and the end of its service.
//!
//! ```text
//! 0   u8   version = 1
//! 1   u8   kind
//! 2        by kind:
//!   1 SESSIONS until the end of the packet, 1 to 16 times:
//!              u64 number of the session, chosen by the front
//!              u32 octets of the state, at most 65,536
//!              u32 octets of the client that were read behind the state, at most 65,536
//!              state, octets of the client
//!   2 PROGRESS u32 count, at most 1,024; u64 number of each session that the worker has begun
//!              u32 count, at most 1,024; for each session that has ended u64 number, u32 recipients that the worker has refused for good
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
/// The most sessions in a packet.
pub const SESSIONS_MAX: usize = 16;
/// The most sessions of each kind in a notice.
pub const NOTICE_MAX: usize = 1_024;
/// The most octets of a packet: one session of the largest size fits.
pub const PACKET_OCTETS_MAX: usize = SESSIONS.len() + 16 + 2 * STATE_OCTETS_MAX;

/// What begins a packet with sessions.
pub const SESSIONS: [u8; 2] = [VERSION, 1];

const PROGRESS: u8 = 2;
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
    /// Appends the session. A packet is [`SESSIONS`] and one session or several.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.number.to_le_bytes());
        put_length(to, self.state.len());
        put_length(to, self.unread.len());
        to.extend_from_slice(self.state);
        to.extend_from_slice(self.unread);
    }

    /// Decodes a packet: 1 to [`SESSIONS_MAX`] sessions.
    ///
    /// # Errors
    ///
    /// [`HandoffError`] for octets that are no sessions.
    pub fn decode_all(packet: &'a [u8]) -> Result<Vec<Self>, HandoffError> {
        let mut reader = Reader(packet);
        match head(&mut reader)? {
            kind if kind == SESSIONS[1] => {}
            other => return Err(HandoffError::Kind(other)),
        }
        let mut tasks = vec![Self::read(&mut reader)?];
        while tasks.len() < SESSIONS_MAX && reader.end().is_err() {
            tasks.push(Self::read(&mut reader)?);
        }
        reader.end()?;
        Ok(tasks)
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self, HandoffError> {
        let number = reader.long("number of the session")?;
        let state = reader.length("length of the state", STATE_OCTETS_MAX)?;
        let unread = reader.length("length of unread octets", STATE_OCTETS_MAX)?;
        Ok(Self {
            number,
            state: reader.take("state", state)?,
            unread: reader.take("unread octets", unread)?,
        })
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
    /// Sessions that are the worker's from now on, and sessions that have ended.
    Progress {
        /// The numbers of the sessions that the worker has begun.
        begun: Vec<u64>,
        /// The sessions that have ended.
        done: Vec<Done>,
    },
    /// The layers of the worker's sandbox, a bit for each.
    Confined(u8),
    /// The worker takes no further session. Sessions that are on the way to the worker are served.
    Last,
}

impl Notice {
    /// Appends the packet. A notice has [`NOTICE_MAX`] sessions of each kind at most.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Progress { begun, done } => {
                to.extend_from_slice(&[VERSION, PROGRESS]);
                put_length(to, begun.len());
                for number in begun {
                    to.extend_from_slice(&number.to_le_bytes());
                }
                put_length(to, done.len());
                for session in done {
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
            PROGRESS => Self::Progress {
                begun: many(&mut reader, number)?,
                done: many(&mut reader, done)?,
            },
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
