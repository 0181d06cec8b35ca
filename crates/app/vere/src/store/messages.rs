//! Messages out of the store: which ones fit in a batch, and their content.

use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_local};
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::server::{FetchQuery, Messages, Need, Refusal, Row};
use vere_imap::set::UidSet;
use vere_mime::Parsed;
use vere_store::{Body, BodyReader, MailboxId, Message, RecipientFields, Snapshot, StoreError};

use super::convert::{among, flags_of, refusal, time};
use super::keeper::{Keeper, MailStore};
use super::parser::Parsers;
use super::search::MISSED_MAX;
use super::summaries::{Fields, SUMMARY_OCTETS, has_all};

/// Messages of one batch, whatever is asked of them.
const BATCH_MAX: usize = 1_000;

/// Octets that what the parser found, and the header with it, are taken for until they are read.
const PARSED_OCTETS: usize = 512;
const HEADER_OCTETS: usize = 3 * 1024;

/// A message, and the fields that only its recipient's copy has.
type Referred = (Message, Vec<u8>);

/// The fields that stand before the shared message.
///
/// # Errors
/// When they are damaged.
fn refer(store: &MailStore, id: MailboxId, message: &Message) -> Result<Referred, StoreError> {
    let own = match message.own_fields {
        true => store.own_fields(id, message.uid)?,
        false => RecipientFields::default(),
    };
    Ok((*message, own.render()))
}

/// Gives messages, and reads those ahead that will be asked for next: while some are sent, others are
/// read.
#[derive(Debug, Default)]
pub(super) struct Fetcher {
    ahead: Option<Ahead>,
}

#[derive(Debug)]
struct Ahead {
    query: FetchQuery,
    messages: JoinHandle<Result<Messages, Refusal>>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.messages.abort();
    }
}

impl Fetcher {
    /// Gives the first of the messages that are asked for.
    ///
    /// # Errors
    /// What the client is told.
    pub(super) async fn fetch(
        &mut self,
        keeper: &Keeper,
        query: FetchQuery,
    ) -> Result<Messages, Refusal> {
        // What was read for another question is of no use any more.
        let ahead = self.ahead.take().filter(|ahead| ahead.query == query);
        let messages = match ahead {
            Some(mut ahead) => (&mut ahead.messages)
                .await
                .map_err(|_| Refusal::Unavailable)??,
            None => fetch(keeper, query.clone()).await?,
        };
        if !messages.rest.is_empty() {
            let query = FetchQuery {
                uids: messages.rest.clone(),
                ..query
            };
            let (keeper, next) = (keeper.clone(), query.clone());
            let messages = spawn_local(async move { fetch(&keeper, next).await });
            self.ahead = Some(Ahead { query, messages });
        }
        Ok(messages)
    }

    /// Lets go of what was read ahead.
    pub(super) fn rest(&mut self) {
        self.ahead = None;
    }
}

async fn fetch(keeper: &Keeper, query: FetchQuery) -> Result<Messages, Refusal> {
    let need = query.need;
    let fields = query.fields.clone().filter(|fields| has_all(fields));
    let (snapshot, chosen, rest, reader) = keeper
        .ask(move |store| choose(store, &query))
        .await
        .and_then(|(snapshot, chosen, rest, reader)| Ok((snapshot, chosen?, rest, reader)))
        .map_err(|error| opened_gone(&error))?;
    let rows = if need == Need::Nothing {
        chosen
            .into_iter()
            .map(|(message, _)| row(&snapshot, &message, Content::default()))
            .collect()
    } else {
        let keeper = keeper.clone();
        tokio::task::spawn_blocking(move || match fields {
            Some(fields) => field_rows(&snapshot, &chosen, &reader, &fields, &keeper),
            None => read_rows(&snapshot, &chosen, &reader, keeper.parsers(), need),
        })
        .await
        .map_err(|_| Refusal::Unavailable)?
    };
    Ok(Messages { rows, rest })
}

/// What a mailbox that is open answers when it is gone.
pub(super) fn opened_gone(error: &StoreError) -> Refusal {
    match error {
        StoreError::NoMailbox => Refusal::Gone,
        other => refusal(other),
    }
}

type Chosen = (
    Snapshot,
    Result<Vec<Referred>, StoreError>,
    UidSet,
    BodyReader<LogDirectory>,
);

fn choose(
    store: &mut MailStore,
    query: &FetchQuery,
) -> Result<vere_store::Committed<Chosen>, StoreError> {
    let id = MailboxId(query.mailbox);
    let summarized = query.fields.as_deref().is_some_and(has_all);
    let committed = store.snapshot(id)?;
    let reader = store.body_reader();
    let store = &*store;
    Ok(committed.map(|snapshot| {
        let (mut chosen, mut octets, mut last) = (Vec::new(), 0_usize, 0);
        let since = query.changed_since.unwrap_or(0);
        for message in among(&snapshot, &query.uids) {
            if chosen.len() >= BATCH_MAX || (octets >= query.octets_max && !chosen.is_empty()) {
                break;
            }
            last = message.uid.get();
            if message.mod_seq.0 <= since {
                continue;
            }
            octets += match query.need {
                Need::Nothing => 0,
                Need::Parsed => PARSED_OCTETS,
                Need::Header if summarized => SUMMARY_OCTETS,
                Need::Header => HEADER_OCTETS.min(message.size as usize),
                Need::Whole => message.size as usize,
            };
            chosen.push(*message);
        }
        let behind = among(&snapshot, &query.uids).any(|message| message.uid.get() > last);
        let rest = match behind {
            true => query
                .uids
                .intersection(&UidSet::range(last.saturating_add(1), u32::MAX)),
            false => UidSet::new(),
        };
        let referred = chosen
            .iter()
            .map(|message| match query.need {
                Need::Nothing | Need::Parsed => Ok((*message, Vec::new())),
                Need::Header if summarized => Ok((*message, Vec::new())),
                Need::Header | Need::Whole => refer(store, id, message),
            })
            .collect();
        (snapshot, referred, rest, reader)
    }))
}

/// What was read of a message.
#[derive(Default)]
struct Content {
    parsed: Bytes,
    octets: Bytes,
    own: usize,
}

fn row(snapshot: &Snapshot, message: &Message, content: Content) -> Row {
    Row {
        flags: flags_of(snapshot, message),
        date: time(message.internal_date),
        size: u64::from(message.size),
        parsed: content.parsed,
        content: content.octets,
        own: content.own,
    }
}

/// Rows of fields that summaries have; those of messages that have none are read.
fn field_rows(
    snapshot: &Snapshot,
    chosen: &[Referred],
    reader: &BodyReader<LogDirectory>,
    names: &[String],
    keeper: &Keeper,
) -> Vec<Row> {
    let segments = keeper.index().segments(snapshot.mailbox());
    let mut fields = Fields::new(names, reader, &segments);
    let rows = chosen.iter().filter_map(|(message, _)| {
        let octets = fields
            .of(message)
            .map_err(|error| left_out(message, &error));
        let content = Content {
            octets: octets.ok()?,
            ..Content::default()
        };
        Some(row(snapshot, message, content))
    });
    let rows = rows.collect();
    if fields.doubt {
        keeper.index().doubt(snapshot.mailbox());
    }
    if fields.unknown >= MISSED_MAX {
        keeper.index_missed(snapshot.mailbox());
    }
    rows
}

/// It is left out, and the client is told that not all are there.
fn left_out(message: &Message, error: &StoreError) {
    tracing::error!(%error, uid = message.uid.get(), "message cannot be read");
}

fn read_rows(
    snapshot: &Snapshot,
    chosen: &[Referred],
    reader: &BodyReader<LogDirectory>,
    parsers: &Parsers,
    need: Need,
) -> Vec<Row> {
    let rows = chosen
        .iter()
        .filter_map(|referred| match read(referred, reader, parsers, need) {
            Ok(content) => Some(row(snapshot, &referred.0, content)),
            Err(error) => {
                left_out(&referred.0, &error);
                None
            }
        });
    rows.collect()
}

fn read(
    (message, own): &Referred,
    reader: &BodyReader<LogDirectory>,
    parsers: &Parsers,
    need: Need,
) -> Result<Content, StoreError> {
    let mut body = reader.open(message.blob)?;
    Ok(Content {
        parsed: parsed(&mut body, parsers)?,
        octets: octets(&mut body, own, need)?.into(),
        own: own.len(),
    })
}

/// What the parser found when the message was delivered; one of another version is asked again.
fn parsed(body: &mut Body<LogFile>, parsers: &Parsers) -> Result<Bytes, StoreError> {
    let found = body.parsed()?;
    if Parsed::is_current(found) {
        return Ok(Bytes::copy_from_slice(found));
    }
    let found = parsers.parse(&body.message()?)?;
    Ok(found.record.into())
}

fn octets(body: &mut Body<LogFile>, own: &[u8], need: Need) -> Result<Vec<u8>, StoreError> {
    let mut octets = own.to_vec();
    match need {
        Need::Nothing | Need::Parsed => {}
        Need::Header => octets.extend_from_slice(body.header()?),
        Need::Whole if octets.is_empty() => return body.message(),
        Need::Whole => octets.extend_from_slice(&body.message()?),
    }
    Ok(octets)
}
