//! Fields of headers without the messages: cut out of what the index keeps of them
//! ([`vere_search::Summaries`]), and kept for whoever asks for the same fields next.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::message::{header_fields, put_header_fields};
use vere_search::{SUMMARIES_TOGETHER, SearchError, Segment, Summaries, is_summarized};
use vere_store::{BodyReader, Message, StoreError};

use super::search::Segments;

/// Octets that some fields of a message are taken for until they are cut.
pub(crate) const FIELDS_OCTETS: usize = 256;
/// Octets of all columns beside that which was asked for last, and of each.
const KEPT_OCTETS_MAX: usize = 16 * 1024 * 1024;
/// How many columns there are.
const COLUMNS_MAX: usize = 64;

/// Whether summaries have all of these fields.
pub(crate) fn has_all(fields: &[String]) -> bool {
    fields.iter().all(|name| is_summarized(name))
}

/// Columns, that which was used last at the end; all connections share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns(Arc<Mutex<VecDeque<Arc<Column>>>>);

/// The fields of some names, of all messages of a segment as far as they were asked for.
#[derive(Debug)]
struct Column {
    segment: Weak<Segment<LogFile>>,
    names: Arc<[String]>,
    blocks: Vec<OnceLock<Block>>,
    octets: AtomicUsize,
}

/// Those of neighbouring messages, one behind the other.
#[derive(Debug)]
struct Block {
    octets: Bytes,
    /// Where those of each message are; none when its summary was too long.
    places: Vec<Option<Range<usize>>>,
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
                octets: AtomicUsize::new(blocks * size_of::<OnceLock<Block>>()),
            })
        });
        columns.retain(|column| column.segment.strong_count() > 0);
        let octets = |column: &Arc<Column>| column.octets.load(Ordering::Relaxed);
        let mut all: usize = columns.iter().map(octets).sum();
        while all > KEPT_OCTETS_MAX || columns.len() >= COLUMNS_MAX {
            // Others may have grown it since.
            all = all.saturating_sub(columns.pop_front().as_ref().map_or(all, octets));
        }
        columns.push_back(Arc::clone(&column));
        column
    }
}

impl Block {
    /// The fields of the message with a number in the segment; none when its summary was too long.
    fn get(&self, number: usize) -> Option<Bytes> {
        let place = self.places.get(number % SUMMARIES_TOGETHER)?.clone()?;
        Some(self.octets.slice(place))
    }

    fn memory(&self) -> usize {
        self.octets.len() + self.places.capacity() * size_of::<Option<Range<usize>>>()
    }
}

impl Column {
    /// The block that has a message, when it was cut already.
    fn at_hand(&self, number: usize) -> Option<&Block> {
        self.blocks.get(number / SUMMARIES_TOGETHER)?.get()
    }

    /// Cuts the fields of messages that have their summaries together.
    fn cut(&self, block: usize, from: &mut Summaries<'_, LogFile>) -> Result<Block, SearchError> {
        let mut octets = Vec::new();
        let mut places = Vec::with_capacity(SUMMARIES_TOGETHER);
        for number in (block * SUMMARIES_TOGETHER..).take(from.together(block)) {
            let start = octets.len();
            let place = from.get(number)?.map(|summary| {
                put_header_fields(summary, &self.names, true, &mut octets);
                start..octets.len()
            });
            places.push(place);
        }
        octets.shrink_to_fit();
        let octets = octets.into();
        Ok(Block { octets, places })
    }

    /// Keeps a block, as long as the column has room; else it comes back.
    fn keep(&self, number: usize, block: Block) -> Option<Block> {
        let memory = block.memory();
        if self.octets.load(Ordering::Relaxed) + memory > KEPT_OCTETS_MAX {
            return Some(block);
        }
        let kept = self.blocks.get(number)?;
        if kept.set(block).is_ok() {
            self.octets.fetch_add(memory, Ordering::Relaxed);
        }
        None
    }
}

/// Reads fields of messages of one mailbox whose UIDs rise.
pub(crate) struct Fields<'a> {
    names: Arc<[String]>,
    columns: &'a Columns,
    segments: &'a Segments,
    /// The segment that messages lie in now, and the number of the next one in it.
    at: usize,
    next: usize,
    column: Option<Arc<Column>>,
    summaries: Option<Summaries<'a, LogFile>>,
    /// The last block for which there was no room.
    unkept: Option<(usize, Block)>,
    /// A segment did not answer.
    pub(crate) doubt: bool,
    /// Messages that no segment knows.
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
            unkept: None,
            doubt: false,
            unknown: 0,
        }
    }

    /// The fields of a message and an empty line, if nothing has to be read for them.
    pub(crate) fn at_hand(&mut self, message: &Message) -> Option<Bytes> {
        let number = self.find(message)?;
        self.column()?.at_hand(number)?.get(number)
    }

    /// The fields of a message and an empty line.
    ///
    /// # Errors
    /// When no segment knows it, and it cannot be read.
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
        // The fields of the recipient's own are none of these.
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
        if let Some(block) = column.at_hand(number) {
            return Ok(block.get(number));
        }
        let at = number / SUMMARIES_TOGETHER;
        if let Some((_, block)) = self.unkept.as_ref().filter(|(own, _)| *own == at) {
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
        self.unkept = column.keep(at, block).map(|block| (at, block));
        Ok(fields)
    }

    fn column(&mut self) -> Option<&Arc<Column>> {
        if self.column.is_none() {
            let segment = self.segments.get(self.at)?;
            self.column = Some(self.columns.of(segment, &self.names));
        }
        self.column.as_ref()
    }

    /// The number of a message in its segment, which is the one at hand then.
    fn find(&mut self, message: &Message) -> Option<usize> {
        let uid = message.uid.get();
        loop {
            let documents = self.segments.get(self.at)?.documents();
            if documents.last().is_some_and(|last| last.uid >= uid) {
                break;
            }
            (self.at, self.next) = (self.at + 1, 0);
            (self.column, self.summaries, self.unkept) = (None, None, None);
        }
        let documents = self.segments.get(self.at)?.documents();
        // Most often they follow each other.
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
