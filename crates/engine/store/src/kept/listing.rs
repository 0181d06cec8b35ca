//! Which messages are kept.

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use crate::committed::Committed;
use crate::error::StoreError;
use crate::model::{Keyword, MailboxId, MailboxName, SpecialUse, Uid};
use crate::rows::{KEPT_ROW_MAX, KeptRow, keys};
use crate::snapshot::Message;
use crate::store::Store;

/// A mailbox with kept messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMailbox {
    /// The mailbox.
    pub id: MailboxId,
    /// Its name, or the name before the deletion.
    pub name: MailboxName,
    /// Its special use, of a deleted mailbox only.
    pub special_use: Option<SpecialUse>,
    /// When the mailbox was deleted, by the clock of that time; `None` for a mailbox that exists.
    pub deleted: Option<Timestamp>,
    /// Kept messages.
    pub messages: u64,
    /// Octets of the kept messages.
    pub octets: u64,
}

/// A piece of the kept messages of a mailbox: the messages of one change, at most 256, or a range of UIDs of a deleted
/// mailbox. Rises from piece to piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptAt {
    /// The position of the log at the change that expunged the messages; `u64::MAX` for messages that a deleted
    /// mailbox still had.
    pub position: u64,
    /// The first UID.
    pub first: Uid,
}

/// The position in [`KeptAt`] of messages that a deleted mailbox still had.
pub(super) const WITH_MAILBOX: u64 = u64::MAX;

/// Kept messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPiece {
    /// Where they are.
    pub at: KeptAt,
    /// When they were expunged, by the clock of that time. Messages of a deleted mailbox have the time of the deletion.
    pub expunged: Timestamp,
    /// The messages as they were, with rising UIDs; never empty.
    pub messages: Vec<Message>,
    /// The keywords, by their bit in [`Message::keywords`].
    pub keywords: Vec<Keyword>,
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Returns the mailboxes of an account with kept messages: existing ones by name, then deleted ones, the one deleted
    /// first comes first.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn kept_mailboxes(
        &self,
        account: &AccountName,
    ) -> Result<Committed<Vec<KeptMailbox>>, StoreError> {
        Ok(Committed::new(self.keepers_of(account)?, self.log.end()))
    }

    pub(super) fn keepers_of(&self, account: &AccountName) -> Result<Vec<KeptMailbox>, StoreError> {
        let account = self.known_account(account)?;
        let mut found = Vec::new();
        for (name, row) in &account.mailboxes {
            let head = match self.mailbox_head(row.id) {
                // Found and said by a check.
                Err(StoreError::NoMailbox) => continue,
                head => head?,
            };
            let kept = head.kept.unwrap_or_default();
            if kept.messages > 0 {
                found.push(KeptMailbox {
                    id: row.id,
                    name: name.clone(),
                    special_use: None,
                    deleted: None,
                    messages: kept.messages.into(),
                    octets: kept.octets,
                });
            }
        }
        for (id, row) in account.asides_by_age() {
            let head = match self.mailbox_head(id) {
                Err(StoreError::NoMailbox) => continue,
                head => head?,
            };
            let kept = head.kept.unwrap_or_default();
            found.push(KeptMailbox {
                id,
                name: row.name.clone(),
                special_use: row.special_use,
                deleted: Some(row.deleted),
                messages: u64::from(head.messages) + u64::from(kept.messages),
                octets: head.octets + kept.octets,
            });
        }
        Ok(found)
    }

    /// Returns the next kept messages of a mailbox, which may be deleted: those after `after`, or the first ones.
    /// Messages expunged first come first. `None` after the last piece.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`], [`StoreError::Damaged`].
    pub fn kept_after(
        &mut self,
        id: MailboxId,
        after: Option<KeptAt>,
    ) -> Result<Committed<Option<KeptPiece>>, StoreError> {
        let keywords = self.any_mailbox(id)?.keywords.to_vec();
        let end = self.log.end();
        let key = after.map_or(Vec::new(), |at| keys::kept(at.position, at.first));
        let row = self.kept_row_after(&Partition::Mailbox(id.0), &key)?;
        if let Some((key, _, row)) = row
            && let Some((position, first)) = keys::kept_of(&key)
        {
            let message = |(uid, row): &(Uid, _)| Message::of(*uid, row);
            let piece = KeptPiece {
                at: KeptAt { position, first },
                expunged: row.expunged,
                messages: row.messages.iter().map(message).collect(),
                keywords,
            };
            return Ok(Committed::new(Some(piece), end));
        }
        let Some(deleted) = self.deleted(id)? else {
            return Ok(Committed::new(None, end));
        };
        let from = match after.filter(|after| after.position == WITH_MAILBOX) {
            None => 0,
            Some(after) => after.first.get().saturating_add(KEPT_ROW_MAX as u32),
        };
        let piece = self.with_mailbox(id, from)?;
        let piece = piece.map(|(at, messages)| KeptPiece {
            at,
            expunged: deleted,
            messages,
            keywords,
        });
        Ok(Committed::new(piece, end))
    }

    /// When a mailbox was deleted whose messages are kept.
    fn deleted(&mut self, id: MailboxId) -> Result<Option<Timestamp>, StoreError> {
        let owner = self.any_mailbox(id)?.owner.clone();
        let account = self.account(&owner)?;
        Ok(account.aside(id).map(|row| row.deleted))
    }

    /// The messages that a deleted mailbox still has, from a UID on: those of the first range of [`KEPT_ROW_MAX`] UIDs
    /// that has any. The ranges are the same whatever was taken out, so that a piece is found again.
    pub(super) fn with_mailbox(
        &mut self,
        id: MailboxId,
        from: u32,
    ) -> Result<Option<(KeptAt, Vec<Message>)>, StoreError> {
        let chunks = self.any_messages(id)?;
        let begin = Uid::new(from).map_or(0, |from| chunks.below(from));
        let Some(first) = chunks.get(begin) else {
            return Ok(None);
        };
        let range = KEPT_ROW_MAX as u32;
        let start = (first.uid.get() - 1) / range * range + 1;
        let end = start.saturating_add(range);
        let inside = |message: &&Message| message.uid.get() < end;
        let messages = chunks.iter_from(begin).take_while(inside).copied();
        let at = KeptAt {
            position: WITH_MAILBOX,
            first: Uid::new(start).unwrap_or(Uid::FIRST),
        };
        Ok(Some((at, messages.collect())))
    }

    /// The kept messages at a place, as rows.
    pub(super) fn kept_at(
        &mut self,
        id: MailboxId,
        at: KeptAt,
    ) -> Result<Option<KeptRow>, StoreError> {
        if at.position == WITH_MAILBOX {
            let Some(expunged) = self.deleted(id)? else {
                return Ok(None);
            };
            let found = self.with_mailbox(id, at.first.get())?;
            let messages = found.filter(|(found, _)| *found == at).map(|(_, all)| all);
            let row = |message: &Message| (message.uid, message.row());
            return Ok(messages.map(|messages| KeptRow {
                expunged,
                messages: messages.iter().map(row).collect(),
            }));
        }
        let partition = Partition::Mailbox(id.0);
        let key = keys::kept(at.position, at.first);
        let bad = || StoreError::Damaged(format!("expunged messages of mailbox {}", id.0));
        let row = self.pending.row(&self.meta, &partition, &key)?;
        row.map(|row| KeptRow::decode(&row).ok_or_else(bad))
            .transpose()
    }
}
