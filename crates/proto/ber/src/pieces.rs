//! Octets in several pieces, which a host writes with one writev(2) and nobody copies together.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Octets in order, in one piece or several. Empty pieces are left out.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Pieces {
    /// No octets.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pieces: VecDeque::new(),
            len: 0,
        }
    }

    /// Number of octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len = self.len.saturating_add(piece.len());
            self.pieces.push_back(piece);
        }
    }

    /// Appends all pieces of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.len = self.len.saturating_add(other.len);
        self.pieces.append(&mut other.pieces);
    }

    /// Takes the first piece.
    pub fn pop(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front()?;
        self.len = self.len.saturating_sub(piece.len());
        Some(piece)
    }

    /// Takes the first piece, but at most `max` octets of it.
    pub fn pop_at_most(&mut self, max: usize) -> Option<Bytes> {
        let first = self.pieces.front_mut()?;
        match first.len() <= max {
            true => self.pop(),
            false => {
                self.len = self.len.saturating_sub(max);
                Some(first.split_to(max))
            }
        }
    }

    /// Takes the first `count` octets, or all octets if there are fewer.
    #[must_use]
    pub fn take(&mut self, count: usize) -> Self {
        let mut taken = Self::new();
        while taken.len < count {
            let Some(piece) = self.pop_at_most(count.saturating_sub(taken.len)) else {
                break;
            };
            taken.push(piece);
        }
        taken
    }

    /// Copies the first octets into `to` and leaves them here; returns how many there were.
    pub fn peek(&self, to: &mut [u8]) -> usize {
        let octets = self.pieces.iter().flat_map(|piece| piece.iter());
        let mut copied = 0_usize;
        for (place, octet) in to.iter_mut().zip(octets) {
            *place = *octet;
            copied = copied.saturating_add(1);
        }
        copied
    }

    /// The octets in one piece. Octets in several pieces are copied.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        match self.pieces.len() {
            0 => Bytes::new(),
            1 => self.pieces.pop_front().unwrap_or_default(),
            _ => {
                let mut whole = BytesMut::with_capacity(self.len);
                for piece in &self.pieces {
                    whole.extend_from_slice(piece);
                }
                whole.freeze()
            }
        }
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }
}

impl From<Bytes> for Pieces {
    fn from(piece: Bytes) -> Self {
        let mut pieces = Self::new();
        pieces.push(piece);
        pieces
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(octets: Vec<u8>) -> Self {
        Self::from(Bytes::from(octets))
    }
}

impl IntoIterator for Pieces {
    type Item = Bytes;
    type IntoIter = std::collections::vec_deque::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter()
    }
}

impl FromIterator<Bytes> for Pieces {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        let mut all = Self::new();
        for piece in pieces {
            all.push(piece);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Pieces {
        [Bytes::from_static(b"abc"), Bytes::from_static(b"defg")]
            .into_iter()
            .collect()
    }

    #[test]
    fn octets_are_taken_across_pieces() {
        let mut pieces = two();
        assert_eq!(pieces.take(4).into_bytes(), "abcd");
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.take(9).into_bytes(), "efg");
        assert!(pieces.is_empty());
    }

    #[test]
    fn a_peek_takes_nothing() {
        let pieces = two();
        let mut five = [0; 5];
        assert_eq!(pieces.peek(&mut five), 5);
        assert_eq!(&five, b"abcde");
        assert_eq!(pieces.peek(&mut [0; 9]), 7);
        assert_eq!(pieces.into_bytes(), "abcdefg");
    }

    #[test]
    fn empty_pieces_are_left_out() {
        let mut pieces = Pieces::new();
        pieces.push(Bytes::new());
        assert!(pieces.pop().is_none());
        assert_eq!(pieces.into_bytes(), "");
    }
}
