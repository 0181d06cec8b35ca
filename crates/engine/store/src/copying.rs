//! COPY and MOVE.

use vere_ports::mail_meta::MetaEngine;
use vere_ports::storage::Storage;

use crate::add::{QuotaLimit, QuotaUsage};
use crate::committed::Committed;
use crate::error::StoreError;
use crate::log::format::PAYLOAD_MAX;
use crate::mailbox::Edit;
use crate::model::{FlagMode, Flags, Keyword, MailboxId, OperationId, SystemFlags, Uid};
use crate::rows::{OperationRow, keys};
use crate::snapshot::Message;
use crate::store::Store;

/// Copied or moved messages (RFC 4315 `COPYUID`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// `UIDVALIDITY` of the target mailbox.
    pub uid_validity: u32,
    /// UIDs in the target mailbox, rising.
    pub to: Vec<Uid>,
    /// UIDs of the originals, in the same order.
    pub from: Vec<Uid>,
}

/// A prepared copy: the change of the target, and the row of the operation. The change is none if the copy was made
/// before or has no messages.
type Copying = (Option<Edit>, OperationRow);

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Copies messages into a mailbox of the same account, all or none. UIDs of expunged messages are skipped (RFC
    /// 9051 section 6.4.7). A repeated operation returns the earlier result.
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

    /// Prepares a copy.
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

    /// Removes copies again, whatever their flags are now. UIDs of expunged copies are skipped.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn take_back(
        &mut self,
        to: MailboxId,
        copies: &[Uid],
    ) -> Result<Committed<()>, StoreError> {
        let leaving = self.expunging(to, copies, None)?;
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

    /// Adds a message of a mailbox with these keywords to a change of another mailbox.
    pub(crate) fn copy_one(
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

    pub(crate) fn copied(
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

    /// Moves messages into another mailbox of the same account (RFC 6851): copies, then expunges the originals. On
    /// failure neither is done. A crash in between leaves both originals and copies; repeating the operation finishes
    /// the move.
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
        // Both changes are prepared, and log space for both is reserved, before the first change is logged. After a
        // failed MOVE a client retries, and a copy left behind would then exist twice.
        let mut leaving = self.expunging(from, &row.sources, None)?;
        self.reserve_for(
            edit.iter()
                .chain(leaving.iter().map(|leaving| &leaving.edit)),
        )?;
        let is_behind = from == to && edit.is_some();
        self.commit_copy(edit, &row)?;
        if is_behind {
            leaving = self.expunging(from, &row.sources, None)?;
        }
        self.commit_expunge(leaving)?;
        self.copied(to, row)
    }

    /// Reserves log space for all these changes.
    pub(crate) fn reserve_for<'a>(
        &mut self,
        edits: impl Iterator<Item = &'a Edit>,
    ) -> Result<(), StoreError> {
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

/// Returns the identity of a copy's content, for comparing repeated operations.
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
