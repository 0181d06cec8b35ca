//! `vere store explain`: shows how a search is answered, and how much of the messages it reads.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tokio::task::JoinError;
use vere_disk::log::Directory as LogDirectory;
use vere_imap::command::{Command, CommandError, SearchKey, parse};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_store::{BodyReader, Committed, MailboxId, MailboxName, Snapshot, StoreError, Uid};

use super::look::{Leaf, Look};
use super::own_fields::{Asking, OwnFields, own_fields};
use crate::index::{SharedIndex, Verdicts};
use crate::keeper::Keeper;
use crate::mail_store::MailStore;
use vere_parsing::Decoders;
use vere_process::clock::now;
use vere_process::wording;

/// Why a search cannot be explained.
#[derive(Debug)]
pub enum ExplainError {
    /// The text is no valid search.
    Unreadable(CommandError),
    /// The text is another command.
    NoSearch,
    /// The mailbox does not exist, or the store cannot be read.
    Store(StoreError),
    /// The store has changes that are not synced.
    NotSynced,
    /// The search index cannot be opened.
    Index(io::Error),
    /// The search ended without a result.
    Aborted(JoinError),
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot read the search: {error}"),
            Self::NoSearch => f.write_str("not a search"),
            Self::Store(error) => error.fmt(f),
            Self::NotSynced => f.write_str("the store is not synced"),
            Self::Index(error) => error.fmt(f),
            Self::Aborted(error) => error.fmt(f),
        }
    }
}

impl Error for ExplainError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Index(error) => error.source(),
            Self::Aborted(error) => error.source(),
            Self::NoSearch | Self::NotSynced => None,
        }
    }
}

impl From<StoreError> for ExplainError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A store that no other process uses.
struct Alone<'a>(Mutex<&'a mut MailStore>);

impl OwnFields for Alone<'_> {
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own_fields(&store, id, uids)
    }
}

fn at_once<T>(store: &MailStore, committed: Committed<T>) -> Result<T, ExplainError> {
    committed
        .when(store.end())
        .map_err(|_| ExplainError::NotSynced)
}

/// Searches a mailbox of a store that no other process uses, and explains the search.
///
/// # Errors
/// When the mailbox does not exist, or the search cannot be parsed or executed.
pub(crate) fn explain_alone(
    store: &mut MailStore,
    folder: &Path,
    account: &AccountName,
    (mailbox, search): (&str, &str),
    decoders: &Decoders,
) -> Result<String, ExplainError> {
    let key = key_of(search)?;
    let found = store.mailbox_named(account, &MailboxName::new(mailbox)?)?;
    let id = at_once(store, found)?;
    let snapshot = store.snapshot(id)?;
    let snapshot = at_once(store, snapshot)?;
    let index = SharedIndex::open(folder, store.log_id()).map_err(ExplainError::Index)?;
    let reader = store.body_reader();
    let alone = Alone(Mutex::new(store));
    explained((id, snapshot), reader, &index, (&alone, decoders), key)
}

/// Explains a search of a mailbox of the running store, which serves sessions meanwhile.
///
/// # Errors
/// When the mailbox does not exist, or the search cannot be parsed or executed.
pub(crate) async fn explain(
    keeper: &Keeper,
    account: AccountName,
    mailbox: &str,
    search: &str,
) -> Result<String, ExplainError> {
    let key = key_of(search)?;
    let name = MailboxName::new(mailbox)?;
    let id = keeper
        .ask(move |store| store.mailbox_named(&account, &name))
        .await?;
    let (snapshot, reader) = keeper
        .ask(move |store| {
            let reader = store.body_reader();
            Ok(store.snapshot(id)?.map(|snapshot| (snapshot, reader)))
        })
        .await?;
    let (asking, index) = (Asking(keeper.clone()), keeper.index().clone());
    let decoders = keeper.processes().searching.clone();
    let work = move || explained((id, snapshot), reader, &index, (&asking, &decoders), key);
    let explained = tokio::task::spawn_blocking(work).await;
    explained.map_err(ExplainError::Aborted)?
}

fn key_of(search: &str) -> Result<SearchKey, ExplainError> {
    let line = format!("a SEARCH {search}");
    match parse(line.as_bytes(), true).command {
        Ok(Command::Search(search)) => Ok(search.key),
        Ok(_) => Err(ExplainError::NoSearch),
        Err(error) => Err(ExplainError::Unreadable(error)),
    }
}

/// Searches, and explains the search.
fn explained(
    (id, snapshot): (MailboxId, Snapshot),
    reader: BodyReader<LogDirectory>,
    index: &SharedIndex,
    (own, decoders): (&dyn OwnFields, &Decoders),
    key: SearchKey,
) -> Result<String, ExplainError> {
    let key = resolve(key, &snapshot);
    let segments = index.segments(id);
    let octets: u64 = segments.iter().map(|segment| segment.octets()).sum();
    let count = segments.len();
    let began = Instant::now();
    // Remembered verdicts of earlier searches would make this search look cheaper.
    let verdicts = Verdicts::default();
    let with = (own, decoders, &verdicts);
    let mut look = Look::new(snapshot, reader, segments, with, UidSet::new(), now());
    let hits = look.all(&key)?;
    let taken = began.elapsed();
    let (messages, unknown) = look.counts();
    let mut text = format!(
        "{}; index: {}, {}; not indexed: {unknown}\n",
        wording::messages(messages),
        wording::counted(count, "segment", "segments"),
        wording::size(octets)
    );
    look.leaves()
        .iter()
        .for_each(|leaf| line_of(&mut text, leaf));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} found in {:.1} ms: {}",
        wording::messages(hits.uids.len()),
        taken.as_secs_f64() * 1_000.0,
        hits.uids
    );
    Ok(text)
}

fn line_of(text: &mut String, leaf: &Leaf) {
    let by = match (leaf.certain, leaf.candidates) {
        (_, 0) => "the index alone",
        (0, candidates) if candidates == leaf.unknown => "messages alone",
        _ => "the index and messages",
    };
    let unclear = match leaf.unclear {
        0 => String::new(),
        unclear => format!(", {unclear} cannot be decoded or read"),
    };
    let _ = writeln!(
        text,
        "{}: answered by {by}: asked of {}, certain {}, looked into {} ({} not indexed), {} read, found {}{unclear}",
        leaf.key,
        leaf.asked,
        leaf.certain,
        leaf.candidates,
        leaf.unknown,
        wording::size(leaf.octets as u64),
        leaf.found
    );
}

/// Resolves message numbers to UIDs, as the IMAP machine does.
fn resolve(key: SearchKey, snapshot: &Snapshot) -> SearchKey {
    match key {
        SearchKey::And(keys) => {
            SearchKey::And(keys.into_iter().map(|key| resolve(key, snapshot)).collect())
        }
        SearchKey::Or(keys) => SearchKey::Or(Box::new((
            resolve(keys.0, snapshot),
            resolve(keys.1, snapshot),
        ))),
        SearchKey::Not(key) => SearchKey::Not(Box::new(resolve(*key, snapshot))),
        SearchKey::Sequence(set) => {
            let numbers = set.resolve(snapshot.len() as u32);
            let uid = |number: u32| Some(snapshot.get(number.checked_sub(1)? as usize)?.uid.get());
            SearchKey::Messages(numbers.iter().filter_map(uid).collect())
        }
        SearchKey::Uid(set) => {
            let last = snapshot.len().checked_sub(1);
            let last = last.and_then(|last| snapshot.get(last));
            SearchKey::Messages(set.resolve(last.map_or(0, |last| last.uid.get())))
        }
        other => other,
    }
}
