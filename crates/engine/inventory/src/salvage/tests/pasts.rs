//! Rows of a past state, from sealed leaves and later commits.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use super::super::choice::{Choice, Piece};
use super::super::frames::{read, sealed_pages};
use super::super::pages::At;
use super::super::past::Past;
use super::{change, keys, record};
use crate::format::page::encode_leaf;
use crate::format::{
    Builder, ChunkId, Codec, Encoding, Index, IndexEntry, Kind, PackNumber, Subject, VolumeId, mail,
};
use vere_units::Timestamp;

const VOLUME: VolumeId = VolumeId([3; 16]);

/// A mail of pages with these leaves: the subject, and the text as an account keeps the text.
fn mail_of(leaves: &[Vec<u8>]) -> (Subject, Vec<u8>) {
    let pack = PackNumber::new(1, 1).unwrap();
    let mut builder = Builder::new(Kind::Pages, VOLUME, 1, 0, pack);
    let mut index = Index::default();
    for leaf in leaves {
        let place = builder.push(Codec::Zstd, leaf.clone().into()).unwrap();
        index.entries.push(IndexEntry {
            place,
            chunk: ChunkId::default(),
            inode: 0,
            offset: 40,
        });
    }
    let octets = index.encode().unwrap();
    let sealed = builder.finish(octets.into(), &keys()).unwrap();
    let subject = Subject::of(&sealed.head, None, Some(40));
    let text = mail::wrap(&subject, Timestamp::ZERO, Encoding::EightBit, &sealed.body);
    let begin = text.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
    (subject, text[begin..].to_vec())
}

fn leaves() -> Vec<Vec<u8>> {
    vec![
        encode_leaf(&[(&[1, 4, 0, 7], b"writer"), (&[2, 1], b"a"), (&[2, 2], b"b")]),
        encode_leaf(&[
            (&[2, 5], b"c"),
            (&[2, 7], b"d"),
            (&[3, 1], b"e"),
            (&[4, 1], b"f"),
        ]),
    ]
}

fn past() -> Past {
    let (subject, text) = mail_of(&leaves());
    let of = (VOLUME, &*keys());
    let content = read(&text, Encoding::EightBit, &subject, of).unwrap();
    assert_eq!((content.pages.len(), content.damaged), (2, 0));
    assert_eq!(content.opened(), 2);
    let writers: Vec<u16> = content.pages.iter().map(|page| page.writer).collect();
    assert_eq!(writers, [7, 0]);
    let last: Vec<bool> = content.pages.iter().map(|page| page.is_last).collect();
    assert_eq!(last, [false, true]);
    assert!(content.pages.iter().all(|page| page.covers == 40));
    let places: Vec<At> = content.pages.iter().map(|page| page.at).collect();
    let piece = |at: At, from: &[u8], until: Option<&[u8]>| Piece {
        range: (from.to_vec(), until.map(<[u8]>::to_vec)),
        at,
    };
    let choice = Choice {
        covers: 40,
        is_whole: true,
        pieces: vec![
            piece(places[0], b"", Some(&[2, 2])),
            piece(places[1], &[2, 6], None),
        ],
        ..Choice::default()
    };
    let mut past = Past::new(choice, keys());
    assert_eq!(past.wanted().collect::<Vec<_>>(), places);
    let wanted = |at| at == places[1].1;
    let one = sealed_pages(&text, Encoding::EightBit, &subject, of, &wanted).unwrap();
    assert_eq!(one.len(), 1);
    let all = sealed_pages(&text, Encoding::EightBit, &subject, of, &|_| true).unwrap();
    for (at, page) in all {
        assert!(past.put((subject.mail, at), page));
    }
    past
}

fn rows(past: &Past, after: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    past.visit(after, &mut |key, value| {
        rows.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    rows
}

fn row(key: &[u8], value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

#[test]
fn leaves_give_the_rows_of_their_ranges() {
    let past = past();
    assert_eq!((past.covers(), past.generation()), (40, 40));
    assert!(past.is_whole());
    // Facts of the volume are left out.
    let all = [row(&[2, 1], b"a"), row(&[2, 7], b"d"), row(&[3, 1], b"e")];
    assert_eq!(rows(&past, None), all);
    assert_eq!(rows(&past, Some(&[2, 1])), all[1..]);
    assert_eq!(rows(&past, Some(&[2, 7])), all[2..]);
    assert_eq!(rows(&past, Some(&[2, 6])), all[1..]);
    assert_eq!(rows(&past, Some(&[3, 1])), []);
    let mut seen = 0;
    past.visit(None, &mut |_, _| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!(seen, 1);
}

#[test]
fn later_commits_count_above_leaves() {
    let mut past = past();
    let first = record(
        42,
        vec![
            change(&[2, 0], Some(b"new")),
            change(&[2, 1], None),
            change(&[2, 7], Some(b"d2")),
            change(&[2, 3], Some(b"new")),
            change(&[3, 4], Some(b"last")),
            change(&[1, 1], Some(b"facts")),
        ],
    );
    past.take_later(&first, (42, Reverse(5)));
    assert_eq!((past.covers(), past.generation()), (40, 42));
    let all = [
        row(&[2, 0], b"new"),
        row(&[2, 3], b"new"),
        row(&[2, 7], b"d2"),
        row(&[3, 1], b"e"),
        row(&[3, 4], b"last"),
    ];
    assert_eq!(rows(&past, None), all);
    assert_eq!(rows(&past, Some(&[2, 3])), all[2..]);
    // An older commit changes nothing; of two with an equal generation the lower UID counts.
    let older = record(
        41,
        vec![change(&[2, 0], Some(b"old")), change(&[2, 7], None)],
    );
    past.take_later(&older, (41, Reverse(4)));
    assert_eq!(rows(&past, None), all);
    let loser = record(42, vec![change(&[2, 0], Some(b"loser"))]);
    past.take_later(&loser, (42, Reverse(6)));
    assert_eq!(rows(&past, None), all);
    let winner = record(42, vec![change(&[2, 0], Some(b"winner"))]);
    past.take_later(&winner, (42, Reverse(1)));
    assert_eq!(rows(&past, None)[0], row(&[2, 0], b"winner"));
    assert_eq!(past.rows_left_out, 0);
}

#[test]
fn a_leaf_that_cannot_be_read_again_is_told() {
    let mut past = past();
    past.unread = 1;
    assert!(!past.is_whole());
    assert_eq!((past.missing(), past.spare()), (0, 0));
}

#[test]
fn damage_and_foreign_mails_are_told_apart() {
    let (subject, text) = mail_of(&leaves());
    let (volume, keys) = (VOLUME, keys());
    let of = (volume, &*keys);
    // Damage to a page costs the page alone.
    let body = mail::unwrap(&text, Encoding::EightBit).unwrap();
    let mut hurt = body.clone();
    hurt[100] ^= 1;
    let wrap = |body: &[u8]| {
        let text = mail::wrap(&subject, Timestamp::ZERO, Encoding::EightBit, body);
        let begin = text.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
        text[begin..].to_vec()
    };
    let content = read(&wrap(&hurt), Encoding::EightBit, &subject, of).unwrap();
    assert_eq!((content.pages.len(), content.damaged), (1, 1));
    assert!(content.pages[0].is_last);
    let left = sealed_pages(&wrap(&hurt), Encoding::EightBit, &subject, of, &|_| true);
    assert_eq!(left.unwrap().len(), 1);
    // Damage to the index costs all.
    let mut hurt = body.clone();
    let end = hurt.len() - 3;
    hurt[end] ^= 1;
    assert!(read(&wrap(&hurt), Encoding::EightBit, &subject, of).is_err());
    let other = (VolumeId([4; 16]), &*keys);
    assert!(read(&text, Encoding::EightBit, &subject, other).is_err());
    let strange = Subject {
        mail: crate::format::MailId([9; 16]),
        ..subject
    };
    assert!(read(&text, Encoding::EightBit, &strange, of).is_err());
}
