//! Input from the node: frames, and blocks of records in one allocation.

use bytes::{Buf, Bytes, BytesMut};
use vere_spoolwire::{
    ANSWER_FRAME_MAX, Answer, BlockHead, Change, CloseReason, Frame, Greeting, HANDSHAKE_FRAME_MAX,
    Header, Mutation, Op, Seq, WELCOME_FRAME_MAX, Welcome, WireError,
};

use super::config::OwnerError;
use vere_spoolwire::{Block, Record};

/// A complete message.
#[derive(Debug)]
pub(super) enum Message {
    Greeting(Greeting),
    Welcome(Welcome),
    Answer(Answer),
    Block { seq: Seq, block: Option<Block> },
}

/// Received octets that do not form a complete message yet.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    octets: BytesMut,
    /// A BLOCK with records still to arrive.
    block: Option<(Seq, BlockHead)>,
}

impl Incoming {
    pub(super) fn extend(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Returns the next complete message. `frame_max` bounds a record.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Protocol`] for input that no node may send.
    pub(super) fn next(
        &mut self,
        in_handshake: bool,
        frame_max: u32,
    ) -> Result<Option<Message>, OwnerError> {
        if let Some((seq, head)) = self.block {
            return self.records(seq, head);
        }
        let max = if in_handshake {
            WELCOME_FRAME_MAX
        } else {
            ANSWER_FRAME_MAX
        };
        let Some(header) = Header::peek(&self.octets, max).map_err(protocol)? else {
            return Ok(None);
        };
        if header.op == Op::Greeting && header.len > HANDSHAKE_FRAME_MAX {
            return Err(OwnerError::Protocol);
        }
        let Some(frame) = Frame::open(header, &self.octets).map_err(protocol)? else {
            return Ok(None);
        };
        let message = match header.op {
            Op::Greeting => Message::Greeting(Greeting::decode(&frame).map_err(protocol)?),
            Op::Welcome => Message::Welcome(Welcome::decode(&frame).map_err(protocol)?),
            _ => Message::Answer(Answer::decode(&frame).map_err(protocol)?),
        };
        self.octets.advance(header.len);
        let Message::Answer(Answer::Block { seq, head }) = message else {
            return Ok(Some(message));
        };
        // A node sends at most its own block limit, or one record.
        if in_handshake || head.octets > u64::from(frame_max).max(64 << 20) {
            return Err(OwnerError::Protocol);
        }
        self.block = Some((seq, head));
        self.records(seq, head)
    }

    /// Sequence number of the read whose records are arriving.
    pub(super) fn arriving(&self) -> Option<Seq> {
        self.block.map(|(seq, _)| seq)
    }

    fn records(&mut self, seq: Seq, head: BlockHead) -> Result<Option<Message>, OwnerError> {
        let len = usize::try_from(head.octets).unwrap_or(usize::MAX);
        if self.octets.len() < len {
            return Ok(None);
        }
        self.block = None;
        let octets = self.octets.split_to(len).freeze();
        let block = head
            .known
            .then(|| read_records(&octets, &head))
            .transpose()?;
        Ok(Some(Message::Block { seq, block }))
    }
}

fn read_records(octets: &Bytes, head: &BlockHead) -> Result<Block, OwnerError> {
    let mut records = Vec::new();
    let mut rest = octets.as_ref();
    while !rest.is_empty() {
        let frame = Frame::read(rest, rest.len()).map_err(protocol)?;
        let frame = frame.ok_or(OwnerError::Protocol)?;
        let Ok(Mutation::Change(Change::Put {
            id,
            meta,
            body: Some(body),
            ..
        })) = Mutation::decode_logged(&frame)
        else {
            return Err(OwnerError::Protocol);
        };
        let (meta, body) = (octets.slice_ref(meta), octets.slice_ref(body));
        records.push(Record { id, meta, body });
        rest = &rest[frame.header.len..];
    }
    if records.len() != head.records as usize {
        return Err(OwnerError::Protocol);
    }
    Ok(Block {
        records,
        next: head.next,
        end: head.end,
    })
}

fn protocol(error: WireError) -> OwnerError {
    match error {
        WireError::Earlier => OwnerError::Closed(CloseReason::Version),
        _ => OwnerError::Protocol,
    }
}
