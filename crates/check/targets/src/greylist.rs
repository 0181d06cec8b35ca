//! The greylist that the front keeps over a restart.
//!
//! The octets give the entries of a snapshot with a right head and checksum, in which the first entries may have the marks of a
//! client that comes again, or they are the whole file. A snapshot that is read is written as the same octets, every division among
//! engines has each entry once, and a table stays within its bound. No time and no number of passes of an entry stops the
//! engine; a client that is put off once passes after the delay.
//!
//! The head and the checksum are made here a second time, from `crates/engine/screen/src/greylist/snapshot.rs`.

use std::num::NonZeroU32;

use vere_checksum::crc32c;
use vere_screen::{
    Answer, Banner, Decision, GreylistSnapshot, Greylisting, Limits, Partition, Reason, Recipient,
    Screen, Step, Terms,
};
use vere_units::Timestamp;

const SECRET: [u8; 32] = [9; 32];
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const HEAD_OCTETS: usize = 20;
const ENTRY_OCTETS: usize = 28;
const MARK_OCTETS: usize = 16;
const SUM_OCTETS: usize = 4;
/// Where the head has the number of entries.
const COUNT: std::ops::Range<usize> = 8..12;
/// Entries of a table, more than a file of the fuzzer has. Tables are made whole, and many for each file.
const ENTRIES: u32 = 2_000;
/// Entries of a small table.
const FEW: u32 = 4;

pub(super) const SEEDS: &[&[u8]] = &[
    // No entries.
    b"\0",
    // A triplet that waits, and a client that has passed.
    b"\0ABCDEFGHIJKLMNOP\0\x50\x5c\x18\xa3\x01\0\0\0\0\0\0abcdefghijklmnop\0\x50\x5c\x18\xa3\x01\0\0\x01\0\0\0",
    // The triplet of the client, with its first attempt at the end of time.
    b"\x01................\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
    // The triplet and the client, with the most passes.
    b"\x01................\0\x50\x5c\x18\xa3\x01\0\0\xff\xff\xff\xff................\0\0\0\0\0\0\0\0\xff\xff\xff\xff",
    // The head of a file.
    b"\x02VGRY\x02\0\0\0\0\0\0\0\x0c\xda\xf9\xeb\x4a\x4e\x7a\xd2",
];

/// Reads a snapshot as the front does at its start.
pub(super) fn read(octets: &[u8]) {
    let (how, rest) = crate::choice::choice(octets);
    let file = match how % 3 {
        0 => sealed(rest),
        1 => sealed(&of_client(rest)),
        _ => rest.to_vec(),
    };
    let _ = restored(&file);
}

/// Checks a file, and returns the number of entries of a snapshot.
fn restored(file: &[u8]) -> Option<usize> {
    let snapshot = GreylistSnapshot::read(file, SECRET).ok()?;
    let count = (file.len() - HEAD_OCTETS - SUM_OCTETS) / ENTRY_OCTETS;
    let one = [snapshot.clone()];
    let mut whole = divided(&one, 1, &terms());
    assert_eq!(whole[0].export_greylist(), file);
    // A crash amid the division leaves entries in two files.
    let twice = [snapshot.clone(), snapshot];
    for snapshots in [&one[..], &twice] {
        let entries = |screen: &Screen| screen.remembered().2;
        let parts = divided(snapshots, 3, &terms());
        assert_eq!(parts.iter().map(entries).sum::<usize>(), count);
        let mut small = terms();
        small.greylisting = small.greylisting.map(|greylisting| Greylisting {
            entries: FEW,
            ..greylisting
        });
        let small = divided(snapshots, 1, &small);
        assert_eq!(entries(&small[0]), count.min(FEW as usize));
    }
    let delay = terms().greylisting.unwrap_or_default().delay;
    if attempt(&mut whole[0], NOW) != Decision::Accept {
        assert_eq!(attempt(&mut whole[0], NOW + delay), Decision::Accept);
    }
    Some(count)
}

fn terms() -> Terms {
    Terms {
        banner: Banner {
            delay: std::time::Duration::ZERO,
            ..Banner::default()
        },
        greylisting: Some(Greylisting {
            entries: ENTRIES,
            ..Greylisting::default()
        }),
        limits: Limits {
            connections_max: 4,
            addresses: 4,
            networks: 4,
            ..Limits::default()
        },
        ..Terms::default()
    }
}

/// Engines beside each other, with the entries of the snapshots.
fn divided(snapshots: &[GreylistSnapshot], parts: u32, terms: &Terms) -> Vec<Screen> {
    let parts = NonZeroU32::new(parts).unwrap_or(NonZeroU32::MIN);
    let of_part = |part| {
        let mut screen = Screen::new(terms.clone(), SECRET);
        screen.restore_greylist(snapshots, part);
        screen
    };
    Partition::new(SECRET, parts).parts().map(of_part).collect()
}

/// An attempt of the client.
fn attempt(screen: &mut Screen, now: Timestamp) -> Decision {
    let decision = decided(screen, now);
    let Some(decision) = decision else {
        panic!("an attempt without a decision");
    };
    let reason = Decision::Defer(Reason::Greylisted);
    assert!(
        [Decision::Accept, reason].contains(&decision),
        "{decision:?}"
    );
    decision
}

fn decided(screen: &mut Screen, now: Timestamp) -> Option<Decision> {
    let ticket = screen.arrive(now, [192, 0, 2, 7].into()).ok()?.ticket;
    screen.said_helo(now, ticket, "mx.example.net").ok()?;
    screen.mail(now, ticket, "a@example.net").ok()?;
    let step = screen.recipient(now, ticket, "b@example.org").ok()?;
    let Step::Ask(questions) = step else {
        return None;
    };
    let answer = Answer::Recipient(Recipient::Accepted);
    let decision = screen.answered(now, ticket, questions.round, answer);
    screen.left(ticket).ok()?;
    decision.ok()?
}

/// The file of the entries, without a rest that is no entry.
fn sealed(octets: &[u8]) -> Vec<u8> {
    let entries = &octets[..octets.len() - octets.len() % ENTRY_OCTETS];
    let mut file = Screen::new(terms(), SECRET).export_greylist();
    file.truncate(HEAD_OCTETS);
    let count = (entries.len() / ENTRY_OCTETS) as u32;
    file[COUNT].copy_from_slice(&count.to_le_bytes());
    file.extend_from_slice(entries);
    file.extend_from_slice(&crc32c(&file).to_le_bytes());
    file
}

/// The entries, with the marks of the client and its triplet in place of the first ones.
fn of_client(octets: &[u8]) -> Vec<u8> {
    let mut screen = Screen::new(terms(), SECRET);
    let delay = terms().greylisting.unwrap_or_default().delay;
    for now in [NOW, NOW + delay] {
        attempt(&mut screen, now);
    }
    let known = screen.export_greylist();
    let known = &known[HEAD_OCTETS..known.len() - SUM_OCTETS];
    let mut octets = octets.to_vec();
    let places = octets.chunks_exact_mut(ENTRY_OCTETS);
    for (entry, known) in places.zip(known.chunks_exact(ENTRY_OCTETS)) {
        entry[..MARK_OCTETS].copy_from_slice(&known[..MARK_OCTETS]);
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let entries: Vec<_> = SEEDS
            .iter()
            .map(|seed| match seed[0] {
                0 => restored(&sealed(&seed[1..])),
                1 => restored(&sealed(&of_client(&seed[1..]))),
                _ => restored(&seed[1..]),
            })
            .collect();
        assert_eq!(entries, [Some(0), Some(2), Some(1), Some(2), None]);
    }

    /// The marks that are put into entries are those of the client.
    #[test]
    fn a_client_that_has_passed_passes() {
        let entry = [&[0; MARK_OCTETS][..], &NOW.as_millis().to_le_bytes()].concat();
        for (passes, expected) in [
            (0_u32, Decision::Defer(Reason::Greylisted)),
            (1, Decision::Accept),
        ] {
            let entry = [&entry[..], &passes.to_le_bytes()].concat();
            let file = sealed(&of_client(&entry));
            let snapshot = GreylistSnapshot::read(&file, SECRET).unwrap();
            let mut screens = divided(&[snapshot], 1, &terms());
            assert_eq!(attempt(&mut screens[0], NOW), expected);
        }
    }
}
