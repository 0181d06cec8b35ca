//! A segment without its index.

use std::io;
use std::ops::ControlFlow;

use memchr::memmem::Finder;
use vere_checksum::{Crc32, crc32};

use super::ReadAt;
use super::issue::Issue;
use super::row::{Row, Tell, Visit};
use super::window::Window;
use crate::format::{EntryHead, FILE_HEAD_OCTETS, FileHead, FileKind, HEAD_OCTETS, decode};

/// Octets that are searched, or summed up, at once.
const PIECE_OCTETS: u64 = 64 << 10;

/// Entries from a place of a segment on.
pub(crate) struct Scan<'a, F> {
    file: &'a F,
    window: Window<'a, F>,
    length: u64,
    /// The place behind the last sound entry.
    end: u64,
    at: u64,
    nonce: Option<u64>,
    sums: bool,
}

impl<F> std::fmt::Debug for Scan<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'a, F: ReadAt> Scan<'a, F> {
    pub(super) fn new(file: &'a F, length: u64, at: u64, nonce: Option<u64>) -> Self {
        Self {
            file,
            window: Window::new(file, length),
            length,
            end: at.min(length),
            at,
            nonce,
            sums: false,
        }
    }

    /// Compares the checksum of each APDU too; damaged entries are visited as such.
    #[must_use]
    pub(crate) const fn with_sums(mut self) -> Self {
        self.sums = true;
        self
    }

    /// Counts octets from the end of the last sound entry on as unfinished.
    pub(crate) fn walk(
        mut self,
        tell: &mut Tell<'_>,
        visit: &mut Visit<'_>,
    ) -> io::Result<ControlFlow<()>> {
        self.run(tell, visit)
    }

    /// As [`Self::walk`]; returns the place behind the last sound entry.
    pub(crate) fn walk_to_end(
        mut self,
        tell: &mut Tell<'_>,
        visit: &mut Visit<'_>,
    ) -> io::Result<u64> {
        let _ = self.run(tell, visit)?;
        Ok(self.end)
    }

    fn run(&mut self, tell: &mut Tell<'_>, visit: &mut Visit<'_>) -> io::Result<ControlFlow<()>> {
        // Damaged octets are no gap before a sound entry follows: they may be the end.
        let mut damaged = None;
        while self.at < self.length {
            let Some(head) = self.head(self.at)? else {
                damaged.get_or_insert(self.at);
                match self.next_head()? {
                    Some(next) => self.at = next,
                    None => break,
                }
                continue;
            };
            if head.end() > self.length {
                break;
            }
            let sums = self.sums;
            let meta_at = head.offset.saturating_add(HEAD_OCTETS);
            let meta = self.window.slice(meta_at, head.meta as usize)?;
            let meta = meta.filter(|meta| crc32(meta) == head.meta_sum);
            let Some((meta, fields)) = meta.and_then(|meta| Some((meta, decode(meta)?))) else {
                damaged.get_or_insert(self.at);
                self.at = head.end();
                continue;
            };
            if let Some(from) = damaged.take() {
                tell_gap(tell, from, self.at);
            }
            let is_sound = !sums || is_sound(self.file, &head)?;
            if !is_sound {
                tell(Issue::OctetsDamaged { at: self.at });
            }
            let row = Row {
                offset: self.at,
                octets: head.octets,
                meta,
                fields,
                is_sound,
            };
            let flow = visit(&row);
            self.at = head.end();
            if is_sound {
                self.end = self.at;
            }
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let from = damaged.unwrap_or(self.at);
        if from < self.length {
            let octets = self.length - from;
            tell(Issue::Unfinished { at: from, octets });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn head(&mut self, at: u64) -> io::Result<Option<EntryHead>> {
        let Some(nonce) = self.nonce else {
            return Ok(None);
        };
        let octets = self.window.slice(at, HEAD_OCTETS as usize)?;
        Ok(octets.and_then(|octets| EntryHead::decode(octets, nonce, at)))
    }

    /// The place of the next sound head behind this place.
    fn next_head(&mut self) -> io::Result<Option<u64>> {
        let Some(nonce) = self.nonce else {
            return Ok(None);
        };
        let mark = nonce.to_le_bytes();
        let finder = Finder::new(&mark);
        let mut at = self.at.saturating_add(1);
        while at < self.length {
            let octets = PIECE_OCTETS.min(self.length - at);
            let Some(piece) = self.window.slice(at, octets as usize)? else {
                return Ok(None);
            };
            let places: Vec<u64> = finder
                .find_iter(piece)
                .map(|place| at + place as u64)
                .collect();
            for place in places {
                if self.head(place)?.is_some() {
                    return Ok(Some(place));
                }
            }
            // A mark may lie across the pieces.
            let kept = mark.len() as u64 - 1;
            if octets <= kept || at + octets >= self.length {
                return Ok(None);
            }
            at += octets - kept;
        }
        Ok(None)
    }
}

fn tell_gap(tell: &mut Tell<'_>, from: u64, to: u64) {
    let octets = to.saturating_sub(from);
    tell(Issue::Gap { at: from, octets });
}

/// Whether the APDU has its checksum.
pub(super) fn is_sound<F: ReadAt>(file: &F, head: &EntryHead) -> io::Result<bool> {
    let mut sum = Crc32::default();
    let whole = each_piece(file, head.content(), head.octets, |piece| {
        sum.update(piece);
        Ok(())
    })?;
    Ok(whole && sum.finish() == head.octets_sum)
}

/// Gives octets of a file in pieces; false if the file ends before.
pub(super) fn each_piece<F: ReadAt>(
    file: &F,
    at: u64,
    octets: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut buffer = vec![0; PIECE_OCTETS.min(octets) as usize];
    let end = at.saturating_add(octets);
    let mut at = at;
    while at < end {
        let len = (end - at).min(PIECE_OCTETS) as usize;
        let Some(piece) = buffer.get_mut(..len) else {
            return Ok(false);
        };
        if !file.fill_at(piece, at)? {
            return Ok(false);
        }
        take(piece)?;
        at += len as u64;
    }
    Ok(true)
}

/// The number of a segment: from its head; else from the head of its index, else from its first entry. The first value
/// is there if the head is sound.
pub(super) fn nonce_of<F: ReadAt>(
    file: &F,
    of_index: Option<u64>,
) -> io::Result<(Option<u64>, Option<u64>)> {
    let mut octets = [0; FILE_HEAD_OCTETS as usize];
    let whole = file.fill_at(&mut octets, 0)?;
    let head = FileHead::decode(FileKind::Segment, &octets).filter(|_| whole);
    if let Some(head) = head {
        return Ok((Some(head.nonce), Some(head.nonce)));
    }
    if of_index.is_some() {
        return Ok((None, of_index));
    }
    let mut octets = [0; HEAD_OCTETS as usize];
    let whole = file.fill_at(&mut octets, FILE_HEAD_OCTETS)?;
    let first = EntryHead::decode_any(&octets);
    let first = first.filter(|head| whole && head.offset == FILE_HEAD_OCTETS);
    Ok((None, first.map(|head| head.nonce)))
}
