//! The pieces of a file by their offsets. Offsets without a piece are holes.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::piece::{Piece, Source, UnsentId, narrow};
use super::unsent::Unsent;
use crate::rows::Extent;

/// The content of a file. The file's size lies in the inode; no piece lies behind the size.
#[derive(Debug, Default)]
pub struct Content {
    pieces: BTreeMap<u64, Piece>,
    /// Octets outside holes.
    data: u64,
    /// Octets that no server has.
    unsent: u64,
}

impl Content {
    /// An empty file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Octets outside holes.
    #[must_use]
    pub fn data_octets(&self) -> u64 {
        self.data
    }

    /// Octets that no server has.
    #[must_use]
    pub fn unsent_octets(&self) -> u64 {
        self.unsent
    }

    /// The pieces in order; offsets between pieces are holes.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, Piece)> + '_ {
        self.pieces.iter().map(|(at, piece)| (*at, *piece))
    }

    /// Chunks lie elsewhere. Returns the pieces that are other ones now.
    pub fn relocate(&mut self, places: &HashMap<Extent, Extent>) -> Vec<(u64, Piece)> {
        let mut moved = Vec::new();
        for (at, piece) in &mut self.pieces {
            if let Source::Chunk { extent, .. } = &mut piece.source
                && let Some(place) = places.get(extent)
            {
                *extent = *place;
                moved.push((*at, *piece));
            }
        }
        moved
    }

    /// Octets written at an offset. A write behind the last unsent piece shares that piece's buffer, so that short writes in
    /// sequence make few pieces. Returns the buffer, and how many octets of the buffer lie before the written octets.
    pub fn write(&mut self, offset: u64, data: &Bytes, unsent: &mut Unsent) -> (UnsentId, u32) {
        let end = offset.saturating_add(data.len() as u64);
        self.cut(offset, end, unsent);
        if let Some(joined) = self.join(offset, data, unsent) {
            return joined;
        }
        let id = unsent.add(data.clone());
        self.insert_unsent(offset, id, 0, data, unsent);
        (id, 0)
    }

    /// Octets that the journal has kept, in the buffer of the first time.
    pub fn rewrite(
        &mut self,
        offset: u64,
        (id, skip): (UnsentId, u32),
        data: &Bytes,
        unsent: &mut Unsent,
    ) {
        let end = offset.saturating_add(data.len() as u64);
        self.cut(offset, end, unsent);
        unsent.restore(id, skip, data.clone());
        if !self.lengthen(offset, (id, skip), data) {
            self.insert_unsent(offset, id, skip, data, unsent);
        }
    }

    fn insert_unsent(
        &mut self,
        offset: u64,
        id: UnsentId,
        skip: u32,
        data: &Bytes,
        unsent: &mut Unsent,
    ) {
        let piece = Piece {
            length: narrow(data.len() as u64),
            source: Source::Unsent { id, skip },
        };
        self.insert(offset, piece, unsent);
    }

    fn join(&mut self, offset: u64, data: &Bytes, unsent: &mut Unsent) -> Option<(UnsentId, u32)> {
        let (begin, last) = self.pieces.range(..offset).next_back()?;
        let Source::Unsent { id, skip } = last.source else {
            return None;
        };
        let end = skip.saturating_add(last.length);
        if last.end(*begin) != offset || !unsent.extend(id, end, data) {
            return None;
        }
        self.lengthen(offset, (id, end), data);
        Some((id, end))
    }

    /// Lengthens the piece before `offset`, if that piece ends there in the file and at `end` of the buffer.
    fn lengthen(&mut self, offset: u64, (id, end): (UnsentId, u32), data: &Bytes) -> bool {
        let Some((begin, last)) = self.pieces.range_mut(..offset).next_back() else {
            return false;
        };
        let Source::Unsent { id: of, skip } = last.source else {
            return false;
        };
        if of != id || skip.saturating_add(last.length) != end || last.end(*begin) != offset {
            return false;
        }
        let more = data.len() as u64;
        last.length = last.length.saturating_add(narrow(more));
        self.data = self.data.saturating_add(more);
        self.unsent = self.unsent.saturating_add(more);
        true
    }

    /// Makes a hole.
    pub fn cut(&mut self, from: u64, to: u64, unsent: &mut Unsent) {
        if from >= to {
            return;
        }
        let before = self.pieces.range(..from).next_back();
        let mut next = before.map(|(at, piece)| (*at, *piece));
        if next.is_none_or(|(at, piece)| piece.end(at) <= from) {
            next = self.first_in(from, to);
        }
        while let Some((begin, piece)) = next {
            let end = piece.end(begin);
            self.forget(begin, piece);
            if begin < from {
                let kept = piece.cut(0, from.saturating_sub(begin));
                self.insert(begin, kept, unsent);
            }
            if end > to {
                let kept = piece.cut(to.saturating_sub(begin), end.saturating_sub(to));
                self.insert(to, kept, unsent);
            }
            // The kept parts hold the buffer, so the buffer ends with the last part only.
            if let Source::Unsent { id, .. } = piece.source {
                unsent.release(id);
            }
            next = self.first_in(from, to);
        }
    }

    fn first_in(&self, from: u64, to: u64) -> Option<(u64, Piece)> {
        let first = self.pieces.range(from..to).next();
        first.map(|(at, piece)| (*at, *piece))
    }

    fn forget(&mut self, begin: u64, piece: Piece) {
        self.pieces.remove(&begin);
        let length = u64::from(piece.length);
        self.data = self.data.saturating_sub(length);
        if matches!(piece.source, Source::Unsent { .. }) {
            self.unsent = self.unsent.saturating_sub(length);
        }
    }

    /// Puts a piece into a hole.
    fn insert(&mut self, begin: u64, piece: Piece, unsent: &mut Unsent) {
        let length = u64::from(piece.length);
        match piece.source {
            Source::Zero => return,
            Source::Unsent { id, .. } => {
                unsent.hold(id);
                self.unsent = self.unsent.saturating_add(length);
            }
            Source::Chunk { .. } => {}
        }
        self.data = self.data.saturating_add(length);
        if let Some((at, last)) = self.pieces.range_mut(..begin).next_back()
            && last.end(*at) == begin
            && last.continues(piece)
        {
            last.length = last.length.saturating_add(piece.length);
            return;
        }
        self.pieces.insert(begin, piece);
    }

    /// Puts a piece at an offset, over whatever lies there.
    pub fn put(&mut self, begin: u64, piece: Piece, unsent: &mut Unsent) {
        self.cut(begin, piece.end(begin), unsent);
        self.insert(begin, piece, unsent);
    }

    /// The pieces in a range, cut to the range, without holes.
    #[must_use]
    pub fn pieces_in(&self, from: u64, to: u64) -> Vec<(u64, Piece)> {
        let before = self.pieces.range(..from).next_back();
        let begin = before.map_or(
            from,
            |(at, piece)| {
                if piece.end(*at) > from { *at } else { from }
            },
        );
        if begin >= to {
            return Vec::new();
        }
        let cut = |(at, piece): (&u64, &Piece)| {
            let low = from.max(*at);
            let high = piece.end(*at).min(to);
            let part = piece.cut(low.saturating_sub(*at), high.saturating_sub(low));
            (low, part)
        };
        self.pieces.range(begin..to).map(cut).collect()
    }

    /// The pieces of a range of less than 4 GiB, with holes.
    #[must_use]
    pub fn plan(&self, from: u64, to: u64) -> Vec<Piece> {
        let zero = |from: u64, to: u64| Piece {
            length: narrow(to.saturating_sub(from)),
            source: Source::Zero,
        };
        let mut pieces = Vec::new();
        let mut at = from;
        for (begin, piece) in self.pieces_in(from, to) {
            if begin > at {
                pieces.push(zero(at, begin));
            }
            pieces.push(piece);
            at = piece.end(begin);
        }
        if at < to {
            pieces.push(zero(at, to));
        }
        pieces
    }

    /// The next octet outside a hole.
    #[must_use]
    pub fn next_data(&self, offset: u64) -> Option<u64> {
        let before = self.pieces.range(..=offset).next_back();
        if before.is_some_and(|(at, piece)| piece.end(*at) > offset) {
            return Some(offset);
        }
        self.pieces.range(offset..).next().map(|(at, _)| *at)
    }

    /// The next octet in a hole; the end of the last piece counts.
    #[must_use]
    pub fn next_hole(&self, offset: u64) -> u64 {
        let before = self.pieces.range(..offset).next_back();
        let mut at = before.map_or(offset, |(at, piece)| piece.end(*at).max(offset));
        for (begin, piece) in self.pieces.range(at..) {
            if *begin > at {
                break;
            }
            at = piece.end(*begin);
        }
        at
    }

    /// Runs of unsent pieces without a gap.
    #[must_use]
    pub fn unsent_runs(&self) -> Vec<(u64, Vec<Piece>)> {
        let mut runs: Vec<(u64, Vec<Piece>)> = Vec::new();
        let mut end = None;
        for (begin, piece) in self.pieces() {
            if !matches!(piece.source, Source::Unsent { .. }) {
                continue;
            }
            match runs.last_mut() {
                Some((_, run)) if end == Some(begin) => run.push(piece),
                _ => runs.push((begin, vec![piece])),
            }
            end = Some(piece.end(begin));
        }
        runs
    }

    /// The pieces `sent`, which lay at `offset` when a chunk was cut from their octets, now lie in the chunk's frame. Octets
    /// that have changed since stay unsent.
    pub fn stored(&mut self, offset: u64, sent: &[Piece], extent: Extent, unsent: &mut Unsent) {
        let mut at = offset;
        for piece in sent {
            let end = piece.end(at);
            for (begin, now) in self.pieces_in(at, end) {
                let then = piece.cut(begin.saturating_sub(at), u64::from(now.length));
                if then.source == now.source {
                    let skip = narrow(begin.saturating_sub(offset));
                    let source = Source::Chunk { extent, skip };
                    let length = now.length;
                    self.put(begin, Piece { length, source }, unsent);
                }
            }
            at = end;
        }
    }
}
