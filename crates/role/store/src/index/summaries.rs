//! Header fields without reading the messages: cut out of the index's summaries ([`vere_search::Summaries`]), and
//! kept for later queries of the same fields.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::message::{header_fields, put_header_fields};
use vere_search::{SUMMARIES_TOGETHER, SearchError, Segment, Summaries, is_summarized};
use vere_store::{BodyReader, Message, StoreError, Unpacker};

use super::segments::Segments;

/// Estimated octets of a message's requested fields, until the fields are cut.
pub(crate) const FIELDS_OCTETS: usize = 256;
/// Octets of all columns except the column used last.
const KEPT_OCTETS_MAX: usize = 24 * 1024 * 1024;
/// Octets of each column.
const COLUMN_OCTETS_MAX: usize = 8 * 1024 * 1024;
/// Number of columns at most.
const COLUMNS_MAX: usize = 512;

/// Whether summaries have all of these fields.
pub(crate) fn has_all(fields: &[String]) -> bool {
    fields.iter().all(|name| is_summarized(name))
}

/// Columns, the most recently used last; shared by all connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns(Arc<Mutex<VecDeque<Arc<Column>>>>);

/// The requested fields of a segment's messages, as far as earlier queries asked for the messages.
#[derive(Debug)]
struct Column {
    segment: Weak<Segment<LogFile>>,
    names: Arc<[String]>,
    blocks: Vec<OnceLock<Packed>>,
    octets: AtomicUsize,
}

/// The fields of neighbouring messages, one message after the other.
#[derive(Debug, Clone)]
struct Block {
    octets: Bytes,
    /// Octets of each message's fields; absent if the message's summary was too long.
    lengths: Box<[Option<u32>]>,
}

/// A block as kept in memory. Compression saves three quarters of the memory, and unpacking is faster than cutting
/// the fields again.
#[derive(Debug)]
struct Packed {
    octets: Box<[u8]>,
    /// Octets before compression; the length of `octets` if the block is not compressed.
    len: usize,
    lengths: Box<[Option<u32>]>,
}

impl Columns {
    fn of(&self, segment: &Arc<Segment<LogFile>>, names: &Arc<[String]>) -> Arc<Column> {
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |column: &Arc<Column>| {
            std::ptr::eq(column.segment.as_ptr(), Arc::as_ptr(segment)) && column.names == *names
        };
        let at = columns.iter().position(is_it);
        let column = at.and_then(|at| columns.remove(at)).unwrap_or_else(|| {
            let blocks = segment.documents().len().div_ceil(SUMMARIES_TOGETHER);
            Arc::new(Column {
                segment: Arc::downgrade(segment),
                names: Arc::clone(names),
                blocks: (0..blocks).map(|_| OnceLock::new()).collect(),
                octets: AtomicUsize::new(column_memory(blocks, names)),
            })
        });
        columns.retain(|column| column.segment.strong_count() > 0);
        let octets = |column: &Arc<Column>| column.octets.load(Ordering::Relaxed);
        let mut all: usize = columns.iter().map(octets).sum();
        while all > KEPT_OCTETS_MAX || columns.len() >= COLUMNS_MAX {
            // Other connections may have added to the column since.
            all = all.saturating_sub(columns.pop_front().as_ref().map_or(all, octets));
        }
        columns.push_back(Arc::clone(&column));
        column
    }
}

/// Octets of an empty column.
fn column_memory(blocks: usize, names: &[String]) -> usize {
    let names = names.iter().map(|name| size_of::<String>() + name.len());
    size_of::<Column>() + blocks * size_of::<OnceLock<Packed>>() + names.sum::<usize>()
}

impl Block {
    /// Returns the fields of the message with a number in the segment; absent if the message's summary was too long.
    fn get(&self, number: usize) -> Option<Bytes> {
        let at = number % SUMMARIES_TOGETHER;
        let len = (*self.lengths.get(at)?)? as usize;
        let before = self.lengths.iter().take(at).flatten();
        let start = before.map(|len| *len as usize).sum::<usize>();
        Some(self.octets.slice(start..start + len))
    }

    fn pack(&self) -> Packed {
        let octets = vere_store::compress(&self.octets);
        Packed {
            octets: octets.unwrap_or_else(|| self.octets.to_vec()).into(),
            len: self.octets.len(),
            lengths: self.lengths.clone(),
        }
    }
}

impl Packed {
    fn unpack(&self, unpacker: &mut Unpacker) -> Option<Block> {
        let octets = match self.octets.len() == self.len {
            true => self.octets.to_vec(),
            false => {
                let mut octets = vec![0; self.len];
                unpacker.unpack(&self.octets, &mut octets)?;
                octets
            }
        };
        Some(Block {
            octets: octets.into(),
            lengths: self.lengths.clone(),
        })
    }

    fn memory(&self) -> usize {
        self.octets.len() + self.lengths.len() * size_of::<Option<u32>>()
    }
}

impl Column {
    /// Returns a block that was cut before.
    fn at_hand(&self, block: usize) -> Option<&Packed> {
        self.blocks.get(block)?.get()
    }

    /// Cuts the fields of the messages in a block of summaries.
    fn cut(&self, block: usize, from: &mut Summaries<'_, LogFile>) -> Result<Block, SearchError> {
        let mut octets = Vec::new();
        let mut lengths = Vec::with_capacity(SUMMARIES_TOGETHER);
        for number in (block * SUMMARIES_TOGETHER..).take(from.together(block)) {
            let start = octets.len();
            let length = from.get(number)?.map(|summary| {
                put_header_fields(summary, &self.names, true, &mut octets);
                u32::try_from(octets.len() - start).unwrap_or(u32::MAX)
            });
            lengths.push(length);
        }
        Ok(Block {
            octets: octets.into(),
            lengths: lengths.into(),
        })
    }

    /// Keeps a block, as long as the column has room.
    fn keep(&self, number: usize, block: &Block) {
        let packed = block.pack();
        let memory = packed.memory();
        if self.octets.load(Ordering::Relaxed) + memory > COLUMN_OCTETS_MAX {
            return;
        }
        let kept = self.blocks.get(number);
        if kept.is_some_and(|kept| kept.set(packed).is_ok()) {
            self.octets.fetch_add(memory, Ordering::Relaxed);
        }
    }
}

/// Reads fields of messages of one mailbox whose UIDs rise.
pub(crate) struct Fields<'a> {
    names: Arc<[String]>,
    columns: &'a Columns,
    segments: &'a Segments,
    /// The segment of the current message, and the number of the segment's next message.
    at: usize,
    next: usize,
    column: Option<Arc<Column>>,
    summaries: Option<Summaries<'a, LogFile>>,
    /// The unpacked block, by number in the segment.
    block: Option<(usize, Block)>,
    unpacker: Unpacker,
    /// Whether a segment could not be read.
    pub(crate) doubt: bool,
    /// Messages unknown to every segment.
    pub(crate) unknown: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(names: Arc<[String]>, columns: &'a Columns, segments: &'a Segments) -> Self {
        Self {
            names,
            columns,
            segments,
            at: 0,
            next: 0,
            column: None,
            summaries: None,
            block: None,
            unpacker: Unpacker::default(),
            doubt: false,
            unknown: 0,
        }
    }

    /// Returns the fields of a message and an empty line, if no file has to be read.
    pub(crate) fn at_hand(&mut self, message: &Message) -> Option<Bytes> {
        let number = self.find(message)?;
        self.unpacked(number / SUMMARIES_TOGETHER)?.get(number)
    }

    /// Returns a block that was cut before, unpacked.
    fn unpacked(&mut self, block: usize) -> Option<&Block> {
        if self.block.as_ref().is_none_or(|(own, _)| *own != block) {
            let column = Arc::clone(self.column()?);
            let packed = column.at_hand(block)?;
            self.block = Some((block, packed.unpack(&mut self.unpacker)?));
        }
        self.block.as_ref().map(|(_, block)| block)
    }

    /// Returns the fields of a message and an empty line.
    ///
    /// # Errors
    /// When no segment knows the message, and the message cannot be read.
    pub(crate) fn of(
        &mut self,
        message: &Message,
        reader: &BodyReader<LogDirectory>,
    ) -> Result<Bytes, StoreError> {
        match self.kept(message) {
            Ok(Some(fields)) => return Ok(fields),
            Ok(None) => {}
            Err(_) => self.doubt = true,
        }
        let mut body = reader.open(message.blob)?;
        // None of these fields is among the recipient's own fields.
        Ok(header_fields(body.header()?, &self.names, true).into())
    }

    fn kept(&mut self, message: &Message) -> Result<Option<Bytes>, SearchError> {
        let Some(number) = self.find(message) else {
            self.unknown += 1;
            return Ok(None);
        };
        let Some(column) = self.column().cloned() else {
            return Ok(None);
        };
        let at = number / SUMMARIES_TOGETHER;
        if let Some(block) = self.unpacked(at) {
            return Ok(block.get(number));
        }
        if self.summaries.is_none() {
            let segment = self.segments.get(self.at);
            self.summaries = segment.map(|segment| segment.summaries()).transpose()?;
        }
        let Some(summaries) = &mut self.summaries else {
            return Ok(None);
        };
        let block = column.cut(at, summaries)?;
        let fields = block.get(number);
        column.keep(at, &block);
        self.block = Some((at, block));
        Ok(fields)
    }

    fn column(&mut self) -> Option<&Arc<Column>> {
        if self.column.is_none() {
            let segment = self.segments.get(self.at)?;
            self.column = Some(self.columns.of(segment, &self.names));
        }
        self.column.as_ref()
    }

    /// Finds the number of a message in its segment, and makes that segment the current segment.
    fn find(&mut self, message: &Message) -> Option<usize> {
        let uid = message.uid.get();
        loop {
            let documents = self.segments.get(self.at)?.documents();
            if documents.last().is_some_and(|last| last.uid >= uid) {
                break;
            }
            (self.at, self.next) = (self.at + 1, 0);
            (self.column, self.summaries, self.block) = (None, None, None);
        }
        let documents = self.segments.get(self.at)?.documents();
        // Messages usually follow each other.
        let next = documents.get(self.next).map(|next| next.uid);
        let number = match next == Some(uid) {
            true => self.next,
            false => documents.binary_search_by_key(&uid, |own| own.uid).ok()?,
        };
        self.next = number + 1;
        let same = documents.get(number)?.body == message.blob.0;
        same.then_some(number)
    }
}
