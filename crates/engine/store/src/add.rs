//! Adding messages: delivery to several mailboxes, and APPEND.

use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use crate::batch;
use crate::body::{Prepared, is_body_of};
use crate::committed::Committed;
use crate::error::StoreError;
use crate::limits::OPERATIONS_MAX;
use crate::log::format::{RECORD_HEAD, RecordKind};
use crate::mailbox::Edit;
use crate::model::{
    BlobId, FlagMode, Flags, InternalDate, MailboxId, OperationId, SystemFlags, Uid,
};
use crate::rows::{MessageRow, OperationRow, RecipientFields, keys};
use crate::store::Sharing;
use crate::store::Store;

/// The quota of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaLimit {
    /// Octets of messages.
    pub octets: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
}

/// The usage of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaUsage {
    /// Octets of messages.
    pub octets: u64,
    /// Messages.
    pub messages: u64,
}

/// A target mailbox of a message, with the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// Its flags there.
    pub flags: Flags,
    /// When it arrived.
    pub internal_date: InternalDate,
    /// The fields of this recipient's copy alone.
    pub fields: RecipientFields,
    /// The quota of the account.
    pub quota: QuotaLimit,
}

/// An added message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// `UIDVALIDITY` of the mailbox.
    pub uid_validity: u32,
    /// Its UID there.
    pub uid: Uid,
}

/// Octets of the log reserved for each mailbox before the store accepts a message. The change of a mailbox is
/// smaller, unless paths are very long.
const CHANGE_OCTETS: usize = 1_024;

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Writes a message to any number of mailboxes (the paper's `mail_nwrite`): the body once, a reference in
    /// each mailbox. Each mailbox has its own result; a mailbox to which the operation already added the
    /// message is not changed and answers as before.
    ///
    /// # Errors
    ///
    /// As a whole: [`StoreError::DiskFull`], [`StoreError::Failed`]. For a mailbox:
    /// [`StoreError::NoMailbox`], [`StoreError::OverQuota`], [`StoreError::IdCollision`],
    /// [`StoreError::KeywordsFull`], [`StoreError::NumbersUsedUp`], and the errors of the whole.
    pub fn deliver(
        &mut self,
        message: &Prepared,
        targets: &[Target],
        operation: OperationId,
    ) -> Result<Committed<Vec<Result<Added, StoreError>>>, StoreError> {
        let changes = targets.len() * CHANGE_OCTETS;
        self.log
            .admit((RECORD_HEAD + message.payload.len() + changes) as u64)?;
        let mut written = None;
        let mut results = Vec::with_capacity(targets.len());
        for target in targets {
            results.push(self.deliver_to(message, target, operation, &mut written));
        }
        // An earlier delivery of the operation, too, is safe only once the log is synced up to here.
        Ok(Committed::new(results, self.log.end()))
    }

    /// Whether an operation already added the message to a mailbox, so that the message takes no further
    /// space there.
    ///
    /// # Errors
    ///
    /// [`StoreError::IdCollision`], [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn is_delivered(
        &mut self,
        message: &Prepared,
        id: MailboxId,
        operation: OperationId,
    ) -> Result<bool, StoreError> {
        let before = self.done_before(id, operation, &message.content())?;
        Ok(before.is_some())
    }

    fn deliver_to(
        &mut self,
        message: &Prepared,
        target: &Target,
        operation: OperationId,
        written: &mut Option<BlobId>,
    ) -> Result<Added, StoreError> {
        let id = target.mailbox;
        let content = message.content();
        let uid_validity = self.mailbox(id)?.head.uid_validity;
        if let Some(before) = self.done_before(id, operation, &content)? {
            return Ok(Added {
                uid_validity,
                uid: before.first,
            });
        }
        let own = target.fields.render();
        let size = u32::try_from(own.len())
            .ok()
            .and_then(|own| own.checked_add(message.octets));
        let size = size.ok_or(StoreError::TooLarge {
            max: u64::from(u32::MAX),
        })?;
        let more = QuotaUsage {
            octets: u64::from(size),
            messages: 1,
        };
        self.room_for(id, target.quota, more)?;
        let mut edit = self.edit(id)?;
        let flags = edit.flags(FlagMode::Replace, &target.flags)?;
        let (flags, keywords) = flags.apply(SystemFlags::NONE, 0);
        let blob = self.share(id, message, written)?;
        let thread = self.thread(id, message, blob, &mut edit)?;
        let uid = edit.add(&MessageRow {
            mod_seq: edit.head.mod_seq,
            flags,
            keywords,
            internal_date: target.internal_date,
            size,
            blob,
            thread,
            own_fields: !own.is_empty(),
        })?;
        if !own.is_empty() {
            edit.change.put(keys::fields(uid), target.fields.encode());
        }
        let row = OperationRow {
            content,
            first: uid,
            count: 1,
            sources: Vec::new(),
        };
        self.remember(&mut edit, operation, &row)?;
        let hint = batch::put(keys::content(&content), blob.0.to_le_bytes().to_vec());
        edit.change.hints.push((self.sharers(id)?, hint));
        self.commit_edit(edit)?;
        self.counts.messages_added += 1;
        Ok(Added { uid_validity, uid })
    }

    /// The body referenced by a mailbox's message: a body that the account has already, or the body written
    /// for all recipients.
    fn share(
        &mut self,
        id: MailboxId,
        message: &Prepared,
        written: &mut Option<BlobId>,
    ) -> Result<BlobId, StoreError> {
        // If all accounts share bodies, a result for one recipient is valid for all, and the lookup is done
        // once.
        if let Some(blob) = written.filter(|_| self.config.sharing == Sharing::All) {
            return Ok(blob);
        }
        if let Some(blob) = self.known(id, message)? {
            if self.config.sharing == Sharing::All {
                *written = Some(blob);
            }
            return Ok(blob);
        }
        if let Some(blob) = *written {
            return Ok(blob);
        }
        let blob = BlobId(self.log.append(RecordKind::Body, &[&message.payload])?);
        *written = Some(blob);
        self.counts.bodies += 1;
        self.counts.body_octets += message.payload.len() as u64;
        Ok(blob)
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// The partition with the hints from contents to bodies.
    fn sharers(&mut self, id: MailboxId) -> Result<Partition, StoreError> {
        Ok(match self.config.sharing {
            Sharing::Account => Partition::Account(self.owner(id)?.clone()),
            Sharing::All => keys::EVERYBODY,
        })
    }

    /// An existing body with the same content that may be shared.
    fn known(&mut self, id: MailboxId, message: &Prepared) -> Result<Option<BlobId>, StoreError> {
        let partition = self.sharers(id)?;
        let key = keys::content(&message.content());
        let row = self.pending.hint(&self.meta, &partition, &key)?;
        let Some(blob) = row.as_deref().and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        let blob = BlobId(u64::from_le_bytes(*blob));
        Ok(self.holds(blob, message).then_some(blob))
    }

    /// Whether the hinted body exists, is undamaged and has the same content: the hint may be wrong, or the
    /// body missing or damaged, and then the new message is the only good copy.
    fn holds(&self, blob: BlobId, message: &Prepared) -> bool {
        if let Some(record) = self.log.gathered(blob.0) {
            return is_body_of(record, self.log.id(), blob, &message.hash);
        }
        let Ok(mut body) = self.body_reader().open(blob) else {
            return false;
        };
        *body.hash() == message.hash
            && body
                .message()
                .is_ok_and(|octets| *blake3::hash(&octets).as_bytes() == message.hash)
    }

    /// The thread of a new message: the thread of the newest referenced message known to the account, or a
    /// new thread.
    fn thread(
        &mut self,
        id: MailboxId,
        message: &Prepared,
        blob: BlobId,
        edit: &mut Edit,
    ) -> Result<u64, StoreError> {
        let account = Partition::Account(self.owner(id)?.clone());
        let known = message
            .references
            .iter()
            .filter(|reference| **reference != 0);
        let mut thread = None;
        for reference in known.clone() {
            let key = keys::thread(*reference);
            let row = self.pending.hint(&self.meta, &account, &key)?;
            if let Some(found) = row.as_deref().and_then(<[u8]>::first_chunk) {
                thread = Some(u64::from_le_bytes(*found));
                break;
            }
        }
        let thread = thread.unwrap_or(blob.0);
        for reference in known {
            let hint = batch::put(keys::thread(*reference), thread.to_le_bytes().to_vec());
            edit.change.hints.push((account.clone(), hint));
        }
        Ok(thread)
    }

    /// Returns the row of an operation that ran in a mailbox before, if any.
    pub(crate) fn done_before(
        &mut self,
        id: MailboxId,
        operation: OperationId,
        content: &[u8; 16],
    ) -> Result<Option<OperationRow>, StoreError> {
        let row = self.pending.row(
            &self.meta,
            &Partition::Mailbox(id.0),
            &keys::operation(operation),
        )?;
        let bad = || StoreError::Damaged(format!("an operation of mailbox {}", id.0));
        let row = row
            .map(|row| OperationRow::decode(&row).ok_or_else(bad))
            .transpose()?;
        match row {
            Some(row) if row.content != *content => Err(StoreError::IdCollision),
            row => Ok(row),
        }
    }

    /// Notes what an operation does, and forgets the oldest when there are too many.
    pub(crate) fn remember(
        &mut self,
        edit: &mut Edit,
        operation: OperationId,
        row: &OperationRow,
    ) -> Result<(), StoreError> {
        let (oldest, next) = edit.head.operations;
        edit.change.put(keys::operation(operation), row.encode());
        edit.change.put(keys::order(next), operation.0.to_vec());
        edit.head.operations.1 = next + 1;
        if next - oldest >= OPERATIONS_MAX {
            let key = keys::order(oldest);
            let id = self
                .pending
                .row(&self.meta, &Partition::Mailbox(edit.id.0), &key)?;
            if let Some(id) = id.as_deref().and_then(<[u8]>::first_chunk) {
                edit.change.remove(keys::operation(OperationId(*id)));
            }
            edit.change.remove(key);
            edit.head.operations.0 = oldest + 1;
        }
        Ok(())
    }

    /// Returns the usage of an account: the sum over its mailboxes (RFC 9208).
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn quota(
        &mut self,
        account: &vere_ports::directory::AccountName,
    ) -> Result<QuotaUsage, StoreError> {
        let ids: Vec<_> = self.mailboxes_of(account)?;
        let mut usage = QuotaUsage::default();
        for id in ids {
            let head = self.mailbox(id)?.head;
            usage.octets += head.octets;
            usage.messages += u64::from(head.messages);
        }
        Ok(usage)
    }

    fn mailboxes_of(
        &mut self,
        account: &vere_ports::directory::AccountName,
    ) -> Result<Vec<MailboxId>, StoreError> {
        let account = self.account(account)?;
        Ok(account.mailboxes.values().map(|row| row.id).collect())
    }

    /// The quota over the readable mailboxes: a damaged mailbox is no reason to refuse mail for the other
    /// mailboxes.
    fn readable_quota(
        &mut self,
        account: &vere_ports::directory::AccountName,
    ) -> Result<QuotaUsage, StoreError> {
        let mut usage = QuotaUsage::default();
        for id in self.mailboxes_of(account)? {
            if let Ok(mailbox) = self.mailbox(id) {
                usage.octets += mailbox.head.octets;
                usage.messages += u64::from(mailbox.head.messages);
            }
        }
        Ok(usage)
    }

    /// Checks that the quota of the mailbox's account allows `more`, as adding messages to the mailbox would.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`], [`StoreError::OverQuota`].
    pub fn room_for(
        &mut self,
        id: MailboxId,
        limit: QuotaLimit,
        more: QuotaUsage,
    ) -> Result<(), StoreError> {
        let owner = self.owner(id)?.clone();
        if limit == QuotaLimit::default() {
            return Ok(());
        }
        let usage = self.readable_quota(&owner)?;
        let over = |limit: Option<u64>, used: u64, more: u64| {
            limit.is_some_and(|limit| used + more > limit)
        };
        if over(limit.octets, usage.octets, more.octets)
            || over(limit.messages, usage.messages, more.messages)
        {
            return Err(StoreError::OverQuota);
        }
        Ok(())
    }
}
