//! The requests with answers: FETCH, STAT, QUEUES, HEARTBEAT, which only read, and ATTACH, COMPLETE, DUTY, END,
//! which only an owner sends. `number` is a sequence number.

use vere_units::{QueueId, RecordId, Seq, Txn};

use crate::frame::{FLAG_LOG, FLAG_RECORDS, Fields, Frame, Op, WireError, write_frame};
use crate::handshake::expect;

/// The longest frame of a request.
pub const REQUEST_FRAME_MAX: usize = 64;

/// A request answered in the order of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Records of a queue from a number on.
    ///
    /// ```text
    /// 16  queue u32 | records at most u32 | from record u64 | octets at most u32 | 0 u32
    /// ```
    Fetch {
        /// The queue.
        queue: QueueId,
        /// The first record; if removed, the next record.
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
    /// Makes a standby connection the owner's active connection; the active connection before is closed.
    ///
    /// ```text
    /// 16  last acknowledgement seen u64
    /// ```
    Attach {
        /// The last acknowledgement the owner has seen; refusals after it are listed in the answer.
        acknowledged: Txn,
    },
    /// The group is whole: everything that had to be copied is here. Answered by ALIVE when all of it
    /// is safe at the node's level. No payload.
    Complete,
    /// The durability of the group's records. Answered by ALIVE once the durability is reached. No payload.
    ///
    /// ```text
    /// flags: 0x01 log from now on, else memory only
    /// ```
    Duty {
        /// Everything goes into the log, also what is held already; otherwise the log is removed.
        log: bool,
    },
    /// Removes the group from the node, with the log; the number of the group becomes free. Answered by CLOSE, once
    /// the removal is safe. No payload.
    ///
    /// ```text
    /// flags: 0x01 with the records that it holds
    /// ```
    End {
        /// Whether to remove a group that holds records.
        records: bool,
    },
}

impl Request {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>, seq: Seq) {
        write_frame(out, self.op(), self.flags(), seq.0, |out| match *self {
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
            Self::Attach { acknowledged } => {
                out.extend_from_slice(&acknowledged.0.to_le_bytes());
            }
            Self::Stat
            | Self::Heartbeat
            | Self::Complete
            | Self::Duty { .. }
            | Self::End { .. } => {}
        });
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        let flags = frame.header.flags;
        let allowed = match frame.header.op {
            Op::Duty => FLAG_LOG,
            Op::End => FLAG_RECORDS,
            _ => 0,
        };
        expect(frame, frame.header.op, allowed)?;
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
                Op::Attach => Self::Attach {
                    acknowledged: Txn(fields.u64()?),
                },
                Op::Complete => Self::Complete,
                Op::Duty => Self::Duty {
                    log: flags & FLAG_LOG != 0,
                },
                Op::End => Self::End {
                    records: flags & FLAG_RECORDS != 0,
                },
                _ => return None,
            };
            fields.end()?;
            Some(request)
        };
        match frame.header.op {
            Op::Fetch
            | Op::Stat
            | Op::Queues
            | Op::Heartbeat
            | Op::Attach
            | Op::Complete
            | Op::Duty
            | Op::End => read().ok_or_else(|| frame.layout()),
            other => Err(WireError::Operation(other.code())),
        }
    }

    const fn op(&self) -> Op {
        match self {
            Self::Fetch { .. } => Op::Fetch,
            Self::Stat => Op::Stat,
            Self::Queues { .. } => Op::Queues,
            Self::Heartbeat => Op::Heartbeat,
            Self::Attach { .. } => Op::Attach,
            Self::Complete => Op::Complete,
            Self::Duty { .. } => Op::Duty,
            Self::End { .. } => Op::End,
        }
    }

    const fn flags(&self) -> u8 {
        match self {
            Self::Duty { log: true } => FLAG_LOG,
            Self::End { records: true } => FLAG_RECORDS,
            _ => 0,
        }
    }
}
