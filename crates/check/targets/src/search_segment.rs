//! A segment of the search index: made of texts, and asked; or changed, with checksums that are right.

use vere_mime::{Zone, casemap};
use vere_ports::storage::Storage as _;
use vere_search::{Builder, Document, Needle, Segment, merge};
use vere_units::{LogId, MailboxId};

use super::choice::choice;
use crate::disk::{Disk, DiskFile};

/// Octets of the head, and where it says how many octets of data there are.
const HEAD: usize = 772;
const DATA_AT: usize = 40;
/// Octets with a separate checksum.
const BLOCK: usize = 16 * 1024;
/// A change of a segment: a place of three octets and the new octet.
const CHANGE: usize = 4;
const LOG: LogId = LogId(7);
const MAILBOX: MailboxId = MailboxId(64);

/// Texts, of which the last is looked for; changes of a segment; octets of a file.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\0the quick fox, of\x1Ffree of charge\x1E\xC3\x9Cber, alles\x1Fe of\x1Dof",
    b"\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x1E> F\x1E\x1Dx> Fy\x1Fa> F",
    // The number of messages, the place of the first zone's runs, an octet of data.
    b"\x01\x0C\0\0\x09\x40\0\0\x7F\x00\x04\0\xFF",
    b"\x02VERESRCH\x05\0\0\0",
];

/// Makes a segment of texts and searches the segment, or opens a malformed segment.
pub(super) fn open(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    match choice % 3 {
        0 => asked(rest),
        1 => changed(rest),
        _ => drop(opened(rest.to_vec()).map(|segment| everything(&segment, &needles()))),
    }
}

fn opened(octets: Vec<u8>) -> Option<Segment<DiskFile>> {
    let disk = Disk::default();
    disk.put("segment", octets);
    Segment::open(disk.open("segment").ok()?).ok()
}

/// RS separates messages, US separates their texts, and GS precedes the search texts.
fn asked(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let (texts, what) = text.split_once('\u{1D}').unwrap_or((&text, "of"));
    let messages: Vec<Vec<String>> = texts
        .split('\u{1E}')
        .map(|message| message.split('\u{1F}').map(casemap).collect())
        .collect();
    let octets = built(&messages);
    let Some(segment) = opened(octets.clone()) else {
        panic!("what was written cannot be read")
    };
    for what in std::iter::once(what).chain(what.get(..1)) {
        is_exact(&segment, &messages, &Needle::new(what));
    }
    // Segments of some messages each, joined, equal the segment of all messages.
    let (one, other) = messages.split_at(messages.len() / 2);
    let parts = [built(one), built_from(other, one.len())];
    let parts: Vec<_> = parts.into_iter().filter_map(opened).collect();
    let parts: Vec<_> = parts.iter().collect();
    assert_eq!(merge(&parts, |_| true).ok().flatten(), Some(octets));
}

fn built(messages: &[Vec<String>]) -> Vec<u8> {
    built_from(messages, 0)
}

fn built_from(messages: &[Vec<String>], before: usize) -> Vec<u8> {
    let mut builder = Builder::new(LOG, MAILBOX);
    for (number, texts) in (before + 1..).zip(messages) {
        builder.message(Document {
            uid: number as u32,
            body: number as u64 * 100,
            sent: Some(number as i64),
        });
        builder.summary(format!("Subject: {number}\r\n").into_bytes());
        for (text, zone) in texts.iter().zip(Zone::ALL.into_iter().cycle()) {
            builder.text(zone, text);
        }
    }
    builder.finish().unwrap_or_default()
}

/// Every message with the text is a hit or a candidate, and every hit has the text.
fn is_exact(segment: &Segment<DiskFile>, messages: &[Vec<String>], needle: &Needle) {
    for zone in Zone::ALL {
        let Ok(found) = segment.find(zone, needle) else {
            panic!("a segment that is whole does not answer")
        };
        for (number, texts) in messages.iter().enumerate() {
            let of_zone = texts.iter().zip(Zone::ALL.into_iter().cycle());
            let mut of_zone = of_zone.filter(|(_, own)| *own == zone);
            let has = !needle.is_nowhere()
                && of_zone.any(|(text, _)| holds(text.as_bytes(), needle.octets()));
            let (hit, may) = (found.hits.has(number), found.candidates.has(number));
            assert!(!has || hit || may, "a message is missing: {zone:?}");
            assert!(has || !hit, "a message that has nothing of it: {zone:?}");
        }
    }
}

fn holds(text: &[u8], what: &[u8]) -> bool {
    what.is_empty() || text.windows(what.len()).any(|at| at == what)
}

/// Octets of head and data are others, and the checksums say so.
fn changed(changes: &[u8]) {
    let texts = [
        "the quick brown fox",
        "jumps, over, the lazy dog",
        "> Fro",
        &"x".repeat(99),
    ];
    let message = |number: usize| texts.iter().cycle().skip(number).take(9);
    let messages: Vec<Vec<String>> = (0..70)
        .map(|number| message(number).map(|text| casemap(text)).collect())
        .collect();
    let mut octets = built(&messages);
    for change in changes.chunks_exact(CHANGE) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
        // The checksums need no changes: all are computed again.
        if let Some(octet) = octets.get_mut(at) {
            *octet = change[3];
        }
    }
    sign(&mut octets);
    if let Some(segment) = opened(octets) {
        everything(&segment, &needles());
    }
}

/// Writes the correct checksums of head and blocks, as far as the head gives their places.
fn sign(octets: &mut [u8]) {
    let field = octets.get(DATA_AT..).and_then(|rest| rest.first_chunk());
    let data = field.map_or(0, |field| u64::from_le_bytes(*field));
    let blocks = usize::try_from(data).unwrap_or(usize::MAX).div_ceil(BLOCK);
    let Some((head, rest)) = octets.split_at_mut_checked(HEAD) else {
        return;
    };
    let (head, sum) = head.split_at_mut(HEAD - 4);
    sum.copy_from_slice(&vere_checksum::crc32(head).to_le_bytes());
    let Some((sums, data)) = rest.split_at_mut_checked(blocks.saturating_mul(4).saturating_add(4))
    else {
        return;
    };
    let (sums, sum) = sums.split_at_mut(blocks * 4);
    for (own, block) in sums.chunks_exact_mut(4).zip(data.chunks(BLOCK)) {
        own.copy_from_slice(&vere_checksum::crc32(block).to_le_bytes());
    }
    sum.copy_from_slice(&vere_checksum::crc32(sums).to_le_bytes());
}

/// A word, a part of a word, octets of several words, some words, and a text in no message.
fn needles() -> Vec<Needle> {
    let all = [
        "the",
        "o",
        "> f",
        "quick brown fox",
        "s, over, t",
        "xxxxx",
        "q\u{FFFD}",
        "",
    ];
    all.into_iter().map(Needle::new).collect()
}

/// Whatever is asked is answered or refused.
fn everything(segment: &Segment<DiskFile>, needles: &[Needle]) {
    let count = segment.documents().len();
    let rise = segment
        .documents()
        .is_sorted_by(|one, other| one.uid < other.uid);
    assert!(rise, "UIDs do not rise");
    for zone in Zone::ALL {
        for needle in needles {
            if let Ok(found) = segment.find(zone, needle) {
                assert_eq!((found.hits.len(), found.candidates.len()), (count, count));
            }
        }
    }
    if let Ok(mut summaries) = segment.summaries() {
        for number in 0..count {
            let _ = summaries.get(number);
        }
    }
    // The result of a join can be read.
    if let Ok(Some(joined)) = merge(&[segment], |document| document.uid % 2 == 1) {
        let Some(joined) = opened(joined) else {
            panic!("what was joined cannot be read")
        };
        assert!(joined.documents().len() <= count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without changes a newly signed segment equals the original.
    #[test]
    fn checksums_are_those_of_a_segment() {
        let mut octets = built(&[vec!["ONE".to_owned()], vec!["TWO".to_owned()]]);
        let before = octets.clone();
        sign(&mut octets);
        assert_eq!(octets, before);
        octets[HEAD - 1] ^= 1;
        assert!(opened(octets.clone()).is_none());
        sign(&mut octets);
        assert!(opened(octets).is_some());
    }
}
