//! Keeps the index near the content of the mailboxes: a thread that receives notes of changes.

mod build;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::Builder as ThreadBuilder;
use std::time::{Duration, Instant};

use vere_search::{Builder, SearchError, Shelf, Task, merge};
use vere_store::{MailboxId, Message, Snapshot, StoreError};

use self::build::build;
pub(super) use self::build::build_all;
use super::own_fields::{Asking, OwnFields};
use crate::index::{Segments, SharedIndex, StaleIndex, beside};
use crate::keeper::Keeper;

/// Mailboxes whose last indexed UID is remembered.
const REMEMBERED_MAX: usize = 100_000;

/// The shortest and the longest pause between two pieces of work.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Time without a change after which mailboxes are indexed, and the longest wait while mail goes on coming. The wait
/// makes segments fewer and larger, and moves most of the work to times when no client waits.
const SETTLED: Duration = Duration::from_millis(100);
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// Time without a change after which the shelf of message texts is dropped.
const SHELF_PATIENCE: Duration = Duration::from_secs(5);

/// How often the processes of searches are checked, and how long idle processes are kept: starting processes takes a
/// few milliseconds.
const REST_INTERVAL: Duration = Duration::from_secs(30);
const REST_PATIENCE: Duration = Duration::from_secs(60);

/// Starts the thread; the thread ends with the role.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start_indexer(changes: Receiver<StaleIndex>, keeper: Keeper) -> io::Result<()> {
    let mut indexing = Indexing {
        keeper,
        changes,
        waiting: BTreeMap::new(),
        indexed: HashMap::new(),
        shelf: Shelf::default(),
        rested: Instant::now(),
    };
    ThreadBuilder::new()
        .name("store-index".to_owned())
        .spawn(move || {
            while let Some(first) = indexing.next() {
                indexing.hear(first);
                while !indexing.waiting.is_empty() {
                    indexing.settle();
                    // Mailboxes that change meanwhile have their turn after the current mailboxes.
                    for (id, least) in std::mem::take(&mut indexing.waiting) {
                        let began = Instant::now();
                        indexing.mailbox(id, least);
                        indexing.give_way(began);
                    }
                }
            }
        })
        .map(drop)
}

/// Why a mailbox could not be indexed.
#[derive(Debug)]
enum Trouble {
    Store(StoreError),
    Search(SearchError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SearchError> for Trouble {
    fn from(error: SearchError) -> Self {
        Self::Search(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Search(SearchError::Io(error))
    }
}

struct Indexing {
    keeper: Keeper,
    changes: Receiver<StaleIndex>,
    /// Mailboxes to be indexed, with the least number of messages for a new segment.
    waiting: BTreeMap<MailboxId, usize>,
    /// UID from which on no message is indexed, by mailbox.
    indexed: HashMap<MailboxId, u32>,
    /// Content taken from recent messages, for other mailboxes with a copy.
    shelf: Shelf,
    /// When the processes of searches were last checked.
    rested: Instant,
}

impl Indexing {
    /// Waits for a change; absent when the role ends.
    fn next(&mut self) -> Option<StaleIndex> {
        loop {
            let patience = match self.shelf.is_empty() {
                true => REST_INTERVAL,
                false => SHELF_PATIENCE,
            };
            let change = self.changes.recv_timeout(patience);
            self.rest_searching();
            match change {
                Ok(behind) => return Some(behind),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.shelf = Shelf::default();
            self.keeper.processes().indexing.rest();
        }
    }

    /// Ends idle processes of searches at intervals, even while mail goes on coming.
    fn rest_searching(&mut self) {
        if self.rested.elapsed() >= REST_INTERVAL {
            self.rested = Instant::now();
            self.keeper.processes().searching.rest_unused(REST_PATIENCE);
        }
    }

    /// Waits until no changes come for a while, but ends the wait when a search asks for the index.
    fn settle(&mut self) {
        let until = Instant::now() + SETTLING_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(behind) = self.changes.recv_timeout(SETTLED.min(left)) else {
                return;
            };
            self.hear(behind);
            if left.is_zero() || behind.uid_next.is_none() {
                return;
            }
        }
    }

    fn hear(&mut self, behind: StaleIndex) {
        let StaleIndex {
            id,
            least,
            uid_next,
        } = behind;
        let new = |from: &u32| Some(uid_next?.saturating_sub(*from) as usize);
        if self
            .indexed
            .get(&id)
            .and_then(new)
            .is_some_and(|new| new < least)
        {
            return;
        }
        let known = self.waiting.entry(id).or_insert(least);
        *known = least.min(*known);
    }

    /// Pauses after work that began at `began`: while mail goes on coming, mail gets as much time as the index. An
    /// index that is behind has fewer and larger segments to make, and no client waits for new segments.
    fn give_way(&mut self, began: Instant) {
        let mut came = false;
        while let Ok(behind) = self.changes.try_recv() {
            // A search waits for the index, so a report of missing messages causes no pause.
            came |= behind.uid_next.is_some();
            self.hear(behind);
        }
        let worked = began.elapsed();
        self.rest_searching();
        if came && worked >= PAUSE_MIN {
            std::thread::sleep(worked.min(PAUSE_MAX));
        }
    }

    fn mailbox(&mut self, id: MailboxId, behind: usize) {
        let done = match self.catch_up(id, behind) {
            Err(Trouble::Store(StoreError::NoMailbox)) => {
                self.indexed.remove(&id);
                let dropped = self.keeper.index().lock().drop_within(id, (0, u32::MAX));
                dropped.map_err(Trouble::from)
            }
            done => done,
        };
        match done {
            Ok(()) => {}
            Err(Trouble::Search(SearchError::Damaged)) => self.keeper.index().doubt(id),
            Err(Trouble::Search(SearchError::Io(error))) => {
                tracing::error!(%error, mailbox = id.0, "mailbox cannot be indexed; it is read when it is searched");
            }
            Err(Trouble::Store(error)) => {
                tracing::debug!(%error, mailbox = id.0, "mailbox is not indexed now");
            }
        }
    }

    fn catch_up(&mut self, id: MailboxId, behind: usize) -> Result<(), Trouble> {
        let (snapshot, reader) = self.keeper.ask_blocking(move |store| {
            let reader = store.body_reader();
            Ok(store.snapshot(id)?.map(|snapshot| (snapshot, reader)))
        })?;
        let index = self.keeper.index().clone();
        let own = Asking(self.keeper.clone());
        drop_stale(&index, &snapshot)?;
        let mut from = 0;
        while let Some(batch) = next_batch(&index.segments(id), &snapshot, behind, from) {
            let began = Instant::now();
            let shelf = std::mem::take(&mut self.shelf);
            let builder = Builder::with(index.lock().log(), id, shelf);
            let with = (&own as &dyn OwnFields, &self.keeper.processes().indexing);
            let (count, builder) = build(builder, id, &batch, &reader, with)?;
            let (octets, shelf) = builder.finish_with();
            self.shelf = shelf;
            let ends = batch.first().zip(batch.get(count.saturating_sub(1)));
            let (Some(octets), Some((first, last))) = (octets, ends) else {
                break;
            };
            let range = (first.uid.get(), last.uid.get());
            put(&index, id, range, (&octets, false))?;
            from = range.1.saturating_add(1);
            self.give_way(began);
        }
        join(&index, &snapshot)?;
        let last = index.segments(id).last().and_then(|segment| {
            let last = segment.documents().last()?;
            Some(last.uid + 1)
        });
        if self.indexed.len() >= REMEMBERED_MAX {
            self.indexed.clear();
        }
        self.indexed.insert(id, last.unwrap_or(1));
        Ok(())
    }
}

/// Removes segments that do not match the mailbox's messages.
fn drop_stale(index: &SharedIndex, snapshot: &Snapshot) -> Result<(), Trouble> {
    let id = snapshot.mailbox();
    for segment in index.segments(id) {
        let stale = beside(&segment, snapshot).any(|(document, found)| {
            found.is_some_and(|(_, message)| message.blob.0 != document.body)
        });
        let ends = segment.documents().first().zip(segment.documents().last());
        if let Some((first, last)) = ends.filter(|_| stale) {
            index.lock().drop_within(id, (first.uid, last.uid))?;
        }
    }
    Ok(())
}

/// Returns neighbouring messages from a UID on that no segment knows: the first group that has enough messages, or
/// has indexed messages behind it.
fn next_batch(
    segments: &Segments,
    snapshot: &Snapshot,
    behind: usize,
    from: u32,
) -> Option<Vec<Message>> {
    let mut known = segments
        .iter()
        .flat_map(|segment| segment.documents())
        .map(|document| document.uid)
        .skip_while(|uid| *uid < from)
        .peekable();
    let mut batch: Vec<Message> = Vec::new();
    let start = vere_store::Uid::new(from).map_or(0, |from| snapshot.below(from));
    for message in snapshot.iter_from(start) {
        while known.next_if(|uid| *uid < message.uid.get()).is_some() {
            if !batch.is_empty() {
                return Some(batch);
            }
        }
        let is_known = known.peek() == Some(&message.uid.get());
        if is_known && !batch.is_empty() {
            return Some(batch);
        }
        if !is_known {
            batch.push(*message);
        }
        if batch.len() >= vere_search::BUILD_DOCUMENTS_MAX {
            return Some(batch);
        }
    }
    let worth_while = batch.len() >= behind || known.peek().is_some();
    (worth_while && !batch.is_empty()).then_some(batch)
}

/// Adds a segment. A segment that replaces others is synced outside of the index's lock, so that no search waits for
/// the disk.
fn put(
    index: &SharedIndex,
    id: MailboxId,
    range: (u32, u32),
    (octets, synced): (&[u8], bool),
) -> io::Result<()> {
    let files = index.lock().files();
    let written = files.write(id, range, octets, synced)?;
    let replaced = index.lock().place(written)?;
    files.remove(replaced)
}

/// Joins segments as long as the index proposes to, and leaves out messages that are gone.
fn join(index: &SharedIndex, snapshot: &Snapshot) -> Result<(), Trouble> {
    let id = snapshot.mailbox();
    loop {
        let task = index.lock().task(id)?;
        let Task::Join(segments) = task else {
            return Ok(());
        };
        let range = index.lock().range_of(id, &segments);
        let Some(range) = range else { return Ok(()) };
        let borrowed: Vec<_> = segments.iter().map(Arc::as_ref).collect();
        let live = |document: &vere_search::Document| {
            let uid = vere_store::Uid::new(document.uid);
            uid.is_some_and(|uid| snapshot.find(uid).is_some())
        };
        match merge(&borrowed, live)? {
            Some(octets) => put(index, id, range, (&octets, true))?,
            None => index.lock().drop_within(id, range)?,
        }
    }
}
