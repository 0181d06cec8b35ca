//! Queue of responses to the client.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::write;

/// Octets of buffer kept while the queue is empty.
const KEPT_OCTETS_MAX: usize = 512;

/// Octets from which content is queued whole instead of being copied between the responses.
pub(super) const SHARED_OCTETS_MIN: usize = 16 * 1024;

/// The octets waiting to be sent.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Pieces before the buffer.
    pieces: VecDeque<Bytes>,
    buffer: Vec<u8>,
    /// Octets already sent of the first piece, or of the buffer without pieces.
    sent: usize,
    /// Octets of all pieces.
    held: usize,
}

impl Output {
    /// The next octets to send, not always all.
    pub(super) fn pending(&self) -> &[u8] {
        let first = self
            .pieces
            .front()
            .map_or(self.buffer.as_slice(), |piece| piece);
        first.get(self.sent..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.pending().is_empty()
    }

    /// How many octets wait.
    pub(super) fn len(&self) -> usize {
        self.held
            .saturating_add(self.buffer.len())
            .saturating_sub(self.sent)
    }

    pub(super) fn sent(&mut self, octets: usize) {
        self.sent = self.sent.saturating_add(octets);
        match self.pieces.front() {
            Some(piece) if self.sent >= piece.len() => {
                self.held = self.held.saturating_sub(piece.len());
                self.sent = 0;
                self.pieces.pop_front();
            }
            None if self.sent >= self.buffer.len() => self.clear(),
            _ => {}
        }
    }

    pub(super) fn discard(&mut self) {
        self.pieces.clear();
        self.held = 0;
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
        self.held.saturating_add(self.buffer.capacity())
    }

    /// The buffer to write to.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Reserves memory for octets that follow at once.
    pub(super) fn reserve(&mut self, octets: usize) {
        self.buffer.reserve(octets);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    pub(super) fn number(&mut self, number: u64) {
        write::number(&mut self.buffer, number);
    }

    /// Appends a line with CRLF.
    pub(super) fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\r\n");
    }

    /// Appends content of a message; long content is not copied.
    pub(super) fn content(&mut self, content: Bytes) {
        if content.len() < SHARED_OCTETS_MIN {
            self.buffer.extend_from_slice(&content);
            return;
        }
        let mut before = std::mem::take(&mut self.buffer);
        if self.pieces.is_empty() {
            // Removes the octets already sent from the buffer.
            before.drain(..self.sent.min(before.len()));
            self.sent = 0;
        }
        for piece in [Bytes::from(before), content] {
            if !piece.is_empty() {
                self.held = self.held.saturating_add(piece.len());
                self.pieces.push_back(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        let mut output = Output::default();
        let large = Bytes::from(vec![b'x'; SHARED_OCTETS_MIN]);
        output.text("ab");
        output.sent(1);
        output.content(large.clone());
        output.text("c");
        output.content(Bytes::from_static(b"d"));
        output.content(large.clone());
        output.text("e");
        let wanted = [b"b", &large[..], b"cd", &large[..], b"e"].concat();
        assert_eq!(output.len(), wanted.len());
        let mut got = Vec::new();
        while !output.is_empty() {
            let piece = output.pending().len().min(1_000);
            got.extend_from_slice(&output.pending()[..piece]);
            output.sent(piece);
            assert_eq!(output.len(), wanted.len() - got.len());
        }
        assert_eq!(got, wanted);
        assert!(output.memory() <= KEPT_OCTETS_MAX);
    }
}
