//! Which changes of the journal no commit has: the changes lie on top of a commit of the chain, the base.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use vere_files::posix::ContentChange;
use vere_keep::record::{Begun, Brought, Part, Won};
use vere_order::found::Found;
use vere_ports::files::Inode;

use crate::format::MailId;
use crate::rows::Key;

/// Records of the journal with their positions.
pub type Records = Vec<(u64, Vec<Part>)>;

/// The log lacks a commit that was in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lacking {
    /// The generation of the commit.
    pub generation: u64,
}

/// Which records of the journal no commit has.
#[derive(Debug)]
pub struct Replay {
    /// So many commits of the chain lie below the changes.
    pub base: usize,
    /// Records up to here are in the chain.
    through: u64,
    exceptions: BTreeMap<u64, u64>,
    /// Commits that were begun and are not in the chain.
    pub abandoned: Vec<MailId>,
    writer: Option<(u16, u64, u32)>,
    /// Contents that go on with other inodes: position, from, to.
    moves: Vec<(u64, Inode, Option<Inode>)>,
    /// Another machine uses this folder's number of a writer.
    pub is_copied: bool,
}

/// Changes that no commit has.
#[derive(Debug, Default)]
pub struct Pending {
    /// Rows by key: the position of the change, and the value.
    pub rows: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>,
    /// Changes of contents in order, with their positions.
    pub contents: Vec<(u64, ContentChange)>,
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

    fn needed(&self, commit: MailId, generation: u64) -> Result<usize, Lacking> {
        let place = self.of.get(&commit).copied();
        place.ok_or(Lacking { generation })
    }

    /// What a journal tells of commits, against the chain as far as that is there.
    fn read(&self, records: &Records, chain: &[Found], outside: &[Found]) -> Replay {
        let mut replay = Replay {
            base: 0,
            through: 0,
            exceptions: BTreeMap::new(),
            abandoned: Vec::new(),
            writer: None,
            moves: Vec::new(),
            is_copied: false,
        };
        let ever = known(records, Known::Ever);
        let mut own = HashSet::new();
        let mut base = None;
        for (position, part) in parts(records) {
            match part {
                Part::Begun(begun) => {
                    own.insert(begun.commit);
                    if let Some(place) = self.of.get(&begun.commit) {
                        base = base.max(Some(*place));
                        replay.has(begun.through, &begun.exceptions);
                    } else if ever.contains_key(&begun.commit) {
                        // In the chain before the first commit that was read.
                        replay.has(begun.through, &begun.exceptions);
                    } else if !self.merged.contains_key(&begun.commit) {
                        replay.abandoned.push(begun.commit);
                    }
                }
                Part::Brought(brought) => {
                    base = base.max(self.of.get(&brought.won.commit).copied());
                    replay.has(brought.through, &brought.exceptions);
                }
                Part::Won(won) | Part::Follows(won) => {
                    base = base.max(self.of.get(&won.commit).copied());
                }
                Part::Partial(commit) => {
                    own.insert(*commit);
                    if let Some(place) = self.of.get(commit) {
                        base = base.max(Some(*place));
                    } else if !ever.contains_key(commit) && !self.merged.contains_key(commit) {
                        replay.abandoned.push(*commit);
                    }
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
                Part::Row(_)
                | Part::Content(_)
                | Part::Drop(_)
                | Part::Base(_)
                | Part::Piece(_) => {}
            }
        }
        replay.count_adopted(records, self, &mut base);
        replay.base = base.map_or(chain.len(), |base| base.saturating_add(1));
        let later = chain.iter().skip(replay.base).chain(outside);
        let mut later = later.filter(|found| !self.merged.contains_key(&found.id()));
        replay.is_copied = replay.writer.is_some_and(|(writer, ..)| {
            later.any(|found| found.head.pack.writer() == writer && !own.contains(&found.id()))
        });
        replay
    }
}

impl Replay {
    /// `gone` is the newest commit that the journal knows, if the log lacks the commit.
    ///
    /// # Errors
    /// The newest commit that the journal knows, if the log lacks that one.
    pub fn of(
        records: &Records,
        chain: &[Found],
        outside: &[Found],
        gone: Option<Won>,
    ) -> Result<Self, Lacking> {
        let places = Places::of(chain);
        // The chain has every commit before one of its own.
        if let Some(newest) = newest_known(records)
            && gone.is_none_or(|gone| gone.commit != newest.commit)
        {
            places.needed(newest.commit, newest.generation)?;
        }
        Ok(places.read(records, chain, outside))
    }

    /// As [`Self::of`], for a journal whose changes lie on a commit that the log lacks.
    #[must_use]
    pub fn stranded(records: &Records, chain: &[Found], outside: &[Found]) -> Self {
        let mut replay = Places::of(chain).read(records, chain, outside);
        let newest = newest_known(records).map_or(0, |won| won.generation);
        let ever = known(records, Known::Ever);
        let begun = parts(records).filter_map(|(_, part)| match part {
            Part::Begun(begun) => Some(begun.commit),
            Part::Adopts(commit) | Part::Partial(commit) => Some(*commit),
            _ => None,
        });
        let own: HashSet<MailId> = begun.collect();
        // Commits of a writer that this journal does not know: another copy of the folder has gone on.
        let is_foreign = |found: &Found, (writer, sequence, _): (u16, u64, u32)| {
            let (id, pack) = (found.id(), found.head.pack);
            pack.writer() == writer
                && !own.contains(&id)
                && !ever.contains_key(&id)
                && (pack.sequence() >= sequence || found.record.generation > newest)
        };
        let mut all = chain.iter().chain(outside);
        replay.is_copied = replay
            .writer
            .is_some_and(|writer| all.any(|found| is_foreign(found, writer)));
        replay
    }

    /// The journal's writer, with the next sequence of a mail and the next block of homes.
    #[must_use]
    pub fn writer(&self) -> Option<(u16, u64, u32)> {
        self.writer.filter(|_| !self.is_copied)
    }

    /// How much of the journal the chain has, on the state of this commit.
    #[must_use]
    pub fn brought(&self, won: Won) -> Brought {
        let exceptions = self.exceptions.iter();
        Brought {
            won,
            through: self.through,
            exceptions: exceptions.map(|(inode, since)| (*inode, *since)).collect(),
        }
    }

    /// What the journal has and no commit.
    #[must_use]
    pub fn pending(&self, records: &Records) -> Pending {
        let mut pending = Pending::default();
        for (position, part) in parts(records) {
            match part {
                Part::Row(change) if position >= self.since_of(&change.key) => {
                    let value = (position, change.value.clone());
                    pending.rows.insert(change.key.clone(), value);
                }
                Part::Drop(key) if position >= self.since_of(key) => {
                    pending.rows.remove(key);
                }
                Part::Content(change) => {
                    let inode = change.inode();
                    if let Some((inode, since)) = self.follow_content(position, inode)
                        && position >= since
                    {
                        let change = change.clone().with_inode(inode);
                        pending.contents.push((position, change));
                    }
                }
                _ => {}
            }
        }
        pending
    }

    /// Whether the journal has changes that the chain lacks.
    #[must_use]
    pub fn has_changes(&self, records: &Records) -> bool {
        parts(records).any(|(position, part)| match part {
            Part::Row(change) => position >= self.since_of(&change.key),
            Part::Content(change) => {
                let place = self.follow_content(position, change.inode());
                place.is_some_and(|(_, since)| position >= since)
            }
            _ => false,
        })
    }

    fn has(&mut self, through: u64, exceptions: &[(u64, u64)]) {
        self.through = through;
        self.exceptions = exceptions.iter().copied().collect();
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
                Part::Follows(_) | Part::Brought(_) => newest = None,
                _ => {}
            }
        }
        let Some((begun, place)) = newest.filter(|(_, place)| Some(*place) > *base) else {
            return;
        };
        let before = (self.through, mem::take(&mut self.exceptions));
        self.has(begun.through, &begun.exceptions);
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

/// Which commits of the chain a journal knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// All, of the present chain or an earlier one.
    Ever,
    /// Those since the changes were brought onto a newer state.
    Now,
}

/// Commits that the journal knows to be in the chain.
fn known(records: &Records, which: Known) -> HashMap<MailId, Won> {
    let mut known = HashMap::new();
    for (_, part) in parts(records) {
        let won = match part {
            Part::Won(won) | Part::Follows(won) => *won,
            Part::Brought(brought) => {
                if which == Known::Now {
                    known.clear();
                }
                brought.won
            }
            _ => continue,
        };
        // A copy does not tell the place of a commit: a place from the log counts on.
        let of: &mut Won = known.entry(won.commit).or_insert(won);
        if won.has_place() {
            *of = won;
        }
    }
    known
}

/// The newest commit of the chain with a known place in the lead's log.
#[must_use]
pub fn newest_placed(records: &Records) -> Option<Won> {
    let known = known(records, Known::Now).into_values();
    known
        .filter(Won::has_place)
        .max_by_key(|won| won.generation)
}

/// The newest commit that the journal knows to be in the chain.
#[must_use]
pub fn newest_known(records: &Records) -> Option<Won> {
    let known = known(records, Known::Now).into_values();
    known.max_by_key(|won| won.generation)
}

pub(crate) fn parts(records: &Records) -> impl Iterator<Item = (u64, &Part)> {
    records
        .iter()
        .flat_map(|(position, parts)| parts.iter().map(|part| (*position, part)))
}

impl Replay {
    /// From where on changes of a row are in no commit.
    #[must_use]
    pub fn since_of(&self, key: &[u8]) -> u64 {
        match Key::decode(key) {
            Ok(Key::Inode(inode)) => self.since(inode.0),
            _ => self.through,
        }
    }
}
