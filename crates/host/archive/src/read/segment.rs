//! One segment with its index: every entry once, in order.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use vere_checksum::crc32;

use super::ReadAt;
use super::issue::Issue;
use super::row::{Row, Tell, Visit};
use super::scan::{Scan, nonce_of};
use super::window::Window;
use crate::error::ReadError;
use crate::format::{
    FILE_HEAD_OCTETS, FileHead, FileKind, RECORD_HEAD_OCTETS, Record, Summary, TRAILER_OCTETS,
    decode,
};
use crate::name::SegmentName;

/// How far an index goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The place in the segment behind the last entry of the index.
    pub segment: u64,
    /// The place in the index behind its last sound record.
    pub index: u64,
    /// The index has a trailer for a segment of this length.
    pub is_complete: bool,
    /// The index is sound as far as it goes.
    pub is_sound: bool,
    /// The visitor has broken off.
    pub is_stopped: bool,
    nonce: Option<u64>,
}

/// A segment and its index, with the lengths that they had when they were opened.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(super) file: F,
    pub(super) length: u64,
    pub(super) index: Option<(F, u64)>,
}

impl Segment<File> {
    /// Opens a segment; an issue for a segment without a file, nothing if both files are gone.
    pub(crate) fn open(
        folder: &Path,
        name: SegmentName,
    ) -> Result<Result<Self, Option<Issue>>, ReadError> {
        // The index first: the entries of an index are in the segment, which is opened after it.
        let index = opened(&name.path(folder, "idx"))?;
        let Some((file, length)) = opened(&name.path(folder, "seg"))? else {
            // A day that was removed between the two has no index any more.
            let is_index = index.is_some() && name.path(folder, "idx").exists();
            return Ok(Err(is_index.then_some(Issue::SegmentMissing)));
        };
        Ok(Ok(Self {
            file,
            length,
            index,
        }))
    }
}

fn opened(path: &Path) -> Result<Option<(File, u64)>, ReadError> {
    let open = || -> io::Result<(File, u64)> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    };
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(ReadError::at(path)),
    }
}

impl<F: ReadAt> Segment<F> {
    /// The length, in octets.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// The trailer of the index, for a segment that is complete.
    pub(crate) fn summary(&self) -> io::Result<Option<Summary>> {
        let Some((index, length)) = &self.index else {
            return Ok(None);
        };
        let mut octets = [0; TRAILER_OCTETS as usize];
        let Some(at) = length.checked_sub(TRAILER_OCTETS) else {
            return Ok(None);
        };
        if !index.fill_at(&mut octets, at)? {
            return Ok(None);
        }
        let summary = Summary::of_trailer(&octets);
        Ok(summary.and_then(|(of, summary)| (of == self.length).then_some(summary)))
    }

    /// Visits every entry once: those of the index, then what the index lacks from the segment.
    pub(crate) fn walk(
        &self,
        tell: &mut Tell<'_>,
        visit: &mut Visit<'_>,
    ) -> io::Result<ControlFlow<()>> {
        let ends = self.walk_index(tell, visit)?;
        if ends.is_stopped {
            return Ok(ControlFlow::Break(()));
        }
        if ends.is_complete {
            return Ok(ControlFlow::Continue(()));
        }
        self.scan(ends, tell)?.walk(tell, visit)
    }

    /// Visits the entries of the index.
    pub(crate) fn walk_index(
        &self,
        tell: &mut Tell<'_>,
        visit: &mut Visit<'_>,
    ) -> io::Result<Ends> {
        let mut ends = Ends {
            segment: FILE_HEAD_OCTETS,
            index: 0,
            is_complete: false,
            is_sound: true,
            is_stopped: false,
            nonce: None,
        };
        let Some((index, length)) = &self.index else {
            tell(Issue::IndexMissing);
            ends.is_sound = false;
            return Ok(ends);
        };
        let mut window = Window::new(index, *length);
        let head = window.slice(0, FILE_HEAD_OCTETS as usize)?;
        let head = head.and_then(|head| FileHead::decode(FileKind::Index, head));
        let (of_segment, _) = nonce_of(&self.file, None)?;
        // The index of another segment has other entries.
        ends.nonce = head
            .map(|head| head.nonce)
            .filter(|nonce| of_segment.is_none_or(|of_segment| of_segment == *nonce));
        if ends.nonce.is_some() {
            ends.index = FILE_HEAD_OCTETS;
            self.walk_records(&mut window, &mut ends, visit)?;
        } else {
            ends.is_sound = false;
        }
        if !ends.is_sound {
            tell(Issue::IndexDamaged { at: ends.index });
        }
        Ok(ends)
    }

    fn walk_records(
        &self,
        window: &mut Window<'_, F>,
        ends: &mut Ends,
        visit: &mut Visit<'_>,
    ) -> io::Result<()> {
        while let Some(head) = window.slice(ends.index, RECORD_HEAD_OCTETS as usize)? {
            let record = Record::decode(head);
            let Some(Record::Entry {
                offset,
                octets,
                meta,
                sum,
            }) = record
            else {
                let trailer = window.slice(ends.index, TRAILER_OCTETS as usize)?;
                let trailer = trailer.and_then(Summary::of_trailer);
                ends.is_complete = trailer.is_some_and(|(length, _)| length == self.length);
                ends.is_sound = ends.is_complete;
                return Ok(());
            };
            let at = ends.index.saturating_add(RECORD_HEAD_OCTETS);
            let Some(octets_of_meta) = window.slice(at, meta as usize)? else {
                // A record that is being written.
                return Ok(());
            };
            let end = entry_end(offset, meta, octets);
            let fits = offset >= ends.segment && end.is_some_and(|end| end <= self.length);
            let fields = (fits && crc32(octets_of_meta) == sum).then(|| decode(octets_of_meta));
            let (Some(Some(fields)), Some(end)) = (fields, end) else {
                ends.is_sound = false;
                return Ok(());
            };
            let row = Row {
                offset,
                octets,
                meta: octets_of_meta,
                fields,
                is_sound: true,
            };
            ends.is_stopped = visit(&row).is_break();
            ends.segment = end;
            ends.index = at.saturating_add(meta.into());
            if ends.is_stopped {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The entries from the end of an index on.
    pub(crate) fn scan(&self, ends: Ends, tell: &mut Tell<'_>) -> io::Result<Scan<'_, F>> {
        let (of_head, nonce) = nonce_of(&self.file, ends.nonce)?;
        // A file that was made a moment ago has no head yet.
        if of_head.is_none() && self.length > 0 {
            tell(Issue::HeadDamaged);
        }
        Ok(Scan::new(&self.file, self.length, ends.segment, nonce))
    }

    /// The number of the segment, from the first head that has it.
    pub(crate) fn nonce(&self) -> io::Result<Option<u64>> {
        let of_index = match &self.index {
            Some((index, _)) => index_nonce(index)?,
            None => None,
        };
        Ok(nonce_of(&self.file, of_index)?.1)
    }

    /// All entries, without the index.
    pub(crate) fn scan_all(&self, tell: &mut Tell<'_>) -> io::Result<Scan<'_, F>> {
        let nonce = match &self.index {
            Some((index, _)) => index_nonce(index)?,
            None => None,
        };
        let ends = Ends {
            segment: FILE_HEAD_OCTETS,
            index: 0,
            is_complete: false,
            is_sound: false,
            is_stopped: false,
            nonce,
        };
        self.scan(ends, tell)
    }
}

fn index_nonce<F: ReadAt>(index: &F) -> io::Result<Option<u64>> {
    let mut octets = [0; FILE_HEAD_OCTETS as usize];
    let whole = index.fill_at(&mut octets, 0)?;
    let head = FileHead::decode(FileKind::Index, &octets);
    Ok(head.filter(|_| whole).map(|head| head.nonce))
}

fn entry_end(offset: u64, meta: u32, octets: u64) -> Option<u64> {
    let content = offset
        .checked_add(crate::format::HEAD_OCTETS)?
        .checked_add(meta.into())?;
    content.checked_add(octets)
}
