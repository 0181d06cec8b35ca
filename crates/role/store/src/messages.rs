//! Reads messages out of the store: chooses a batch, and reads the content, or prepares to read it in pieces.

use std::sync::Arc;

use bytes::Bytes;
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::message::header_fields;
use vere_imap::server::{FetchQuery, Messages, Need, Refusal, Row};
use vere_imap::set::UidSet;
use vere_mime::Parsed;
use vere_store::{
    Body, BodyReader, Committed, MailboxId, Message, RecipientFields, Snapshot, StoreError,
};

use super::convert::{among, flags_of, opened_gone, time};
use super::index::summaries::{FIELDS_OCTETS, Fields, has_all};
use super::index::{MISSED_MAX, SharedIndex};
use super::keeper::Keeper;
use super::large::Large;
use super::mail_store::MailStore;
use vere_parsing::Parsers;

/// Factor by which the content read for a batch may exceed `octets_max`, since sizes are estimates.
const OVERSHOOT: usize = 4;
/// Messages of one batch at most, whatever the query asks for.
const BATCH_MAX: usize = 1_000;

/// Estimated octets of a parser record, and of a header, until they are read.
const PARSED_OCTETS: usize = 512;
const HEADER_OCTETS: usize = 3 * 1024;
/// Memory kept from one message to the next.
const MEMORY_MAX: usize = 64 * 1024;

/// A message, and the fields that only its recipient's copy has.
type Referred = (Message, Vec<u8>);

/// Returns a message with the recipient's own fields, which precede the shared message.
///
/// # Errors
/// When the fields are damaged.
fn refer(store: &MailStore, id: MailboxId, message: &Message) -> Result<Referred, StoreError> {
    let own = match message.own_fields {
        true => store.own_fields(id, message.uid)?,
        false => RecipientFields::default(),
    };
    Ok((*message, own.render()))
}

/// Messages read from a mailbox.
#[derive(Debug)]
pub(super) struct FetchBatch {
    pub(super) messages: Messages,
    /// The last message, if it is sent in pieces.
    pub(super) large: Option<Large>,
    /// Octets of memory that reading the first message takes; then no message was read.
    pub(super) needs: Option<usize>,
}

impl From<Messages> for FetchBatch {
    fn from(messages: Messages) -> Self {
        Self {
            messages,
            large: None,
            needs: None,
        }
    }
}

/// Why a message was not read.
#[derive(Debug)]
enum Unread {
    Error(StoreError),
    /// Reading takes this many octets of memory.
    Needs(usize),
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Self {
        Self::Error(error)
    }
}

/// Reads messages. Content of more than `alone_max` octets is not read at once.
///
/// # Errors
/// The refusal for the client.
pub(super) async fn fetch(
    keeper: &Keeper,
    query: FetchQuery,
    alone_max: usize,
) -> Result<FetchBatch, Refusal> {
    let (need, parsed, large_from) = (query.need, query.parsed, query.large_from);
    let fields = query.fields.clone();
    if let Some(names) = fields.clone().filter(|names| has_all(names)) {
        return fetch_fields(keeper, query, names, alone_max).await;
    }
    let question = move |store: &mut MailStore| choose(store, &query);
    let done = if need == Need::Nothing {
        let chosen = keeper.ask(question).await.and_then(|chosen| chosen);
        chosen.map(|chosen| chosen.rows(|_, _, _| Ok(Content::default())))
    } else {
        let parsers = keeper.processes().delivering.clone();
        let read = move |chosen: Result<Chosen, StoreError>| {
            let mut reading = Reading {
                parsers,
                need,
                parsed,
                fields,
                large_from,
                alone_max,
                memory: Vec::new(),
            };
            let read = |chosen: Chosen| {
                let blobs = chosen.messages.iter().map(|(message, _)| message.blob);
                chosen.reader.will_need(blobs);
                chosen.rows(|referred, reader, found| reading.read(referred, reader, found))
            };
            chosen.map(read)
        };
        keeper
            .ask_then(question, |_| None, read)
            .await
            .and_then(|done| done)
    };
    done.map_err(|error| opened_gone(&error))
}

/// Returns header fields that summaries have: from memory if an earlier query had the same fields, else cut out of
/// the index's summaries. Messages that no segment knows are read.
async fn fetch_fields(
    keeper: &Keeper,
    query: FetchQuery,
    names: Arc<[String]>,
    alone_max: usize,
) -> Result<FetchBatch, Refusal> {
    let asked = keeper.ask(move |store| choose(store, &query)).await;
    let chosen = asked
        .and_then(|chosen| chosen)
        .map_err(|error| opened_gone(&error))?;
    match fields_at_hand(Box::new(chosen), &names, keeper.index()) {
        Ok(messages) => Ok(messages),
        Err(chosen) => {
            let keeper = keeper.clone();
            tokio::task::spawn_blocking(move || field_rows(*chosen, names, &keeper, alone_max))
                .await
                .map_err(|_| Refusal::Unavailable)
        }
    }
}

/// The messages of a batch, and the means to read them.
#[derive(Debug)]
struct Chosen {
    snapshot: Snapshot,
    messages: Vec<Referred>,
    /// Requested messages after this batch.
    rest: UidSet,
    /// Octets of content from which on the remaining messages wait for the next batch.
    octets_max: usize,
    /// Estimated octets of parser records and headers, if they are put together in one buffer.
    together: usize,
    reader: BodyReader<LogDirectory>,
}

impl Chosen {
    /// Returns the rows of the messages, with content from `content`, which appends parser records and headers to a
    /// common buffer. Unreadable messages are left out and counted, so that the client learns of them. Once the
    /// content exceeds `octets_max`, the remaining messages are left to the next batch.
    fn rows(
        mut self,
        mut content: impl FnMut(
            &Referred,
            &BodyReader<LogDirectory>,
            &mut Vec<u8>,
        ) -> Result<Content, Unread>,
    ) -> FetchBatch {
        let mut rows = Vec::with_capacity(self.messages.len());
        let mut found = Vec::with_capacity(self.together);
        let mut places = Vec::with_capacity(self.messages.len());
        let (mut messages, mut octets) = (self.messages.iter(), 0);
        let (mut damaged, mut unavailable) = (0, 0);
        let (mut large, mut needs) = (None, None);
        while (rows.is_empty() || octets + found.len() < self.octets_max)
            && large.is_none()
            && let Some(referred) = messages.next()
        {
            let start = found.len();
            let (message, own) = referred;
            match content(referred, &self.reader, &mut found) {
                Ok(content) => {
                    octets += content.octets.len();
                    places.push((start, found.len() - content.header, found.len()));
                    let is_large = content.behind > 0;
                    large = is_large.then(|| Large::new(message, own, &self.reader));
                    rows.push(row(&self.snapshot, message, content));
                }
                Err(Unread::Needs(octets)) => {
                    found.truncate(start);
                    // Only the first message of a batch must be read now.
                    needs = (rows.is_empty() && damaged + unavailable == 0).then_some(octets);
                    self.rest.insert(message.uid.get());
                    break;
                }
                Err(Unread::Error(error)) => {
                    found.truncate(start);
                    let uid = message.uid.get();
                    tracing::error!(%error, uid, "message cannot be read");
                    // A message with a wrong checksum stays damaged; other errors are this machine's trouble.
                    match error {
                        StoreError::Damaged(_) | StoreError::Gone => damaged += 1,
                        _ => unavailable += 1,
                    }
                }
            }
        }
        messages.for_each(|(message, _)| self.rest.insert(message.uid.get()));
        if !found.is_empty() {
            put_found(&mut rows, found, places);
        }
        let messages = Messages {
            rows,
            rest: self.rest,
            damaged,
            unavailable,
        };
        FetchBatch {
            messages,
            large,
            needs,
        }
    }
}

/// Gives each row its part of the common buffer: the parser record, and the header after the record.
fn put_found(rows: &mut [Row], found: Vec<u8>, places: Vec<(usize, usize, usize)>) {
    let found = Bytes::from(found);
    for (row, (parsed, header, end)) in rows.iter_mut().zip(places) {
        row.parsed = found.slice(parsed..header);
        if header < end {
            row.content = found.slice(header..end);
        }
    }
}

fn choose(
    store: &mut MailStore,
    query: &FetchQuery,
) -> Result<Committed<Result<Chosen, StoreError>>, StoreError> {
    let id = MailboxId(query.mailbox);
    let summarized = query.fields.as_deref().is_some_and(has_all);
    let committed = store.snapshot(id)?;
    let reader = store.body_reader();
    let store = &*store;
    let refer = |message: &Message| match query.need {
        Need::Nothing | Need::Parsed => Ok((*message, Vec::new())),
        Need::Header if summarized => Ok((*message, Vec::new())),
        Need::Header | Need::Whole => refer(store, id, message),
    };
    Ok(committed.map(|snapshot| {
        let mut messages =
            Vec::with_capacity(snapshot.len().min(query.uids.len() as usize).min(BATCH_MAX));
        let (mut octets, mut last) = (0_usize, 0);
        let since = query.changed_since.unwrap_or(0);
        let mut asked = among(&snapshot, &query.uids);
        let mut behind = false;
        for message in asked.by_ref() {
            if messages.len() >= BATCH_MAX || (octets >= query.octets_max && !messages.is_empty()) {
                behind = true;
                break;
            }
            last = message.uid.get();
            if message.mod_seq.0 <= since {
                continue;
            }
            octets += match query.need {
                Need::Nothing => 0,
                Need::Parsed => PARSED_OCTETS,
                Need::Header if summarized => FIELDS_OCTETS,
                Need::Header => HEADER_OCTETS.min(message.size as usize),
                Need::Whole => message.size as usize,
            };
            messages.push(refer(message)?);
            let is_large = |from| query.need == Need::Whole && message.size as usize > from;
            if query.large_from.is_some_and(is_large) {
                break;
            }
        }
        behind |= asked.next().is_some();
        drop(asked);
        let rest = match behind {
            true => query
                .uids
                .intersection(&UidSet::range(last.saturating_add(1), u32::MAX)),
            false => UidSet::new(),
        };
        Ok(Chosen {
            messages,
            snapshot,
            rest,
            octets_max: query.octets_max.saturating_mul(OVERSHOOT),
            together: match query.need {
                Need::Parsed => octets,
                Need::Header if query.fields.is_none() => octets,
                Need::Nothing | Need::Header | Need::Whole => 0,
            },
            reader,
        })
    }))
}

/// Content read of a message, beside the parser record.
#[derive(Default)]
struct Content {
    octets: Bytes,
    /// Octets of the header, if the common buffer has the header after the parser record.
    header: usize,
    own: usize,
    /// Octets sent in pieces, and the number of header octets among them.
    behind: usize,
    header_behind: usize,
}

impl Content {
    fn of(octets: Bytes) -> Self {
        Self {
            octets,
            ..Self::default()
        }
    }
}

fn row(snapshot: &Snapshot, message: &Message, content: Content) -> Row {
    Row {
        flags: flags_of(snapshot, message),
        date: time(message.internal_date),
        size: u64::from(message.size),
        parsed: Bytes::new(),
        content: content.octets,
        own: content.own,
        behind: content.behind,
        header: content.header_behind,
    }
}

/// Returns fields from memory; gives the batch back if a message or a summary must be read.
fn fields_at_hand(
    chosen: Box<Chosen>,
    names: &Arc<[String]>,
    index: &SharedIndex,
) -> Result<FetchBatch, Box<Chosen>> {
    let Some(segments) = index.segments_at_hand(chosen.snapshot.mailbox()) else {
        return Err(chosen);
    };
    let mut fields = Fields::new(Arc::clone(names), index.columns(), &segments);
    let mut found = Vec::with_capacity(chosen.messages.len());
    for (message, _) in &chosen.messages {
        let Some(octets) = fields.at_hand(message) else {
            return Err(chosen);
        };
        found.push(octets);
    }
    let mut found = found.into_iter();
    Ok(chosen.rows(|_, _, _| Ok(Content::of(found.next().unwrap_or_default()))))
}

/// Returns fields cut out of summaries; reads messages without a summary.
fn field_rows(
    chosen: Chosen,
    names: Arc<[String]>,
    keeper: &Keeper,
    alone_max: usize,
) -> FetchBatch {
    let mailbox = chosen.snapshot.mailbox();
    let index = keeper.index();
    let segments = index.segments(mailbox);
    let mut fields = Fields::new(names, index.columns(), &segments);
    let messages = chosen.rows(|(message, _), reader, _| {
        // A message may be all header.
        if message.size as usize > alone_max {
            let header = reader.open(message.blob)?.header_octets();
            may_take(header, alone_max)?;
        }
        Ok(fields.of(message, reader).map(Content::of)?)
    });
    if fields.doubt {
        index.doubt(mailbox);
    }
    if fields.unknown >= MISSED_MAX {
        keeper.index_missed(mailbox);
    }
    messages
}

/// Reads the requested content of one message after the other.
struct Reading {
    parsers: Parsers,
    need: Need,
    /// Whether the parser record is requested beside header or message.
    parsed: bool,
    fields: Option<Arc<[String]>>,
    /// Octets above which content is sent in pieces. Other content must not exceed `alone_max` octets.
    large_from: Option<usize>,
    alone_max: usize,
    /// Buffer of the previous message.
    memory: Vec<u8>,
}

/// Memory that reading takes, as a multiple of the content: the form in the log, the original, and the response.
const READING: usize = 2;

/// Checks that content of this size may be read at once.
fn may_take(octets: usize, alone_max: usize) -> Result<(), Unread> {
    match octets > alone_max {
        true => Err(Unread::Needs(octets.saturating_mul(READING))),
        false => Ok(()),
    }
}

impl Reading {
    fn read(
        &mut self,
        (message, own): &Referred,
        reader: &BodyReader<LogDirectory>,
        found: &mut Vec<u8>,
    ) -> Result<Content, Unread> {
        if matches!(self.need, Need::Nothing | Need::Parsed) {
            let memory = std::mem::take(&mut self.memory);
            let mut body = reader.open_parsed(message.blob, memory)?;
            self.put_parsed(&mut body, found)?;
            self.keep(body);
            return Ok(Content::default());
        }
        let mut body = reader.open_into(message.blob, std::mem::take(&mut self.memory))?;
        if self.parsed {
            self.put_parsed(&mut body, found)?;
        }
        let mut content = Content {
            own: own.len(),
            ..Content::default()
        };
        let header = own.len() + body.header_octets();
        let octets = match self.need {
            Need::Whole => own.len() + body.octets(),
            _ => header,
        };
        if self.large_from.is_some_and(|from| octets > from) {
            // Checked first: amid the pieces, the client cannot be told of damage.
            body.check()?;
            (content.behind, content.header_behind) = (octets, header);
            self.keep(body);
            return Ok(content);
        }
        may_take(octets, self.alone_max)?;
        match (&self.fields, self.need) {
            (Some(names), _) => {
                let header = [own, body.header()?].concat();
                content = Content::of(header_fields(&header, names, true).into());
            }
            (None, Need::Whole) if own.is_empty() => content.octets = body.message()?.into(),
            (None, Need::Whole) => {
                content.octets = [own.as_slice(), &body.message()?].concat().into()
            }
            (None, _) => {
                let header = body.header()?;
                found.extend_from_slice(own);
                found.extend_from_slice(header);
                content.header = own.len() + header.len();
            }
        }
        self.keep(body);
        Ok(content)
    }

    /// Keeps the buffer of a message for the next message, unless the buffer is large.
    fn keep(&mut self, body: Body<LogFile>) {
        let memory = body.into_memory();
        if memory.capacity() <= MEMORY_MAX {
            self.memory = memory;
        }
    }

    /// Appends the parser record made at delivery; parses the message again if another version wrote the record.
    fn put_parsed(&self, body: &mut Body<LogFile>, to: &mut Vec<u8>) -> Result<(), StoreError> {
        let found = body.parsed()?;
        if Parsed::is_current(found) {
            to.extend_from_slice(found);
            return Ok(());
        }
        let found = self.parsers.parse(&body.message()?)?;
        to.extend_from_slice(&found.record);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
