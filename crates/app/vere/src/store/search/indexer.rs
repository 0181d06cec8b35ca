//! Keeps the index near what is in the mailboxes: a thread that hears of changes.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder as ThreadBuilder;
use std::time::{Duration, Instant};

use vere_disk::log::Directory as LogDirectory;
use vere_mime::Zone;
use vere_search::{Builder, SearchError, Task, merge};
use vere_store::{BodyReader, MailboxId, Message, Snapshot, StoreError, Unpacker};

use super::look::{BEHIND_MAX, MISSED_MAX};
use super::texts::{Texts, Zones};
use super::{Asking, OwnFields, SharedIndex};
use crate::store::keeper::Keeper;

/// Mailboxes whose last indexed UID is remembered.
const REMEMBERED_MAX: usize = 100_000;

/// The shortest and the longest pause between two pieces of work.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A mailbox that may be behind.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Behind {
    id: MailboxId,
    /// From how many messages on that no segment knows one is worth while.
    least: usize,
    /// Its next UID, where that is known: most changes are seen by it to be of no interest.
    uid_next: Option<u32>,
}

/// Hears which mailboxes changed.
#[derive(Debug, Clone)]
pub(in crate::store) struct Indexer(Sender<Behind>);

impl Indexer {
    /// What gives changes, and what takes them.
    pub(in crate::store) fn channel() -> (Self, Receiver<Behind>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// Has a mailbox that changed looked at, now or soon; one without a next UID is gone.
    pub(in crate::store) fn changed(&self, id: MailboxId, uid_next: Option<u32>) {
        // Nobody hears when the role ends.
        let _ = self.0.send(Behind {
            id,
            least: BEHIND_MAX,
            uid_next,
        });
    }

    /// Has a mailbox looked at of which messages were read because no segment knows them.
    pub(in crate::store) fn missed(&self, id: MailboxId) {
        let _ = self.0.send(Behind {
            id,
            least: MISSED_MAX,
            uid_next: None,
        });
    }

    /// Starts the thread; it ends with the role.
    ///
    /// # Errors
    /// When the system gives none.
    pub(in crate::store) fn start(changes: Receiver<Behind>, keeper: Keeper) -> io::Result<()> {
        let mut indexing = Indexing {
            keeper,
            changes,
            waiting: BTreeMap::new(),
            indexed: HashMap::new(),
        };
        ThreadBuilder::new()
            .name("store-index".to_owned())
            .spawn(move || {
                while let Ok(first) = indexing.changes.recv() {
                    indexing.hear(first);
                    while !indexing.waiting.is_empty() {
                        // Those that come meanwhile have their turn after all of these.
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
    changes: Receiver<Behind>,
    /// Mailboxes to be looked at.
    waiting: BTreeMap<MailboxId, usize>,
    /// From which UID on nothing is indexed, by mailbox.
    indexed: HashMap<MailboxId, u32>,
}

impl Indexing {
    fn hear(&mut self, behind: Behind) {
        let Behind {
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

    /// After work that began then: while mail goes on coming, as much time is left to it. The index may be
    /// behind, and then has fewer and larger segments to make; nobody is to wait for it.
    fn give_way(&mut self, began: Instant) {
        let mut came = false;
        while let Ok(behind) = self.changes.try_recv() {
            // Whoever searches waits for the index, not the index for them.
            came |= behind.uid_next.is_some();
            self.hear(behind);
        }
        let worked = began.elapsed();
        if came && worked >= PAUSE_MIN {
            std::thread::sleep(worked.min(PAUSE_MAX));
        }
    }

    fn mailbox(&mut self, id: MailboxId, behind: usize) {
        let done = match self.catch_up(id, behind) {
            Err(Trouble::Store(StoreError::NoMailbox)) => {
                self.indexed.remove(&id);
                let dropped = self.keeper.index().lock().drop_within(id.0, (0, u32::MAX));
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
        while let Some(batch) = next_batch(&index, &snapshot, behind)? {
            let began = Instant::now();
            let octets = build(index_log(&index), id, &batch, &reader, &own)?;
            if let (Some((octets, count)), Some(first)) = (octets, batch.first()) {
                let last = batch.get(count - 1).unwrap_or(first);
                let range = (first.uid.get(), last.uid.get());
                put(&index, id, range, (&octets, false))?;
            }
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

fn index_log(index: &SharedIndex) -> u64 {
    index.lock().log()
}

/// Neighbouring messages that no segment knows: the first ones, when they are enough or have known
/// ones behind them. Segments of other messages than those that are there go.
fn next_batch(
    index: &SharedIndex,
    snapshot: &Snapshot,
    behind: usize,
) -> Result<Option<Vec<Message>>, Trouble> {
    let id = snapshot.mailbox();
    let segments = index.segments(id);
    for segment in &segments {
        let stale = segment.documents().iter().any(|document| {
            let uid = vere_store::Uid::new(document.uid);
            let message = uid.and_then(|uid| snapshot.find(uid));
            message.is_some_and(|message| message.blob.0 != document.body)
        });
        let ends = segment.documents().first().zip(segment.documents().last());
        if let Some((first, last)) = ends.filter(|_| stale) {
            index.lock().drop_within(id.0, (first.uid, last.uid))?;
            return next_batch(index, snapshot, behind);
        }
    }
    let mut known = segments
        .iter()
        .flat_map(|segment| segment.documents())
        .map(|document| document.uid)
        .peekable();
    let mut batch: Vec<Message> = Vec::new();
    for message in snapshot.iter_from(0) {
        while known.next_if(|uid| *uid < message.uid.get()).is_some() {
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
        let is_known = known.peek() == Some(&message.uid.get());
        if is_known && !batch.is_empty() {
            return Ok(Some(batch));
        }
        if !is_known {
            batch.push(*message);
        }
        if batch.len() >= vere_search::BUILD_DOCUMENTS_MAX {
            return Ok(Some(batch));
        }
    }
    Ok(Some(batch).filter(|batch| batch.len() >= behind || known.peek().is_some()))
        .map(|batch| batch.filter(|batch| !batch.is_empty()))
}

/// Makes a segment of the first of these messages, as many as go in, and says how many.
///
/// # Errors
/// When a message cannot be read.
fn build(
    log: u64,
    id: MailboxId,
    batch: &[Message],
    reader: &BodyReader<LogDirectory>,
    own: &dyn OwnFields,
) -> Result<Option<(Vec<u8>, usize)>, StoreError> {
    let with_own: Vec<_> = batch
        .iter()
        .filter(|message| message.own_fields)
        .map(|message| message.uid)
        .collect();
    let mut fields = match with_own.as_slice() {
        [] => Vec::new(),
        uids => own.own_fields(id, uids)?,
    }
    .into_iter();
    let mut builder = Builder::new(log, id.0);
    let mut unpacker = Unpacker::default();
    let mut count = 0;
    let all: Zones = [true; Zone::ALL.len()];
    for message in batch {
        let own = match message.own_fields {
            true => fields.next().unwrap_or_default(),
            false => Vec::new(),
        };
        Texts::read(reader, message, own, &all, &mut unpacker)?.index(message, &mut builder);
        count += 1;
        if builder.is_full() {
            break;
        }
    }
    Ok(builder.finish().map(|octets| (octets, count)))
}

/// The segment of these messages, all of them.
///
/// # Errors
/// When a message cannot be read.
pub(super) fn build_all(
    log: u64,
    id: MailboxId,
    messages: &[Message],
    reader: &BodyReader<LogDirectory>,
    own: &dyn OwnFields,
) -> Result<Option<Vec<u8>>, StoreError> {
    let uids: Vec<_> = messages.iter().map(|message| message.uid).collect();
    let fields = own.own_fields(id, &uids)?;
    let mut builder = Builder::new(log, id.0);
    let mut unpacker = Unpacker::default();
    let all: Zones = [true; Zone::ALL.len()];
    for (message, own) in messages.iter().zip(fields) {
        Texts::read(reader, message, own, &all, &mut unpacker)?.index(message, &mut builder);
    }
    Ok(builder.finish())
}

/// Adds a segment, synced if others go for it: nobody who searches waits for the disk meanwhile.
fn put(
    index: &SharedIndex,
    id: MailboxId,
    range: (u32, u32),
    (octets, synced): (&[u8], bool),
) -> io::Result<()> {
    let files = index.lock().files();
    let written = files.write(id.0, range, octets, synced)?;
    let replaced = index.lock().place(written)?;
    files.remove(replaced)
}

/// Joins segments while there are such to be joined, without messages that are gone.
fn join(index: &SharedIndex, snapshot: &Snapshot) -> Result<(), Trouble> {
    let id = snapshot.mailbox();
    loop {
        let task = index.lock().task(id.0)?;
        let Task::Join(segments) = task else {
            return Ok(());
        };
        let range = index.lock().range_of(id.0, &segments);
        let Some(range) = range else { return Ok(()) };
        let borrowed: Vec<_> = segments.iter().map(Arc::as_ref).collect();
        let live = |document: &vere_search::Document| {
            let uid = vere_store::Uid::new(document.uid);
            uid.is_some_and(|uid| snapshot.find(uid).is_some())
        };
        match merge(&borrowed, live)? {
            Some(octets) => put(index, id, range, (&octets, true))?,
            None => index.lock().drop_within(id.0, range)?,
        }
    }
}
