//! `vectors/mailfs.txt`: fixed keys and values, and the octets of every format. A later version must read and write equal octets.

use bytes::Bytes;
use std::num::NonZeroU64;

use super::commit::{Ancestor, Checkpoint, Record, RecordKind, RowChange};
use super::slot::{Cost, NewSlot, Slot, SlotKeys, SlotSecret};
use super::volume::Facts;
use super::*;

const VECTORS: &str = include_str!("../../../../../vectors/mailfs.txt");

fn vector(name: &str) -> Vec<u8> {
    let lines = VECTORS.lines().skip_while(|line| *line != name);
    let digits: String = lines.skip(1).take_while(|line| !line.is_empty()).collect();
    assert!(!digits.is_empty(), "no vector {name}");
    let pairs = digits.as_bytes().chunks(2);
    let octet = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(octet).collect()
}

/// Compares with the vector; a difference prints the lines as they would be now.
fn check(name: &str, octets: &[u8]) {
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let lines: Vec<_> = digits
        .as_bytes()
        .chunks(128)
        .map(String::from_utf8_lossy)
        .collect();
    assert!(
        vector(name) == octets,
        "now:\n{name}\n{}\n",
        lines.join("\n")
    );
}

fn keys() -> Keys {
    Keys::derive(&VolumeKey([7; 32]))
}

fn volume() -> VolumeId {
    VolumeId(*b"\x3f\x9c\x0a\x11volume.vecto")
}

fn builder(kind: Kind) -> Builder {
    let pack = PackNumber::new(0x12, 0x31).unwrap();
    Builder::new(kind, volume(), 1, 3, pack)
}

fn record(place: Place) -> Record {
    Record {
        kind: RecordKind::Merge,
        lead_epoch: 1,
        generation: 0xa1b2,
        parent: MailId(*b"parent of commit"),
        time: 1_790_000_000_000,
        checkpoint: Some(Checkpoint {
            covers: NonZeroU64::new(0xa100).unwrap(),
            covered_uid: 77,
            root: Locator {
                pack: PackNumber::new(2, 9).unwrap(),
                mail: MailId(*b"mail of the page"),
                copy: MailCopy {
                    account: 1,
                    mailbox: 2,
                    uid: 5,
                },
                at: 68,
                sealed_len: 4_000,
            },
        }),
        merged: vec![MailId(*b"a losing commit.")],
        ancestors: vec![Ancestor {
            generation: 0xa1b1,
            commit: MailId(*b"parent of commit"),
        }],
        rows: vec![
            RowChange {
                key: b"\x02key".to_vec(),
                value: Some(b"value".to_vec()),
            },
            RowChange {
                key: b"\x02gone".to_vec(),
                value: None,
            },
        ],
        index: index(place),
    }
}

fn index(place: Place) -> Index {
    Index {
        entries: vec![IndexEntry {
            place,
            chunk: keys().chunk_id(b"content"),
            inode: 0x0100_0000_0000_0002,
            offset: 0,
        }],
    }
}

fn facts() -> Facts {
    Facts {
        created: 1_790_000_000_000,
        generation: 0xa1b2,
        lead_epoch: 1,
        lead_account: 2,
        name: "photos".into(),
        rows: vec![(b"\x01\x01".to_vec(), b"settings".to_vec())],
        ..Facts::default()
    }
}

/// A mail with a frame, sealed, read back from the vector, and as text in both encodings.
fn mail(name: &str, kind: Kind, last: impl Fn(Place) -> Vec<u8>) {
    let mut builder = builder(kind);
    let content = Bytes::from_static(b"content");
    let place = builder.push(Codec::Plain, content.clone()).unwrap();
    let last = Bytes::from(last(place));
    let sealed = builder.finish(last.clone(), &keys()).unwrap();
    check(name, &sealed.body);
    let opened = open(&vector(name), &keys(), Some(sealed.mail_id())).unwrap();
    assert_eq!(opened.head, sealed.head);
    let contents: Vec<_> = opened
        .frames
        .into_iter()
        .map(|(_, content)| content)
        .collect();
    assert_eq!(contents, [content, last]);
}

#[test]
fn volume_mail() {
    mail("volume", Kind::Volume, |_| facts().encode().unwrap());
}

/// Compressed octets may change with the library, so this vector is read and not written.
#[test]
fn compressed_commit_mail() {
    let opened = open(&vector("commit, compressed"), &keys(), None).unwrap();
    let record = Record::decode(opened.last()).unwrap();
    assert_eq!(record, self::record(opened.frames[0].0));
    assert!(opened.frames[1].1.len() > opened.frames[1].0.sealed_len as usize);
}

#[test]
fn commit_record() {
    let place = Place {
        at: 68,
        sealed_len: 24,
    };
    check("commit record", &record(place).encode().unwrap());
    assert_eq!(Record::decode(&vector("commit record")), Ok(record(place)));
}

#[test]
fn short_commit_mail() {
    // Too short to shrink: the octets do not depend on the library of the compression.
    mail("commit", Kind::Commit, |_| b"no record".to_vec());
}

#[test]
fn pages_mail() {
    mail("pages", Kind::Pages, |_| b"no index".to_vec());
}

#[test]
fn data_mail() {
    mail("data", Kind::Data, |place| index(place).encode().unwrap());
}

#[test]
fn probe_mail() {
    mail("probe", Kind::Probe, |_| b"any octets".to_vec());
}

#[test]
fn slots() {
    let new = NewSlot {
        volume: volume(),
        pack: PackNumber::new(0x12, 0x32).unwrap(),
        number: 1,
        cost: Cost {
            memory_kib: 64,
            passes: 2,
            lanes: 2,
        },
        salt: *b"salt of a vector",
        nonce: *b"the nonce of this vector",
    };
    let content = SlotKeys {
        keys: vec![(1, VolumeKey([7; 32])), (2, VolumeKey([8; 32]))],
        label: "laptop".into(),
    };
    for (name, secret) in [
        ("slot, passphrase", SlotSecret::Passphrase(b"correct horse")),
        (
            "slot, key file",
            SlotSecret::KeyFile(b"a key file of no less than 32 octets"),
        ),
    ] {
        let slot = Slot::make(&new, &content, secret).unwrap();
        check(name, &slot.encode());
        let read = Slot::decode(&vector(name)).unwrap();
        assert_eq!(read.open(secret).as_ref(), Ok(&content));
    }
}

#[test]
fn texts() {
    let body = vector("data");
    for (name, encoding) in [
        ("data, 8bit", Encoding::EightBit),
        ("data, base64", Encoding::Base64),
    ] {
        check(name, &encoding.encode(&body));
        assert_eq!(mail::unwrap(&vector(name), encoding).as_ref(), Ok(&body));
    }
}

/// The whole mail of the vector, computed once more from the words of `docs/internals/mailfs.md`, with the primitives alone.
#[test]
fn the_vector_is_what_the_page_says() {
    let body = vector("data");
    let derive = |use_: &str| blake3::derive_key(&format!("veredarius mailfs v1 {use_}"), &[7; 32]);
    let id = &body[24..40];
    let key = blake3::keyed_hash(&derive("data"), id);
    let mut unnamed = body[..64].to_vec();
    unnamed[24..40].fill(0);
    let mut hash = blake3::Hasher::new_keyed(&derive("mail id"));
    hash.update(&unnamed);
    let mut at = 68;
    while at < body.len() {
        let len = u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&(at as u64).to_le_bytes());
        let associated = [&body[..64], &(at as u32).to_le_bytes()].concat();
        let mut sealed = body[at + 4..][..len].to_vec();
        let plain = seal::unseal(key.as_bytes(), &nonce, &associated, &mut sealed).unwrap();
        hash.update(&body[at..at + 4]);
        hash.update(plain);
        at += 4 + len;
    }
    assert_eq!(hash.finalize().as_bytes()[..16], *id);
}
