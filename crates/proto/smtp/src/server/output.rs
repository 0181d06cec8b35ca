//! Queue of replies to the client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::reply::{EnhancedStatusCode, Reply, encode_line};

use super::tally::Tally;

/// Octets of buffer kept while the queue is empty, so that an active session does not allocate for
/// each reply, and an idle session stays small.
const KEPT_OCTETS_MAX: usize = 512;

/// A reply of a single line with a constant text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) code: u16,
    pub(super) status: Option<EnhancedStatusCode>,
    pub(super) text: &'static str,
}

impl Fixed {
    pub(super) const fn new(code: u16, status: (u16, u16), text: &'static str) -> Self {
        let class = match code / 100 {
            4 => 4,
            5 => 5,
            _ => 2,
        };
        Self {
            code,
            status: Some(EnhancedStatusCode::new(class, status.0, status.1)),
            text,
        }
    }

    /// A reply to which RFC 2034 section 4 gives no status code: greeting, HELO, EHLO and 3yz.
    pub(super) const fn plain(code: u16, text: &'static str) -> Self {
        Self {
            code,
            status: None,
            text,
        }
    }
}

/// The octets waiting to be sent.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    sent: usize,
    pub(super) tally: Tally,
}

impl Output {
    /// Octets left over by another process, which has counted their replies.
    pub(super) fn resumed(buffer: Vec<u8>) -> Self {
        Self {
            buffer,
            ..Self::default()
        }
    }

    /// The octets not sent.
    pub(super) fn into_pending(mut self) -> Vec<u8> {
        self.buffer.drain(..self.sent.min(self.buffer.len()));
        self.buffer
    }

    pub(super) fn pending(&self) -> &[u8] {
        self.buffer.get(self.sent..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.pending().len()
    }

    /// Whether a part of the queued octets was sent already.
    pub(super) fn is_begun(&self) -> bool {
        self.sent > 0
    }

    pub(super) fn sent(&mut self, octets: usize) {
        self.sent = self.sent.saturating_add(octets);
        if self.sent >= self.buffer.len() {
            self.clear();
        }
    }

    /// Drops queued replies.
    pub(super) fn discard(&mut self) {
        self.tally.discard_replies();
        self.clear();
    }

    fn clear(&mut self) {
        self.sent = 0;
        if self.buffer.capacity() > KEPT_OCTETS_MAX {
            self.buffer = Vec::new();
        } else {
            self.buffer.clear();
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    pub(super) fn fixed(&mut self, reply: Fixed) {
        self.tally.reply(reply.code);
        encode_line(&mut self.buffer, reply.code, reply.status, reply.text, true);
    }

    pub(super) fn reply(&mut self, reply: &Reply) {
        self.tally.reply(reply.code);
        reply.encode(&mut self.buffer);
    }

    /// Appends a line of a reply without a status code.
    pub(super) fn line(&mut self, code: u16, text: &str, last: bool) {
        if last {
            self.tally.reply(code);
        }
        encode_line(&mut self.buffer, code, None, text, last);
    }

    /// Appends a line with a computed text.
    pub(super) fn text(&mut self, code: u16, status: EnhancedStatusCode, text: &str) {
        self.tally.reply(code);
        encode_line(&mut self.buffer, code, Some(status), text, true);
    }

    /// Appends `334` and a challenge, which may be longer than other replies (RFC 4954 section 4).
    pub(super) fn challenge(&mut self, challenge: &[u8]) {
        self.tally.reply(334);
        self.buffer.extend_from_slice(b"334 ");
        self.buffer
            .extend_from_slice(STANDARD.encode(challenge).as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
    }
}
