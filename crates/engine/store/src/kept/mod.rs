//! Expunged messages and deleted mailboxes that are kept for a while, so that an administrator can bring them back.
//!
//! The change that expunges a message moves the message's row to a row of kept messages in the same mailbox; the
//! recipient's own fields and the body stay where they are. A deleted mailbox keeps all its rows; the account has a
//! row of it with its name. Kept messages count in no quota, and no session, search or list shows them.
//! `docs/internals/store.md`, "Expunged messages", explains when they go.

mod letting_go;
mod listing;
mod undelete;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use crate::error::StoreError;
use crate::mailbox::Edit;
use crate::model::{MailboxId, Uid};
use crate::rows::{KEPT_ROW_MAX, KeptCount, KeptRow, MessageRow, keys};
use crate::store::Store;

pub use letting_go::{Excess, KeepLimit, LetGo};
pub use listing::{KeptAt, KeptMailbox, KeptPiece};

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Sets whether messages expunged from now on are kept. Messages kept before stay kept.
    pub fn set_keep_expunged(&mut self, keep: bool) {
        self.config.keep_expunged = keep;
    }

    /// The change of the number of kept messages, and of their octets, since the store was opened.
    #[must_use]
    pub fn kept_since_opening(&self) -> (i64, i64) {
        self.kept.change()
    }

    /// The accounts that got kept messages since the last call; [`Store::let_go`] holds them to their limit.
    pub fn take_keepers(&mut self) -> Vec<AccountName> {
        self.kept.take_changed()
    }

    /// Counts messages of a mailbox in memory that are kept from now on.
    pub(crate) fn note_kept(
        &mut self,
        id: MailboxId,
        messages: u64,
        octets: u64,
    ) -> Result<(), StoreError> {
        let owner = self.any_mailbox(id)?.owner.clone();
        self.kept.more(&owner, messages, octets);
        Ok(())
    }

    /// The sum over the rows of kept messages of a partition.
    pub(crate) fn count_kept(&self, partition: &Partition) -> Result<KeptCount, StoreError> {
        let mut count = KeptCount::default();
        let mut after = Vec::new();
        while let Some((key, _, row)) = self.kept_row_after(partition, &after)? {
            let more = row.count();
            count.messages = count.messages.saturating_add(more.messages);
            count.octets = count.octets.saturating_add(more.octets);
            after = key;
        }
        Ok(count)
    }

    /// The next row of kept messages after a key: the key, its position and the row.
    pub(crate) fn kept_row_after(
        &self,
        partition: &Partition,
        after: &[u8],
    ) -> Result<Option<(Vec<u8>, u64, KeptRow)>, StoreError> {
        let found = self
            .pending
            .row_after(&self.meta, partition, keys::KEPT, after)?;
        let Some((key, value)) = found else {
            return Ok(None);
        };
        let bad = || StoreError::Damaged(format!("expunged messages of {partition:?}"));
        let (at, _) = keys::kept_of(&key).ok_or_else(bad)?;
        let row = KeptRow::decode(&value).ok_or_else(bad)?;
        Ok(Some((key, at, row)))
    }
}

impl Edit {
    /// Keeps messages that this change expunges. `at` is the end of the log.
    pub(crate) fn keep(&mut self, at: u64, now: Timestamp, mut messages: Vec<(Uid, MessageRow)>) {
        messages.sort_unstable_by_key(|(uid, _)| *uid);
        messages.dedup_by_key(|(uid, _)| *uid);
        let mut kept = self.head.kept.unwrap_or_default();
        for piece in messages.chunks(KEPT_ROW_MAX) {
            let Some((first, _)) = piece.first() else {
                continue;
            };
            piece.iter().for_each(|(_, row)| kept.add(row.size));
            let row = KeptRow {
                expunged: now,
                messages: piece.to_vec(),
            };
            self.change.put(keys::kept(at, *first), row.encode());
        }
        self.head.kept = Some(kept);
    }

    /// Takes messages out of a row of kept messages, with the recipients' own fields.
    fn release(&mut self, key: &[u8], row: &KeptRow, gone: &dyn Fn(Uid) -> bool) -> KeptCount {
        let mut kept = self.head.kept.unwrap_or_default();
        let mut released = KeptCount::default();
        let mut rest = Vec::new();
        for (uid, message) in &row.messages {
            if !gone(*uid) {
                rest.push((*uid, *message));
                continue;
            }
            kept.remove(message.size);
            released.add(message.size);
            if message.own_fields {
                self.change.remove(keys::fields(*uid));
            }
        }
        self.head.kept = Some(kept);
        if rest.is_empty() {
            self.change.remove(key.to_vec());
        } else if released.messages > 0 {
            let row = KeptRow {
                expunged: row.expunged,
                messages: rest,
            };
            self.change.put(key.to_vec(), row.encode());
        }
        released
    }

    /// Takes messages out of a deleted mailbox, which has them as it had before the deletion.
    fn take_out(&mut self, row: &KeptRow, gone: &dyn Fn(Uid) -> bool) -> KeptCount {
        let mut released = KeptCount::default();
        for (uid, message) in row.messages.iter().filter(|(uid, _)| gone(*uid)) {
            self.head.count_out(message.flags, message.size);
            released.add(message.size);
            self.change.remove(keys::message(*uid));
            if message.own_fields {
                self.change.remove(keys::fields(*uid));
            }
        }
        released
    }
}
