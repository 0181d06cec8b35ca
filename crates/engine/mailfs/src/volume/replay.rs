//! Changes of the journal without a commit: the changes lie on top of a commit of the chain, the base.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use vere_ports::files::{Errno, Inode};
use vere_ports::storage::Storage;

use super::found::Found;
use super::record::{Begun, Part, Won};
use super::state::Volume;
use super::state::opening::OpenError;
use super::step::Notice;
use crate::format::MailId;
use crate::posix::{ContentChange, Numbers};
use crate::rows::{Key, extents_prefix, mailboxes_prefix};
use crate::tree::Change;

/// Records of the journal with their positions.
pub(super) type Records = Vec<(u64, Vec<Part>)>;

/// Which records of the journal no commit has.
#[derive(Debug)]
pub(super) struct Replay {
    /// So many commits of the chain lie below the changes.
    pub(super) base: usize,
    /// Records up to here are in the chain.
    through: u64,
    exceptions: BTreeMap<u64, u64>,
    abandoned: Vec<MailId>,
    writer: Option<(u16, u64, u32)>,
    /// Contents that go on with other inodes: position, from, to.
    moves: Vec<(u64, Inode, Option<Inode>)>,
    /// Another machine uses this folder's number of a writer.
    pub(super) is_copied: bool,
}

/// Where commits of the chain stand.
struct Places {
    of: HashMap<MailId, usize>,
    /// Where a commit was adopted.
    merged: HashMap<MailId, usize>,
}

impl Places {
    fn of(chain: &[Found]) -> Self {
        let mut places = Self {
            of: HashMap::new(),
            merged: HashMap::new(),
        };
        for (place, found) in chain.iter().enumerate() {
            places.of.insert(found.id(), place);
            for merged in &found.record.merged {
                places.merged.insert(*merged, place);
            }
        }
        places
    }

    fn needed(&self, commit: MailId, generation: u64) -> Result<usize, OpenError> {
        let place = self.of.get(&commit).copied();
        place.ok_or(OpenError::RolledBack { generation })
    }
}

impl Replay {
    /// `gone` is the newest commit that the journal knows, if the log lacks the commit.
    pub(super) fn of(
        records: &Records,
        chain: &[Found],
        outside: &[Found],
        gone: Option<Won>,
    ) -> Result<Self, OpenError> {
        let places = Places::of(chain);
        let mut replay = Self {
            base: 0,
            through: 0,
            exceptions: BTreeMap::new(),
            abandoned: Vec::new(),
            writer: None,
            moves: Vec::new(),
            is_copied: false,
        };
        let known = known(records);
        // The chain has every commit before one of its own.
        if let Some(newest) = known.values().max_by_key(|won| won.generation)
            && gone.is_none_or(|gone| gone.commit != newest.commit)
        {
            places.needed(newest.commit, newest.generation)?;
        }
        let mut own = HashSet::new();
        let mut base = None;
        for (position, part) in parts(records) {
            match part {
                Part::Begun(begun) => {
                    own.insert(begun.commit);
                    if let Some(place) = places.of.get(&begun.commit) {
                        base = base.max(Some(*place));
                        replay.has(begun);
                    } else if known.contains_key(&begun.commit) {
                        // In the chain before the first commit that was read.
                        replay.has(begun);
                    } else if !places.merged.contains_key(&begun.commit) {
                        replay.abandoned.push(begun.commit);
                    }
                }
                Part::Won(won) | Part::Follows(won) => {
                    base = base.max(places.of.get(&won.commit).copied());
                }
                Part::Adopts(commit) => {
                    own.insert(*commit);
                }
                Part::Moved(from, to) => replay.moves.push((position, *from, *to)),
                Part::Reserved {
                    writer,
                    sequence,
                    block,
                } => replay.writer = Some((*writer, *sequence, *block)),
                Part::Row(_) | Part::Content(_) | Part::Drop(_) => {}
            }
        }
        replay.count_adopted(records, &places, &mut base);
        replay.base = base.map_or(chain.len(), |base| base.saturating_add(1));
        let later = chain.iter().skip(replay.base).chain(outside);
        let mut later = later.filter(|found| !places.merged.contains_key(&found.id()));
        replay.is_copied = replay.writer.is_some_and(|(writer, ..)| {
            later.any(|found| found.head.pack.writer() == writer && !own.contains(&found.id()))
        });
        Ok(replay)
    }

    /// Whether the journal has changes that the chain lacks.
    pub(super) fn has_changes(&self, records: &Records) -> bool {
        parts(records).any(|(position, part)| match part {
            Part::Row(change) => position >= self.since_of(&change.key),
            Part::Content(change) => {
                let place = self.follow_content(position, change.inode());
                place.is_some_and(|(_, since)| position >= since)
            }
            _ => false,
        })
    }

    fn has(&mut self, begun: &Begun) {
        self.through = begun.through;
        self.exceptions = begun.exceptions.iter().copied().collect();
    }

    /// A lost commit of the mount, merged by another mount first, counts as in the chain if nothing lies on the commit.
    fn count_adopted(&mut self, records: &Records, places: &Places, base: &mut Option<usize>) {
        let mut newest: Option<(&Begun, usize)> = None;
        for (_, part) in parts(records) {
            match part {
                Part::Begun(begun) if places.of.contains_key(&begun.commit) => newest = None,
                Part::Begun(begun) => {
                    let place = places.merged.get(&begun.commit);
                    newest = place.map(|place| (begun, *place)).or(newest);
                }
                // The changes are merged already.
                Part::Follows(_) => newest = None,
                _ => {}
            }
        }
        let Some((begun, place)) = newest.filter(|(_, place)| Some(*place) > *base) else {
            return;
        };
        let before = (self.through, mem::take(&mut self.exceptions));
        self.has(begun);
        if self.has_changes(records) {
            // Later changes lie on the state of the lost commit, which is another one than that of the merge.
            (self.through, self.exceptions) = before;
        } else {
            *base = Some(place);
        }
    }

    /// Where the content of a file went by later moves, and from where on the journal has it.
    fn follow_content(&self, position: u64, inode: Inode) -> Option<(Inode, u64)> {
        let mut since = self.since(inode.0);
        let mut at = inode;
        for (moved, from, to) in &self.moves {
            if *moved >= position && *from == at {
                at = (*to)?;
                since = since.min(self.since(at.0));
            }
        }
        Some((at, since))
    }

    /// Up to where the chain has the content and the inode of a file.
    fn since(&self, inode: u64) -> u64 {
        self.exceptions.get(&inode).copied().unwrap_or(self.through)
    }
}

/// Commits that the journal knows to be in the chain.
fn known(records: &Records) -> HashMap<MailId, Won> {
    let won = parts(records).filter_map(|(_, part)| match part {
        Part::Won(won) | Part::Follows(won) => Some((won.commit, *won)),
        _ => None,
    });
    won.collect()
}

fn parts(records: &Records) -> impl Iterator<Item = (u64, &Part)> {
    records
        .iter()
        .flat_map(|(position, parts)| parts.iter().map(|part| (*position, part)))
}

impl<S: Storage> Volume<S> {
    /// Applies what the journal has and no commit: rows first, since contents may have gone to inodes that came later.
    pub(super) fn replay(&mut self, records: Records, replay: &Replay) -> Result<(), Errno> {
        self.commits.abandoned.clone_from(&replay.abandoned);
        self.follow.own.extend(&replay.abandoned);
        if let Some((writer, sequence, block)) = replay.writer.filter(|_| !replay.is_copied) {
            self.writer = writer;
            self.sequence = (sequence, sequence);
            self.block_end = block;
            *self.files.numbers() = Numbers::new(writer, block, block);
        }
        let mut rows = BTreeMap::new();
        let mut contents: Vec<ContentChange> = Vec::new();
        for (position, part) in records
            .into_iter()
            .flat_map(|(position, parts)| parts.into_iter().map(move |part| (position, part)))
        {
            match part {
                Part::Row(change) if position >= replay.since_of(&change.key) => {
                    rows.insert(change.key, (position, change.value));
                }
                Part::Drop(key) if position >= replay.since_of(&key) => {
                    rows.remove(&key);
                }
                Part::Content(change) => {
                    let inode = change.inode();
                    if let Some((inode, since)) = replay.follow_content(position, inode)
                        && position >= since
                    {
                        self.commits.content(inode, position, self.now.steady);
                        contents.push(change.with_inode(inode));
                    }
                }
                _ => {}
            }
        }
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

impl Replay {
    fn since_of(&self, key: &[u8]) -> u64 {
        match Key::decode(key) {
            Ok(Key::Inode(inode)) => self.since(inode.0),
            _ => self.through,
        }
    }
}
