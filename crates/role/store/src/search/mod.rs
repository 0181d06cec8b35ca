//! SEARCH: answers from the mailbox's own data, from the index, and otherwise from the messages themselves.
//! `docs/internals/search.md` explains the search.

mod check;
mod explain;
mod indexer;
mod look;
mod own_fields;
mod raw;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vere_disk::log::Directory as LogDirectory;
use vere_imap::command::SearchKey;
use vere_imap::server::{Found, Refusal};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_store::{BodyReader, MailboxId, Snapshot, StoreError};
use vere_units::Timestamp;

use super::convert::opened_gone;
use super::index::{Segments, Stop, Turn};
use super::keeper::Keeper;
use super::mail_store::MailStore;

pub(crate) use check::{check, check_running};
pub use explain::ExplainError;
pub(super) use explain::explain;
pub(crate) use explain::explain_alone;
pub(crate) use indexer::start_indexer;
use look::Look;
use own_fields::{Asking, OwnFields};

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
        let (decoders, verdicts) = (&keeper.processes().searching, keeper.index().verdicts());
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
            self.keeper().figures().searched(look.read());
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
        self.keeper().figures().searched(look.read());
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
    let turn = keeper.index().turns().next(account).await;
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
