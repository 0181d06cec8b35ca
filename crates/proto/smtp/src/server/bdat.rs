//! BDAT: the text of the message in chunks of known length (RFC 3030 section 2).
//!
//! A refused chunk is read and thrown away all the same: the octets must not run as commands.

use vere_units::Timestamp;

use crate::command::{Bdat, BodyType};

use super::collector::{Collector, Form};
use super::output::Fixed;
use super::pace::Pace;
use super::session::Transaction;
use super::{Phase, Server, replies};

/// A chunk being received.
#[derive(Debug)]
pub(super) struct ChunkPhase {
    /// Octets of the chunk still to come.
    remaining: u64,
    received: u64,
    last: bool,
    /// Why the chunk is thrown away.
    refused: Option<Fixed>,
    pace: Pace,
}

impl Server {
    pub(super) fn bdat(&mut self, bdat: Bdat, now: Timestamp) {
        let refused = self.begin_chunk(bdat, now).err();
        if refused.is_some() && bdat.size > self.config.limits.refused_size_max.as_u64() {
            return self.close_with(replies::REFUSED_TOO_MUCH);
        }
        let chunk = ChunkPhase {
            remaining: bdat.size,
            received: 0,
            last: bdat.last,
            refused,
            pace: Pace::new(now),
        };
        if bdat.size == 0 {
            return self.end_chunk(&chunk);
        }
        self.phase = Phase::Chunk(Box::new(chunk));
    }

    /// Checks the command and makes room for the text of its transaction.
    fn begin_chunk(&mut self, bdat: Bdat, now: Timestamp) -> Result<(), Fixed> {
        let limits = self.text_limits();
        if self.lacks_tls() {
            return Err(replies::TLS_FIRST);
        }
        if !self.config.extensions.chunking {
            return Err(replies::NOT_OFFERED);
        }
        let Some(transaction) = self.session.transaction.as_deref_mut() else {
            return Err(replies::MAIL_FIRST);
        };
        if transaction.recipients.is_empty() {
            return Err(replies::NO_RECIPIENTS);
        }
        let form = match transaction.mail.body {
            BodyType::BinaryMime => Form::Binary,
            BodyType::SevenBit | BodyType::EightBitMime => Form::Lines,
        };
        let collector = transaction
            .chunks
            .get_or_insert_with(|| Box::new(Collector::new(form, limits, now)));
        collector.announce(bdat.size);
        match collector.fault() {
            Some(fault) => Err(replies::fault(fault)),
            None => Ok(()),
        }
    }

    pub(super) fn take_chunk(&mut self, bytes: &[u8], now: Timestamp) -> usize {
        let Phase::Chunk(chunk) = &mut self.phase else {
            return 0;
        };
        self.waiting_since = now;
        let room = usize::try_from(chunk.remaining).unwrap_or(usize::MAX);
        let piece = bytes.get(..room).unwrap_or(bytes);
        let octets = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        chunk.remaining = chunk.remaining.saturating_sub(octets);
        chunk.received = chunk.received.saturating_add(octets);
        chunk.pace.take(piece.len(), &self.config.limits, now);
        if chunk.refused.is_none()
            && let Some(collector) = collector_of(&mut self.session.transaction)
        {
            collector.take(piece);
            collector.pace().take(piece.len(), &self.config.limits, now);
        }
        if chunk.remaining == 0
            && let Phase::Chunk(chunk) = std::mem::replace(&mut self.phase, Phase::Command)
        {
            self.end_chunk(&chunk);
        }
        piece.len()
    }

    /// The deadline of the text, or of a refused chunk: time earned with a chunk serves the next chunk, and many
    /// small chunks earn no more.
    pub(super) fn chunk_due(&self, chunk: &ChunkPhase) -> Timestamp {
        match chunk.refused {
            Some(_) => chunk.pace.due(&self.config.limits),
            None => self.chunks_due(),
        }
    }

    /// The deadline of the text received in chunks so far, if any: a client that pauses between chunks holds the text
    /// as well.
    pub(super) fn chunks_due(&self) -> Timestamp {
        let open = self
            .session
            .transaction
            .as_ref()
            .and_then(|open| open.chunks.as_ref());
        open.map_or(Timestamp::MAX, |text| text.due(&self.config.limits))
    }

    fn end_chunk(&mut self, chunk: &ChunkPhase) {
        if let Some(reply) = chunk.refused {
            if chunk.last {
                if let Some(transaction) = self.session.transaction.take() {
                    self.notes.refused(&transaction.mail, None, reply);
                }
                return self.fail(reply);
            }
            // More chunks may be on the way, sent before the client could see the first refusal.
            return self.idle(reply);
        }
        let open = self.session.transaction.as_deref_mut();
        if chunk.last {
            let collector = open.and_then(|transaction| transaction.chunks.take());
            return match collector {
                Some(collector) => self.end_message(collector.finish()),
                None => self.fail(replies::MAIL_FIRST),
            };
        }
        match collector_of(&mut self.session.transaction).and_then(|collector| collector.fault()) {
            Some(fault) => self.fail(replies::fault(fault)),
            None if chunk.received == 0 => self.idle(replies::CHUNK_OK),
            None => self.output.fixed(replies::CHUNK_OK),
        }
    }
}

pub(super) fn collector_of(transaction: &mut Option<Box<Transaction>>) -> Option<&mut Collector> {
    transaction.as_deref_mut()?.chunks.as_deref_mut()
}
