//! The frames of a mail with content. Each frame is verified alone, so that damage to one costs no other.

use crate::format::commit::Record;
use crate::format::{
    Encoding, FormatError, HEAD_OCTETS, Head, Index, IndexEntry, Keys, Kind, Subject, VolumeId,
    mail, open_frame,
};

/// A frame that opens.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Place, chunk, inode and offset.
    pub entry: IndexEntry,
    /// Octets of the content.
    pub length: u32,
}

/// What a mail has.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) frames: Vec<Frame>,
    /// Frames that do not open.
    pub(super) damaged: usize,
    /// Octets of the decoded mail.
    pub(super) octets: u32,
    /// The record of a commit.
    pub(super) record: Option<Record>,
}

/// Reads a mail with content, as the account keeps the mail.
pub(super) fn read(
    text: &[u8],
    encoding: Encoding,
    subject: &Subject,
    (volume, keys): (VolumeId, &Keys),
) -> Result<Content, FormatError> {
    let body = mail::unwrap(text, encoding)?;
    let head = Head::decode(&body)?;
    subject.check(&head)?;
    if head.volume != volume {
        return Err(FormatError::Form {
            what: "volume of the head",
            expected: "this volume",
        });
    }
    let sealed = usize::try_from(head.last_sealed_len).unwrap_or(usize::MAX);
    let last = sealed
        .checked_add(4)
        .and_then(|octets| body.len().checked_sub(octets))
        .filter(|at| *at >= HEAD_OCTETS)
        .ok_or(FormatError::Form {
            what: "length of the mail",
            expected: "room for its last frame",
        })?;
    let open = |at: usize, octets: usize| {
        let frame = at.checked_add(octets).and_then(|end| body.get(at..end));
        let place = u32::try_from(at).unwrap_or(u32::MAX);
        open_frame(&body, frame.unwrap_or_default(), place, keys, head.mail)
    };
    let content = open(last, body.len().saturating_sub(last))?;
    let (index, record) = match head.kind {
        Kind::Commit => {
            let record = Record::decode(&content)?;
            (record.index.clone(), Some(record))
        }
        _ => (Index::decode(&content)?, None),
    };
    let mut found = Content {
        frames: Vec::new(),
        damaged: 0,
        octets: u32::try_from(body.len()).unwrap_or(u32::MAX),
        record,
    };
    for entry in index.entries {
        let at = usize::try_from(entry.place.at).unwrap_or(usize::MAX);
        let octets = usize::try_from(entry.place.octets()).unwrap_or(usize::MAX);
        match open(at, octets) {
            Ok(plain) if !plain.is_empty() => found.frames.push(Frame {
                entry,
                length: u32::try_from(plain.len()).unwrap_or(u32::MAX),
            }),
            Ok(_) => {}
            Err(_) => found.damaged = found.damaged.saturating_add(1),
        }
    }
    Ok(found)
}
