//! A segment of the archive of X.400 and its index: changed, cut, or arbitrary.
//!
//! The format is implemented here a second time, from `docs/internals/archive.md`.

use vere_archive::{Issue, check_segment};
use vere_checksum::crc32;

const NONCE: u64 = 0x0123_4567_89ab_cdef;
const START: u64 = 1_795_957_500_000;
const HEAD: usize = 64;
/// A change: a place of two octets and the new octet.
const CHANGE: usize = 3;
/// The contents of the entries.
const CONTENTS: [&[u8]; 3] = [
    b"first content",
    b"",
    b"third content, which is the longest",
];

/// Changes of the segment, of the index, records with right checksums, octets of files.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\0",
    // The number of the segment, a head, fields, a content.
    b"\0\x10\0\0",
    b"\0\x41\0\xFF",
    b"\0\x70\0\xFF\xA0\0\x01",
    b"\x01\x20\0\0",
    b"\x01\x50\0\x01\x40\0\x02",
    // A record of an entry, and a trailer.
    b"\x02\x01\0\0\0\x40\0\0\0\0\0\0\0\x0D\0\0\0\0\0\0\0\x04\0\0\0abcd",
    b"\x02\x02\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x20\0\0\0\x30123456789abcdef0123456789abcdef",
    b"\x03VEREARCH\x01\0\0\0",
    b"\x04VEREARIX\x01\0\0\0",
    b"\x05\x40\x01",
];

/// Reads a segment and an index.
pub(super) fn segment(octets: &[u8]) {
    let (how, rest) = crate::choice::choice(octets);
    let sound = Sound::new();
    match how % 6 {
        0 => changed_segment(&sound, rest),
        1 => changed_index(&sound, rest),
        2 => {
            let index = [&file_head(b"VEREARIX")[..], &records(rest)].concat();
            let (_, entries) = checked(&sound.segment, Some(&index));
            assert_eq!(entries, 3, "no index changes what a segment has");
        }
        3 => {
            checked(rest, None);
            checked(rest, Some(&sound.index));
        }
        4 => {
            let (_, entries) = checked(&sound.segment, Some(rest));
            assert_eq!(entries, 3, "no index changes what a segment has");
        }
        _ => cut(&sound, rest),
    }
}

struct Sound {
    segment: Vec<u8>,
    index: Vec<u8>,
    /// Places behind the entries.
    ends: Vec<usize>,
}

impl Sound {
    fn new() -> Self {
        let mut segment = file_head(b"VEREARCH").to_vec();
        let mut index = file_head(b"VEREARIX").to_vec();
        let mut ends = Vec::new();
        for (content, number) in CONTENTS.into_iter().zip(1..) {
            let meta = meta(number);
            let offset = segment.len() as u64;
            let mut head = NONCE.to_le_bytes().to_vec();
            head.extend(offset.to_le_bytes());
            head.extend((content.len() as u64).to_le_bytes());
            head.extend(crc32(content).to_le_bytes());
            head.extend((meta.len() as u32).to_le_bytes());
            head.extend(crc32(&meta).to_le_bytes());
            head.extend([0; 8]);
            head.extend(crc32(&head).to_le_bytes());
            segment.extend([&head[..], &meta, content].concat());
            ends.push(segment.len());
            index.extend(record(1, offset, content.len() as u64, &meta));
        }
        let times = [START + 1, START + 3].map(u64::to_le_bytes).concat();
        let octets = CONTENTS
            .iter()
            .map(|content| content.len() as u64)
            .sum::<u64>();
        let summary = [&3_u64.to_le_bytes()[..], &octets.to_le_bytes(), &times].concat();
        index.extend(record(2, 0, segment.len() as u64, &summary));
        Self {
            segment,
            index,
            ends,
        }
    }

    /// The entry at a place.
    fn entry(&self, place: usize) -> usize {
        self.ends.iter().filter(|end| **end <= place).count()
    }
}

fn file_head(magic: &[u8; 8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(magic);
    head[8] = 1;
    head[16..24].copy_from_slice(&NONCE.to_le_bytes());
    head[24..32].copy_from_slice(&START.to_le_bytes());
    let sum = crc32(&head[..60]);
    head[60..].copy_from_slice(&sum.to_le_bytes());
    head
}

fn meta(number: u64) -> Vec<u8> {
    let mut meta = [START + number, number].map(u64::to_le_bytes).concat();
    meta.extend([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    for text in [
        "identifier",
        "",
        "originator",
        "local",
        "22",
        "file:a",
        "recipient",
    ] {
        meta.extend((text.len() as u32).to_le_bytes());
        meta.extend(text.as_bytes());
    }
    meta
}

fn record(kind: u32, offset: u64, length: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = [kind, payload.len() as u32].map(u32::to_le_bytes).concat();
    record.extend([offset, length].map(u64::to_le_bytes).concat());
    record.extend(crc32(payload).to_le_bytes());
    record.extend(crc32(&record).to_le_bytes());
    record.extend(payload);
    record
}

/// Kind, offset, length and length of the payload, then the payload.
fn records(mut octets: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    while let Some((head, rest)) = octets.split_at_checked(24) {
        let number =
            |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|place| head[at + place]));
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let wanted = u32::from_le_bytes([head[20], head[21], head[22], head[23]]) as usize;
        let (payload, behind) = rest.split_at(wanted.min(rest.len()));
        records.extend(record(kind, number(4), number(12), payload));
        octets = behind;
    }
    records
}

/// Places that are changed, and the octets afterwards.
fn edited(octets: &[u8], changes: &[u8]) -> (Vec<usize>, Vec<u8>) {
    let (mut places, mut edited) = (Vec::new(), octets.to_vec());
    for change in changes.chunks_exact(CHANGE) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % octets.len();
        edited[place] = change[2];
        places.push(place);
    }
    places.retain(|place| edited[*place] != octets[*place]);
    (places, edited)
}

/// Each change costs its entry, and no other.
fn changed_segment(sound: &Sound, changes: &[u8]) {
    let (places, segment) = edited(&sound.segment, changes);
    let mut hit: Vec<usize> = places
        .iter()
        .filter(|place| **place >= HEAD)
        .map(|place| sound.entry(*place))
        .collect();
    hit.sort_unstable();
    hit.dedup();
    let (_, entries) = checked(&segment, Some(&sound.index));
    assert_eq!(entries as usize, 3 - hit.len(), "{places:?}");
    let (_, entries) = checked(&segment, None);
    let is_numbered = !places.iter().any(|place| *place < HEAD) || !hit.contains(&0);
    assert!(
        !is_numbered || entries as usize == 3 - hit.len(),
        "{places:?}"
    );
}

/// No change of the index costs an entry.
fn changed_index(sound: &Sound, changes: &[u8]) {
    let (places, index) = edited(&sound.index, changes);
    assert_eq!(checked(&sound.segment, Some(&index)), (3, 3), "{places:?}");
}

/// The first octets of a segment have its first entries.
fn cut(sound: &Sound, octets: &[u8]) {
    let (one, rest) = crate::choice::choice(octets);
    let (other, _) = crate::choice::choice(rest);
    let length = usize::from(u16::from_le_bytes([one, other])) % sound.segment.len();
    let segment = &sound.segment[..length];
    let whole = sound.ends.iter().filter(|end| **end <= length).count() as u64;
    assert_eq!(checked(segment, None), (whole, whole), "{length}");
    assert_eq!(
        checked(segment, Some(&sound.index)),
        (whole, whole),
        "{length}"
    );
}

fn checked(segment: &[u8], index: Option<&[u8]>) -> (u64, u64) {
    let within = |at: u64, octets: u64| {
        let end = at.checked_add(octets);
        assert!(
            end.is_some_and(|end| end <= segment.len() as u64),
            "{at} {octets}"
        );
    };
    let checked = check_segment(segment, index, |issue| match issue {
        Issue::Gap { at, octets } | Issue::Unfinished { at, octets } => within(at, octets),
        Issue::OctetsDamaged { at } => within(at, 1),
        Issue::IndexDamaged { at } => assert!(index.is_some_and(|index| at <= index.len() as u64)),
        _ => {}
    });
    match checked {
        Ok(counts) => counts,
        Err(error) => panic!("memory cannot be read: {error}"),
    }
}
