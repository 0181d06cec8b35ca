use std::num::NonZeroU32;
use std::time::Duration;

use super::snapshot::{GreylistSnapshot, SnapshotError};
use super::*;
use crate::partition::{Part, Partition};
use crate::secret::Secret;

const CLIENT: Mark = [0xC1; 16];
const SECRET_OCTETS: [u8; 32] = [9; 32];
const SECRET: Secret = Secret::new(SECRET_OCTETS);

fn terms() -> Greylisting {
    Greylisting {
        delay: Duration::from_secs(10),
        window: Duration::from_secs(100),
        lifetime: Duration::from_secs(1_000),
        known_after: 2,
        entries: 8,
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1_000)
}

const fn mark(number: u8) -> Mark {
    [number; 16]
}

/// A table with terms of its own.
struct Table(Greylist, Greylisting);

impl Table {
    fn new() -> Self {
        Self(Greylist::new(), terms())
    }

    fn try_at(&mut self, now: Timestamp, number: u8) -> bool {
        let client = if number < 100 { CLIENT } else { mark(200) };
        self.note_at(now, &client, number) != Greylisted::New
    }

    fn note_at(&mut self, now: Timestamp, client: &Mark, number: u8) -> Greylisted {
        self.0.note(now, client, &mark(number), &self.1)
    }

    fn marks(&self) -> Vec<u8> {
        self.0.iter().map(|entry| entry.mark[0]).collect()
    }
}

#[test]
fn a_client_that_passed_often_is_known() {
    let mut table = Table::new();
    table.1.known_after = 2;
    let client = mark(201);
    for number in [1, 2] {
        assert_eq!(table.note_at(at(0), &client, number), Greylisted::New);
        assert_eq!(table.note_at(at(10), &client, number), Greylisted::Passed);
        // The next triplet of a client may find the client known.
        let again = table.note_at(at(11), &client, number);
        let expected = [Greylisted::Passed, Greylisted::Known];
        assert_eq!(again, expected[usize::from(number) - 1]);
    }
    assert_eq!(table.note_at(at(12), &client, 3), Greylisted::Known);
    assert_eq!(table.note_at(at(12), &mark(202), 3), Greylisted::New);
}

#[test]
fn a_triplet_passes_between_delay_and_end_of_the_window() {
    let mut table = Table::new();
    assert!(!table.try_at(at(0), 1));
    assert!(!table.try_at(at(9), 1));
    assert!(table.try_at(at(10), 1));
    assert!(table.try_at(at(10), 1));
    assert!(!table.try_at(at(20), 2));
    assert!(!table.try_at(at(121), 2), "after the window it begins anew");
    assert!(!table.try_at(at(130), 2));
    assert!(table.try_at(at(131), 2));
    let mut late = Table::new();
    assert!(!late.try_at(at(0), 1));
    assert!(late.try_at(at(100), 1));
}

#[test]
fn a_pass_lives_from_its_last_use() {
    let mut table = Table::new();
    table.1.known_after = 0;
    table.try_at(at(0), 1);
    assert!(table.try_at(at(10), 1));
    assert!(table.try_at(at(1_010), 1));
    assert!(table.try_at(at(2_010), 1));
    assert!(!table.try_at(at(3_011), 1));
    assert!(!table.try_at(at(3_020), 1));
    assert!(table.try_at(at(3_021), 1));
    assert_eq!(table.0.len(), 1, "no client is counted");
}

#[test]
fn a_lifetime_may_be_shorter_than_the_window() {
    let mut table = Table::new();
    table.1.lifetime = Duration::from_secs(20);
    table.try_at(at(0), 1);
    assert!(table.try_at(at(10), 1));
    assert!(!table.try_at(at(31), 1));
    assert!(table.try_at(at(41), 1));
}

#[test]
fn clients_that_were_known_are_forgotten_when_the_terms_say_so() {
    let mut table = Table::new();
    table.1.known_after = 1;
    table.try_at(at(0), 1);
    assert!(table.try_at(at(10), 1));
    assert!(table.try_at(at(10), 2));
    table.1.known_after = 0;
    assert!(!table.try_at(at(10), 3));
    assert!(table.try_at(at(20), 3));
    assert_ne!(hash(&mark(1)), hash(&mark(2)));
}

#[test]
fn a_client_is_known_after_two_triplets() {
    let mut table = Table::new();
    for number in [1, 2] {
        table.try_at(at(0), number);
    }
    assert!(table.try_at(at(10), 1));
    assert!(table.try_at(at(10), 1), "a triplet counts once");
    assert!(!table.try_at(at(11), 3));
    assert!(table.try_at(at(12), 2));
    assert!(table.try_at(at(12), 4));
    assert!(table.try_at(at(1_012), 5), "the use prolongs the lifetime");
    assert!(!table.try_at(at(2_013), 6));
    assert!(table.try_at(at(2_023), 6));
    assert!(!table.try_at(at(2_023), 7), "the client is counted anew");
    assert!(!table.try_at(at(2_023), 101), "another client");
}

#[test]
fn a_clock_that_is_set_back_delays_once_more_only() {
    let mut table = Table::new();
    table.try_at(at(5_000), 1);
    assert!(!table.try_at(at(0), 1));
    assert!(table.try_at(at(10), 1));
    let mut table = Table::new();
    table.try_at(at(5_000), 1);
    table.try_at(at(5_010), 1);
    assert!(table.try_at(at(0), 1), "a pass remains one");
    assert!(table.try_at(at(1_000), 1));
    assert!(!table.try_at(at(2_001), 1));
}

#[test]
fn waiting_triplets_make_room_beyond_a_quarter() {
    let mut table = Table::new();
    table.1.known_after = 0;
    for number in 1..=6 {
        table.try_at(at(0), number);
        assert!(table.try_at(at(10), number));
    }
    assert!(table.try_at(at(11), 1), "now 2 is the oldest");
    for number in 11..=13 {
        table.try_at(at(20), number);
    }
    // Two of eight waited, which is no more than a quarter.
    assert_eq!(table.marks(), [11, 12, 13, 3, 4, 5, 6, 1]);
    table.try_at(at(21), 14);
    assert_eq!(table.marks(), [12, 13, 14, 3, 4, 5, 6, 1]);
    assert!(!table.try_at(at(22), 2), "forgotten");
    assert_eq!(table.marks(), [13, 14, 2, 3, 4, 5, 6, 1]);
    assert!(table.try_at(at(31), 13));
    assert_eq!(table.marks(), [14, 2, 3, 4, 5, 6, 1, 13]);
    table.try_at(at(32), 15);
    assert_eq!(table.marks(), [14, 2, 15, 4, 5, 6, 1, 13]);
}

#[test]
fn a_table_of_waiting_triplets_or_of_one_entry_works() {
    let mut table = Table::new();
    table.1.entries = 0;
    assert!(!table.try_at(at(0), 1));
    assert!(!table.try_at(at(0), 2));
    assert_eq!(table.marks(), [2]);
    assert!(table.try_at(at(10), 2));
    assert_eq!(table.0.len(), 1);
}

fn sample() -> Table {
    let mut table = Table::new();
    table.try_at(at(0), 1);
    table.try_at(at(1), 2);
    table.try_at(at(2), 3);
    assert!(table.try_at(at(12), 1));
    table
}

#[test]
fn the_octets_of_a_snapshot_are_fixed() {
    let octets = sample().0.export(&SECRET);
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let entry = |mark: &str, since: &str, passes: &str| mark.repeat(16) + since + passes;
    let expected = [
        "56475259".to_owned(),
        "0200".to_owned(),
        "0000".to_owned(),
        "04000000".to_owned(),
        "0cdaf9eb4a4e7ad2".to_owned(),
        entry("02", "e8535c18a3010000", "00000000"),
        entry("03", "d0575c18a3010000", "00000000"),
        entry("01", "e07e5c18a3010000", "01000000"),
        entry("c1", "e07e5c18a3010000", "01000000"),
        "50c9152c".to_owned(),
    ];
    assert_eq!(hex, expected.concat());
}

#[test]
fn a_snapshot_comes_back_in_its_order() {
    let table = sample();
    let octets = table.0.export(&SECRET);
    let back = import(&octets, 8).unwrap();
    assert!(back.iter().eq(table.0.iter()));
    assert_eq!(back.export(&SECRET), octets);
    let mut back = Table(back, terms());
    assert!(back.try_at(at(13), 1));
    assert!(back.try_at(at(13), 2), "waited long enough");
    let small = import(&octets, 3).unwrap();
    assert_eq!(Table(small, terms()).marks(), [3, 1, 0xC1]);
    let empty = Greylist::new().export(&SECRET);
    assert_eq!(import(&empty, 3).unwrap().len(), 0);
}

#[test]
fn damage_is_found() {
    let octets = sample().0.export(&SECRET);
    for length in 0..octets.len() {
        assert!(read(&octets[..length]).is_err());
    }
    for bit in 0..octets.len() * 8 {
        let mut damaged = octets.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged).is_err(), "bit {bit}");
    }
    let mut longer = octets.clone();
    longer.push(0);
    assert_eq!(read(&longer), Err(SnapshotError::Damaged));
    assert_eq!(read(&octets[..19]), Err(SnapshotError::NotASnapshot));
    assert_eq!(read(&octets[..23]), Err(SnapshotError::Damaged));
    let mut later = octets.clone();
    later[4] = 3;
    assert_eq!(read(&later), Err(SnapshotError::Version(3)));
    let other = GreylistSnapshot::read(&octets, [8; 32]);
    assert_eq!(other.unwrap_err(), SnapshotError::OtherSecret);
}

fn read(octets: &[u8]) -> Result<(), SnapshotError> {
    GreylistSnapshot::read(octets, SECRET_OCTETS).map(drop)
}

/// The sample with changed entries or head and a right checksum.
fn changed(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut octets = sample().0.export(&SECRET);
    let end = octets.len() - 4;
    change(&mut octets[..end]);
    let sum = vere_checksum::crc32c(&octets[..end]);
    octets[end..].copy_from_slice(&sum.to_le_bytes());
    octets
}

#[test]
fn snapshots_that_no_export_writes_are_refused() {
    let twice = changed(|octets| octets.copy_within(20..36, 48));
    assert_eq!(read(&twice), Err(SnapshotError::Entry(1)));
    let order = changed(|octets| octets[20 + 24] = 1);
    assert_eq!(read(&order), Err(SnapshotError::Entry(1)));
    let reserved = changed(|octets| octets[6] = 1);
    assert_eq!(read(&reserved), Err(SnapshotError::Damaged));
    let count = changed(|octets| octets[8] = 3);
    assert_eq!(read(&count), Err(SnapshotError::Damaged));
}

fn import(octets: &[u8], entries_max: u32) -> Result<Greylist, SnapshotError> {
    let snapshot = GreylistSnapshot::read(octets, SECRET_OCTETS)?;
    Ok(Greylist::of_snapshots(&[snapshot], whole(), entries_max))
}

fn whole() -> Part {
    parts(1).next().unwrap()
}

fn parts(number: u32) -> impl Iterator<Item = Part> {
    Partition::new(SECRET_OCTETS, NonZeroU32::new(number).unwrap()).parts()
}

/// Lists of any number of engines are divided among any number of engines, without loss or repetition.
#[test]
fn lists_are_divided_anew() {
    let mut table = Table::new();
    table.1.entries = 1_000;
    table.1.known_after = 0;
    for number in 0..60 {
        table.try_at(at(u64::from(number)), number);
    }
    for number in 0..60 {
        assert!(table.try_at(at(60 + u64::from(number)), number));
    }
    for number in 60..200 {
        table.try_at(at(120 + u64::from(number)), number);
    }
    let all = |lists: &[Greylist]| {
        let mut all: Vec<Entry> = lists.iter().flat_map(|one| one.iter().copied()).collect();
        all.sort_by_key(|entry| entry.mark);
        all
    };
    let mut lists = vec![table.0];
    let before = all(&lists);
    for number in [3, 2, 5, 5, 1] {
        let octets = lists.iter().map(|list| list.export(&SECRET));
        let snapshots: Vec<GreylistSnapshot> = octets
            .map(|octets| GreylistSnapshot::read(&octets, SECRET_OCTETS).unwrap())
            .collect();
        let of = |part| Greylist::of_snapshots(&snapshots, part, 1_000);
        lists = parts(number).map(of).collect();
        assert_eq!(all(&lists), before, "{number}");
        for list in &lists {
            let kept: Vec<_> = list
                .iter()
                .map(|entry| (entry.passes > 0, entry.since))
                .collect();
            assert!(kept.is_sorted());
        }
        assert!(number == 1 || lists.iter().filter(|list| list.len() > 0).count() > 1);
    }
}

/// A crash amid the division may leave an entry in two lists.
#[test]
fn the_newest_of_two_entries_counts() {
    let older = sample();
    let octets = older.0.export(&SECRET);
    let mut newer = Table(import(&octets, 8).unwrap(), terms());
    assert!(newer.try_at(at(13), 2));
    let snapshots = [newer.0.export(&SECRET), octets]
        .map(|octets| GreylistSnapshot::read(&octets, SECRET_OCTETS).unwrap());
    let both = Greylist::of_snapshots(&snapshots, whole(), 8);
    assert_eq!(both.export(&SECRET), newer.0.export(&SECRET));
}
