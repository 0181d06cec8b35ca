//! Octets of lost packs: a mount lets go of octets in packs, and the journal keeps everything until a commit has the same.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use vere_ports::files::Inode;
use vere_ports::storage::Storage;

use crate::format::MailId;
use crate::journal::{Journal, JournalError};
use crate::posix::ContentChange;
use crate::record::{Begun, Part};

/// A range of a file whose octets are wanted.
#[derive(Debug)]
pub struct Wanted {
    inode: Inode,
    offset: u64,
    octets: Vec<u8>,
    /// Which octets the journal has told.
    told: Vec<bool>,
}

impl Wanted {
    /// No octet of the range is known yet.
    #[must_use]
    pub fn new(inode: Inode, offset: u64, length: u32) -> Self {
        let length = usize::try_from(length).unwrap_or(0);
        Self {
            inode,
            offset,
            octets: vec![0; length],
            told: vec![false; length],
        }
    }

    /// The octets, if the journal has told all of them.
    #[must_use]
    pub fn octets(self) -> Option<Bytes> {
        let is_whole = self.told.iter().all(|told| *told);
        is_whole.then(|| self.octets.into())
    }

    /// The range from one offset of the file to another has changed: to these octets, or to others outside the journal.
    fn change(&mut self, (from, to): (u64, u64), data: Option<&[u8]>) {
        let end = self.offset.saturating_add(self.octets.len() as u64);
        let (low, high) = (from.max(self.offset), to.min(end));
        if low >= high {
            return;
        }
        let place = |at: u64, begin: u64| usize::try_from(at.saturating_sub(begin)).unwrap_or(0);
        let mine = place(low, self.offset)..place(high, self.offset);
        if let Some(told) = self.told.get_mut(mine.clone()) {
            told.fill(data.is_some());
        }
        let theirs = data.and_then(|data| data.get(place(low, from)..place(high, from)));
        if let (Some(octets), Some(data)) = (self.octets.get_mut(mine), theirs) {
            octets.copy_from_slice(data);
        }
    }
}

/// The part of the journal in the newest commit of the mount in the chain.
#[derive(Debug, Default)]
pub struct Since {
    through: u64,
    exceptions: BTreeMap<u64, u64>,
}

impl Since {
    /// The first position of content of a file without a commit.
    #[must_use]
    pub fn of(&self, inode: Inode) -> u64 {
        let exception = self.exceptions.get(&inode.0).copied();
        exception.unwrap_or(self.through)
    }
}

/// Fills ranges with the octets that were written last, as the journal tells. Returns from where on the journal has contents that
/// no commit of the chain has.
///
/// # Errors
/// [`JournalError`].
pub fn regain<S: Storage>(
    journal: &Journal<S>,
    wanted: &mut [Wanted],
) -> Result<Since, JournalError> {
    let mut moves: Vec<(u64, Inode, Option<Inode>)> = Vec::new();
    let mut begun: Vec<Begun> = Vec::new();
    let mut won: HashSet<MailId> = HashSet::new();
    journal.reread(|position, parts| {
        for part in parts {
            match part {
                Part::Moved(from, to) => moves.push((position, from, to)),
                Part::Begun(of) => begun.push(of),
                Part::Won(of) => {
                    won.insert(of.commit);
                }
                _ => {}
            }
        }
    })?;
    let newest = begun.iter().rev().find(|of| won.contains(&of.commit));
    let since = newest.map_or_else(Since::default, |of| Since {
        through: of.through,
        exceptions: of.exceptions.iter().copied().collect(),
    });
    let inode_at = |position: u64, inode: Inode| {
        let mut at = inode;
        for (moved, from, to) in &moves {
            if *moved >= position && *from == at {
                at = (*to)?;
            }
        }
        Some(at)
    };
    journal.reread(|position, parts| {
        for part in parts {
            let Part::Content(change) = part else {
                continue;
            };
            if let Some(inode) = inode_at(position, change.inode()) {
                tell(wanted, inode, &change);
            }
        }
    })?;
    Ok(since)
}

fn tell(wanted: &mut [Wanted], inode: Inode, change: &ContentChange) {
    let (range, data) = match change {
        ContentChange::Write { offset, data, .. } => {
            let end = offset.saturating_add(data.len() as u64);
            ((*offset, end), Some(&data[..]))
        }
        ContentChange::Cut { from, to, .. } => ((*from, *to), None),
        ContentChange::Chunk { offset, length, .. } => {
            let end = offset.saturating_add((*length).into());
            ((*offset, end), None)
        }
    };
    for of in wanted.iter_mut().filter(|of| of.inode == inode) {
        of.change(range, data);
    }
}

#[cfg(test)]
mod tests {
    use vere_faults::MemoryDisk;

    use super::*;
    use crate::content::UnsentId;
    use crate::record::Won;

    fn write(inode: u64, offset: u64, data: &'static [u8]) -> Part {
        Part::Content(ContentChange::Write {
            inode: Inode(inode),
            offset,
            id: UnsentId(1),
            skip: 0,
            data: Bytes::from_static(data),
        })
    }

    #[test]
    fn the_octets_written_last_come_back() {
        let disk = MemoryDisk::default();
        let mut journal =
            Journal::open(disk.clone(), &[7; 32], [1; 16], |_, _| panic!("empty")).unwrap();
        let commit = MailId([5; 16]);
        let first = journal.append(&[write(2, 10, b"abcdefgh")]).unwrap();
        let begun = Begun {
            commit,
            parent: MailId::NONE,
            through: journal.position(),
            exceptions: vec![(2, first)],
        };
        journal.append(&[Part::Begun(begun.clone())]).unwrap();
        let won = Won {
            commit,
            generation: 1,
            uid_validity: 1,
            uid: 1,
        };
        journal.append(&[Part::Won(won)]).unwrap();
        // Another start of the machine goes on in a segment of its own.
        drop(journal);
        let mut journal = Journal::open(disk, &[7; 32], [2; 16], |_, _| {}).unwrap();
        journal.append(&[write(2, 12, b"XY")]).unwrap();
        journal
            .append(&[Part::Moved(Inode(2), Some(Inode(3)))])
            .unwrap();
        let cut = ContentChange::Cut {
            inode: Inode(3),
            from: 16,
            to: u64::MAX,
        };
        journal.append(&[Part::Content(cut)]).unwrap();
        journal.append(&[write(3, 16, b"Z")]).unwrap();
        let of = |offset, length| Wanted::new(Inode(3), offset, length);
        let mut wanted = [of(11, 6), of(12, 1), of(15, 3), of(9, 2)];
        let since = regain(&journal, &mut wanted).unwrap();
        let found = wanted.map(Wanted::octets);
        let some = |text: &'static [u8]| Some(Bytes::from_static(text));
        assert_eq!(found, [some(b"bXYefZ"), some(b"X"), None, None]);
        assert_eq!(since.of(Inode(2)), first);
        assert_eq!(since.of(Inode(9)), begun.through);
    }
}
