//! Changes of existing messages: flags and expunging.

use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use crate::committed::Committed;
use crate::error::StoreError;
use crate::mailbox::Edit;
use crate::model::{FlagMode, Flags, MailboxId, ModSeq, SystemFlags, Uid};
use crate::rows::{decode_expunged, encode_expunged, keys};
use crate::snapshot::Message;
use crate::store::Store;

/// The outcome of a change of flags.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// UIDs of the messages whose flags changed, rising.
    pub changed: Vec<Uid>,
    /// Messages left alone because they had changed since (RFC 7162 section 3.1.3 `MODIFIED`), rising.
    pub modified: Vec<Uid>,
    /// The mod-sequence of the change; without a change, the mailbox's mod-sequence.
    pub mod_seq: ModSeq,
}

/// Messages being removed.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) edit: Edit,
    /// The bodies and sizes of the messages.
    bodies: Vec<(u64, u64)>,
    /// Whether the messages are kept, so that their bodies stay needed.
    keeps: bool,
}

/// The most messages that one change expunges, so that the record of the change is not too long.
const EXPUNGED_AT_ONCE: usize = 1_000_000;

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Changes the flags of all given messages, or of none. UIDs of expunged messages are skipped.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`], [`StoreError::KeywordsFull`].
    pub fn store_flags(
        &mut self,
        id: MailboxId,
        uids: &[Uid],
        mode: FlagMode,
        flags: &Flags,
        unchanged_since: Option<ModSeq>,
    ) -> Result<Committed<Stored>, StoreError> {
        let chunks = self.messages(id)?;
        let before = self.mailbox(id)?.head.mod_seq;
        let mut edit = self.edit(id)?;
        let bits = edit.flags(mode, flags)?;
        let mut stored = Stored::default();
        for message in uids.iter().filter_map(|uid| chunks.find(*uid)) {
            if unchanged_since.is_some_and(|since| message.mod_seq > since) {
                stored.modified.push(message.uid);
                continue;
            }
            let (flags, keywords) = bits.apply(message.flags, message.keywords);
            if (flags, keywords) == (message.flags, message.keywords) {
                continue;
            }
            edit.head.count_flags(message.flags, flags);
            let mut row = message.row();
            (row.flags, row.keywords, row.mod_seq) = (flags, keywords, edit.head.mod_seq);
            edit.put(message.uid, &row);
            stored.changed.push(message.uid);
        }
        drop(chunks);
        if stored.changed.is_empty() {
            stored.mod_seq = before;
        } else {
            stored.mod_seq = edit.head.mod_seq;
            self.commit_edit(edit)?;
        }
        // Flags found unchanged may still wait for the sync of an earlier change.
        Ok(Committed::new(stored, self.log.end()))
    }

    /// Removes messages with `\Deleted`: all such messages, or the messages among `uids` (RFC 9051
    /// sections 6.4.3 and 6.4.9). Returns the UIDs, rising. The messages are kept for [`Store::undelete`] if
    /// [`Store::set_keep_expunged`] says so; `now` tells people when they were expunged. More than a million messages
    /// are expunged by several changes.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn expunge(
        &mut self,
        id: MailboxId,
        uids: Option<&[Uid]>,
        now: Timestamp,
    ) -> Result<Committed<Vec<Uid>>, StoreError> {
        let chunks = self.messages(id)?;
        let deleted = |message: &&Message| message.flags.contains(SystemFlags::DELETED);
        let found: Vec<&Message> = match uids {
            Some(uids) => uids.iter().filter_map(|uid| chunks.find(*uid)).collect(),
            None if self.mailbox(id)?.head.deleted == 0 => Vec::new(),
            None => chunks.iter_from(0).filter(deleted).collect(),
        };
        let gone = found.into_iter().filter(deleted);
        let mut gone: Vec<Uid> = gone.map(|message| message.uid).collect();
        drop(chunks);
        gone.sort_unstable();
        gone.dedup();
        let keep = self.config.keep_expunged.then_some(now);
        for piece in gone.chunks(EXPUNGED_AT_ONCE) {
            let leaving = self.expunging(id, piece, keep)?;
            self.commit_expunge(leaving)?;
        }
        Ok(Committed::new(gone, self.log.end()))
    }

    /// Begins to remove messages with any flags; `None` if all messages are missing. With a time the messages are
    /// kept.
    pub(crate) fn expunging(
        &mut self,
        id: MailboxId,
        uids: &[Uid],
        keep: Option<Timestamp>,
    ) -> Result<Option<Leaving>, StoreError> {
        let chunks = self.messages(id)?;
        let mut edit = self.edit(id)?;
        let (mut gone, mut bodies) = (Vec::with_capacity(uids.len()), Vec::new());
        let mut kept = Vec::new();
        for message in uids.iter().filter_map(|uid| chunks.find(*uid)) {
            edit.head.count_out(message.flags, message.size);
            bodies.push((message.blob.0, u64::from(message.size)));
            edit.change.remove(keys::message(message.uid));
            if keep.is_some() {
                kept.push((message.uid, message.row()));
            } else if message.own_fields {
                edit.change.remove(keys::fields(message.uid));
            }
            gone.push(message.uid);
        }
        drop(chunks);
        if gone.is_empty() {
            return Ok(None);
        }
        gone.sort_unstable();
        edit.head.expunged += gone.len() as u32;
        let at = edit.head.mod_seq;
        edit.change.put(keys::expunged(at), encode_expunged(&gone));
        if let Some(now) = keep {
            edit.keep(self.log.end(), now, kept);
        }
        self.shorten_history(&mut edit)?;
        Ok(Some(Leaving {
            edit,
            bodies,
            keeps: keep.is_some(),
        }))
    }

    pub(crate) fn commit_expunge(&mut self, leaving: Option<Leaving>) -> Result<(), StoreError> {
        let Some(Leaving {
            edit,
            bodies,
            keeps,
        }) = leaving
        else {
            return Ok(());
        };
        let id = edit.id;
        self.commit_edit(edit)?;
        self.counts.messages_removed += bodies.len() as u64;
        if keeps {
            let octets = bodies.iter().map(|(_, octets)| octets).sum();
            return self.note_kept(id, bodies.len() as u64, octets);
        }
        for (blob, octets) in bodies {
            self.count_removed(blob, octets);
        }
        Ok(())
    }

    /// Forgets the oldest of what was expunged when there is too much.
    fn shorten_history(&mut self, edit: &mut Edit) -> Result<(), StoreError> {
        let max = self.config.expunged_max;
        if edit.head.expunged <= max {
            return Ok(());
        }
        let bad = || StoreError::Damaged(format!("expunged messages of mailbox {}", edit.id.0));
        let partition = Partition::Mailbox(edit.id.0);
        let mut head = edit.head;
        let mut rows = Vec::new();
        // Shrinks the history to half its limit, so that not every change trims the history again.
        for (key, row) in self.pending.scan(&self.meta, &partition, keys::EXPUNGED)? {
            if head.expunged <= max / 2 {
                break;
            }
            head.floor = keys::mod_seq_of(&key).ok_or_else(bad)?;
            let count = decode_expunged(&row).ok_or_else(bad)?.len();
            head.expunged = head.expunged.saturating_sub(count as u32);
            rows.push(key);
        }
        rows.into_iter().for_each(|key| edit.change.remove(key));
        edit.head = head;
        Ok(())
    }
}
