//! COPY and MOVE.

use vere_ports::mail_meta::MetaEngine;
use vere_ports::storage::Storage;

use crate::add::{QuotaLimit, QuotaUsage};
use crate::committed::Committed;
use crate::log::format::PAYLOAD_MAX;
use crate::mailbox::Edit;
use crate::model::{FlagMode, Flags, Keyword, MailboxId, OperationId, SystemFlags, Uid};
use crate::rows::{OperationRow, keys};
use crate::snapshot::Message;
use crate::{Store, StoreError};

/// Messages that were copied or moved (RFC 4315 `COPYUID`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// `UIDVALIDITY` of the mailbox they are in now.
    pub uid_validity: u32,
    /// UIDs there, rising.
    pub to: Vec<Uid>,
    /// UIDs they were copied from, in the same order.
    pub from: Vec<Uid>,
}

/// A copy in the making: the change of the target, none where it was made before or there is nothing to copy, and
/// what is remembered of it.
type Copying = (Option<Edit>, OperationRow);

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Copies messages into a mailbox of the same account, all or none; those that are gone are left
    /// out (RFC 9051 section 6.4.7). Doing it again with the same operation answers as before.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`], [`StoreError::OtherAccount`], [`StoreError::OverQuota`],
    /// [`StoreError::IdCollision`], [`StoreError::KeywordsFull`].
    pub fn copy(
        &mut self,
        from: MailboxId,
        uids: &[Uid],
        to: MailboxId,
        quota: QuotaLimit,
        operation: OperationId,
    ) -> Result<Committed<Copied>, StoreError> {
        let (edit, row) = self.copying(from, uids, to, quota, operation)?;
        self.commit_copy(edit, &row)?;
        self.copied(to, row)
    }

    /// Begins a copy.
    fn copying(
        &mut self,
        from: MailboxId,
        uids: &[Uid],
        to: MailboxId,
        quota: QuotaLimit,
        operation: OperationId,
    ) -> Result<Copying, StoreError> {
        let owner = self.owner(from)?.clone();
        if *self.owner(to)? != owner {
            return Err(StoreError::OtherAccount);
        }
        let content = content_of(from, uids);
        if let Some(before) = self.done_before(to, operation, &content)? {
            return Ok((None, before));
        }
        let chunks = self.messages(from)?;
        let messages: Vec<Message> = uids
            .iter()
            .filter_map(|uid| chunks.find(*uid))
            .copied()
            .collect();
        drop(chunks);
        let more = QuotaUsage {
            octets: messages.iter().map(|message| u64::from(message.size)).sum(),
            messages: messages.len() as u64,
        };
        self.room_for(to, quota, more)?;
        let mut edit = self.edit(to)?;
        let row = OperationRow {
            content,
            first: edit.head.uid_next,
            count: messages.len() as u32,
            sources: messages.iter().map(|message| message.uid).collect(),
        };
        let names = self.mailbox(from)?.keywords.to_vec();
        for message in &messages {
            self.copy_one(from, &names, message, &mut edit)?;
        }
        if messages.is_empty() {
            return Ok((None, row));
        }
        self.remember(&mut edit, operation, &row)?;
        Ok((Some(edit), row))
    }

    /// Removes copies again, whatever became of their flags meanwhile; those that are gone are left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn take_back(
        &mut self,
        to: MailboxId,
        copies: &[Uid],
    ) -> Result<Committed<()>, StoreError> {
        let leaving = self.expunging(to, copies)?;
        self.commit_expunge(leaving)?;
        Ok(Committed::new((), self.log.end()))
    }

    fn commit_copy(&mut self, edit: Option<Edit>, row: &OperationRow) -> Result<(), StoreError> {
        if let Some(edit) = edit {
            self.commit_edit(edit)?;
            self.counts.messages_added += u64::from(row.count);
        }
        Ok(())
    }

    fn copy_one(
        &self,
        from: MailboxId,
        names: &[Keyword],
        message: &Message,
        edit: &mut Edit,
    ) -> Result<(), StoreError> {
        let keywords = names
            .iter()
            .enumerate()
            .filter(|(bit, _)| message.keywords >> bit & 1 == 1);
        let flags = Flags {
            system: message.flags,
            keywords: keywords.map(|(_, keyword)| keyword.clone()).collect(),
        };
        let flags = edit.flags(FlagMode::Replace, &flags)?;
        let (flags, keywords) = flags.apply(SystemFlags::NONE, 0);
        let mut row = message.row();
        (row.flags, row.keywords, row.mod_seq) = (flags, keywords, edit.head.mod_seq);
        let uid = edit.add(&row)?;
        if message.own_fields {
            let fields = self.own_fields(from, message.uid)?;
            edit.change.put(keys::fields(uid), fields.encode());
        }
        Ok(())
    }

    fn copied(
        &mut self,
        to: MailboxId,
        row: OperationRow,
    ) -> Result<Committed<Copied>, StoreError> {
        let uid_validity = self.mailbox(to)?.head.uid_validity;
        let given = (0..row.count).filter_map(|more| Uid::new(row.first.get().checked_add(more)?));
        let copied = Copied {
            uid_validity,
            to: given.collect(),
            from: row.sources,
        };
        Ok(Committed::new(copied, self.log.end()))
    }

    /// Moves messages into another mailbox of the same account (RFC 6851): copies, then expunges the
    /// originals. Where it fails neither is done. A crash between leaves both; doing it again with the same
    /// operation finishes it.
    ///
    /// # Errors
    ///
    /// As [`Store::copy`].
    pub fn move_to(
        &mut self,
        from: MailboxId,
        uids: &[Uid],
        to: MailboxId,
        quota: QuotaLimit,
        operation: OperationId,
    ) -> Result<Committed<Copied>, StoreError> {
        let (edit, row) = self.copying(from, uids, to, quota, operation)?;
        // Before anything is changed both changes are there, and room for them: who is told that messages were
        // not moved moves them again, and then there would be one copy more.
        let mut leaving = self.expunging(from, &row.sources)?;
        self.reserve_for(
            edit.iter()
                .chain(leaving.iter().map(|leaving| &leaving.edit)),
        )?;
        let is_behind = from == to && edit.is_some();
        self.commit_copy(edit, &row)?;
        if is_behind {
            leaving = self.expunging(from, &row.sources)?;
        }
        self.commit_expunge(leaving)?;
        self.copied(to, row)
    }

    /// Makes sure that all these changes can be logged.
    fn reserve_for<'a>(&mut self, edits: impl Iterator<Item = &'a Edit>) -> Result<(), StoreError> {
        let mut octets = 0;
        for edit in edits {
            let record = edit.octets();
            if record > PAYLOAD_MAX {
                return Err(StoreError::TooLarge {
                    max: PAYLOAD_MAX as u64,
                });
            }
            octets += record as u64;
        }
        self.log.reserve(octets)
    }
}

/// What names the content of a copy.
fn content_of(from: MailboxId, uids: &[Uid]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&from.0.to_le_bytes());
    uids.iter().for_each(|uid| {
        hasher.update(&uid.get().to_le_bytes());
    });
    let mut content = [0; 16];
    content.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    content
}
