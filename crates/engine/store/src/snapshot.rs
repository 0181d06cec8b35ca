//! The messages of a mailbox at one moment, shared by all sessions that read the mailbox.
//!
//! Messages lie in chunks behind shared pointers; a change copies only the chunks with changed messages. A snapshot
//! costs one pointer per chunk, however many sessions keep a snapshot. Two snapshots are compared only in their
//! different chunks.

use std::sync::Arc;

use crate::model::{BlobId, InternalDate, Keyword, MailboxId, ModSeq, SystemFlags, Uid};
use crate::rows::{MailboxHead, MessageRow};

/// The most messages of a chunk before it is split.
const CHUNK_MAX: usize = 1024;

/// A message in its mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its identifier.
    pub uid: Uid,
    /// Its last change.
    pub mod_seq: ModSeq,
    /// Its flags.
    pub flags: SystemFlags,
    /// A bit for each of [`Snapshot::keywords`].
    pub keywords: u64,
    /// When it arrived.
    pub internal_date: InternalDate,
    /// Octets of the whole message, fields added for the recipient included.
    pub size: u32,
    /// The one copy.
    pub blob: BlobId,
    /// The thread of the message (RFC 8474 `THREADID`); 0 without a thread.
    pub thread: u64,
    /// Whether the recipient's own header fields ([`crate::RecipientFields`]) precede the shared message.
    pub own_fields: bool,
}

impl Message {
    pub(crate) fn of(uid: Uid, row: &MessageRow) -> Self {
        Self {
            uid,
            mod_seq: row.mod_seq,
            flags: row.flags,
            keywords: row.keywords,
            internal_date: row.internal_date,
            size: row.size,
            blob: row.blob,
            thread: row.thread,
            own_fields: row.own_fields,
        }
    }

    pub(crate) fn row(&self) -> MessageRow {
        MessageRow {
            mod_seq: self.mod_seq,
            flags: self.flags,
            keywords: self.keywords,
            internal_date: self.internal_date,
            size: self.size,
            blob: self.blob,
            thread: self.thread,
            own_fields: self.own_fields,
        }
    }
}

/// Messages in the order of UIDs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chunks {
    chunks: Vec<Arc<Vec<Message>>>,
    /// How many messages lie before each chunk.
    before: Vec<usize>,
    len: usize,
    /// Octets of all chunks: asked for with every change, of mailboxes of any size.
    octets: usize,
}

impl Chunks {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many messages have a UID below `uid`.
    pub(crate) fn below(&self, uid: Uid) -> usize {
        let at = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| last.uid < uid));
        match self.chunks.get(at) {
            None => self.len,
            Some(chunk) => self.before[at] + chunk.partition_point(|each| each.uid < uid),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Message> {
        let at = self
            .before
            .partition_point(|before| *before <= index)
            .checked_sub(1)?;
        self.chunks.get(at)?.get(index - self.before[at])
    }

    pub(crate) fn find(&self, uid: Uid) -> Option<&Message> {
        self.get(self.below(uid))
            .filter(|message| message.uid == uid)
    }

    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = &Message> + '_ {
        let at = self
            .before
            .partition_point(|before| *before <= index)
            .saturating_sub(1);
        let skip = index - self.before.get(at).copied().unwrap_or(index);
        self.chunks
            .iter()
            .skip(at)
            .flat_map(|chunk| chunk.iter())
            .skip(skip)
    }

    /// The UIDs as runs without gaps, rising; two may touch.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Uid, Uid)> + '_ {
        let of_one = |run: &[Message]| Some((run.first()?.uid, run.last()?.uid));
        self.chunks.iter().flat_map(move |chunk| {
            // Most chunks have no gap between UIDs, which the first and the last message prove.
            let is_run =
                |(first, last): (Uid, Uid)| (last.get() - first.get()) as usize + 1 == chunk.len();
            let whole = of_one(chunk).filter(|ends| is_run(*ends));
            let follows = |one: &Message, next: &Message| one.uid.get() + 1 == next.uid.get();
            let rest: &[Message] = if whole.is_some() { &[] } else { chunk };
            whole
                .into_iter()
                .chain(rest.chunk_by(follows).filter_map(of_one))
        })
    }

    /// Inserts a message, or replaces the message with the same UID.
    pub(crate) fn put(&mut self, message: Message) {
        let at = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| last.uid < message.uid));
        let mut is_between = false;
        if let Some(chunk) = self.chunks.get_mut(at) {
            change(chunk, &mut self.octets, |chunk| {
                match chunk.binary_search_by_key(&message.uid, |each| each.uid) {
                    Ok(index) => chunk[index] = message,
                    Err(index) => {
                        chunk.insert(index, message);
                        is_between = true;
                    }
                }
            });
            if is_between {
                // Rare: UIDs rise, so a new one belongs behind the last.
                self.count();
            }
            return;
        }
        match self.chunks.last_mut().filter(|last| last.len() < CHUNK_MAX) {
            Some(last) => change(last, &mut self.octets, |chunk| chunk.push(message)),
            None => {
                let chunk = vec![message];
                self.octets += octets_of(&chunk);
                self.before.push(self.len);
                self.chunks.push(Arc::new(chunk));
            }
        }
        self.len += 1;
    }

    /// Takes messages out; `uids` rise.
    pub(crate) fn remove(&mut self, uids: &[Uid]) {
        let mut rest = uids;
        for chunk in &mut self.chunks {
            let Some(last) = chunk.last() else { continue };
            let split = rest.partition_point(|uid| *uid <= last.uid);
            let (here, behind) = rest.split_at(split);
            rest = behind;
            if !here.is_empty() {
                let gone = |message: &Message| here.binary_search(&message.uid).is_ok();
                Arc::make_mut(chunk).retain(|message| !gone(message));
            }
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        self.count();
    }

    fn count(&mut self) {
        (self.len, self.octets) = (0, 0);
        self.before.clear();
        for chunk in &self.chunks {
            self.before.push(self.len);
            self.len += chunk.len();
            self.octets += octets_of(chunk);
        }
    }

    /// Octets of memory of the messages.
    pub(crate) fn resident(&self) -> usize {
        self.octets
    }
}

fn octets_of(chunk: &Vec<Message>) -> usize {
    chunk.capacity() * size_of::<Message>()
}

/// Changes a chunk, after copying a chunk shared with snapshots, and updates the sum of octets.
fn change(chunk: &mut Arc<Vec<Message>>, octets: &mut usize, by: impl FnOnce(&mut Vec<Message>)) {
    *octets -= octets_of(chunk);
    let chunk = Arc::make_mut(chunk);
    by(chunk);
    *octets += octets_of(chunk);
}

/// A mailbox at one moment, with all changes safe on disk. Cheap to clone and to keep.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) id: MailboxId,
    pub(crate) head: MailboxHead,
    pub(crate) keywords: Arc<Vec<Keyword>>,
    pub(crate) chunks: Chunks,
}

impl Snapshot {
    /// The mailbox.
    #[must_use]
    pub fn mailbox(&self) -> MailboxId {
        self.id
    }

    /// The counters of the mailbox.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(&self.head)
    }

    /// The keywords, by their bit in [`Message::keywords`].
    #[must_use]
    pub fn keywords(&self) -> &[Keyword] {
        &self.keywords
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether the mailbox is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message at an index: the sequence number less 1.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Message> {
        self.chunks.get(index)
    }

    /// The message with a UID.
    #[must_use]
    pub fn find(&self, uid: Uid) -> Option<&Message> {
        self.chunks.find(uid)
    }

    /// Number of messages with a smaller UID: the index of `uid`, or of the next message.
    #[must_use]
    pub fn below(&self, uid: Uid) -> usize {
        self.chunks.below(uid)
    }

    /// The messages from an index on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &Message> + '_ {
        self.chunks.iter_from(index)
    }

    /// The UIDs of all messages as runs without gaps, first and last included, rising; two may touch.
    pub fn runs(&self) -> impl Iterator<Item = (Uid, Uid)> + '_ {
        self.chunks.runs()
    }

    /// The first message without `\Seen`; the search is skipped if the mailbox counts no such message.
    #[must_use]
    pub fn first_unseen(&self) -> Option<&Message> {
        let unseen = |message: &&Message| !message.flags.contains(SystemFlags::SEEN);
        let counted = self.head.unseen > 0;
        counted.then(|| self.iter_from(0).find(unseen)).flatten()
    }

    /// Returns the changes from `before`, an earlier snapshot of the mailbox, to this snapshot.
    #[must_use]
    pub fn since(&self, before: &Self) -> Difference {
        let mut difference = Difference::default();
        let (mut old, mut new) = (Walk::new(&before.chunks), Walk::new(&self.chunks));
        loop {
            Walk::skip_shared(&mut old, &mut new);
            match (old.message(), new.message()) {
                (None, None) => return difference,
                (Some(gone), other) if other.is_none_or(|other| gone.uid < other.uid) => {
                    difference.expunged.push((old.index, gone.uid));
                    old.step();
                }
                (Some(was), Some(is)) if was.uid == is.uid => {
                    if was != is {
                        difference.changed.push(new.index);
                    }
                    old.step();
                    new.step();
                }
                _ => {
                    difference.arrived += 1;
                    new.step();
                }
            }
        }
    }
}

/// The changes of a mailbox between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Index (sequence number less one) in the earlier snapshot, and UID, of expunged messages; rising.
    pub expunged: Vec<(usize, Uid)>,
    /// Index in the later snapshot of messages whose flags or mod-sequence changed; rising.
    pub changed: Vec<usize>,
    /// The number of new messages, which are the last of the later snapshot.
    pub arrived: usize,
}

/// Walks over chunks.
struct Walk<'a> {
    chunks: &'a [Arc<Vec<Message>>],
    at: usize,
    index: usize,
}

impl<'a> Walk<'a> {
    fn new(chunks: &'a Chunks) -> Self {
        Self {
            chunks: &chunks.chunks,
            at: 0,
            index: 0,
        }
    }

    fn message(&self) -> Option<&'a Message> {
        self.chunks.first()?.get(self.at)
    }

    fn step(&mut self) {
        (self.at, self.index) = (self.at + 1, self.index + 1);
        if let Some((first, rest)) = self.chunks.split_first()
            && self.at == first.len()
        {
            (self.chunks, self.at) = (rest, 0);
        }
    }

    /// Skips shared chunks, as long as both sides are at the beginning of the same chunk.
    fn skip_shared(old: &mut Self, new: &mut Self) {
        while old.at == 0
            && new.at == 0
            && let (Some(was), Some(is)) = (old.chunks.first(), new.chunks.first())
            && Arc::ptr_eq(was, is)
        {
            for walk in [&mut *old, &mut *new] {
                walk.index += was.len();
                walk.chunks = &walk.chunks[1..];
            }
        }
    }
}

/// The counters of a mailbox (RFC 9051 section 6.3.11, RFC 7162, RFC 8438).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// `UIDVALIDITY`
    pub uid_validity: u32,
    /// `UIDNEXT`
    pub uid_next: Uid,
    /// `HIGHESTMODSEQ`
    pub highest_mod_seq: ModSeq,
    /// The history of expunged UIDs begins after this mod-sequence; earlier entries were dropped.
    pub expunged_floor: ModSeq,
    /// `MESSAGES`
    pub messages: u32,
    /// `UNSEEN`: the number of messages without `\Seen`.
    pub unseen: u32,
    /// `DELETED`: the number of messages with `\Deleted`.
    pub deleted: u32,
    /// `SIZE`: octets of all messages.
    pub octets: u64,
    /// The first UID that no session has reported as `\Recent` yet.
    pub recent_from: Uid,
}

impl Status {
    pub(crate) fn of(head: &MailboxHead) -> Self {
        Self {
            uid_validity: head.uid_validity,
            uid_next: head.uid_next,
            highest_mod_seq: head.mod_seq,
            expunged_floor: head.floor,
            messages: head.messages,
            unseen: head.unseen,
            deleted: head.deleted,
            octets: head.octets,
            recent_from: head.recent,
        }
    }
}

#[cfg(test)]
mod tests;
