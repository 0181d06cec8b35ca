//! Pending output of one connection: frames written here, and ranges of segments that are sent in
//! place.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::memory::Memory;
use super::place::Piece;
use super::segment::Segments;

/// Pending octets above which a connection must read before the node answers its next request.
const PENDING_MAX: usize = 4 << 20;
/// Limit for the number of pending ranges.
const CHUNKS_MAX: usize = 64 << 10;
/// Capacity for frames that is kept when nothing is pending, in octets.
const INLINE_KEPT: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
enum Chunk {
    /// Number of octets in `inline`.
    Inline(usize),
    /// Octets of a pinned segment.
    Range(Piece),
}

impl Chunk {
    const fn len(self) -> usize {
        match self {
            Self::Inline(len) => len,
            Self::Range(piece) => piece.len as usize,
        }
    }
}

/// The output of one connection.
#[derive(Debug, Default)]
pub(super) struct Output {
    inline: Vec<u8>,
    /// Octets of `inline` that were written to the socket.
    inline_sent: usize,
    chunks: VecDeque<Chunk>,
    pending: usize,
}

impl Output {
    pub(super) const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Whether too much output is pending, because the peer does not read its answers.
    pub(super) fn is_over(&self) -> bool {
        self.pending > PENDING_MAX || self.chunks.len() > CHUNKS_MAX
    }

    /// Appends the output of `write`.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.inline.len();
        write(&mut self.inline);
        let len = self.inline.len() - before;
        self.pending += len;
        match self.chunks.back_mut() {
            Some(Chunk::Inline(last)) => *last += len,
            _ => self.chunks.push_back(Chunk::Inline(len)),
        }
    }

    /// Appends octets of a segment. Adjacent pieces become one range.
    pub(super) fn range(&mut self, segments: &mut Segments, piece: Piece) {
        if piece.len == 0 {
            return;
        }
        self.pending += piece.len as usize;
        if let Some(Chunk::Range(last)) = self.chunks.back_mut()
            && last.at.piece(last.len as usize, 0).at == piece.at
        {
            last.len += piece.len;
            return;
        }
        segments.pin(piece.at.segment);
        self.chunks.push_back(Chunk::Range(piece));
    }

    /// Fills `slices` with the next output and returns the number of slices.
    pub(super) fn slices<'a>(
        &'a self,
        segments: Option<&'a Segments>,
        slices: &mut [IoSlice<'a>],
    ) -> usize {
        let mut inline = &self.inline[self.inline_sent..];
        let mut count = 0;
        for (chunk, slot) in self.chunks.iter().zip(slices) {
            let octets = match (chunk, segments) {
                (Chunk::Inline(len), _) => {
                    let (octets, rest) = inline.split_at(*len);
                    inline = rest;
                    octets
                }
                (Chunk::Range(piece), Some(segments)) => segments.octets(*piece),
                (Chunk::Range(_), None) => break,
            };
            *slot = IoSlice::new(octets);
            count += 1;
        }
        count
    }

    /// Records that `count` octets were written to the socket.
    pub(super) fn sent(
        &mut self,
        mut count: usize,
        mut segments: Option<(&mut Segments, &mut Memory)>,
    ) {
        self.pending -= count;
        while count > 0 {
            let Some(chunk) = self.chunks.front_mut() else {
                break;
            };
            let part = count.min(chunk.len());
            count -= part;
            match chunk {
                Chunk::Inline(len) => {
                    *len -= part;
                    self.inline_sent += part;
                }
                Chunk::Range(piece) => {
                    let left = piece.len as usize - part;
                    *piece = piece.at.piece(part, left);
                    if left == 0
                        && let Some((segments, memory)) = &mut segments
                    {
                        segments.unpin(memory, piece.at.segment);
                    }
                }
            }
            if chunk.len() == 0 {
                self.chunks.pop_front();
            }
        }
        if self.inline_sent == self.inline.len() {
            self.inline.clear();
            self.inline.shrink_to(INLINE_KEPT);
            self.inline_sent = 0;
        }
    }

    /// Drops everything pending.
    pub(super) fn clear(&mut self, segments: Option<(&mut Segments, &mut Memory)>) {
        let pending = self.pending;
        self.sent(pending, segments);
        self.chunks.clear();
    }
}
