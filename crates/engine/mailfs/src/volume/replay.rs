//! Changes of the journal without a commit come onto their base.

use std::collections::BTreeMap;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;
use vere_replay::{Pending, Records, Replay};

use super::state::Volume;
use super::step::Notice;
use crate::posix::{ContentChange, Numbers};
use crate::rows::{Key, extents_prefix, mailboxes_prefix};
use crate::tree::Change;

impl<S: Storage> Volume<S> {
    /// Applies what the journal has and no commit: rows first, since contents may have gone to inodes that came later.
    pub(super) fn replay(&mut self, records: &Records, replay: &Replay) -> Result<(), Errno> {
        self.commits.abandoned.clone_from(&replay.abandoned);
        self.follow.own.extend(&replay.abandoned);
        if let Some((writer, sequence, block)) = replay.writer() {
            self.writer = writer;
            self.sequence = (sequence, sequence);
            self.block_end = block;
            *self.files.numbers() = Numbers::new(writer, block, block);
        }
        let Pending { rows, contents } = replay.pending(records);
        for (position, change) in &contents {
            self.commits
                .content(change.inode(), *position, self.now.steady);
        }
        let contents = contents.into_iter().map(|(_, change)| change).collect();
        self.replay_onto_base(rows, contents)
    }

    fn replay_onto_base(
        &mut self,
        rows: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
        contents: Vec<ContentChange>,
    ) -> Result<(), Errno> {
        let mut sizes = BTreeMap::new();
        for inode in contents.iter().map(ContentChange::inode) {
            if let std::collections::btree_map::Entry::Vacant(place) = sizes.entry(inode) {
                place.insert(self.files.begin_replay(inode)?.unwrap_or(0));
            }
        }
        for (key, (position, value)) in rows {
            let now = self.now.steady;
            self.commits.hold_from(position);
            self.commits
                .rows(std::iter::once(key.clone()), position, now);
            if value.is_none()
                && let Ok(Key::Inode(inode)) = Key::decode(&key)
            {
                // The journal has no rows of extents: they go with their inode.
                for extents in self.files.tree().keys(&extents_prefix(inode))? {
                    self.files.tree_mut().remove(&extents)?;
                }
            }
            self.files.change(Change { key, value })?;
        }
        self.files.replay_all(contents, self.now.wall)?;
        for (inode, size) in sizes {
            self.files.set_stored_size(inode, size);
        }
        self.files.end_replay()?;
        // What remains to be written follows from the replayed changes.
        self.collect_rows();
        let gone = self.commits.changed().filter(|inode| {
            let key = Key::Inode(*inode).encode();
            !self.files.tree().contains(&key).unwrap_or(true)
        });
        for inode in gone.collect::<Vec<_>>() {
            self.commits.forget(inode);
        }
        Ok(())
    }

    /// UIDVALIDITY of every mailbox, as the volume has noted.
    pub(super) fn number_mailboxes(&mut self) -> Result<(), Errno> {
        for key in self.files.tree().keys(&mailboxes_prefix())? {
            if let Ok(Key::Mailbox { account, mailbox }) = Key::decode(&key)
                && let Some(value) = self.files.tree().get(&key)?
                && let Ok(uid_validity) = value[..].try_into().map(u32::from_le_bytes)
            {
                self.accounts.number(account, mailbox, uid_validity);
            }
        }
        Ok(())
    }

    /// Whether no work waits to be sent.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.commits.is_quiet() && self.uploads.count() == 0
    }

    /// Why the volume takes no changes, if so.
    #[must_use]
    pub const fn read_only(&self) -> Option<&Notice> {
        self.read_only.as_ref()
    }
}
