//! Generated files, read as mail: whatever the content, each message is read, once, and no message is read that the
//! file does not contain.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use vere_faults::{Fate as _, Seeded};

use super::message::{Item, Message};
use super::{maildir, mbox};

/// Files of each kind.
const FILES: u64 = 400;
/// The pieces of generated files.
const PIECES: [&[u8]; 30] = [
    b"From a@b Thu Jan  1 00:00:00 1970\n",
    b"From a@b Thu Jan  1 00:00:00 1970\r\n",
    b"From - 12:00\n",
    b"From ",
    b"From me, at 12:00 sharp\n",
    b">From a@b 12:00:00\n",
    b">>From \n",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n\n",
    b"Subject: a\n",
    b"Status: RO\n",
    b"X-Status: AFDT\n folded\n",
    b"X-Keywords: work \xFF \\Seen\n",
    b"Content-Length: 0\n",
    b"Content-Length: 7\n",
    b"Content-Length: 60\n\n",
    b"Content-Length: 18446744073709551615\n\n",
    b"Content-Length: -1\n",
    b"text",
    b"text\n",
    b"\0\n",
    b"\xFF\xFE",
    b" \n",
    b":\n",
    b"Jan 99 99:99:99 9999\n",
    b"From x Dec 31 23:59:60 99999\n",
    b"From x Feb 29 23:59 2023\n",
    b"x-uid: 1\n",
];

/// A file of random pieces.
fn file(seeded: &mut Seeded) -> Vec<u8> {
    let mut octets = Vec::new();
    for _ in 0..seeded.pick(30) {
        match seeded.pick(40) {
            0 => octets.extend(vec![b'x'; 70_000]),
            1 => octets.push(seeded.pick(256) as u8),
            _ => octets.extend_from_slice(PIECES[seeded.pick(PIECES.len())]),
        }
    }
    if seeded.pick(8) > 0 {
        octets.splice(0..0, PIECES[0].iter().copied());
    }
    octets
}

fn octets_of(mut message: Message) -> Vec<u8> {
    let mut all = Vec::new();
    let piece = |piece: &[u8]| {
        all.extend_from_slice(piece);
        Ok(())
    };
    message.pieces(piece).expect("memory");
    all
}

/// Reads all messages of an mbox; absent when the file is no mbox.
fn read_mbox(path: &Path, variant: mbox::Variant) -> Option<Vec<(Item, Vec<u8>)>> {
    let mut source = mbox::Source::new(path.to_owned(), variant);
    let folders = source.folders().expect("a file");
    let items = source.open(&folders[0]).ok()?;
    let read = |item: Item| {
        let message = source.read(&item).expect("a file").expect("it is there");
        (item, octets_of(message))
    };
    Some(items.into_iter().map(read).collect())
}

#[test]
fn mboxes_that_nobody_wrote() {
    use mbox::Variant;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made-up");
    let (mut read, mut refused) = (0, 0);
    for seed in 0..FILES {
        let octets = file(&mut Seeded(seed));
        fs::write(&path, &octets).expect("room");
        for variant in [
            Variant::Auto,
            Variant::Mboxo,
            Variant::Mboxrd,
            Variant::Mboxcl2,
        ] {
            let Some(messages) = read_mbox(&path, variant) else {
                refused += 1;
                let begins = octets.trim_ascii_start().starts_with(b"From a@b Thu");
                assert!(!begins, "{seed} {variant:?}");
                continue;
            };
            read += messages.len();
            let keys: HashSet<_> = messages.iter().map(|(item, _)| &item.key).collect();
            assert_eq!(keys.len(), messages.len(), "{seed} {variant:?}");
            let all: usize = messages.iter().map(|(_, message)| message.len()).sum();
            // A line end may become two octets.
            let lines = octets.iter().filter(|octet| **octet == b'\n').count();
            assert!(
                all <= octets.len() + lines + messages.len(),
                "{seed} {variant:?}"
            );
            for (item, message) in &messages {
                assert_eq!(item.size, message.len() as u64, "{seed} {variant:?}");
            }
        }
    }
    assert!(read > 1_000 && refused > 10, "{read} {refused}");
}

#[test]
fn maildirs_that_nobody_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seeded = Seeded(1);
    let pieces = [
        "1700000000.M1P1.host",
        ":2,",
        "S",
        "FRSTDPa",
        ":1,",
        ",",
        ":",
        "é",
        "z{`",
        " ",
    ];
    let mut there = HashSet::new();
    for part in ["cur", "new"] {
        fs::create_dir(folder.path().join(part)).expect("room");
        for number in 0..FILES {
            let mut name = format!("{number}").into_bytes();
            for _ in 0..seeded.pick(5) {
                match seeded.pick(9) {
                    0 => name.push(128 + seeded.pick(128) as u8),
                    _ => name.extend_from_slice(pieces[seeded.pick(pieces.len())].as_bytes()),
                }
            }
            let octets = file(&mut seeded);
            let path = folder.path().join(part).join(OsStr::from_bytes(&name));
            fs::write(&path, &octets).expect("room");
            there.insert(path);
        }
    }
    let keywords = b"0 work\n1\n99 far\n-1 x\n25 \n\xFF\n2 a b\n";
    fs::write(folder.path().join("dovecot-keywords"), keywords).expect("room");
    let mut source = maildir::Source::new(folder.path().to_owned());
    let folders = source.folders().expect("a Maildir");
    let items = source.open(&folders[0]).expect("a Maildir");
    assert_eq!(items.len(), there.len());
    for item in &items {
        assert!(!item.key.contains(":2,") && !item.flags.contains(&"far".to_owned()));
        assert!(source.read(item).expect("a file").is_some(), "{}", item.key);
    }
}
