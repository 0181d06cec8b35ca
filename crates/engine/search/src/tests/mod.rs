//! Segments beside looking into every text, and the index on a disk in memory.

mod crashes;

use std::collections::BTreeMap;
use vere_units::{LogId, MailboxId};

use vere_faults::{Fate, MemoryDisk, Seeded};
use vere_mime::Zone;
use vere_ports::storage::{Storage, StorageFile};

use crate::{Bits, Builder, Document, Found, Needle, SearchError, Segment, Shelf, merge};

const LOG: LogId = LogId(0x1234_5678);
const MAILBOX: MailboxId = MailboxId(7);

/// Texts of messages by UID.
type Texts = BTreeMap<u32, Vec<(Zone, String)>>;

fn body(uid: u32) -> u64 {
    u64::from(uid) * 1_000
}

/// Words of few letters, long runs, signs and other scripts, so that everything is a part of much.
fn text(seeded: &mut Seeded) -> String {
    let pieces = [
        "ab",
        "abc",
        "ba",
        "cab",
        " ",
        " ",
        ", ",
        "--",
        "\r\n",
        "a",
        "é",
        "日本語",
        "ß",
        ".",
        "x1",
    ];
    let mut text = String::new();
    for _ in 0..seeded.pick(30) {
        text.push_str(pieces[seeded.pick(pieces.len())]);
    }
    if seeded.pick(4) == 0 {
        let length = 20 + seeded.pick(60);
        text.extend((0..length).map(|_| char::from(b"abcxyz"[seeded.pick(6)])));
    }
    vere_mime::casemap(&text)
}

fn texts(seed: u64, uids: impl Iterator<Item = u32>) -> Texts {
    let mut seeded = Seeded(seed);
    uids.map(|uid| {
        let count = seeded.pick(4);
        let texts = (0..count).map(|_| (Zone::ALL[seeded.pick(3)], text(&mut seeded)));
        (uid, texts.collect())
    })
    .collect()
}

fn build(texts: &Texts) -> Option<Vec<u8>> {
    let mut builder = Builder::new(LOG, MAILBOX);
    for (uid, texts) in texts {
        builder.message(Document {
            uid: *uid,
            body: body(*uid),
            sent: (uid % 3 != 0).then(|| i64::from(*uid) - 50),
        });
        texts
            .iter()
            .for_each(|(zone, text)| builder.text(*zone, text));
        if let Some(summary) = summary(*uid) {
            builder.summary(summary);
        }
    }
    builder.finish()
}

/// A message of which not all was given is looked into, whatever is looked for.
#[test]
fn what_was_not_given_may_be_anything() {
    let mut builder = Builder::new(LOG, MAILBOX);
    builder.message(Document {
        uid: 3,
        body: body(3),
        sent: Some(9),
    });
    builder.summary(summary(3).unwrap());
    builder.text(Zone::Header, "ONE: WORD");
    builder.and_more();
    let octets = builder.finish().unwrap();
    let segment = open(&octets);
    has_its_summaries(&segment);
    assert_eq!(merge(&[&segment], |_| true).unwrap(), Some(octets));
    for zone in Zone::ALL {
        for text in ["one", "absent", " x", "is absent, too", "ne: w"] {
            let found = segment.find(zone, &Needle::new(text)).unwrap();
            let all = found.hits.count() + found.candidates.count();
            assert_eq!(all, 1, "{text} in {zone:?}");
        }
    }
}

/// Some have none, and some too long a one.
fn summary(uid: u32) -> Option<Vec<u8>> {
    let text = match uid % 50 {
        0 => return None,
        1 => "x".repeat(crate::SUMMARY_OCTETS_MAX + 1),
        2 => String::new(),
        n => format!(
            "From: {}\r\nSubject: {uid}\r\n\r\n",
            "ab".repeat(n as usize)
        ),
    };
    Some(text.into_bytes())
}

fn has_its_summaries<F: StorageFile>(segment: &Segment<F>) {
    let mut summaries = segment.summaries().unwrap();
    let documents = segment.documents();
    // In their order, and from the last to the first.
    let numbers: Vec<_> = (0..documents.len())
        .chain((0..documents.len()).rev())
        .collect();
    for number in numbers {
        let expected = summary(documents[number].uid);
        let kept = expected.filter(|summary| summary.len() <= crate::SUMMARY_OCTETS_MAX);
        assert_eq!(summaries.get(number).unwrap(), kept.as_deref());
    }
    assert!(summaries.get(documents.len()).is_err());
}

#[test]
fn summaries_come_back_from_segments_and_joined_ones() {
    for count in [1, 63, 64, 65, 200] {
        let one = texts(1, 1..=count);
        let other = texts(2, 1_000..1_000 + count);
        let (one, other) = (open(&build(&one).unwrap()), open(&build(&other).unwrap()));
        has_its_summaries(&one);
        let some = |document: &Document| document.uid % 7 != 3;
        let joined = merge(&[&one, &other], some).unwrap().unwrap();
        has_its_summaries(&open(&joined));
        let all = texts(1, 1..=count)
            .into_iter()
            .chain(texts(2, 1_000..1_000 + count));
        let left: Texts = all.filter(|(uid, _)| uid % 7 != 3).collect();
        assert_eq!(build(&left).unwrap(), joined);
    }
}

fn open(octets: &[u8]) -> Segment<<MemoryDisk as Storage>::File> {
    let file = MemoryDisk::default().create("x").unwrap();
    file.write_at([octets, &[]], 0).unwrap();
    Segment::open(file).unwrap()
}

/// Needles that are in the texts, nearly in them, and at all lengths.
fn needles(texts: &Texts, seed: u64, count: usize) -> Vec<String> {
    let mut seeded = Seeded(seed);
    let all: Vec<&String> = texts.values().flatten().map(|(_, text)| text).collect();
    let all: Vec<Vec<char>> = all.iter().map(|text| text.chars().collect()).collect();
    let all: Vec<&Vec<char>> = all.iter().filter(|text| !text.is_empty()).collect();
    let draw = |_| {
        let text = all[seeded.pick(all.len())];
        let start = seeded.pick(text.len());
        let longest = [1, 2, 3, 6, 15, 60, 1_000][seeded.pick(7)];
        let length = 1 + seeded.pick(longest);
        let mut needle: String = text[start..].iter().take(length).collect();
        if seeded.pick(5) == 0 {
            needle.push_str(["q", " ", "a", "é"][seeded.pick(4)]);
        }
        needle
    };
    (0..count).map(draw).collect()
}

fn holds(texts: &[(Zone, String)], zone: Zone, needle: &Needle) -> bool {
    let here = texts.iter().filter(|(own, _)| *own == zone);
    let mut found = here.map(|(_, text)| memchr::memmem::find(text.as_bytes(), needle.octets()));
    found.any(|at| at.is_some())
}

/// What a segment says is so: hits are hits, and nothing is a hit that is neither.
fn agrees<F: StorageFile>(segment: &Segment<F>, texts: &Texts, needles: &[String]) -> usize {
    agrees_as_far(segment, texts, needles, |found| found.unwrap().into())
}

/// The same of one that may refuse to answer.
fn agrees_as_far<F: StorageFile>(
    segment: &Segment<F>,
    texts: &Texts,
    needles: &[String],
    answer: impl Fn(Result<Found, SearchError>) -> Option<Found>,
) -> usize {
    let mut in_vain = 0;
    for text in needles {
        let needle = Needle::new(text);
        for zone in [Zone::Body, Zone::Header, Zone::Subject] {
            let Some(found) = answer(segment.find(zone, &needle)) else {
                continue;
            };
            for (at, document) in segment.documents().iter().enumerate() {
                let holds = holds(&texts[&document.uid], zone, &needle);
                let (hit, candidate) = (found.hits.has(at), found.candidates.has(at));
                assert!(
                    holds || !hit,
                    "{text:?} is not in {zone:?} of {}",
                    document.uid
                );
                assert!(
                    !holds || hit || candidate,
                    "{text:?} is missing in {}",
                    document.uid
                );
                assert!(!(hit && candidate), "{text:?} twice");
                in_vain += usize::from(candidate && !holds);
            }
        }
    }
    in_vain
}

#[test]
fn a_segment_says_what_its_texts_hold() {
    for seed in 0..20 {
        let texts = texts(seed, (1..200).step_by(1 + seed as usize % 3));
        let segment = open(&build(&texts).unwrap());
        let needles = needles(&texts, seed + 100, 200);
        agrees(&segment, &texts, &needles);
        let given: Vec<u32> = segment
            .documents()
            .iter()
            .map(|document| document.uid)
            .collect();
        assert_eq!(given, texts.keys().copied().collect::<Vec<_>>());
        assert!(
            Zone::ALL
                .iter()
                .all(|zone| segment.runs(*zone).unwrap().groups_fit())
        );
    }
}

/// What lies within one short run needs no message to be looked into.
#[test]
fn words_and_parts_of_them_are_certain() {
    let texts = texts(3, 1..300);
    let short = texts.iter().map(|(uid, texts)| {
        let short = |(zone, text): &(Zone, String)| (*zone, text.chars().take(12).collect());
        (*uid, texts.iter().map(short).collect())
    });
    let texts: Texts = short.collect();
    let segment = open(&build(&texts).unwrap());
    let within = ["a", "AB", "b", "É", "日本", "--", ","];
    // Nor does what lies in several and is as short as a gram.
    let across = ["b ", " a", "b a", ", a", "--x", "c, ", "a--", "\r\na", ".a"];
    for needle in within.into_iter().chain(across) {
        let found = segment.find(Zone::Body, &Needle::new(needle)).unwrap();
        assert_eq!(found.candidates.count(), 0, "{needle}");
        assert!(found.hits.count() > 0, "{needle}");
    }
    let empty = segment.find(Zone::Body, &Needle::new("")).unwrap();
    assert_eq!(empty.candidates, Bits::all(segment.documents().len()));
    let nowhere = segment.find(Zone::Body, &Needle::new("a\u{FFFD}")).unwrap();
    assert!(nowhere.hits.has_none() && nowhere.candidates.has_none());
}

/// What was looked through of late answers again without the file, when it is not too much.
#[test]
fn what_is_at_hand_is_found_in_memory() {
    let texts = texts(4, 1..60);
    let segment = open(&build(&texts).unwrap());
    let one = Needle::new("ab");
    let mut left = usize::MAX;
    assert!(segment.find_at_hand(Zone::Body, &one, &mut left).is_none());
    let found = segment.find(Zone::Body, &one).unwrap();
    assert!(found.hits.count() > 0);
    let again = segment.find_at_hand(Zone::Body, &one, &mut left).unwrap();
    let again = again.unwrap();
    assert_eq!(
        again.hits.iter().collect::<Vec<_>>(),
        found.hits.iter().collect::<Vec<_>>()
    );
    assert_eq!(again.candidates.count(), found.candidates.count());
    let octets = usize::MAX - left;
    let mut left = 2 * octets - 1;
    assert!(segment.find_at_hand(Zone::Body, &one, &mut left).is_some());
    assert_eq!(left, octets - 1);
    assert!(segment.find_at_hand(Zone::Body, &one, &mut left).is_none());
    let mut left = usize::MAX;
    let several = Needle::new("ab, cab");
    for (zone, needle) in [(Zone::Body, &several), (Zone::Header, &one)] {
        assert!(segment.find_at_hand(zone, needle, &mut left).is_none());
    }
}

/// A message with more text than is kept is looked into, whatever is looked for.
#[test]
fn too_much_text_is_a_candidate() {
    let mut builder = Builder::new(LOG, MAILBOX);
    for uid in [1, 2] {
        builder.message(Document {
            uid,
            body: body(uid),
            sent: None,
        });
        builder.text(Zone::Body, "ABC");
        if uid == 2 {
            builder.text(Zone::Body, &"X ".repeat(crate::MESSAGE_OCTETS_MAX / 2));
        }
    }
    let segment = open(&builder.finish().unwrap());
    let found = |text: &str| segment.find(Zone::Body, &Needle::new(text)).unwrap();
    assert_eq!(found("abc").hits.iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found("q").candidates.iter().collect::<Vec<_>>(), [1]);
    assert_eq!(found("no, none").candidates.iter().collect::<Vec<_>>(), [1]);
}

/// A message's texts, and those that only a mailbox's copy has.
fn take(builder: &mut Builder, uid: u32, body: u64, texts: &[(Zone, String)], own: &[String]) {
    if !builder.known(uid, body) {
        let sent = Some(i64::from(uid));
        builder.message(Document { uid, body, sent });
        texts
            .iter()
            .for_each(|(zone, text)| builder.text(*zone, text));
        builder.summary(format!("Subject: {uid}\r\n\r\n").into_bytes());
    }
    own.iter()
        .for_each(|text| builder.own_text(Zone::Header, text));
}

#[test]
fn what_was_taken_of_a_message_serves_other_mailboxes() {
    let all = texts(11, 1..200);
    let mut seeded = Seeded(12);
    let mut shelf = Shelf::default();
    for mailbox in 1..6 {
        // Each has other messages, and most have fields of their own.
        let here: Texts = all
            .iter()
            .filter(|_| mailbox == 1 || seeded.pick(3) > 0)
            .map(|(uid, texts)| (*uid, texts.clone()))
            .collect();
        let own: BTreeMap<u32, Vec<String>> = here
            .keys()
            .map(|uid| {
                let count = seeded.pick(3);
                let fields = (0..count).map(|_| text(&mut seeded) + &"Z".repeat(seeded.pick(60)));
                (*uid, fields.collect())
            })
            .collect();
        let mut shared = Builder::with(LOG, MAILBOX, shelf);
        let mut alone = Builder::new(LOG, MAILBOX);
        for (uid, texts) in &here {
            assert_eq!(shared.shelf().has(body(*uid)), mailbox > 1);
            take(&mut shared, *uid, body(*uid), texts, &own[uid]);
            take(&mut alone, *uid, body(*uid), texts, &own[uid]);
        }
        let (made, left) = shared.finish_with();
        shelf = left;
        assert!(!shelf.is_empty());
        let made = made.unwrap();
        assert_eq!(alone.finish().unwrap(), made);
        let both = here.into_iter().map(|(uid, mut texts)| {
            texts.extend(own[&uid].iter().map(|text| (Zone::Header, text.clone())));
            (uid, texts)
        });
        let both: Texts = both.collect();
        agrees(&open(&made), &both, &needles(&both, mailbox, 150));
    }
}

/// A mailbox's copy has no body of its own; one that has may hold anything.
#[test]
fn a_copy_with_a_text_of_its_own_is_a_candidate() {
    let mut builder = Builder::new(LOG, MAILBOX);
    take(&mut builder, 1, 1, &[(Zone::Body, "ABC".to_owned())], &[]);
    take(&mut builder, 2, 2, &[(Zone::Body, "ABC".to_owned())], &[]);
    builder.own_text(Zone::Body, "DEF, GHI");
    let segment = open(&builder.finish().unwrap());
    for needle in ["def, g", "def", "cdef"] {
        let found = segment.find(Zone::Body, &Needle::new(needle)).unwrap();
        assert!(found.hits.has(1) || found.candidates.has(1), "{needle}");
        assert!(!found.hits.has(0) && !found.candidates.has(0));
    }
}

#[test]
fn what_was_taken_is_forgotten_when_it_is_much() {
    let mut shelf = Shelf::default();
    let mut forgotten = 0;
    for uid in 1..60_u32 {
        let mut builder = Builder::with(LOG, MAILBOX, shelf);
        forgotten += usize::from(uid > 1 && builder.shelf().is_empty());
        let words: Vec<String> = (0..60_000_u32)
            .map(|n| format!("{:X}", (n + uid * 60_000).wrapping_mul(2_654_435_761)))
            .collect();
        let texts = [(Zone::Body, words.join(" "))];
        take(&mut builder, uid, body(uid), &texts, &[]);
        let made;
        (made, shelf) = builder.finish_with();
        assert!(made.is_some());
        assert!(shelf.resident() <= crate::SHELF_OCTETS_MAX + (16 << 20));
    }
    assert!(forgotten > 1, "{forgotten}");
}

#[test]
fn joined_segments_are_as_if_made_at_once() {
    for seed in 0..10 {
        let all = texts(seed, 1..400);
        let parts: Vec<Texts> = [(1, 130), (130, 131), (131, 400)]
            .iter()
            .map(|(from, to)| {
                all.range(from..to)
                    .map(|(uid, texts)| (*uid, texts.clone()))
            })
            .map(Iterator::collect)
            .collect();
        let segments: Vec<_> = parts
            .iter()
            .map(|part| open(&build(part).unwrap()))
            .collect();
        let borrowed: Vec<_> = segments.iter().collect();
        assert_eq!(merge(&borrowed, |_| true).unwrap(), build(&all));
        let live = |document: &Document| document.uid % 5 != seed as u32 % 5;
        let left: Texts = all
            .iter()
            .filter(|(uid, _)| **uid % 5 != seed as u32 % 5)
            .map(|(uid, texts)| (*uid, texts.clone()))
            .collect();
        assert_eq!(merge(&borrowed, live).unwrap(), build(&left));
        assert_eq!(merge(&borrowed, |_| false).unwrap(), None);
    }
    assert_eq!(build(&Texts::new()), None);
}

/// Any octet that is another one is noticed, and nothing panics.
#[test]
fn damage_is_noticed() {
    let texts = texts(1, 1..60);
    let octets = build(&texts).unwrap();
    let needles = needles(&texts, 5, 12);
    for at in (0..octets.len()).step_by(37) {
        let mut damaged = octets.clone();
        damaged[at] ^= 0x41;
        let file = MemoryDisk::default().create("x").unwrap();
        file.write_at([&damaged, &[]], 0).unwrap();
        let Ok(segment) = Segment::open(file) else {
            continue;
        };
        assert!(merge(&[&segment], |_| true).is_err(), "octet {at}");
        for text in &needles {
            // What does not touch the damaged block answers rightly.
            for zone in [Zone::Body, Zone::Header] {
                let Ok(found) = segment.find(zone, &Needle::new(text)) else {
                    continue;
                };
                for (at, document) in segment.documents().iter().enumerate() {
                    let holds = holds(&texts[&document.uid], zone, &Needle::new(text));
                    assert_eq!(
                        holds && !found.hits.has(at),
                        holds && found.candidates.has(at)
                    );
                }
            }
        }
    }
    for len in (0..octets.len()).step_by(101) {
        let file = MemoryDisk::default().create("x").unwrap();
        file.write_at([&octets[..len], &[]], 0).unwrap();
        assert!(Segment::open(file).is_err(), "cut to {len}");
    }
}
