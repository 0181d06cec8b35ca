//! The mails of a checkpoint: pages in frames, up to 1 MiB a mail.

use std::fmt;

use bytes::Bytes;

use super::items::Spot;
use crate::format::{
    Builder, ChunkId, Codec, FRAMES_MAX, FormatError, Head, Index, IndexEntry, Keys, Kind, Locator,
    MailCopy, MailId, PackNumber, Place, VolumeId,
};

/// Octets of a mail's body, but for the last frame.
const MAIL_OCTETS: usize = 1 << 20;
/// Octets of a mail's pages before compression: readers open whole mails too.
const CONTENT_OCTETS: usize = 12 << 20;

/// Octets of written pages that are kept for the cache.
const KEPT_OCTETS: usize = 16 << 20;

/// What new mails need.
pub struct Lot<'a> {
    /// The volume.
    pub volume: VolumeId,
    /// The epoch of the key.
    pub epoch: u16,
    /// The keys of the epoch.
    pub keys: &'a Keys,
    /// Gives the next number of a mail.
    pub next: &'a mut dyn FnMut() -> PackNumber,
}

impl fmt::Debug for Lot<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lot")
            .field("volume", &self.volume)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// A mail with pages.
#[derive(Debug, Clone)]
pub struct PageMail {
    /// The head.
    pub head: Head,
    /// The body, decoded form; empty once the mail is stored.
    pub body: Bytes,
    /// Octets of the body.
    pub octets: u32,
    /// Where the mail is, once stored.
    pub copy: Option<MailCopy>,
}

/// The mails of a checkpoint.
#[derive(Debug)]
pub(super) struct Mails {
    covers: u64,
    pub(super) closed: Vec<PageMail>,
    open: Option<Open>,
    /// Pages as they are written, for the cache, and their octets.
    written: Vec<(usize, Place, Bytes)>,
    kept: usize,
}

#[derive(Debug)]
struct Open {
    builder: Builder,
    index: Index,
    content: usize,
}

impl Mails {
    pub(super) const fn new(covers: u64) -> Self {
        Self {
            covers,
            closed: Vec::new(),
            open: None,
            written: Vec::new(),
            kept: 0,
        }
    }

    /// Ends the open mail if a page of this length does not fit.
    pub(super) fn make_room(&mut self, page: usize, lot: &Lot<'_>) -> Result<(), FormatError> {
        let is_full = self.open.as_ref().is_some_and(|open| {
            let content = open.content.saturating_add(page);
            open.builder.octets().saturating_add(page) > MAIL_OCTETS
                && open.builder.octets() > MAIL_OCTETS / 2
                || open.builder.octets() > MAIL_OCTETS
                || content > CONTENT_OCTETS
                || open.builder.frames().saturating_add(2) > FRAMES_MAX
        });
        if is_full {
            self.close(lot)?;
        }
        Ok(())
    }

    /// Puts a page into the open mail.
    pub(super) fn push(
        &mut self,
        page: Vec<u8>,
        lot: &mut Lot<'_>,
    ) -> Result<(usize, Place), FormatError> {
        let open = self.open.get_or_insert_with(|| Open {
            builder: Builder::new(Kind::Pages, lot.volume, lot.epoch, 0, (lot.next)()),
            index: Index::default(),
            content: 0,
        });
        open.content = open.content.saturating_add(page.len());
        let page = Bytes::from(page);
        let place = open.builder.push(Codec::Zstd, page.clone())?;
        open.index.entries.push(IndexEntry {
            place,
            chunk: ChunkId::default(),
            inode: 0,
            offset: self.covers,
        });
        self.kept = self.kept.saturating_add(page.len());
        if self.kept <= KEPT_OCTETS {
            self.written.push((self.closed.len(), place, page));
        }
        Ok((self.closed.len(), place))
    }

    /// Takes pages that were written, with their places.
    pub(super) fn take_written(&mut self) -> Vec<(Locator, Bytes)> {
        let written = std::mem::take(&mut self.written).into_iter();
        let of = |(mail, place, page)| Some((self.locator(mail, place)?, page));
        written.filter_map(of).collect()
    }

    /// Ends the open mail.
    pub(super) fn close(&mut self, lot: &Lot<'_>) -> Result<(), FormatError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let sealed = open.builder.finish(open.index.encode()?.into(), lot.keys)?;
        self.closed.push(PageMail {
            head: sealed.head,
            octets: u32::try_from(sealed.body.len()).unwrap_or(u32::MAX),
            body: sealed.body.into(),
            copy: None,
        });
        Ok(())
    }

    /// The locator of a page in a mail, as a page of the open mail names the page; absent while the place is not known.
    pub(super) fn locator(&self, mail: usize, place: Place) -> Option<Locator> {
        let Some(closed) = self.closed.get(mail) else {
            return Some(Locator {
                pack: PackNumber(0),
                mail: MailId::NONE,
                copy: MailCopy::default(),
                at: place.at,
                sealed_len: place.sealed_len,
            });
        };
        Some(Locator {
            pack: closed.head.pack,
            mail: closed.head.mail,
            copy: closed.copy?,
            at: place.at,
            sealed_len: place.sealed_len,
        })
    }

    /// The locator of a page.
    pub(super) fn of_spot(&self, spot: Spot, inners: &[(usize, Place)]) -> Option<Locator> {
        match spot {
            Spot::Old(locator) => Some(locator),
            Spot::Leaf(mail, place) => self.locator(mail, place),
            Spot::Inner(number) => {
                let (mail, place) = inners.get(number)?;
                self.locator(*mail, *place)
            }
        }
    }
}
