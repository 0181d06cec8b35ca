//! Summaries: the header fields that clients ask for, octet by octet, of many messages together.

use std::ops::Range;

use vere_ports::storage::StorageFile;

use crate::SearchError;
use crate::codec::{put, take, u32_at};
use crate::file::Checked;
use crate::format::Head;

/// Header fields in a summary, with all repetitions. A change of these names requires another version of segments.
pub const SUMMARY_FIELDS: [&str; 30] = [
    "Bcc",
    "Cc",
    "Content-Description",
    "Content-Disposition",
    "Content-Transfer-Encoding",
    "Content-Type",
    "Date",
    "From",
    "Importance",
    "In-Reply-To",
    "Keywords",
    "Lines",
    "List-Help",
    "List-Id",
    "List-Post",
    "List-Subscribe",
    "List-Unsubscribe",
    "Message-ID",
    "MIME-Version",
    "Newsgroups",
    "Precedence",
    "Priority",
    "References",
    "Reply-To",
    "Sender",
    "Subject",
    "To",
    "X-Label",
    "X-Mailer",
    "X-Priority",
];

/// The longest summary that is kept, in octets.
pub const SUMMARY_OCTETS_MAX: usize = 16 * 1024;
/// Messages whose summaries are compressed together.
pub const SUMMARIES_TOGETHER: usize = 64;
const TOGETHER: usize = SUMMARIES_TOGETHER;
/// Octets of a block at most, before compression.
const BLOCK_OCTETS_MAX: usize = TOGETHER * (SUMMARY_OCTETS_MAX + 4);
/// Level of zstd: the fastest of the positive levels.
const LEVEL: i32 = 1;
/// Octets for the place of a block: its end, and its length before compression.
const PLACE: usize = 8;

/// Whether every summary has all fields of a name.
#[must_use]
pub fn is_summarized(name: &str) -> bool {
    SUMMARY_FIELDS
        .iter()
        .any(|own| own.eq_ignore_ascii_case(name))
}

/// Sections of summaries under construction.
#[derive(Debug, Default)]
pub(crate) struct SummaryWriter {
    blocks: Vec<u8>,
    places: Vec<u8>,
    block: Vec<u8>,
    count: usize,
}

impl SummaryWriter {
    /// Adds the summary of the next message. Without a summary, or with one that is too long, readers use the
    /// message.
    pub(crate) fn put(&mut self, summary: Option<&[u8]>) {
        match summary.filter(|summary| summary.len() <= SUMMARY_OCTETS_MAX) {
            Some(summary) => {
                put(&mut self.block, summary.len() as u64 + 1);
                self.block.extend_from_slice(summary);
            }
            None => put(&mut self.block, 0),
        }
        self.count += 1;
        if self.count == TOGETHER {
            self.end();
        }
    }

    fn end(&mut self) {
        let plain = std::mem::take(&mut self.block);
        self.count = 0;
        let compressed = zstd::bulk::compress(&plain, LEVEL).ok();
        // A block is stored plain unless compression makes it shorter: equal lengths mean plain.
        let smaller = compressed.filter(|compressed| compressed.len() < plain.len());
        self.blocks
            .extend_from_slice(smaller.as_deref().unwrap_or(&plain));
        self.places
            .extend_from_slice(&(self.blocks.len() as u32).to_le_bytes());
        self.places
            .extend_from_slice(&(plain.len() as u32).to_le_bytes());
    }

    /// Returns the sections: the blocks, and their places.
    pub(crate) fn finish(mut self) -> [Vec<u8>; 2] {
        if self.count > 0 {
            self.end();
        }
        [self.blocks, self.places]
    }
}

/// Decompresses blocks with one decompressor: making and dropping a decompressor takes as long as a block does.
#[derive(Default)]
struct Unpacker(Option<zstd::bulk::Decompressor<'static>>);

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Unpacker {
    fn unpack(&mut self, stored: &[u8], len: usize) -> Option<Vec<u8>> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        let plain = decompressor.decompress(stored, len).ok()?;
        (plain.len() == len).then_some(plain)
    }
}

/// Reads summaries of a segment, fastest in the order of the messages.
#[derive(Debug)]
pub struct Summaries<'a, F> {
    file: &'a Checked<F>,
    head: &'a Head,
    places: Vec<u8>,
    unpacker: Unpacker,
    /// Number of the loaded block.
    at: Option<usize>,
    block: Vec<u8>,
    summaries: Vec<Option<Range<usize>>>,
}

impl<'a, F: StorageFile> Summaries<'a, F> {
    pub(crate) fn new(file: &'a Checked<F>, head: &'a Head) -> Result<Self, SearchError> {
        Ok(Self {
            places: file.read(&head.of_summaries(1))?,
            unpacker: Unpacker::default(),
            file,
            head,
            at: None,
            block: Vec::new(),
            summaries: Vec::new(),
        })
    }

    /// Returns the summary of the message with a number in the segment; absent if the summary was too long.
    ///
    /// # Errors
    ///
    /// [`SearchError`]: messages must be read instead.
    pub fn get(&mut self, number: usize) -> Result<Option<&[u8]>, SearchError> {
        let block = number / TOGETHER;
        if self.at != Some(block) {
            self.at = None;
            self.load(block)?;
            self.at = Some(block);
        }
        let found = self.summaries.get(number % TOGETHER);
        let range = found.ok_or(SearchError::Damaged)?.clone();
        Ok(range.and_then(|range| self.block.get(range)))
    }

    /// Returns the number of messages in the block with a number.
    #[must_use]
    pub fn together(&self, block: usize) -> usize {
        let behind = block.saturating_mul(TOGETHER);
        let messages = self.head.documents;
        messages.saturating_sub(behind).min(TOGETHER)
    }

    fn load(&mut self, block: usize) -> Result<(), SearchError> {
        let place = |block: usize, part: usize| {
            let at = block.checked_mul(PLACE)?.checked_add(part)?;
            u32_at(&self.places, at)
        };
        let start = match block.checked_sub(1) {
            Some(before) => place(before, 0).ok_or(SearchError::Damaged)?,
            None => 0,
        };
        let end = place(block, 0).ok_or(SearchError::Damaged)?;
        let len = place(block, 4).ok_or(SearchError::Damaged)? as usize;
        let section = self.head.of_summaries(0);
        let range = section.start + u64::from(start)..section.start + u64::from(end);
        if start > end || range.end > section.end || len > BLOCK_OCTETS_MAX {
            return Err(SearchError::Damaged);
        }
        let stored = self.file.read(&range)?;
        self.block = match stored.len() == len {
            true => stored,
            false => {
                let plain = self.unpacker.unpack(&stored, len);
                plain.ok_or(SearchError::Damaged)?
            }
        };
        self.summaries.clear();
        let mut rest = self.block.as_slice();
        while !rest.is_empty() {
            let len = take(&mut rest).ok_or(SearchError::Damaged)?;
            let len = usize::try_from(len).map_err(|_| SearchError::Damaged)?;
            let start = self.block.len() - rest.len();
            let range = len
                .checked_sub(1)
                .map(|len| start..start.saturating_add(len));
            let behind = rest.get(len.saturating_sub(1)..);
            rest = behind.ok_or(SearchError::Damaged)?;
            self.summaries.push(range);
        }
        Ok(())
    }
}
