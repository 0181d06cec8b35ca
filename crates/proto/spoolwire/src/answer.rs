//! What a node says after the WELCOME: ACK, BLOCK, STATS, QUEUE_LIST, ALIVE, ATTACHED, CLOSE.

use vere_units::{Incarnation, QueueId, RecordId, Seq, Txn};

use crate::charter::Grants;
use crate::frame::{
    FLAG_DAMAGED, FLAG_END, FLAG_FULL, FLAG_SYNCED, FLAG_SYNCING, FLAG_UNKNOWN, Fields, Frame,
    HEADER_LEN, Op, WireError, write_frame,
};
use crate::handshake::{expect, name, read_refused, write_refused};
use crate::types::{NodeStat, QUEUES_MAX, QueueLimits, QueueStat};
use crate::{CHECKSUM_LEN, CloseReason, NodeRefusal};

/// The longest frame of an answer, records of a BLOCK not counted.
pub const ANSWER_FRAME_MAX: usize = 128 + 16 * 65_536;
/// Octets of a BLOCK frame without the records that follow.
pub const BLOCK_FRAME_LEN: usize = HEADER_LEN + 24 + CHECKSUM_LEN;

/// An answer of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Everything up to a transaction is safe, but for the refused ones.
    ///
    /// ```text
    /// number = last transaction acknowledged
    /// 16  0 u32 | refused count u32 | count x { txn u64 | code u32 | 0 u32 }
    /// ```
    Ack {
        /// The last transaction acknowledged.
        through: Txn,
        /// The transactions that were refused, within the acknowledged range.
        refused: Vec<(Txn, NodeRefusal)>,
    },
    /// Records, in the PUT frames that follow. The transaction numbers of the PUT frames have no meaning.
    ///
    /// ```text
    /// number = sequence       flags: 0x01 nothing follows in the queue, 0x02 there is no such queue
    /// 16  queue u32 | records u32 | next record u64 | octets of the records' frames u64
    /// ```
    Block {
        /// Of the request.
        seq: Seq,
        /// The head.
        head: BlockHead,
    },
    /// Figures: twelve u64 in the order of [`NodeStat`], the four flags in the header.
    Stats {
        /// Of the request.
        seq: Seq,
        /// The figures.
        stat: NodeStat,
    },
    /// Queues in the order of the queue numbers.
    ///
    /// ```text
    /// number = sequence                                flags: 0x01 no queue after these
    /// 16  count u32 | 0 u32
    /// 24  count x { queue u32 | name length u16 | grants length u16 | records at most u64 |
    ///               octets at most u64 | first record u64 | next record u64 | records u64 | octets u64 |
    ///               name | grants }
    /// ```
    QueueList {
        /// Of the request.
        seq: Seq,
        /// The queues.
        queues: Vec<QueueStat>,
        /// Whether the list is complete.
        end: bool,
    },
    /// The node lives; or what COMPLETE or DUTY asked for is done and safe.
    ///
    /// ```text
    /// number = sequence
    /// 16  last transaction processed u64 | last transaction acknowledged u64
    /// ```
    Alive {
        /// Of the request.
        seq: Seq,
        /// Last transaction processed.
        processed: Txn,
        /// Last transaction acknowledged.
        acknowledged: Txn,
    },
    /// The connection is the owner's now.
    ///
    /// ```text
    /// number = sequence
    /// 16  last transaction processed u64 | last transaction acknowledged u64
    /// 32  0 u32 | refused count u32 | count x { txn u64 | code u32 | 0 u32 }
    /// ```
    Attached {
        /// Of the request.
        seq: Seq,
        /// Last transaction processed; the owner goes on with the next one.
        processed: Txn,
        /// Last transaction acknowledged.
        acknowledged: Txn,
        /// Refusals after the last acknowledgement seen, up to `acknowledged`.
        refused: Vec<(Txn, NodeRefusal)>,
    },
    /// The connection ends.
    ///
    /// ```text
    /// number = 0
    /// 16  code u32 | 0 u32
    /// ```
    Close(CloseReason),
}

/// The head of a BLOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// The queue.
    pub queue: QueueId,
    /// Number of record frames that follow.
    pub records: u32,
    /// Where the next block begins.
    pub next: RecordId,
    /// Octets of the record frames.
    pub octets: u64,
    /// Whether the queue is empty from `next` on.
    pub end: bool,
    /// Whether the queue exists: an unknown queue differs from an empty queue.
    pub known: bool,
}

/// Appends an ACK.
pub fn encode_ack(out: &mut Vec<u8>, through: Txn, refused: &[(Txn, NodeRefusal)]) {
    write_frame(out, Op::Ack, 0, through.0, |out| {
        out.extend_from_slice(&[0; 4]);
        write_refused(out, refused);
    });
}

impl Answer {
    /// Appends the frame; for a BLOCK the head only.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack { through, refused } => encode_ack(out, *through, refused),
            Self::Block { seq, head } => {
                let end = if head.end { FLAG_END } else { 0 };
                let unknown = if head.known { 0 } else { FLAG_UNKNOWN };
                write_frame(out, Op::Block, end | unknown, seq.0, |out| {
                    out.extend_from_slice(&head.queue.0.to_le_bytes());
                    out.extend_from_slice(&head.records.to_le_bytes());
                    out.extend_from_slice(&head.next.0.to_le_bytes());
                    out.extend_from_slice(&head.octets.to_le_bytes());
                });
            }
            Self::Stats { seq, stat } => encode_stat(out, *seq, stat),
            Self::QueueList { seq, queues, end } => encode_queues(out, *seq, queues, *end),
            Self::Alive {
                seq,
                processed,
                acknowledged,
            } => {
                write_frame(out, Op::Alive, 0, seq.0, |out| {
                    out.extend_from_slice(&processed.0.to_le_bytes());
                    out.extend_from_slice(&acknowledged.0.to_le_bytes());
                });
            }
            Self::Attached {
                seq,
                processed,
                acknowledged,
                refused,
            } => {
                write_frame(out, Op::Attached, 0, seq.0, |out| {
                    out.extend_from_slice(&processed.0.to_le_bytes());
                    out.extend_from_slice(&acknowledged.0.to_le_bytes());
                    out.extend_from_slice(&[0; 4]);
                    write_refused(out, refused);
                });
            }
            Self::Close(reason) => write_frame(out, Op::Close, 0, 0, |out| {
                out.extend_from_slice(&reason.code().to_le_bytes());
                out.extend_from_slice(&[0; 4]);
            }),
        }
    }

    /// Decodes an answer; for a BLOCK the head only.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        let allowed = match frame.header.op {
            Op::Block => FLAG_END | FLAG_UNKNOWN,
            Op::QueueList => FLAG_END,
            Op::Stats => FLAG_SYNCED | FLAG_FULL | FLAG_SYNCING | FLAG_DAMAGED,
            Op::Ack | Op::Alive | Op::Attached | Op::Close => 0,
            other => return Err(WireError::Operation(other.code())),
        };
        expect(frame, frame.header.op, allowed)?;
        let fields = Fields(frame.payload);
        let (seq, flags) = (Seq(frame.header.number), frame.header.flags);
        match frame.header.op {
            Op::Ack => decode_ack(Txn(frame.header.number), fields),
            Op::Block => decode_block(fields, flags).map(|head| Self::Block { seq, head }),
            Op::Stats => decode_stat(fields, flags).map(|stat| Self::Stats { seq, stat }),
            Op::QueueList => decode_queues(fields).map(|queues| Self::QueueList {
                seq,
                queues,
                end: flags & FLAG_END != 0,
            }),
            Op::Alive => decode_alive(seq, fields),
            Op::Attached => decode_attached(seq, fields),
            _ => decode_close(frame.header.number, fields),
        }
        .ok_or_else(|| frame.layout())
    }
}

fn decode_ack(through: Txn, mut fields: Fields<'_>) -> Option<Answer> {
    fields.zero()?;
    let refused = read_refused(&mut fields)?.collect::<Option<Vec<_>>>()?;
    Some(Answer::Ack { through, refused })
}

fn decode_block(mut fields: Fields<'_>, flags: u8) -> Option<BlockHead> {
    let (queue, records) = (QueueId(fields.u32()?), fields.u32()?);
    let (next, octets) = (RecordId(fields.u64()?), fields.u64()?);
    fields.end()?;
    Some(BlockHead {
        queue,
        records,
        next,
        octets,
        end: flags & FLAG_END != 0,
        known: flags & FLAG_UNKNOWN == 0,
    })
}

fn decode_alive(seq: Seq, mut fields: Fields<'_>) -> Option<Answer> {
    let (processed, acknowledged) = (Txn(fields.u64()?), Txn(fields.u64()?));
    fields.end()?;
    Some(Answer::Alive {
        seq,
        processed,
        acknowledged,
    })
}

fn decode_attached(seq: Seq, mut fields: Fields<'_>) -> Option<Answer> {
    let (processed, acknowledged) = (Txn(fields.u64()?), Txn(fields.u64()?));
    fields.zero()?;
    let refused = read_refused(&mut fields)?.collect::<Option<Vec<_>>>()?;
    Some(Answer::Attached {
        seq,
        processed,
        acknowledged,
        refused,
    })
}

fn decode_close(number: u64, mut fields: Fields<'_>) -> Option<Answer> {
    (number == 0).then_some(())?;
    let code = fields.u32()?;
    fields.zero()?;
    fields.end()?;
    Some(Answer::Close(CloseReason::from_code(code)?))
}

fn encode_stat(out: &mut Vec<u8>, seq: Seq, stat: &NodeStat) {
    let synced = if stat.synced { FLAG_SYNCED } else { 0 };
    let full = if stat.full { FLAG_FULL } else { 0 };
    let syncing = if stat.syncing { FLAG_SYNCING } else { 0 };
    let damaged = if stat.damaged { FLAG_DAMAGED } else { 0 };
    let flags = synced | full | syncing | damaged;
    write_frame(out, Op::Stats, flags, seq.0, |out| {
        for figure in [
            stat.incarnation.0,
            stat.processed.0,
            stat.acknowledged.0,
            stat.queues,
            stat.records,
            stat.bytes,
            stat.memory_used,
            stat.memory_max,
            stat.log_bytes,
            stat.epoch,
            stat.spilled,
            stat.bytes_max,
            stat.fill,
        ] {
            out.extend_from_slice(&figure.to_le_bytes());
        }
    });
}

fn decode_stat(mut fields: Fields<'_>, flags: u8) -> Option<NodeStat> {
    let stat = NodeStat {
        incarnation: Incarnation(fields.u64()?),
        processed: Txn(fields.u64()?),
        acknowledged: Txn(fields.u64()?),
        queues: fields.u64()?,
        records: fields.u64()?,
        bytes: fields.u64()?,
        memory_used: fields.u64()?,
        memory_max: fields.u64()?,
        log_bytes: fields.u64()?,
        epoch: fields.u64()?,
        spilled: fields.u64()?,
        bytes_max: fields.u64()?,
        fill: fields.u64()?,
        synced: flags & FLAG_SYNCED != 0,
        full: flags & FLAG_FULL != 0,
        syncing: flags & FLAG_SYNCING != 0,
        damaged: flags & FLAG_DAMAGED != 0,
    };
    fields.end()?;
    Some(stat)
}

fn encode_queues(out: &mut Vec<u8>, seq: Seq, queues: &[QueueStat], end: bool) {
    let flags = if end { FLAG_END } else { 0 };
    write_frame(out, Op::QueueList, flags, seq.0, |out| {
        let count = u32::try_from(queues.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for queue in queues {
            queue.write(out);
        }
    });
}

fn decode_queues(mut fields: Fields<'_>) -> Option<Vec<QueueStat>> {
    let count = fields.u32()?;
    fields.zero()?;
    let mut queues = Vec::<QueueStat>::new();
    for _ in 0..count {
        let queue = QueueStat::read(&mut fields)?;
        // Rising numbers guarantee that a client asking for the next page comes to an end.
        let rises = queues.last().is_none_or(|last| last.id < queue.id);
        if queue.id.0 >= QUEUES_MAX || !rises {
            return None;
        }
        queues.push(queue);
    }
    fields.end()?;
    Some(queues)
}

impl QueueStat {
    /// Octets of a queue in a QUEUE_LIST without its name and grants.
    pub const ENTRY_LEN: usize = 56;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        let grants = self.readers.get().octets();
        for octets in [self.name.as_bytes(), grants] {
            let len = u16::try_from(octets.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&len.to_le_bytes());
        }
        for figure in [
            self.limits.length_max,
            self.limits.bytes_max,
            self.first.0,
            self.next.0,
            self.length,
            self.bytes,
        ] {
            out.extend_from_slice(&figure.to_le_bytes());
        }
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(grants);
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let id = QueueId(fields.u32()?);
        let (len, grants) = (u32::from(fields.u16()?), u32::from(fields.u16()?));
        let limits = QueueLimits {
            length_max: fields.u64()?,
            bytes_max: fields.u64()?,
        };
        let (first, next) = (RecordId(fields.u64()?), RecordId(fields.u64()?));
        let (length, bytes) = (fields.u64()?, fields.u64()?);
        let name = name(fields.slice(len)?)?.to_owned();
        let readers = Grants::read_of_queue(fields.slice(grants)?)?.into();
        Some(Self {
            id,
            name,
            limits,
            readers,
            first,
            next,
            length,
            bytes,
        })
    }

    /// Appends the entry as in a QUEUE_LIST, for a node's snapshot and for [`encode_kept_create`].
    ///
    /// [`encode_kept_create`]: crate::encode_kept_create
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    /// Reads an entry from the front of `octets`; `None` when the entry is malformed.
    #[must_use]
    pub fn decode(octets: &mut &[u8]) -> Option<Self> {
        let mut fields = Fields(octets);
        let stat = Self::read(&mut fields)?;
        *octets = fields.0;
        Some(stat)
    }
}
