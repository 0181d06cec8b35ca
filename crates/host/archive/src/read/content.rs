//! One entry: its fields and its octets.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use vere_checksum::crc32;

use super::ReadAt as _;
use super::found::Found;
use super::scan::{each_piece, is_sound};
use super::segment::Segment;
use crate::error::ReadError;
use crate::format::{EntryHead, HEAD_OCTETS, decode};
use crate::name::EntryId;

/// Gives the fields of an entry.
///
/// # Errors
///
/// The archive has no sound fields at this place, or cannot be read.
pub fn describe(
    folder: &Path,
    id: EntryId,
    take: impl FnOnce(&Found<'_>),
) -> Result<(), ReadError> {
    let (segment, head) = opened(folder, id)?;
    let mut meta = vec![0; head.meta as usize];
    let at = head.offset.saturating_add(HEAD_OCTETS);
    let whole = segment.file.fill_at(&mut meta, at);
    let whole = whole.map_err(ReadError::at(&id.segment.path(folder, "seg")))?;
    let sound = whole && crc32(&meta) == head.meta_sum;
    let fields = sound.then(|| decode(&meta)).flatten();
    let fields = fields.ok_or(ReadError::Missing(id))?;
    take(&Found {
        id,
        octets: head.octets,
        fields,
    });
    Ok(())
}

/// Writes the octets of an entry as they came, after they were compared with their checksum, and returns their number.
///
/// # Errors
///
/// There is no such entry; the octets are damaged, and nothing was written; the file cannot be read or the result not
/// be written.
pub fn copy_content(folder: &Path, id: EntryId, out: &mut dyn Write) -> Result<u64, ReadError> {
    let (segment, head) = opened(folder, id)?;
    let path = id.segment.path(folder, "seg");
    let sound = is_sound(&segment.file, &head).map_err(ReadError::at(&path))?;
    if !sound {
        return Err(ReadError::Damaged(id));
    }
    let mut failed = None;
    let copied = each_piece(&segment.file, head.content(), head.octets, |piece| {
        out.write_all(piece).map_err(|error| {
            failed = Some(error);
            io::Error::other("the result cannot be written")
        })
    });
    if let Some(error) = failed {
        return Err(ReadError::Output(error));
    }
    match copied.map_err(ReadError::at(&path))? {
        true => Ok(head.octets),
        false => Err(ReadError::Damaged(id)),
    }
}

/// Whether the octets of an entry have their checksum.
pub(crate) fn is_content_sound(folder: &Path, id: EntryId) -> Result<bool, ReadError> {
    let (segment, head) = opened(folder, id)?;
    let path = id.segment.path(folder, "seg");
    is_sound(&segment.file, &head).map_err(ReadError::at(&path))
}

fn opened(folder: &Path, id: EntryId) -> Result<(Segment<File>, EntryHead), ReadError> {
    let Ok(segment) = Segment::open(folder, id.segment)? else {
        return Err(ReadError::Missing(id));
    };
    let path = id.segment.path(folder, "seg");
    let nonce = segment.nonce().map_err(ReadError::at(&path))?;
    let mut octets = [0; HEAD_OCTETS as usize];
    let whole = segment.file.fill_at(&mut octets, id.offset);
    let whole = whole.map_err(ReadError::at(&path))?;
    let head = nonce.and_then(|nonce| EntryHead::decode(&octets, nonce, id.offset));
    let head = head.filter(|head| whole && head.end() <= segment.length);
    Ok((segment, head.ok_or(ReadError::Missing(id))?))
}
