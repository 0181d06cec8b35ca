//! A table of hints on the local disk. A hint may be absent or outdated at any time, and is never invented.
//!
//! ```text
//! table    buckets of 4,096 octets; the first octets of a key choose the bucket
//! bucket   85 entries | 0 (16)
//! entry    0  key (20) | value (20) | tag (8): BLAKE3 keyed("hints") over the octets before
//! ```
//!
//! A full bucket loses an entry for each new entry. So the table needs no memory and no scan at the start of a mount, and keeps
//! its length; as a sparse file the table takes the room of the buckets in use.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

use crate::format::Keys;

const BUCKET: usize = 4_096;
const ENTRY: usize = 48;
const PART: usize = 20;
/// Entries of a bucket.
const ENTRIES: usize = 85;

/// A key or a value.
pub(crate) type Part = [u8; PART];

/// A table on disk.
#[derive(Debug)]
pub(crate) struct HintTable<F> {
    file: F,
    buckets: u64,
}

impl<F: StorageFile> HintTable<F> {
    /// Opens the table with a name; a table of another length begins anew.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn open<S: Storage<File = F>>(
        storage: &S,
        name: &str,
        octets: u64,
    ) -> io::Result<Self> {
        let buckets = (octets / BUCKET as u64).max(1);
        let length = buckets.saturating_mul(BUCKET as u64);
        if let Ok(file) = storage.open(name) {
            if file.len()? == length {
                return Ok(Self { file, buckets });
            }
            storage.remove(name)?;
        }
        let file = storage.create(name)?;
        file.truncate(length)?;
        Ok(Self { file, buckets })
    }

    /// The value of a key.
    pub(crate) fn get(&self, keys: &Keys, key: &Part) -> Option<Part> {
        let bucket = self.bucket(self.offset(key))?;
        let entry = entries(&bucket).find(|entry| entry.starts_with(key))?;
        value(keys, entry)
    }

    /// Puts a value in place of the key's earlier value, of nothing, or else of any other value.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn put(&self, keys: &Keys, key: &Part, value: &Part) -> io::Result<()> {
        let at = self.offset(key);
        let bucket = self.bucket(at).ok_or(io::ErrorKind::UnexpectedEof)?;
        let place = |wanted: &[u8]| entries(&bucket).position(|entry| entry.starts_with(wanted));
        // A tag is as good as a random number.
        let any = || usize::from(keys.hint_tag(value)[0]).checked_rem(ENTRIES);
        let place = place(key).or_else(|| place(&[0; ENTRY])).or_else(any);
        self.write(keys, at, place.unwrap_or(0), (key, value))
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn remove(&self, key: &Part) -> io::Result<()> {
        let at = self.offset(key);
        let bucket = self.bucket(at).ok_or(io::ErrorKind::UnexpectedEof)?;
        match entries(&bucket).position(|entry| entry.starts_with(key)) {
            Some(place) => self.file.write_at([&[0; ENTRY], &[]], entry_at(at, place)),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        keys: &Keys,
        at: u64,
        place: usize,
        (key, value): (&Part, &Part),
    ) -> io::Result<()> {
        let mut entry = Vec::with_capacity(ENTRY);
        entry.extend_from_slice(key);
        entry.extend_from_slice(value);
        let tag = keys.hint_tag(&entry);
        self.file.write_at([&entry, &tag], entry_at(at, place))
    }

    fn offset(&self, key: &Part) -> u64 {
        let first = key.first_chunk().copied().unwrap_or_default();
        let bucket = u64::from_le_bytes(first).checked_rem(self.buckets);
        bucket.unwrap_or(0).saturating_mul(BUCKET as u64)
    }

    fn bucket(&self, at: u64) -> Option<Vec<u8>> {
        let mut bucket = vec![0; BUCKET];
        self.file.read_at(&mut bucket, at).ok()?;
        Some(bucket)
    }
}

fn entry_at(bucket: u64, place: usize) -> u64 {
    bucket.saturating_add(place.saturating_mul(ENTRY) as u64)
}

fn entries(bucket: &[u8]) -> impl Iterator<Item = &[u8]> {
    bucket.chunks_exact(ENTRY).take(ENTRIES)
}

fn value(keys: &Keys, entry: &[u8]) -> Option<Part> {
    let (covered, tag) = entry.split_at_checked(2 * PART)?;
    let is_ours = tag == keys.hint_tag(covered);
    let value = covered.get(PART..)?.try_into().ok();
    value.filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use vere_faults::MemoryDisk;

    use super::*;
    use crate::format::VolumeKey;

    fn keys(octet: u8) -> Keys {
        Keys::derive(&VolumeKey([octet; 32]))
    }

    /// Keys as hashes are, in the bucket of their first octets.
    fn key(number: u32) -> Part {
        let mut key = [7; PART];
        key[..4].copy_from_slice(&number.to_le_bytes());
        key[8..12].copy_from_slice(&number.to_le_bytes());
        key
    }

    #[test]
    fn hints_come_back_after_a_restart() {
        let disk = MemoryDisk::default();
        for round in 0..3_u8 {
            let table = HintTable::open(&disk, "hints", 64 << 10).unwrap();
            for number in 0..200 {
                let before = table.get(&keys(1), &key(number));
                assert_eq!(before, round.checked_sub(1).map(|round| [round; PART]));
                table.put(&keys(1), &key(number), &[round; PART]).unwrap();
            }
            // Another volume's key opens nothing.
            assert_eq!(table.get(&keys(2), &key(3)), None);
        }
        let table = HintTable::open(&disk, "hints", 64 << 10).unwrap();
        table.remove(&key(3)).unwrap();
        assert_eq!(table.get(&keys(1), &key(3)), None);
        assert_eq!(table.get(&keys(1), &key(4)), Some([2; PART]));
        let other = HintTable::open(&disk, "hints", 32 << 10).unwrap();
        assert_eq!(other.get(&keys(1), &key(4)), None);
    }

    #[test]
    fn a_full_table_keeps_its_length_and_the_newest() {
        let disk = MemoryDisk::default();
        let table = HintTable::open(&disk, "hints", 8 << 10).unwrap();
        for number in 0..2_000_u32 {
            let mut value = [0; PART];
            value[..4].copy_from_slice(&number.to_le_bytes());
            table.put(&keys(1), &key(number), &value).unwrap();
            assert_eq!(table.get(&keys(1), &key(number)), Some(value));
        }
        let kept = (0..2_000).filter(|number| table.get(&keys(1), &key(*number)).is_some());
        assert_eq!(kept.count(), 2 * ENTRIES);
        assert_eq!(disk.open("hints").unwrap().len().unwrap(), 8 << 10);
    }

    #[test]
    fn a_damaged_entry_is_no_hint() {
        let disk = MemoryDisk::default();
        let table = HintTable::open(&disk, "hints", 4 << 10).unwrap();
        for octet in 0..48 {
            table.put(&keys(1), &key(0), &[9; PART]).unwrap();
            let file = disk.open("hints").unwrap();
            let mut old = [0];
            file.read_at(&mut old, octet).unwrap();
            file.write_at([&[old[0] ^ 1], &[]], octet).unwrap();
            assert_eq!(table.get(&keys(1), &key(0)), None, "octet {octet}");
            file.write_at([&[0; 4_096], &[]], 0).unwrap();
        }
    }
}
