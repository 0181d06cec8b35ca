//! Mailboxes in memory: read on demand, and dropped to free memory for other mailboxes.

use std::sync::Arc;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition, RowChange};
use vere_ports::storage::Storage;

use crate::batch;
use crate::batch::Change;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::limits::KEYWORDS_MAX;
use crate::log::format::RECORD_HEAD;
use crate::model::{FlagMode, Flags, Keyword, MailboxId, ModSeq, SystemFlags, Uid};
use crate::rows::{MailboxHead, MessageRow, RecipientFields, decode_expunged, keys};
use crate::snapshot::{Chunks, Message, Snapshot, Status};
use crate::store::Store;

/// Mailboxes whose counters are kept in memory, at some hundred octets each.
const HEADS_MAX: usize = 100_000;

/// A mailbox in memory, with all logged changes.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    pub(crate) owner: AccountName,
    pub(crate) version: u64,
    pub(crate) head: MailboxHead,
    pub(crate) keywords: Arc<Vec<Keyword>>,
    /// `None` until a caller reads messages.
    pub(crate) messages: Option<Chunks>,
    /// The number of the last use; the store counts uses.
    used: u64,
}

impl Mailbox {
    fn safe_at(&self) -> u64 {
        self.version + 1
    }
}

/// Applies the rows of a change to messages in memory.
pub(crate) fn apply_rows(chunks: &mut Chunks, rows: &[RowChange]) -> Result<(), StoreError> {
    let mut removed = Vec::new();
    for row in rows
        .iter()
        .filter(|row| row.key.starts_with(keys::MESSAGES))
    {
        let bad = || StoreError::Damaged("a message in the metadata".to_owned());
        let uid = keys::uid_of(&row.key).ok_or_else(bad)?;
        match &row.value {
            None => removed.push(uid),
            Some(value) => {
                let row = MessageRow::decode(value).ok_or_else(bad)?;
                chunks.put(Message::of(uid, &row));
            }
        }
    }
    if !removed.is_empty() {
        removed.sort_unstable();
        chunks.remove(&removed);
    }
    Ok(())
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// The mailbox in memory, possibly without messages.
    pub(crate) fn mailbox(&mut self, id: MailboxId) -> Result<&mut Mailbox, StoreError> {
        if self.kept.is_aside(id) {
            return Err(StoreError::NoMailbox);
        }
        self.any_mailbox(id)
    }

    /// The same, also of a deleted mailbox whose messages are kept.
    pub(crate) fn any_mailbox(&mut self, id: MailboxId) -> Result<&mut Mailbox, StoreError> {
        if !self.mailboxes.contains_key(&id) {
            let mailbox = self.read_mailbox(id)?;
            if self.mailboxes.len() >= HEADS_MAX {
                self.forget_all();
            }
            self.mailboxes.insert(id, mailbox);
        }
        self.uses += 1;
        let uses = self.uses;
        let mailbox = self.mailboxes.get_mut(&id).ok_or(StoreError::NoMailbox)?;
        mailbox.used = uses;
        Ok(mailbox)
    }

    /// Returns the counters of a mailbox, without loading the mailbox into memory.
    pub(crate) fn mailbox_head(&self, id: MailboxId) -> Result<MailboxHead, StoreError> {
        match self.mailboxes.get(&id) {
            Some(mailbox) => Ok(mailbox.head),
            None => Ok(self.read_mailbox(id)?.head),
        }
    }

    fn read_mailbox(&self, id: MailboxId) -> Result<Mailbox, StoreError> {
        if self.emptying.has(id) {
            return Err(StoreError::NoMailbox);
        }
        let partition = Partition::Mailbox(id.0);
        let bad = || StoreError::Damaged(format!("the counters of mailbox {}", id.0));
        let row = |key| self.pending.row(&self.meta, &partition, key);
        let head = row(keys::HEAD)?.ok_or(StoreError::NoMailbox)?;
        let owner = row(keys::OWNER)?.ok_or(StoreError::NoMailbox)?;
        let owner = std::str::from_utf8(&owner).ok();
        let mut head = MailboxHead::decode(&head).ok_or_else(bad)?;
        if head.kept.is_none() {
            head.kept = Some(self.count_kept(&partition)?);
        }
        let mut keywords = Vec::new();
        for row in self
            .pending
            .scan(&self.meta, &partition, keys::KEYWORDS)?
            .values()
        {
            let text = std::str::from_utf8(row).map_err(|_| bad())?;
            keywords.push(Keyword::new(text)?);
        }
        Ok(Mailbox {
            owner: owner
                .and_then(|name| AccountName::parse(name).ok())
                .ok_or_else(bad)?,
            version: self.pending.version(&self.meta, &partition)?,
            head,
            keywords: Arc::new(keywords),
            messages: None,
            used: 0,
        })
    }

    /// The messages of a mailbox, read if they are not in memory. A clone shares everything.
    pub(crate) fn messages(&mut self, id: MailboxId) -> Result<Chunks, StoreError> {
        self.mailbox(id)?;
        self.any_messages(id)
    }

    /// The same, also of a deleted mailbox whose messages are kept.
    pub(crate) fn any_messages(&mut self, id: MailboxId) -> Result<Chunks, StoreError> {
        if let Some(chunks) = &self.any_mailbox(id)?.messages {
            return Ok(chunks.clone());
        }
        let chunks = self.read_messages(id)?;
        self.resident += chunks.resident();
        self.any_mailbox(id)?.messages = Some(chunks.clone());
        self.make_room(id);
        Ok(chunks)
    }

    /// The messages of a mailbox, kept in memory no longer than they were.
    pub(crate) fn passing_messages(&self, id: MailboxId) -> Result<Chunks, StoreError> {
        let resident = self.mailboxes.get(&id);
        match resident.and_then(|mailbox| mailbox.messages.as_ref()) {
            Some(chunks) => Ok(chunks.clone()),
            None => self.read_messages(id),
        }
    }

    /// Reads the messages of a mailbox ahead of use, if memory allows. For eviction the mailbox ranks behind every
    /// used mailbox and behind earlier mailboxes read ahead.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn read_ahead(&mut self, id: MailboxId) -> Result<(), StoreError> {
        let known = self.mailboxes.get(&id);
        let (used, is_there) = match known {
            Some(mailbox) => (mailbox.used, mailbox.messages.is_some()),
            None => {
                self.ahead = self.ahead.saturating_sub(1);
                (self.ahead, false)
            }
        };
        let max = usize::try_from(self.config.resident_max.as_u64()).unwrap_or(usize::MAX);
        if is_there || self.resident >= max {
            return Ok(());
        }
        self.messages(id)?;
        if let Some(mailbox) = self.mailboxes.get_mut(&id) {
            mailbox.used = used;
        }
        Ok(())
    }

    fn read_messages(&self, id: MailboxId) -> Result<Chunks, StoreError> {
        let partition = Partition::Mailbox(id.0);
        let mut chunks = Chunks::default();
        let mut bad = false;
        self.meta
            .scan(&partition, keys::MESSAGES, &mut |key, value| {
                match (keys::uid_of(key), MessageRow::decode(value)) {
                    (Some(uid), Some(row)) => chunks.put(Message::of(uid, &row)),
                    _ => bad = true,
                }
                !bad
            })?;
        if bad {
            return Err(StoreError::Damaged(format!(
                "a message of mailbox {}",
                id.0
            )));
        }
        for batch in self.pending.of(&partition) {
            if batch.clear {
                chunks = Chunks::default();
            }
            apply_rows(&mut chunks, &batch.rows)?;
        }
        Ok(chunks)
    }

    /// Forgets messages of the mailboxes not used for longest, except `id`'s.
    fn make_room(&mut self, id: MailboxId) {
        let max = usize::try_from(self.config.resident_max.as_u64()).unwrap_or(usize::MAX);
        if self.resident <= max {
            return;
        }
        let others = self.mailboxes.iter().filter(|(other, _)| **other != id);
        let mut others: Vec<_> = others
            .filter(|(_, mailbox)| mailbox.messages.is_some())
            .map(|(other, mailbox)| (mailbox.used, *other))
            .collect();
        others.sort_unstable();
        for (_, other) in others {
            if self.resident <= max {
                return;
            }
            if let Some(mailbox) = self.mailboxes.get_mut(&other)
                && let Some(chunks) = mailbox.messages.take()
            {
                self.resident -= chunks.resident();
            }
        }
    }

    /// Forgets a mailbox.
    pub(crate) fn forget(&mut self, id: MailboxId) {
        let mailbox = self.mailboxes.remove(&id);
        let chunks = mailbox.and_then(|mailbox| mailbox.messages);
        self.resident -= chunks.map_or(0, |chunks| chunks.resident());
    }

    fn forget_all(&mut self) {
        self.mailboxes.clear();
        self.resident = 0;
    }

    /// The mailboxes with messages in memory, and the number of messages, most recently used first.
    #[must_use]
    pub fn resident(&self) -> Vec<(MailboxId, usize)> {
        let all = self.mailboxes.iter();
        let mut resident: Vec<_> = all
            .filter_map(|(id, mailbox)| Some((mailbox.used, *id, mailbox.messages.as_ref()?.len())))
            .collect();
        resident.sort_unstable_by_key(|(used, ..)| std::cmp::Reverse(*used));
        let resident = resident.into_iter();
        resident.map(|(_, id, count)| (id, count)).collect()
    }

    /// Returns a snapshot of a mailbox as of now.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn snapshot(&mut self, id: MailboxId) -> Result<Committed<Snapshot>, StoreError> {
        let chunks = self.messages(id)?;
        let mailbox = self.mailbox(id)?;
        let snapshot = Snapshot {
            id,
            head: mailbox.head,
            keywords: Arc::clone(&mailbox.keywords),
            chunks,
        };
        Ok(Committed::new(snapshot, mailbox.safe_at()))
    }

    /// Returns the counters of a mailbox, without reading its messages.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn status(&mut self, id: MailboxId) -> Result<Committed<Status>, StoreError> {
        let mailbox = self.mailbox(id)?;
        Ok(Committed::new(Status::of(&mailbox.head), mailbox.safe_at()))
    }

    /// The owning account of a mailbox.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn owner(&mut self, id: MailboxId) -> Result<&AccountName, StoreError> {
        Ok(&self.mailbox(id)?.owner)
    }

    /// The fields added for the recipient of a message ([`Message::own_fields`] tells whether there are any).
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`].
    pub fn own_fields(&self, id: MailboxId, uid: Uid) -> Result<RecipientFields, StoreError> {
        let row = self
            .pending
            .row(&self.meta, &Partition::Mailbox(id.0), &keys::fields(uid))?;
        let bad =
            || StoreError::Damaged(format!("the fields of message {uid} of mailbox {}", id.0));
        let fields = row
            .map(|row| RecipientFields::decode(&row).ok_or_else(bad))
            .transpose()?;
        Ok(fields.unwrap_or_default())
    }

    /// The UIDs expunged after a mod-sequence, sorted; `None` beyond the history ([`Status::expunged_floor`]): then
    /// every absent UID counts as expunged (RFC 7162 section 3.2.5).
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn expunged_since(
        &mut self,
        id: MailboxId,
        since: ModSeq,
    ) -> Result<Committed<Option<Vec<Uid>>>, StoreError> {
        let mailbox = self.mailbox(id)?;
        let (floor, safe_at) = (mailbox.head.floor, mailbox.safe_at());
        if since < floor {
            return Ok(Committed::new(None, safe_at));
        }
        let bad = || StoreError::Damaged(format!("expunged messages of mailbox {}", id.0));
        let rows = self
            .pending
            .scan(&self.meta, &Partition::Mailbox(id.0), keys::EXPUNGED)?;
        let mut uids = Vec::new();
        for (key, row) in rows {
            if keys::mod_seq_of(&key).ok_or_else(bad)? > since {
                uids.extend(decode_expunged(&row).ok_or_else(bad)?);
            }
        }
        uids.sort_unstable();
        Ok(Committed::new(Some(uids), safe_at))
    }

    /// Begins a change of a mailbox.
    pub(crate) fn edit(&mut self, id: MailboxId) -> Result<Edit, StoreError> {
        self.mailbox(id)?;
        self.any_edit(id)
    }

    /// The same, also of a deleted mailbox whose messages are kept.
    pub(crate) fn any_edit(&mut self, id: MailboxId) -> Result<Edit, StoreError> {
        let mailbox = self.any_mailbox(id)?;
        let mut head = mailbox.head;
        if head.mod_seq.0 >= MOD_SEQ_MAX {
            return Err(StoreError::NumbersUsedUp);
        }
        head.mod_seq = head.mod_seq.next();
        Ok(Edit {
            id,
            head,
            keywords: Arc::clone(&mailbox.keywords),
            change: Change::new(Partition::Mailbox(id.0), mailbox.version),
        })
    }

    /// Makes a change of a mailbox, whole or not at all, and gives the position after it.
    pub(crate) fn commit_edit(&mut self, mut edit: Edit) -> Result<u64, StoreError> {
        edit.change.put(keys::HEAD, edit.head.encode());
        let version = self.commit(edit.change)?;
        let rows = self.pending.newest();
        let Some(mailbox) = self.mailboxes.get_mut(&edit.id) else {
            return Ok(version + 1);
        };
        (mailbox.version, mailbox.head, mailbox.keywords) = (version, edit.head, edit.keywords);
        if let Some(chunks) = &mut mailbox.messages {
            self.resident -= chunks.resident();
            apply_rows(chunks, rows)?;
            self.resident += chunks.resident();
        }
        Ok(version + 1)
    }

    /// Claims all messages not yet seen as `\Recent` for the caller's session alone (RFC 3501 section 2.3.2): UIDs
    /// from the returned UID on.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn claim_recent(&mut self, id: MailboxId) -> Result<Committed<Uid>, StoreError> {
        let mailbox = self.mailbox(id)?;
        let (from, next, safe_at) = (
            mailbox.head.recent,
            mailbox.head.uid_next,
            mailbox.safe_at(),
        );
        if from == next {
            return Ok(Committed::new(from, safe_at));
        }
        let mut edit = self.edit(id)?;
        edit.head.mod_seq = self.mailbox(id)?.head.mod_seq;
        edit.head.recent = next;
        let end = self.commit_edit(edit)?;
        Ok(Committed::new(from, end))
    }
}

/// RFC 7162 section 3.1: a mod-sequence is a positive 63-bit number.
const MOD_SEQ_MAX: u64 = (1 << 63) - 1;

/// A change of a mailbox in the making.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) id: MailboxId,
    /// The counters after the change, with the mod-sequence of the change.
    pub(crate) head: MailboxHead,
    pub(crate) keywords: Arc<Vec<Keyword>>,
    pub(crate) change: Change,
}

impl Edit {
    /// Octets of the change's record in the log, counters included.
    pub(crate) fn octets(&self) -> usize {
        let counters = [batch::put(keys::HEAD, self.head.encode())];
        let name = self.change.partition.encode();
        let rows = batch::len(&[], &counters) + batch::len(&name, &self.change.rows);
        RECORD_HEAD + rows
    }

    /// Returns the bits of keywords. With `add`, keywords new to the mailbox are added to the mailbox; without `add`,
    /// new keywords are left out.
    fn bits(&mut self, keywords: &[Keyword], add: bool) -> Result<u64, StoreError> {
        let mut bits = 0;
        for keyword in keywords {
            let known = self.keywords.iter().position(|known| known == keyword);
            let bit = match known {
                Some(bit) => bit,
                None if !add => continue,
                None if self.keywords.len() >= KEYWORDS_MAX => {
                    return Err(StoreError::KeywordsFull);
                }
                None => {
                    let bit = self.keywords.len();
                    let text = keyword.as_str().as_bytes().to_vec();
                    self.change.put(keys::keyword(bit as u8), text);
                    Arc::make_mut(&mut self.keywords).push(keyword.clone());
                    bit
                }
            };
            bits |= 1 << bit;
        }
        Ok(bits)
    }

    /// The change of flag bits for `flags` in this mailbox.
    pub(crate) fn flags(&mut self, mode: FlagMode, flags: &Flags) -> Result<FlagBits, StoreError> {
        let keywords = self.bits(&flags.keywords, mode != FlagMode::Remove)?;
        Ok(FlagBits {
            mode,
            system: flags.system,
            keywords,
        })
    }

    /// Writes a message.
    pub(crate) fn put(&mut self, uid: Uid, row: &MessageRow) {
        self.change.put(keys::message(uid), row.encode());
    }

    /// Writes a new message and returns the UID.
    pub(crate) fn add(&mut self, row: &MessageRow) -> Result<Uid, StoreError> {
        let uid = self.head.uid_next;
        if uid == Uid::MAX || self.head.messages >= crate::limits::MESSAGES_MAX {
            return Err(StoreError::NumbersUsedUp);
        }
        self.head.uid_next = uid.next();
        self.head.count_in(row.flags, row.size);
        self.put(uid, row);
        Ok(uid)
    }
}

/// A change of flags in the bits of one mailbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlagBits {
    mode: FlagMode,
    system: SystemFlags,
    keywords: u64,
}

impl FlagBits {
    /// Returns the flags and keywords of a message after the change.
    pub(crate) fn apply(&self, flags: SystemFlags, keywords: u64) -> (SystemFlags, u64) {
        match self.mode {
            FlagMode::Replace => (self.system, self.keywords),
            FlagMode::Add => (flags.with(self.system), keywords | self.keywords),
            FlagMode::Remove => (flags.without(self.system), keywords & !self.keywords),
        }
    }
}
