//! Packs sealed for accounts, and mails read back from accounts.

use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use vere_keep::keep_job::{CachedJob, KeepJob, Kept, Opened};
use vere_ports::mail_accounts::Part;
use vere_units::Timestamp;

use crate::format::commit::{Checkpoint, Record, RecordKind};
use crate::format::{
    Builder, ChunkId, Encoding, FormatError, HEAD_OCTETS, Head, Index, Keys, Kind, Locator, MailId,
    PackNumber, Place, Subject, VolumeId, VolumeKey, mail, open,
};
use crate::job::{
    CopyJob, Done, InspectJob, Inspected, Job, NameJob, OpenJob, PackJob, Packed, Seals, Task,
    Unpacked,
};

const VOLUME: VolumeId = VolumeId([9; 16]);
const CONTENTS: [&[u8]; 3] = [b"the first", b"", b"a third chunk"];

fn seals() -> Seals {
    Seals {
        volume: VOLUME,
        epoch: 1,
        keys: Arc::new(Keys::derive(&VolumeKey([3; 32]))),
    }
}

fn chunks() -> Vec<Unpacked> {
    let chunk = |(number, content): (usize, &&[u8])| {
        let (one, other) = content.split_at(content.len() / 2);
        Unpacked {
            inode: 40 + number as u64,
            offset: 1_000 * number as u64,
            pieces: [one, other].map(Bytes::copy_from_slice).to_vec(),
        }
    };
    CONTENTS.iter().enumerate().map(chunk).collect()
}

fn names() -> Vec<ChunkId> {
    let job = NameJob {
        keys: seals().keys,
        chunks: chunks(),
    };
    match Job(Task::Name(job)).run().0 {
        Done::Named(names) => names,
        other => panic!("{other:?}"),
    }
}

fn pack() -> Packed {
    let job = PackJob {
        seals: seals(),
        pack: PackNumber(5),
        group: 2,
        chunks: chunks(),
        names: names(),
        encodings: vec![Encoding::EightBit, Encoding::Base64],
        date: Timestamp::from_millis(1_000),
    };
    match Job(Task::Pack(job)).run().0 {
        Done::Packed(packed) => packed.unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The text of a mail behind its header, and its subject.
fn text_of(mail: &Bytes) -> (Bytes, Subject) {
    let end = mail.windows(4).position(|of| of == b"\r\n\r\n").unwrap();
    let header = std::str::from_utf8(&mail[..end]).unwrap();
    let subject = header
        .lines()
        .find_map(|line| line.strip_prefix("Subject: "));
    let subject = Subject::parse(subject.unwrap()).unwrap();
    (mail.slice(end + 4..), subject)
}

/// An account's answer for parts of a text.
fn fetch(text: &Bytes, parts: &[Part]) -> Vec<Bytes> {
    let cut = |part: &Part| {
        let from = part.offset as usize;
        let to = text.len().min(from + part.length as usize);
        text.slice(from..to)
    };
    parts.iter().map(cut).collect()
}

fn inspect(encoding: Encoding, subject: &Subject, body: &Bytes) -> Result<Inspected, FormatError> {
    let job = InspectJob {
        seals: seals(),
        encoding,
        subject: *subject,
        body: body.clone(),
    };
    match Job(Task::Inspect(job)).run().0 {
        Done::Inspected(inspected) => inspected,
        other => panic!("{other:?}"),
    }
}

/// Each chunk of a pack comes back by the parts of its text, from every kind of account; the pack has an index.
#[test]
fn chunks_of_a_pack_come_back_from_every_account() {
    let packed = pack();
    assert_eq!(packed.places.len(), 3);
    let seals = seals();
    for (encoding, mail) in &packed.mails {
        let (text, subject) = text_of(mail);
        assert_eq!((subject.mail, subject.kind), (packed.id, Kind::Data));
        for (place, content) in packed.places.iter().zip(CONTENTS) {
            let parts = OpenJob::parts_of(*encoding, *place).unwrap();
            let parts = fetch(&text, &parts).try_into().unwrap();
            let job = OpenJob {
                keys: seals.keys.clone(),
                encoding: *encoding,
                id: packed.id,
                place: *place,
                parts,
            };
            let Done::Opened(opened) = Job(Task::Open(job)).run().0 else {
                panic!("another result");
            };
            assert_eq!(opened.unwrap().plain, content);
        }
        let body = mail::unwrap(&text, *encoding).unwrap();
        assert_eq!(packed.octets as usize, body.len());
        let opened = open(&body, &seals.keys, Some(packed.id)).unwrap();
        let index = Index::decode(opened.last()).unwrap();
        let told = index
            .entries
            .iter()
            .map(|of| (of.inode, of.offset, of.chunk));
        let names = names();
        let expected = [
            (40, 0, names[0]),
            (41, 1_000, names[1]),
            (42, 2_000, names[2]),
        ];
        assert!(told.eq(expected));
        assert_eq!((opened.head.group, opened.head.pack), (2, PackNumber(5)));
    }
}

#[test]
fn a_chunk_has_the_name_of_its_content() {
    let keys = seals().keys;
    for (name, content) in names().iter().zip(CONTENTS) {
        assert_eq!(*name, keys.chunk_id(content));
    }
    let lengths: Vec<usize> = chunks().iter().map(Unpacked::octets).collect();
    assert_eq!(lengths, [9, 0, 13]);
}

/// A page is read by two parts; another number of parts is no page.
#[test]
fn parts_of_a_page_are_its_head_and_frame() {
    let packed = pack();
    let (encoding, mail) = &packed.mails[0];
    let (text, _) = text_of(mail);
    let place = packed.places[2];
    let at = Locator {
        mail: packed.id,
        at: place.at,
        sealed_len: place.sealed_len,
        ..Locator::default()
    };
    let parts = fetch(&text, &OpenJob::parts_of(*encoding, place).unwrap());
    let (head, frame) = OpenJob::page_parts(*encoding, &at, &parts).unwrap();
    assert_eq!(head.len(), HEAD_OCTETS);
    assert_eq!(frame.len(), place.octets() as usize);
    assert!(OpenJob::page_parts(*encoding, &at, &parts[..1]).is_err());
}

/// A replica has an equal mail, in its own encoding; a damaged one is copied to nobody.
#[test]
fn a_copy_for_another_account_is_the_same_mail() {
    let packed = pack();
    let copy = |body: &Bytes, id| {
        let job = CopyJob {
            keys: seals().keys,
            id,
            from: Encoding::EightBit,
            to: Encoding::Base64,
            body: body.clone(),
            date: Timestamp::from_millis(1_000),
        };
        match Job(Task::Copy(job)).run().0 {
            Done::Copied(copied) => copied,
            other => panic!("{other:?}"),
        }
    };
    let (text, _) = text_of(&packed.mails[0].1);
    assert_eq!(copy(&text, packed.id).unwrap(), packed.mails[1].1);
    assert!(copy(&text, MailId([1; 16])).is_err());
    let mut damaged = text.to_vec();
    damaged[90] ^= 1;
    assert!(copy(&damaged.into(), packed.id).is_err());
}

#[test]
fn a_pack_is_what_its_subject_says() {
    let packed = pack();
    let (text, subject) = text_of(&packed.mails[0].1);
    let inspected = inspect(Encoding::EightBit, &subject, &text).unwrap();
    // The index is a frame as well.
    assert_eq!(inspected.places[..3], packed.places[..]);
    assert_eq!(inspected.places.len(), 4);
    let other_group = Subject {
        group: 7,
        ..subject
    };
    let other_mail = Subject {
        mail: MailId([1; 16]),
        ..subject
    };
    for wrong in [other_group, other_mail] {
        assert!(inspect(Encoding::EightBit, &wrong, &text).is_err());
    }
}

/// A mail of another volume, with the tag and the keys of the own one.
#[test]
fn a_pack_of_another_volume_is_refused() {
    let mut other = VOLUME;
    other.0[15] ^= 1;
    assert_eq!(other.tag(), VOLUME.tag());
    let builder = Builder::new(Kind::Data, other, 1, 2, PackNumber(5));
    let index = Index::default().encode().unwrap();
    let sealed = builder.finish(index.into(), &seals().keys).unwrap();
    let subject = Subject::of(&sealed.head, None, None);
    let text = Encoding::EightBit.encode(&sealed.body).into();
    let error = inspect(Encoding::EightBit, &subject, &text).unwrap_err();
    assert!(matches!(error, FormatError::Form { .. }), "{error}");
}

/// Parent and generation stand in the subject of a commit, for listings; the record counts.
#[test]
fn a_commit_is_what_its_subject_says() {
    let record = Record {
        kind: RecordKind::Change,
        lead_epoch: 1,
        generation: 4,
        parent: MailId([1; 16]),
        time: 0,
        checkpoint: Some(Checkpoint {
            covers: NonZeroU64::MIN,
            covered_uid: 1,
            root: Locator::default(),
        }),
        merged: Vec::new(),
        ancestors: Vec::new(),
        rows: Vec::new(),
        index: Index::default(),
    };
    let builder = Builder::new(Kind::Commit, VOLUME, 1, 0, PackNumber(6));
    let last = record.encode().unwrap();
    let sealed = builder.finish(last.into(), &seals().keys).unwrap();
    let text: Bytes = Encoding::EightBit.encode(&sealed.body).into();
    let check = |parent, generation| {
        let subject = Subject::of(&sealed.head, parent, generation);
        inspect(Encoding::EightBit, &subject, &text)
    };
    let inspected = check(Some(record.parent), Some(4)).unwrap();
    assert_eq!(inspected.places, sealed.places);
    for (parent, generation) in [
        (Some(MailId([2; 16])), Some(4)),
        (None, Some(4)),
        (Some(record.parent), Some(5)),
        (Some(record.parent), None),
    ] {
        assert!(
            check(parent, generation).is_err(),
            "{parent:?}, {generation:?}"
        );
    }
}

/// The disk gives a chunk back, or has something else.
#[test]
fn chunks_of_the_disk_are_verified() {
    let packed = pack();
    let (encoding, mail) = &packed.mails[0];
    let body = mail::unwrap(&text_of(mail).0, *encoding).unwrap();
    let place = packed.places[2];
    let from = place.at as usize;
    let frame = &body[from..from + place.octets() as usize];
    let entry = [&body[..HEAD_OCTETS], frame].concat();
    let keys = seals().keys;
    let read = |octets: Option<Vec<u8>>, place: Place| {
        let job = CachedJob {
            read: Box::new(|| octets.ok_or_else(|| std::io::Error::other("broken"))),
            keys: keys.clone(),
            id: packed.id,
            place,
        };
        match Job(Task::Cached(job)).run().0 {
            Done::Cached(octets) => octets,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        read(Some(entry.clone()), place).as_deref(),
        Some(CONTENTS[2])
    );
    assert_eq!(read(Some(entry.clone()), packed.places[0]), None);
    assert_eq!(read(Some(entry[..60].to_vec()), place), None);
    assert_eq!(read(None, place), None);
    let opened = Opened {
        plain: Bytes::from_static(CONTENTS[2]),
        head: Bytes::copy_from_slice(&body[..HEAD_OCTETS]),
        frame: Bytes::copy_from_slice(frame),
    };
    for (write, is_written) in [(Some(true), true), (Some(false), false), (None, false)] {
        let expected = entry.clone();
        let write = write.map(|works| -> vere_keep::keep_job::Write {
            Box::new(move |head: &[u8], frame: &[u8]| {
                assert_eq!([head, frame].concat(), expected);
                works
                    .then_some(())
                    .ok_or_else(|| std::io::Error::other("full"))
            })
        });
        let job = KeepJob {
            write,
            keys: keys.clone(),
            chunk: opened.clone(),
        };
        let Done::Kept(kept) = Job(Task::Keep(job)).run().0 else {
            panic!("another result");
        };
        let Kept { name, octets, .. } = kept;
        assert_eq!((kept.is_written, octets), (is_written, 13));
        assert_eq!(name, keys.chunk_id(CONTENTS[2]));
    }
    let head = Head::decode(&body).unwrap();
    assert_eq!(head.mail, packed.id);
}
