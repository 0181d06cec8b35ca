//! SEARCH: answers from the mailbox's own data, from the index, and otherwise from the messages themselves.
//! `docs/internals/search.md` explains the search.

mod check;
mod explain;
mod indexer;
mod look;
mod raw;
mod texts;
mod turns;
mod verdicts;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::command::SearchKey;
use vere_imap::server::{Found, Refusal};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_search::{Index, Segment};
use vere_store::{BodyReader, MailboxId, Snapshot, StoreError, Uid};
use vere_units::Timestamp;

use super::files;
use super::keeper::{Keeper, MailStore};
use super::messages::opened_gone;
use super::summaries::Columns;

pub(crate) use check::check;
pub(super) use explain::explain;
pub(crate) use explain::explain_alone;
pub(super) use indexer::Indexer;
pub(super) use look::Leaf;
use look::Look;
pub(crate) use look::MISSED_MAX;
use turns::{Stop, Turn, Turns};
use verdicts::Verdicts;

/// Folder of the index, beside the log.
pub(crate) const FOLDER: &str = "search";

/// The segments of a mailbox.
pub(crate) type Segments = Vec<Arc<Segment<LogFile>>>;

/// The index of all mailboxes, shared by searches and the indexing thread.
#[derive(Debug, Clone)]
pub(crate) struct SharedIndex {
    index: Arc<Mutex<Index<LogDirectory>>>,
    columns: Columns,
    verdicts: Verdicts,
    turns: Turns,
}

impl SharedIndex {
    /// Opens or makes the index beside a store's log.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(store: &Path, log: u64) -> io::Result<Self> {
        let folder = store.join(FOLDER);
        files::private(&folder)?;
        let index = Index::open(LogDirectory::open(&folder)?, log)?;
        Ok(Self {
            index: Arc::new(Mutex::new(index)),
            columns: Columns::default(),
            verdicts: Verdicts::default(),
            turns: Turns::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Index<LogDirectory>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the header fields kept for repeated queries.
    pub(super) const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the segments of a mailbox, if the segments are open and the lock is free.
    pub(super) fn segments_at_hand(&self, id: MailboxId) -> Option<Segments> {
        self.index.try_lock().ok()?.open_segments(id.0)
    }

    /// Returns the segments of a mailbox; none, and an error in the log, if the segments cannot be read.
    pub(crate) fn segments(&self, id: MailboxId) -> Segments {
        self.lock().segments(id.0).unwrap_or_else(|error| {
            tracing::error!(%error, mailbox = id.0, "the search index cannot be read");
            Vec::new()
        })
    }

    /// Notes that a segment did not answer: damaged segments are removed, and built again.
    pub(super) fn doubt(&self, id: MailboxId) {
        if let Err(error) = self.lock().doubt(id.0) {
            tracing::error!(%error, mailbox = id.0, "the search index cannot be looked at");
        }
    }
}

/// Gives the rendered fields that only a recipient's copy of a message has.
trait OwnFields: Sync {
    /// Returns the fields for each UID.
    ///
    /// # Errors
    /// The error of the store.
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError>;
}

/// Asks the store's thread, and blocks: must not be used where waiting is forbidden.
struct Asking(Keeper);

impl OwnFields for Asking {
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
        let uids = uids.to_vec();
        self.0.ask_blocking(move |store| {
            let fields = own_fields(store, id, &uids);
            Ok(store.status(id)?.map(|_| fields))
        })?
    }
}

/// Returns the recipients' own fields, which precede the shared messages.
fn own_fields(store: &MailStore, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
    uids.iter()
        .map(|uid| Ok(store.own_fields(id, *uid)?.render()))
        .collect()
}

/// Largest number of messages in a mailbox that the store's thread searches itself, if no file has to be read: such a
/// search takes no longer than waking another thread.
const LITTLE_MAX: usize = 1_024;
/// Largest number of keys in such a search: other questions wait for the store's thread.
const LITTLE_KEYS_MAX: usize = 8;

/// Counts the questions that a search asks about messages. A text in two zones, or a field name with a text, counts
/// as two.
fn keys_of(key: &SearchKey) -> usize {
    match key {
        SearchKey::And(keys) => keys.iter().map(keys_of).sum(),
        SearchKey::Or(keys) => keys_of(&keys.0) + keys_of(&keys.1),
        SearchKey::Not(key) => keys_of(key),
        SearchKey::Text(_) | SearchKey::Header { .. } => 2,
        _ => 1,
    }
}

/// A mailbox, and the reader of the mailbox's messages.
type Mailbox = (Snapshot, BodyReader<LogDirectory>);

/// The result of a search, and whether the index should have known more messages.
type Outcome = (Result<Found, StoreError>, bool);

/// A search under way.
struct Search {
    asking: Asking,
    id: MailboxId,
    key: SearchKey,
    recent: UidSet,
    now: Timestamp,
    stop: Stop,
    /// The account's turn. It is held until the search ends, even if the client stops waiting before.
    _turn: Turn,
}

impl Search {
    const fn keeper(&self) -> &Keeper {
        &self.asking.0
    }

    fn look(&self, (snapshot, reader): Mailbox, segments: Segments) -> Look<'_> {
        let keeper = self.keeper();
        let (decoders, verdicts) = (&keeper.processes().searching, &keeper.index().verdicts);
        let with = (&self.asking as &dyn OwnFields, decoders, verdicts);
        let recent = self.recent.clone();
        Look::new(snapshot, reader, segments, with, recent, self.now).until(self.stop.clone())
    }

    /// Searches a small mailbox from memory alone, where memory suffices.
    fn at_once(&self, mailbox: &Mailbox) -> Option<Outcome> {
        let is_little = mailbox.0.len() <= LITTLE_MAX && keys_of(&self.key) <= LITTLE_KEYS_MAX;
        let segments = is_little.then(|| self.keeper().index().segments_at_hand(self.id));
        let segments = segments.flatten()?;
        // A panic would leave the store's thread running, and another thread would repeat the search.
        let look = AssertUnwindSafe(|| {
            let mut look = self.look(mailbox.clone(), segments);
            let found = look.all_at_hand(&self.key)?;
            self.keeper().figures().searched(look.leaves());
            Some((Ok(found), look.has_missed()))
        });
        catch_unwind(look).ok().flatten()
    }

    /// Searches any mailbox, on a thread that may take its time.
    fn whole(&self, mailbox: Mailbox) -> Outcome {
        let index = self.keeper().index();
        let mut look = self.look(mailbox, index.segments(self.id));
        let found = look.all(&self.key);
        if look.has_doubt() {
            index.doubt(self.id);
        }
        self.keeper().figures().searched(look.leaves());
        (found, look.has_missed())
    }
}

/// Finds messages, in the account's turn. The search ends when the client stops waiting.
///
/// # Errors
/// The refusal for the client.
pub(super) async fn search(
    keeper: &Keeper,
    (account, id): (&AccountName, MailboxId),
    key: SearchKey,
    recent: UidSet,
    now: Timestamp,
) -> Result<Found, Refusal> {
    let turn = keeper.index().turns.next(account).await;
    let (stop, _waiting) = Stop::unless_waiting();
    let question = move |store: &mut MailStore| {
        let reader = store.body_reader();
        Ok(store.snapshot(id)?.map(|snapshot| (snapshot, reader)))
    };
    let search = Arc::new(Search {
        asking: Asking(keeper.clone()),
        id,
        key,
        recent,
        now,
        stop,
        _turn: turn.map_err(|error| opened_gone(&error))?,
    });
    let little = Arc::clone(&search);
    let at_once = move |mailbox: &Mailbox| little.at_once(mailbox);
    let done = keeper.ask_then(question, at_once, move |mailbox| search.whole(mailbox));
    let (found, missed) = done.await.map_err(|error| opened_gone(&error))?;
    if missed {
        keeper.index_missed(id);
    }
    found.map_err(|error| opened_gone(&error))
}
