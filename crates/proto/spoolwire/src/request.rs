//! What only reads: FETCH, STAT, QUEUES, HEARTBEAT. `number` is a sequence number.

use crate::frame::{Fields, Frame, Op, WireError, write_frame};
use crate::handshake::expect;
use crate::types::{QueueId, RecordId, Seq};

/// The longest frame of a request that only reads.
pub const REQUEST_FRAME_MAX: usize = 64;

/// A request for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Records of a queue from one on.
    ///
    /// ```text
    /// 16  queue u32 | records at most u32 | from record u64 | octets at most u32 | 0 u32
    /// ```
    Fetch {
        /// The queue.
        queue: QueueId,
        /// The first record wanted; if it is gone, the next one.
        from: RecordId,
        /// Records, at most.
        records: u32,
        /// Octets of record frames, at most; but one record always comes.
        octets: u32,
    },
    /// Figures. No payload.
    Stat,
    /// Queues from a number on.
    ///
    /// ```text
    /// 16  from queue u32 | queues at most u32
    /// ```
    Queues {
        /// The first number wanted.
        from: QueueId,
        /// Queues, at most.
        count: u32,
    },
    /// A sign of life. No payload.
    Heartbeat,
}

impl Request {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>, seq: Seq) {
        write_frame(out, self.op(), 0, seq.0, |out| match *self {
            Self::Fetch {
                queue,
                from,
                records,
                octets,
            } => {
                out.extend_from_slice(&queue.0.to_le_bytes());
                out.extend_from_slice(&records.to_le_bytes());
                out.extend_from_slice(&from.0.to_le_bytes());
                out.extend_from_slice(&octets.to_le_bytes());
                out.extend_from_slice(&[0; 4]);
            }
            Self::Queues { from, count } => {
                out.extend_from_slice(&from.0.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
            Self::Stat | Self::Heartbeat => {}
        });
    }

    /// Reads a frame that only reads.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        expect(frame, frame.header.op, 0)?;
        let mut fields = Fields(frame.payload);
        let mut read = || {
            let request = match frame.header.op {
                Op::Fetch => {
                    let (queue, records) = (QueueId(fields.u32()?), fields.u32()?);
                    let (from, octets) = (RecordId(fields.u64()?), fields.u32()?);
                    fields.zero()?;
                    Self::Fetch {
                        queue,
                        from,
                        records,
                        octets,
                    }
                }
                Op::Queues => Self::Queues {
                    from: QueueId(fields.u32()?),
                    count: fields.u32()?,
                },
                Op::Stat => Self::Stat,
                Op::Heartbeat => Self::Heartbeat,
                _ => return None,
            };
            fields.end()?;
            Some(request)
        };
        match frame.header.op {
            Op::Fetch | Op::Stat | Op::Queues | Op::Heartbeat => {
                read().ok_or_else(|| frame.layout())
            }
            other => Err(WireError::Operation(other.code())),
        }
    }

    const fn op(&self) -> Op {
        match self {
            Self::Fetch { .. } => Op::Fetch,
            Self::Stat => Op::Stat,
            Self::Queues { .. } => Op::Queues,
            Self::Heartbeat => Op::Heartbeat,
        }
    }
}
