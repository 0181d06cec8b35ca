//! Encoded frames that wait for the socket: short ones together, long ones by reference, since several replicas get the same octets.

use std::collections::VecDeque;

use bytes::Bytes;

/// Capacity kept for short frames, in octets.
const KEPT: usize = 512 << 10;

#[derive(Debug)]
enum Piece {
    Short(Vec<u8>),
    Long(Bytes),
}

impl Piece {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Short(octets) => octets,
            Self::Long(octets) => octets,
        }
    }
}

/// Octets in the order of their writing.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Piece>,
    /// Octets of the first piece that the socket has.
    sent: usize,
    waiting: usize,
}

impl Outgoing {
    /// Appends octets that `write` writes behind those that are there.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !matches!(self.pieces.back(), Some(Piece::Short(_))) {
            self.pieces.push_back(Piece::Short(Vec::new()));
        }
        if let Some(Piece::Short(octets)) = self.pieces.back_mut() {
            let before = octets.len();
            write(octets);
            self.waiting += octets.len() - before;
        }
    }

    /// Appends octets without a copy.
    pub(super) fn push(&mut self, octets: Bytes) {
        if self.waiting == 0 {
            self.pieces.clear();
            self.sent = 0;
        }
        self.waiting += octets.len();
        self.pieces.push_back(Piece::Long(octets));
    }

    /// Octets not sent yet.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Octets to send next; more may wait behind them.
    pub(super) fn next(&self) -> &[u8] {
        let first = self.pieces.front().map_or(&[][..], Piece::octets);
        first.get(self.sent..).unwrap_or_default()
    }

    /// Records that the socket has so many of [`next`](Self::next).
    pub(super) fn sent(&mut self, count: usize) {
        self.sent += count;
        self.waiting = self.waiting.saturating_sub(count);
        let Some(first) = self.pieces.front_mut() else {
            return;
        };
        if self.sent < first.octets().len() {
            return;
        }
        self.sent = 0;
        match first {
            // The memory serves the next frames.
            Piece::Short(octets) if self.waiting == 0 => {
                octets.clear();
                octets.shrink_to(KEPT);
            }
            _ => {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_leave_in_the_order_of_writing_by_any_steps() {
        for step in [1, 2, 3, 5, 100] {
            let mut out = Outgoing::default();
            let mut found = Vec::new();
            let mut take = |out: &mut Outgoing| {
                let count = out.next().len().min(step);
                found.extend_from_slice(&out.next()[..count]);
                out.sent(count);
            };
            out.write(|octets| octets.extend_from_slice(b"ab"));
            out.write(|octets| octets.extend_from_slice(b"c"));
            out.push(Bytes::from_static(b"DEFG"));
            take(&mut out);
            out.push(Bytes::from_static(b"HI"));
            out.write(|octets| octets.extend_from_slice(b"jk"));
            while out.waiting() > 0 {
                assert!(!out.next().is_empty());
                take(&mut out);
            }
            assert_eq!(out.next(), b"");
            out.push(Bytes::from_static(b"L"));
            out.write(|octets| octets.extend_from_slice(b"m"));
            while out.waiting() > 0 {
                take(&mut out);
            }
            assert_eq!(found, b"abcDEFGHIjkLm", "{step}");
        }
    }
}
