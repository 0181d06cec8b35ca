//! What the journal has and no commit: applied again at the beginning of a mount.

use std::collections::{BTreeMap, HashMap};

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::record::{Begun, Part, Won};
use super::state::opening::{Found, OpenError};
use super::state::{RESERVED, Volume};
use super::step::Notice;
use crate::format::MailId;
use crate::posix::Numbers;
use crate::rows::{Key, RowValue, WriterRow, mailboxes_prefix, writers_prefix};

/// Which records of the journal no commit has.
#[derive(Debug)]
pub(super) struct Replay {
    /// Records up to here are in the chain.
    through: u64,
    exceptions: BTreeMap<u64, u64>,
    abandoned: Vec<MailId>,
    writer: Option<(u16, u64, u32)>,
}

impl Replay {
    pub(super) fn of(records: &[(u64, Vec<Part>)], chain: &[Found]) -> Result<Self, OpenError> {
        let places: HashMap<MailId, usize> = chain
            .iter()
            .enumerate()
            .map(|(place, found)| (found.head.mail, place))
            .collect();
        let mut replay = Self {
            through: 0,
            exceptions: BTreeMap::new(),
            abandoned: Vec::new(),
            writer: None,
        };
        let won: Vec<&Won> = records
            .iter()
            .flat_map(|(_, parts)| parts)
            .filter_map(|part| match part {
                Part::Won(won) => Some(won),
                _ => None,
            })
            .collect();
        // The chain has every commit before one of its own.
        if let Some(newest) = won.iter().max_by_key(|won| won.generation)
            && !places.contains_key(&newest.commit)
        {
            return Err(OpenError::RolledBack {
                generation: newest.generation,
            });
        }
        let mut base: Option<(usize, &Begun)> = None;
        for part in records.iter().flat_map(|(_, parts)| parts) {
            match part {
                Part::Begun(begun) => match places.get(&begun.commit) {
                    Some(place) => base = Some((*place, begun)),
                    // Commits before the checkpoint are not read again.
                    None if won.iter().any(|won| won.commit == begun.commit) => {}
                    None => replay.abandoned.push(begun.commit),
                },
                Part::Reserved {
                    writer,
                    sequence,
                    block,
                } => {
                    replay.writer = Some((*writer, *sequence, *block));
                }
                _ => {}
            }
        }
        if let Some((place, begun)) = base {
            replay.through = begun.through;
            replay.exceptions = begun.exceptions.iter().copied().collect();
            let waiting = records.iter().filter(|(position, parts)| {
                *position >= begun.through
                    && parts
                        .iter()
                        .any(|part| matches!(part, Part::Row(_) | Part::Content(_)))
            });
            let waiting = waiting.count();
            if place.saturating_add(1) < chain.len() && waiting > 0 {
                return Err(OpenError::Overtaken(waiting));
            }
        }
        Ok(replay)
    }

    /// Up to where the chain has the content and the inode of a file.
    fn since(&self, inode: u64) -> u64 {
        self.exceptions.get(&inode).copied().unwrap_or(self.through)
    }
}

impl<S: Storage> Volume<S> {
    /// Applies what the journal has and no commit.
    pub(super) fn replay(
        &mut self,
        records: Vec<(u64, Vec<Part>)>,
        replay: &Replay,
    ) -> Result<(), Errno> {
        self.commits.abandoned.clone_from(&replay.abandoned);
        if let Some((writer, sequence, block)) = replay.writer {
            self.writer = writer;
            self.sequence = (sequence, sequence);
            self.block_end = block;
            *self.files.numbers() = Numbers::new(writer, block, block);
        }
        for (position, parts) in records {
            for part in parts {
                self.replay_part(position, part, replay)?;
            }
        }
        self.files.end_replay()?;
        // What remains to be written follows from the replayed changes.
        self.collect_rows();
        Ok(())
    }

    fn replay_part(&mut self, position: u64, part: Part, replay: &Replay) -> Result<(), Errno> {
        match part {
            Part::Row(change) => {
                let since = match Key::decode(&change.key) {
                    Ok(Key::Inode(inode)) => replay.since(inode.0),
                    _ => replay.through,
                };
                if position >= since {
                    self.commits.rows(
                        std::iter::once(change.key.clone()),
                        position,
                        self.now.steady,
                    );
                    self.files.replay_row(change)?;
                }
            }
            Part::Content(change) => {
                let inode = change.inode();
                if position >= replay.since(inode.0) {
                    self.commits.content(inode, position, self.now.steady);
                    self.files.replay(change, self.now.wall)?;
                }
            }
            Part::Reserved { .. } | Part::Begun(_) | Part::Won(_) => {}
        }
        Ok(())
    }

    /// Takes a writer's number if this folder has none, and reserves numbers.
    pub(super) fn begin(&mut self) -> Result<(), OpenError> {
        if self.writer == 0 {
            let last = self.last_writer()?;
            self.writer = last.saturating_add(1);
            let row = WriterRow {
                machine: self.machine.id,
                registered: self.chain.end().1.saturating_add(1),
                last_seen_ms: self.now.millis(),
                name: self.machine.name.clone(),
            };
            self.put_row(Key::Writer(self.writer).encode(), row.encode());
            self.block_end = 1;
            *self.files.numbers() = Numbers::new(self.writer, 1, 1);
        } else {
            self.files.end_nameless()?;
            self.keep();
        }
        let reserved = self.sequence.0.saturating_add(RESERVED);
        self.sequence.1 = reserved;
        self.reserve();
        self.journal.sync()?;
        self.ask_quotas();
        Ok(())
    }

    /// The highest number of a writer.
    pub(super) fn last_writer(&self) -> Result<u16, Errno> {
        let keys = self.files.tree().keys(&writers_prefix())?;
        Ok(match keys.last().map(|key| Key::decode(key)) {
            Some(Ok(Key::Writer(writer))) => writer,
            _ => 0,
        })
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

    /// Whether nothing waits to be sent.
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
