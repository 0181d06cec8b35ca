//! Octets to write.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::Serialize;

/// Pieces in the order of writing.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: VecDeque<Piece>,
    asked: usize,
}

#[derive(Debug)]
struct Piece {
    octets: Bytes,
    /// Octets that the other side caused by frames of its own.
    asked: usize,
}

impl Output {
    /// Octets of waiting answers. Deliveries do not count: their number has a bound of its own, and a client that writes a
    /// long frame while a delivery comes has to be read.
    pub(crate) const fn asked(&self) -> usize {
        self.asked
    }

    /// Appends an answer.
    pub(crate) fn answer(&mut self, line: Vec<u8>) {
        self.asked = self.asked.saturating_add(line.len());
        self.pieces.push_back(Piece {
            asked: line.len(),
            octets: line.into(),
        });
    }

    /// Appends octets that nobody asked for, without a copy.
    pub(crate) fn piece(&mut self, octets: Bytes) {
        if !octets.is_empty() {
            self.pieces.push_back(Piece { octets, asked: 0 });
        }
    }

    /// Takes the next piece.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        self.asked = self.asked.saturating_sub(piece.asked);
        Some(piece.octets)
    }
}

/// A frame as a line with a newline.
pub(crate) fn encode(frame: &impl Serialize) -> Vec<u8> {
    // Frames have texts and numbers alone, which JSON always has a form for.
    let mut line = serde_json::to_vec(frame).unwrap_or_default();
    line.push(b'\n');
    line
}
