//! Commits as the log has them, and their order.

use std::collections::HashMap;

use super::record::Won;
use super::state::checkpoints::own_row;
use super::state::opening::Found;
use crate::format::commit::{Record, RowChange};
use crate::format::{Encoding, FormatError, Keys, Kind, MailId, VolumeId, mail, open};

impl Found {
    /// Reads a commit.
    pub(super) fn read(
        uid: u32,
        body: &[u8],
        encoding: Encoding,
        (keys, volume): (&Keys, VolumeId),
    ) -> Result<Self, FormatError> {
        let body = mail::unwrap(body, encoding)?;
        let opened = open(&body, keys, None)?;
        let record = Record::decode(opened.last())?;
        if opened.head.kind != Kind::Commit || opened.head.volume != volume {
            return Err(FormatError::Differs {
                what: "kind of the mail",
                expected: Kind::Commit as u64,
                found: opened.head.kind as u64,
            });
        }
        Ok(Self {
            uid,
            head: opened.head,
            octets: u32::try_from(body.len()).unwrap_or(u32::MAX),
            record,
        })
    }

    pub(super) const fn id(&self) -> MailId {
        self.head.mail
    }

    /// The commit's place in the chain.
    pub(super) const fn won(&self, uid_validity: u32) -> Won {
        Won {
            commit: self.head.mail,
            generation: self.record.generation,
            uid_validity,
            uid: self.uid,
        }
    }

    /// The rows that the chain has with this commit. A commit cannot hold its own UID, and a later commit may have been lost
    /// with its mount: so the row of a commit with content follows from its place.
    pub(super) fn rows(&self, lead: u16) -> Vec<RowChange> {
        let mut rows = self.record.rows.clone();
        if !self.record.index.entries.is_empty() {
            let mail = (self.head.pack, self.octets);
            rows.push(own_row(self.won(0), lead, mail));
        }
        rows
    }
}

/// The chain, and commits outside: from the volume's first commit on, or from a given one, the child of a commit is the one with
/// the lowest UID.
pub(super) fn in_order(mut commits: Vec<Found>, first: Option<MailId>) -> (Vec<Found>, Vec<Found>) {
    drop_revoked(&mut commits);
    commits.sort_by_key(|found| found.uid);
    let mut chain: Vec<Found> = Vec::new();
    let mut parent = MailId::NONE;
    if let Some(first) = first {
        let Some(at) = commits.iter().position(|found| found.id() == first) else {
            return (chain, commits);
        };
        parent = first;
        chain.push(commits.remove(at));
    }
    let mut children: HashMap<MailId, Found> = HashMap::new();
    let mut outside = Vec::new();
    for found in commits {
        match children.get(&found.record.parent) {
            // A duplicate, or a younger sibling.
            Some(elder) if elder.id() == found.id() => {}
            Some(_) => outside.push(found),
            None => {
                children.insert(found.record.parent, found);
            }
        }
    }
    // Each commit leaves the map, so that a circle ends.
    while let Some(found) = children.remove(&parent) {
        parent = found.id();
        chain.push(found);
    }
    outside.extend(children.into_values());
    outside.sort_by_key(|found| found.uid);
    (chain, outside)
}

/// A commit with a key of an earlier epoch than its parent's is no child: the keys of that epoch may be in other hands.
fn drop_revoked(commits: &mut Vec<Found>) {
    let epochs: HashMap<MailId, u16> = commits
        .iter()
        .map(|found| (found.id(), found.head.epoch))
        .collect();
    commits.retain(|found| {
        let parent = epochs.get(&found.record.parent);
        parent.is_none_or(|epoch| found.head.epoch >= *epoch)
    });
}
