//! `vere store explain`: what answers a search, and what has to be read for it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use vere_imap::command::{Command, SearchKey, parse};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_store::{Committed, MailboxId, MailboxName, Snapshot, StoreError, Uid};
use vere_units::ByteSize;

use crate::cli::Failure;
use crate::role::clock::now;
use crate::store::keeper::MailStore;
use crate::store::search::{Leaf, Look, OwnFields, SharedIndex, own_fields};

/// A store that nobody else uses.
struct Alone<'a>(Mutex<&'a mut MailStore>);

impl OwnFields for Alone<'_> {
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own_fields(&store, id, uids)
    }
}

fn at_once<T>(store: &MailStore, committed: Committed<T>) -> Result<T, Failure> {
    committed
        .when(store.end())
        .map_err(|_| Failure::new("the store is not synced"))
}

/// Searches, and says what was done.
///
/// # Errors
/// When there is no such mailbox, or what is looked for cannot be read.
pub(super) fn explain(
    store: &mut MailStore,
    folder: &Path,
    account: &AccountName,
    mailbox: &str,
    search: &str,
) -> Result<String, Failure> {
    let line = format!("a SEARCH {search}");
    let key = match parse(line.as_bytes(), true).command {
        Ok(Command::Search(search)) => search.key,
        Ok(_) => return Err(Failure::new("not a search")),
        Err(error) => return Err(Failure::new(format!("cannot read the search: {error}"))),
    };
    let name = MailboxName::new(mailbox)?;
    let found = store.mailbox_named(account, &name)?;
    let id = at_once(store, found)?;
    let snapshot = store.snapshot(id)?;
    let snapshot = at_once(store, snapshot)?;
    let key = resolve(key, &snapshot);
    let index = SharedIndex::open(folder, store.log_id())?;
    let (reader, segments) = (store.body_reader(), index.segments(id));
    let octets: u64 = segments.iter().map(|segment| segment.octets()).sum();
    let count = segments.len();
    let alone = Alone(Mutex::new(store));
    let began = Instant::now();
    let mut look = Look::new(snapshot, reader, segments, &alone, UidSet::new(), now());
    let hits = look.all(&key);
    let taken = began.elapsed();
    let (messages, unknown) = look.counts();
    let mut text = format!(
        "{messages} messages; index: {count} segments, {}; not indexed: {unknown}\n",
        ByteSize::new(octets)
    );
    look.leaves()
        .iter()
        .for_each(|leaf| line_of(&mut text, leaf));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} messages found in {:.1} ms: {}",
        hits.uids.len(),
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
    let _ = writeln!(
        text,
        "{}: answered by {by}: asked of {}, certain {}, looked into {} ({} not indexed), {} read, found {}",
        leaf.key,
        leaf.asked,
        leaf.certain,
        leaf.candidates,
        leaf.unknown,
        ByteSize::new(leaf.octets as u64),
        leaf.found
    );
}

/// Message numbers as UIDs, as the IMAP machine does it.
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
