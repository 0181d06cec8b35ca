//! Commits as the log has them, and their order.

use std::collections::HashMap;

use vere_keep::record::Won;
use vere_placement::accounts::LOG_MAILBOX;

use crate::chain::Child;
use crate::format::commit::{Record, RecordKind, RowChange};
use crate::format::{
    Encoding, FormatError, Head, Keys, Kind, MailCopy, MailId, PackNumber, VolumeId, mail, open,
};
use crate::rows::{Key, LeadRow, PackRow, RowValue};

/// An authentic commit of the log.
#[derive(Debug)]
pub struct Found {
    /// The UID in the log.
    pub uid: u32,
    /// The head of the mail.
    pub head: Head,
    /// Octets of the decoded mail.
    pub octets: u32,
    /// The record.
    pub record: Record,
}

/// Whether a row is that of a commit's own mail.
#[must_use]
pub fn is_own_row(commit: MailId, key: &[u8], value: Option<&[u8]>) -> bool {
    let row = value.and_then(|value| PackRow::decode(value).ok());
    matches!(Key::decode(key), Ok(Key::Pack(_))) && row.is_some_and(|row| row.mail == commit)
}

/// The lead that a commit of kind 4 names.
#[must_use]
pub fn lead_of(found: &Found) -> Option<LeadRow> {
    if found.record.kind != RecordKind::LeadChange {
        return None;
    }
    let key = Key::Lead.encode();
    let row = found.record.rows.iter().find(|row| row.key == key)?;
    LeadRow::decode(row.value.as_deref()?).ok()
}

/// The row of a commit that has content: no commit can have its own UID.
pub fn own_row(won: Won, lead: u16, (pack, octets): (PackNumber, u32)) -> RowChange {
    let copy = MailCopy {
        account: lead,
        mailbox: LOG_MAILBOX,
        uid: won.uid,
    };
    let row = PackRow {
        mail: won.commit,
        kind: Kind::Commit as u8,
        group: 0,
        octets,
        copies: vec![copy],
    };
    RowChange {
        key: Key::Pack(pack.0).encode(),
        value: Some(row.encode()),
    }
}

impl Found {
    /// Reads a commit.
    ///
    /// # Errors
    ///
    /// A mail that the keys do not open, that is no commit, or is one of another volume.
    pub fn read(
        uid: u32,
        body: &[u8],
        encoding: Encoding,
        seals: (&Keys, VolumeId),
    ) -> Result<Self, FormatError> {
        Self::of_sealed(uid, &mail::unwrap(body, encoding)?, seals)
    }

    /// Reads a commit from the octets that were sealed.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn of_sealed(
        uid: u32,
        body: &[u8],
        (keys, volume): (&Keys, VolumeId),
    ) -> Result<Self, FormatError> {
        let opened = open(body, keys, None)?;
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

    /// The mail id.
    pub const fn id(&self) -> MailId {
        self.head.mail
    }

    /// The commit, as the order wants it.
    #[must_use]
    pub fn child(&self) -> Child {
        Child {
            id: self.id(),
            parent: self.record.parent,
            covers: self.record.checkpoint.map_or(0, |of| of.covers.get()),
        }
    }

    /// The commit's place in the chain.
    pub const fn won(&self, uid_validity: u32) -> Won {
        Won {
            commit: self.head.mail,
            generation: self.record.generation,
            uid_validity,
            uid: self.uid,
        }
    }

    /// The UID of the commit that the named checkpoint covers; 0 without a checkpoint.
    #[must_use]
    pub fn covered_uid(&self) -> u32 {
        self.record.checkpoint.map_or(0, |of| of.covered_uid)
    }

    /// The rows that the chain has with this commit. A commit cannot hold its own UID, and a later commit may have been lost
    /// with its mount: so the row of a commit with content follows from its place.
    pub fn rows(&self, lead: u16) -> Vec<RowChange> {
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
pub fn in_order(mut commits: Vec<Found>, first: Option<MailId>) -> (Vec<Found>, Vec<Found>) {
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
