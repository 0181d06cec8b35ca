//! The greylist as octets, which a host keeps over a restart.
//!
//! All numbers are little-endian.
//!
//! | offset | octets | content |
//! |---|---|---|
//! | 0 | 4 | `VGRY` |
//! | 4 | 2 | version, 2 |
//! | 6 | 2 | zero |
//! | 8 | 4 | number n of entries |
//! | 12 | 8 | check of the secret: another secret cannot read the marks |
//! | 20 | 28 n | entries |
//! | 20 + 28 n | 4 | CRC-32C of everything before |
//!
//! An entry:
//!
//! | offset | octets | content |
//! |---|---|---|
//! | 0 | 4 | hash of the client's network |
//! | 4 | 12 | hash of the triplet or client |
//! | 16 | 8 | milliseconds since 1970: first attempt if it waits, else last pass |
//! | 24 | 4 | passes; 0: the triplet waits |
//!
//! Entries that wait come first. Both parts are in the order in which the entries make room. No mark comes twice.

use std::collections::{HashMap, HashSet};

use vere_checksum::crc32c;
use vere_units::Timestamp;

use super::{Entry, Greylist};
use crate::partition::Part;
use crate::secret::{Mark, Secret};

const MAGIC: [u8; 4] = *b"VGRY";
const VERSION: u16 = 2;
/// Octets before the entries.
const HEAD: usize = 20;
/// Octets of an entry.
const ENTRY: usize = 28;
/// Octets of the checksum.
const SUM: usize = 4;

/// A snapshot that cannot be read. The greylist is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The octets are no snapshot of a greylist.
    #[error("not a snapshot of a greylist")]
    NotASnapshot,
    /// The snapshot is of another version of the program.
    #[error("expected a snapshot of version 2; found version {0}")]
    Version(u16),
    /// The length does not fit the number of entries, or the checksum does not fit the octets.
    #[error("the snapshot is damaged")]
    Damaged,
    /// The snapshot was made with another secret.
    #[error("the snapshot was made with another secret")]
    OtherSecret,
    /// Entries are out of order, or one comes twice.
    #[error("entry {0} of the snapshot is out of order")]
    Entry(u32),
}

impl Greylist {
    /// Writes a snapshot.
    pub(crate) fn export(&self, secret: &Secret) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + ENTRY * self.len() + SUM);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&(self.len() as u32).to_le_bytes());
        out.extend_from_slice(&secret.check().to_le_bytes());
        for entry in self.iter() {
            out.extend_from_slice(&entry.mark);
            out.extend_from_slice(&entry.since.as_millis().to_le_bytes());
            out.extend_from_slice(&entry.passes.to_le_bytes());
        }
        let sum = crc32c(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Makes a table of `entries_max` with the entries of `part`, of which a table without room keeps the newest. Of a mark that
    /// several snapshots have, the newest entry counts.
    pub(crate) fn of_snapshots(
        snapshots: &[GreylistSnapshot],
        part: Part,
        entries_max: u32,
    ) -> Self {
        let own = |entry: &&Entry| part.has(&entry.mark);
        let all = || snapshots.iter().flat_map(|one| one.0.iter().filter(own));
        let mut entries: Vec<Entry> = all().copied().collect();
        if snapshots.len() > 1 {
            let mut newest: HashMap<Mark, Entry> = HashMap::new();
            for entry in &entries {
                let kept = newest.entry(entry.mark).or_insert(*entry);
                if (entry.since, entry.passes) > (kept.since, kept.passes) {
                    *kept = *entry;
                }
            }
            entries = newest.into_values().collect();
            entries.sort_unstable_by_key(|entry| (entry.passes > 0, entry.since, entry.mark));
        }
        let mut greylist = Self::new();
        for entry in entries {
            greylist.add(entry, entries_max);
        }
        greylist
    }
}

/// A snapshot that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GreylistSnapshot(Vec<Entry>);

impl GreylistSnapshot {
    /// Reads the octets that [`Screen::export_greylist`](crate::Screen::export_greylist) has written with the same secret.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`]
    pub fn read(octets: &[u8], secret: [u8; 32]) -> Result<Self, SnapshotError> {
        let octets = checked(octets, &Secret::new(secret))?;
        let mut entries = Vec::with_capacity(octets.len() / ENTRY);
        let mut marks = HashSet::with_capacity(octets.len() / ENTRY);
        let mut passed = false;
        for (number, octets) in (0..).zip(octets.chunks_exact(ENTRY)) {
            let entry = read(octets);
            if !marks.insert(entry.mark) || passed && entry.passes == 0 {
                return Err(SnapshotError::Entry(number));
            }
            passed = entry.passes > 0;
            entries.push(entry);
        }
        Ok(Self(entries))
    }
}

/// The octets of the entries of a snapshot whose head and checksum are right.
fn checked<'a>(octets: &'a [u8], secret: &Secret) -> Result<&'a [u8], SnapshotError> {
    let (head, rest) = octets
        .split_at_checked(HEAD)
        .filter(|(head, _)| head.starts_with(&MAGIC))
        .ok_or(SnapshotError::NotASnapshot)?;
    let version = u16::from_le_bytes(part(head, 4));
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let count = u32::from_le_bytes(part(head, 8)) as usize;
    let entries = rest.len().checked_sub(SUM).ok_or(SnapshotError::Damaged)?;
    let (entries, sum) = rest.split_at(entries);
    let covered = &octets[..octets.len() - SUM];
    if count.checked_mul(ENTRY) != Some(entries.len())
        || part(head, 6) != [0; 2]
        || u32::from_le_bytes(part(sum, 0)) != crc32c(covered)
    {
        return Err(SnapshotError::Damaged);
    }
    if u64::from_le_bytes(part(head, 12)) != secret.check() {
        return Err(SnapshotError::OtherSecret);
    }
    Ok(entries)
}

fn read(octets: &[u8]) -> Entry {
    Entry {
        mark: part::<{ size_of::<Mark>() }>(octets, 0),
        since: Timestamp::from_millis(u64::from_le_bytes(part(octets, 16))),
        passes: u32::from_le_bytes(part(octets, 24)),
    }
}

/// `N` octets from an offset; the caller knows that they are there.
fn part<const N: usize>(octets: &[u8], from: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&octets[from..from + N]);
    part
}
