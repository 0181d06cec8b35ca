//! The frames of a mail with content or pages. Each frame is verified alone, so that damage stays there.

use bytes::Bytes;

use super::pages::{PageSeen, SealedPage};
use crate::format::commit::Record;
use crate::format::page::Page;
use crate::format::{
    Encoding, FormatError, HEAD_OCTETS, Head, Index, IndexEntry, Keys, Kind, Locator, MailCopy,
    Place, Subject, VolumeId, mail, open_frame,
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
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) frames: Vec<Frame>,
    /// Frames that do not open.
    pub(super) damaged: usize,
    /// Octets of the decoded mail.
    pub(super) octets: u32,
    /// The record of a commit.
    pub(super) record: Option<Record>,
    /// The pages of a mail of pages.
    pub(super) pages: Vec<PageSeen>,
}

impl Content {
    /// Sound frames and pages.
    pub(super) const fn opened(&self) -> usize {
        self.frames.len().saturating_add(self.pages.len())
    }
}

/// A mail as kept by the account, with a head of the subject and the volume.
struct Shell<'a> {
    body: Vec<u8>,
    head: Head,
    keys: &'a Keys,
}

impl<'a> Shell<'a> {
    fn of(
        text: &[u8],
        encoding: Encoding,
        subject: &Subject,
        (volume, keys): (VolumeId, &'a Keys),
    ) -> Result<Self, FormatError> {
        let body = mail::unwrap(text, encoding)?;
        let head = Head::decode(&body)?;
        subject.check(&head)?;
        if head.volume != volume {
            return Err(FormatError::Form {
                what: "volume of the head",
                expected: "this volume",
            });
        }
        Ok(Self { body, head, keys })
    }

    fn frame(&self, place: Place) -> &[u8] {
        let at = usize::try_from(place.at).unwrap_or(usize::MAX);
        let octets = usize::try_from(place.octets()).unwrap_or(usize::MAX);
        let end = at.checked_add(octets);
        let frame = end.and_then(|end| self.body.get(at..end));
        frame.unwrap_or_default()
    }

    fn open(&self, place: Place) -> Result<Bytes, FormatError> {
        let frame = self.frame(place);
        open_frame(&self.body, frame, place.at, self.keys, self.head.mail)
    }

    /// The content of the last frame.
    fn last(&self) -> Result<Bytes, FormatError> {
        let sealed = usize::try_from(self.head.last_sealed_len).unwrap_or(usize::MAX);
        let at = sealed
            .checked_add(4)
            .and_then(|octets| self.body.len().checked_sub(octets))
            .filter(|at| *at >= HEAD_OCTETS)
            .ok_or(FormatError::Form {
                what: "length of the mail",
                expected: "room for its last frame",
            })?;
        self.open(Place {
            at: u32::try_from(at).unwrap_or(u32::MAX),
            sealed_len: self.head.last_sealed_len,
        })
    }
}

/// Reads a mail with content or pages, as the account keeps the mail.
pub(super) fn read(
    text: &[u8],
    encoding: Encoding,
    subject: &Subject,
    of: (VolumeId, &Keys),
) -> Result<Content, FormatError> {
    let shell = Shell::of(text, encoding, subject, of)?;
    let last = shell.last()?;
    let mut found = Content {
        octets: u32::try_from(shell.body.len()).unwrap_or(u32::MAX),
        ..Content::default()
    };
    let index = match shell.head.kind {
        Kind::Commit => {
            let record = Record::decode(&last)?;
            found.record.insert(record).index.clone()
        }
        _ => Index::decode(&last)?,
    };
    if shell.head.kind == Kind::Pages {
        read_pages(&shell, &index, &mut found);
        return Ok(found);
    }
    for entry in index.entries {
        match shell.open(entry.place) {
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

fn read_pages(shell: &Shell<'_>, index: &Index, found: &mut Content) {
    let end = index.entries.last().map(|entry| entry.place.at);
    for entry in &index.entries {
        let Place { at, sealed_len } = entry.place;
        let here = Locator {
            pack: shell.head.pack,
            mail: shell.head.mail,
            copy: MailCopy::default(),
            at,
            sealed_len,
        };
        let page = shell.open(entry.place);
        match page.and_then(|octets| Page::decode(octets, &here)) {
            Ok(page) => found.pages.push(PageSeen::of(
                &page,
                (shell.head.mail, at),
                entry.offset,
                end == Some(at),
            )),
            Err(_) => found.damaged = found.damaged.saturating_add(1),
        }
    }
}

/// Takes some sealed pages out of a mail of pages, by the places of frames.
pub(super) fn sealed_pages(
    text: &[u8],
    encoding: Encoding,
    subject: &Subject,
    of: (VolumeId, &Keys),
    wanted: &dyn Fn(u32) -> bool,
) -> Result<Vec<(u32, SealedPage)>, FormatError> {
    let shell = Shell::of(text, encoding, subject, of)?;
    let index = Index::decode(&shell.last()?)?;
    let mut pages = Vec::new();
    for entry in index.entries {
        let place = entry.place;
        if wanted(place.at) && shell.open(place).is_ok() {
            let head = shell.body.get(..HEAD_OCTETS).unwrap_or_default();
            let page = SealedPage::new(head, shell.frame(place));
            pages.push((place.at, page));
        }
    }
    Ok(pages)
}
