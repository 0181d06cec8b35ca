//! Bringing kept messages back.

use std::collections::BTreeSet;

use vere_ports::mail_meta::MetaEngine;
use vere_ports::storage::Storage;

use super::listing::{KeptAt, WITH_MAILBOX};
use crate::add::{QuotaLimit, QuotaUsage};
use crate::committed::Committed;
use crate::copying::Copied;
use crate::error::StoreError;
use crate::mailbox::Edit;
use crate::model::{Keyword, MailboxId, OperationId, SystemFlags, Uid};
use crate::rows::{KeptRow, OperationRow, keys};
use crate::snapshot::Message;
use crate::store::Store;

/// The domain of the ids of operations that bring messages back, so that no other operation has such an id.
const DOMAIN: &[u8] = b"vere undelete\0";

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Brings kept messages of one piece back, those of `uids` that are still kept: as new messages of a mailbox of the
    /// same account, with their dates, own fields and flags but for `\Deleted`. All or none. A deleted mailbox of which
    /// nothing is left goes. A crash may leave messages both brought back and kept; doing the same again finds and
    /// finishes that, and adds none twice.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`], [`StoreError::OtherAccount`], [`StoreError::OverQuota`],
    /// [`StoreError::KeywordsFull`], [`StoreError::NumbersUsedUp`], [`StoreError::DiskFull`].
    pub fn undelete(
        &mut self,
        from: MailboxId,
        at: KeptAt,
        uids: &[Uid],
        to: MailboxId,
        quota: QuotaLimit,
    ) -> Result<Committed<Copied>, StoreError> {
        let owner = self.owner(to)?.clone();
        if self.any_mailbox(from)?.owner != owner {
            return Err(StoreError::OtherAccount);
        }
        let row = self.kept_at(from, at)?;
        let messages = row.as_ref().map_or(&[][..], |row| &row.messages);
        let operation = operation(from, at);
        let before = self.done_before(to, operation, &operation.0)?;
        // A crash came between the two changes: these are in the mailbox already.
        let back: BTreeSet<Uid> = before.into_iter().flat_map(|row| row.sources).collect();
        let wanted: BTreeSet<Uid> = uids.iter().copied().collect();
        let is_picked = |uid: &Uid| wanted.contains(uid) && !back.contains(uid);
        let picked: Vec<Message> = messages
            .iter()
            .filter(|(uid, _)| is_picked(uid))
            .map(|(uid, row)| restored(Message::of(*uid, row)))
            .collect();
        let more = QuotaUsage {
            octets: picked.iter().map(|message| u64::from(message.size)).sum(),
            messages: picked.len() as u64,
        };
        let gone = |uid: Uid| back.contains(&uid) || wanted.contains(&uid);
        self.room_for(to, quota, more)?;
        let mut edit = self.edit(to)?;
        let done = OperationRow {
            content: operation.0,
            first: edit.head.uid_next,
            count: picked.len() as u32,
            sources: picked.iter().map(|message| message.uid).collect(),
        };
        let names: Vec<Keyword> = self.any_mailbox(from)?.keywords.to_vec();
        for message in &picked {
            self.copy_one(from, &names, message, &mut edit)?;
        }
        if let Some(row) = row.filter(|row| row.messages.iter().any(|(uid, _)| gone(*uid))) {
            self.bring((from, at), edit, (operation, &done), (&row, &gone))?;
        }
        self.copied(to, done)
    }

    /// Logs the change of the mailbox that gets messages, then the change of the mailbox that kept them.
    fn bring(
        &mut self,
        (from, at): (MailboxId, KeptAt),
        mut edit: Edit,
        (operation, done): (OperationId, &OperationRow),
        (row, gone): (&KeptRow, &dyn Fn(Uid) -> bool),
    ) -> Result<(), StoreError> {
        let key = keys::kept(at.position, at.first);
        let added = u64::from(done.count);
        let released = if edit.id == from {
            let released = edit.release(&key, row, gone);
            self.commit_edit(edit)?;
            released
        } else {
            let mut leaving = self.keeping_edit(from)?;
            let released = match at.position {
                WITH_MAILBOX => leaving.take_out(row, gone),
                _ => leaving.release(&key, row, gone),
            };
            if added > 0 {
                self.remember(&mut edit, operation, done)?;
                self.reserve_for([&edit, &leaving].into_iter())?;
                self.commit_edit(edit)?;
            }
            self.commit_edit(leaving)?;
            released
        };
        self.counts.messages_added += added;
        self.kept.fewer(released.messages.into(), released.octets);
        self.end_aside(from)
    }

    /// Begins a change of a mailbox that no client sees, and that therefore has no mod-sequence of its own.
    pub(super) fn keeping_edit(&mut self, id: MailboxId) -> Result<Edit, StoreError> {
        let before = self.any_mailbox(id)?.head.mod_seq;
        let mut edit = self.any_edit(id)?;
        edit.head.mod_seq = before;
        Ok(edit)
    }

    /// Removes a deleted mailbox of which nothing is kept any more.
    pub(super) fn end_aside(&mut self, id: MailboxId) -> Result<(), StoreError> {
        let mailbox = self.any_mailbox(id)?;
        let (head, owner) = (mailbox.head, mailbox.owner.clone());
        let is_empty = head.messages == 0 && head.kept.unwrap_or_default().messages == 0;
        if !is_empty || self.account(&owner)?.aside(id).is_none() {
            return Ok(());
        }
        self.purge_asides(&owner, &BTreeSet::from([id]))
    }
}

/// A message as it comes back.
fn restored(mut message: Message) -> Message {
    message.flags = message.flags.without(SystemFlags::DELETED);
    message
}

fn operation(from: MailboxId, at: KeptAt) -> OperationId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(DOMAIN);
    hasher.update(&from.0.to_le_bytes());
    hasher.update(&at.position.to_le_bytes());
    hasher.update(&at.first.get().to_le_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    OperationId(id)
}
