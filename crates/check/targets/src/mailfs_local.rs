//! The local disk of a mount of a file system in mail accounts, damaged.

use std::sync::Arc;

use bytes::Bytes;
use vere_faults::MemoryDisk;
use vere_keep::chunk_store::ChunkStore;
use vere_keep::journal::Journal;
use vere_keep::keep_job::CachedJob;
use vere_keep::local::{CacheTerms, Local};
use vere_keep::page_store::{is_distrusted, pages_of};
use vere_keep::record::{Part, decode, encode};
use vere_mailfs::format::{
    Builder, ChunkId, Codec, HEAD_OCTETS, Keys, Kind, MailId, PackNumber, Place, VolumeId,
    VolumeKey,
};
use vere_mailfs::rows::Extent;
use vere_ports::storage::{Storage, StorageFile};
use vere_units::Timestamp;

pub(crate) const JOURNAL_SEEDS: &[&[u8]] = &[
    // Records: a row put, a row removed, a write, a chunk, a begun commit with an exception.
    b"\x00\x01\x0b\0\0\0\x03\0key\x01value\x01\x06\0\0\0\x03\0key\0",
    b"\x00\x02\x20\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0data",
    b"\x00\x07\x28\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\x05\0\0\0\0\0\0\0\x44\0\0\0\x1e\0\0\0\x06\0\0\0",
    b"\x00\x05\x38\0\0\0commit commit coparent parent pac\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x32\0\0\0\0\0\0\0",
    b"\x00\x06\x20\0\0\0commit commit co\x04\0\0\0\0\0\0\0\x07\0\0\0\x0b\0\0\0\x0b\x10\0\0\0commit commit co",
    // Journals: a segment cut, changed, with more behind.
    b"\x01\x02\x01\x00\x30\x00\xff\xff",
    b"\x01\x01\x00\x01\x2c\x00garbage",
    b"\x01\x00\x02\x02\x00\x00VEREJRNL\x01\0\0\0",
    b"\x01\x01\x01\x03\x00\x00",
];

pub(crate) const LOCAL_SEEDS: &[&[u8]] = &[
    b"\x00\x00\x30\x00garbage",
    b"\x01\x00\x10\x01garbage",
    b"\x02\x05\x00\x00\0\0\0\0\0\0\0\0",
    b"\x03\x00\x00\x00mail mail mail m\x44\0\0\0\x10\0\0\0sum.",
];

const KEY: [u8; 32] = [7; 32];

/// Records of any octets, and journals written here and then damaged.
pub(crate) fn journal(octets: &[u8]) {
    let Some((mode, rest)) = octets.split_first() else {
        return;
    };
    if mode % 2 == 0 {
        record(rest);
    } else {
        damaged(rest);
    }
}

/// A decoded record is written and read again the same.
fn record(octets: &[u8]) {
    let Some(parts) = decode(&Bytes::copy_from_slice(octets)) else {
        return;
    };
    let again = encode(&parts);
    assert!(again.len() <= octets.len());
    assert_eq!(decode(&again.into()).as_ref(), Some(&parts));
}

/// A part with the number of its record.
fn part(number: u8) -> Part {
    Part::Drop(vec![number; 40])
}

type Replayed = Vec<(u64, Vec<Part>)>;

fn open(disk: &MemoryDisk, start: u8) -> Option<(Journal<MemoryDisk>, Replayed)> {
    let mut replayed = Vec::new();
    let journal = Journal::open(disk.clone(), &KEY, [start; 16], |position, parts| {
        replayed.push((position, parts));
    });
    Some((journal.ok()?, replayed))
}

/// Three starts with two records each, and octets put somewhere: a start replays the first records, as written, or no
/// journal opens; and an opened journal goes on.
fn damaged(octets: &[u8]) {
    let Some(([segment, how, at, further], new)) = octets.split_first_chunk() else {
        return;
    };
    let disk = MemoryDisk::default();
    let mut written = Vec::new();
    for start in 0..3 {
        let Some((mut journal, replayed)) = open(&disk, start) else {
            panic!("a journal of our own");
        };
        assert_eq!(replayed, written);
        for number in 0..2 {
            let parts = vec![part(start * 2 + number)];
            let Ok(position) = journal.append(&parts) else {
                panic!("a disk with room");
            };
            written.push((position, parts));
        }
    }
    let mut names = disk.list().unwrap_or_default();
    names.sort_unstable();
    let name = &names[usize::from(*segment) % names.len()];
    let mut file = disk.file(name).unwrap_or_default();
    let at = (usize::from(*at) + usize::from(*further) * 256) % (file.len() + 1);
    let before = file.clone();
    match how % 4 {
        0 => file.truncate(at),
        1 => {
            let end = file.len().min(at + new.len());
            file[at..end].copy_from_slice(&new[..end - at]);
        }
        2 => file.extend_from_slice(new),
        // Octets lost, or doubled, in the midst.
        _ => file = [&file[..at], new, &file[at / 2..]].concat(),
    }
    let is_same = file == before;
    disk.set_file(name, Some(file));
    let Some((mut journal, replayed)) = open(&disk, 9) else {
        assert!(!is_same);
        return;
    };
    assert_eq!(replayed, written[..replayed.len()], "a prefix");
    assert!(!is_same || replayed.len() == written.len());
    let parts = vec![part(99)];
    assert!(journal.append(&parts).is_ok());
    let Some((_, again)) = open(&disk, 10) else {
        panic!("a journal that opened");
    };
    assert_eq!(again.len(), replayed.len() + 1);
    assert!(again.starts_with(&replayed) && again.last().is_some_and(|last| last.1 == parts));
}

fn keys() -> Arc<Keys> {
    Arc::new(Keys::derive(&VolumeKey([7; 32])))
}

/// A chunk from an account: the mail, the place, head and frame.
fn sealed(keys: &Keys, content: &'static [u8]) -> Option<(MailId, Place, Vec<u8>)> {
    let mut builder = Builder::new(Kind::Data, VolumeId([3; 16]), 1, 0, PackNumber(1));
    let place = builder.push(Codec::Plain, content.into()).ok()?;
    let sealed = builder.finish(Bytes::from_static(b"index"), keys).ok()?;
    let entry = &sealed.body[..HEAD_OCTETS + place.octets() as usize];
    Some((sealed.mail_id(), place, entry.to_vec()))
}

/// Chunks, hints and pages on a disk with octets put somewhere into one of its files: found content is the kept content.
pub(crate) fn local(octets: &[u8]) {
    const CONTENTS: [&[u8]; 3] = [b"one", b"two, longer", b"three, longer still"];
    let Some(([which, low, high, cut], new)) = octets.split_first_chunk() else {
        return;
    };
    let (keys, disk, now) = (keys(), MemoryDisk::default(), Timestamp::ZERO);
    let terms = CacheTerms {
        chunks_max: 64 << 10,
        hints_max: 16 << 10,
    };
    let extent = |number: u64| Extent {
        pack: PackNumber(number),
        at: 68,
        sealed_len: 30,
    };
    let chunks: Vec<_> = CONTENTS
        .iter()
        .filter_map(|content| sealed(&keys, content))
        .collect();
    let mut first = Local::open(&disk, terms, now);
    let Some(store) = &mut first.chunks else {
        panic!("a disk that works");
    };
    for (mail, place, entry) in &chunks {
        let Some(span) = store.reserve(*place, now) else {
            panic!("a disk with room");
        };
        let (head, frame) = entry.split_at(HEAD_OCTETS);
        assert!(span.write(head, frame).is_ok());
        store.written(&keys, (*mail, place.at), &span, true, now);
    }
    for number in 1..4 {
        first.note(&keys, ChunkId([number; 16]), 500, extent(number.into()));
    }
    put(
        &disk,
        *which,
        (usize::from(*low) + usize::from(*high) * 256, *cut),
        new,
    );
    let mut second = Local::open(&disk, terms, now);
    for number in 1..4 {
        let found = second.chunk(&keys, ChunkId([number; 16]), 500);
        assert!(found.is_none_or(|found| found == extent(number.into())));
    }
    if let Some(store) = &mut second.chunks {
        for ((mail, place, _), content) in chunks.iter().zip(CONTENTS) {
            let found = read(store, &keys, *mail, *place);
            assert!(found.is_none_or(|found| found == content));
        }
        assert!(store.octets() <= terms.chunks_max);
    }
    let pages = pages_of(disk.clone(), keys);
    drop(pages);
    assert!(!is_distrusted(&disk) || *which % 5 == 4);
}

fn read(
    store: &mut ChunkStore<MemoryDisk>,
    keys: &Arc<Keys>,
    id: MailId,
    place: Place,
) -> Option<Bytes> {
    let span = store.find(keys, id, place)?;
    let job = CachedJob {
        read: Box::new(move || span.read()),
        keys: keys.clone(),
        id,
        place,
    };
    job.run()
}

/// Puts octets into a file, or cuts the file there.
fn put(disk: &MemoryDisk, which: u8, (at, cut): (usize, u8), new: &[u8]) {
    let name = match which % 5 {
        0 => "chunks-0000000000000000",
        1 => "index",
        2 => "hints",
        3 => "pages-0000000000000000",
        _ => "pages-distrusted",
    };
    let mut octets = disk.file(name).unwrap_or_default();
    let at = at % (octets.len() + 1);
    if cut % 4 == 3 {
        octets.truncate(at);
    }
    let end = at + new.len();
    octets.resize(octets.len().max(end), 0);
    octets[at..end].copy_from_slice(new);
    let Ok(file) = disk.create(name).or_else(|_| disk.open(name)) else {
        panic!("a disk that works");
    };
    assert!(file.truncate(0).is_ok());
    assert!(file.write_at([&octets, &[]], 0).is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds decode.
    #[test]
    fn seeds_get_far() {
        for seed in &JOURNAL_SEEDS[..5] {
            let parts = decode(&Bytes::copy_from_slice(&seed[1..]));
            assert!(parts.is_some(), "{seed:?}");
        }
    }
}
