//! Formats of a file system in mail accounts: texts of mails, sealed frames and what the frames have, key slots, subjects.

use bytes::Bytes;
use vere_mailfs::format::commit::Record;
use vere_mailfs::format::slot::{Cost, Method, NewSlot, Slot, SlotKeys, SlotSecret};
use vere_mailfs::format::volume::Facts;
use vere_mailfs::format::{
    Builder, Codec, Encoding, HEAD_OCTETS, Head, Index, Keys, Kind, MailId, PackNumber, Subject,
    VolumeId, VolumeKey, mail as mails, open, open_frame,
};

pub(crate) const MAIL_SEEDS: &[&[u8]] = &[
    // A text with a key and octets, one with a rewritten line end, and one in base64.
    b"\x00\x01WFSFGT\x02\x06abc\r\n",
    b"\x00\x02abc\n",
    b"\x01VkVSRUZTAQU=\r\n",
    // A commit with a row put and a row removed, an index, facts.
    b"\x02\x02\x03\x01\x01\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0parent parent pa\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01\x03key\x05value\x02\x04gone\x01\0\0\0",
    b"\x02\x04\x05\x01\0\x01\0\x44\0\0\0\x14\0\0\0chunk chunk chun\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x02\x00\x07\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0\x01\0\x06photos\x01\x02\x01\x02\x07account",
    // A part of a text.
    b"\x03\x00\x10\x00\x02\x00\x01abcdefghijklmnopqrstuvwxyz\r\n",
];

pub(crate) const SLOT_SEEDS: &[&[u8]] = &[
    b"\x00VEREFS\x01\x02volume volume vomail mail mail m",
    b"\x01\x05\x01\0\0\x10\0\0\0\x01\0\0\0\x01\0\0\0saltsaltsaltsaltnoncenoncenoncenoncenonc\x10\0tagtagtagtagtagt",
    b"\x01\x05\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0saltsaltsaltsaltnoncenoncenoncenoncenonc\x10\0tagtagtagtagtagt",
    b"\x02\x01\x03\x05label",
];

pub(crate) const SUBJECT_SEEDS: &[&[u8]] = &[
    b"verefs1 v3f9c0a11 kcommit i5d41402abc4b2a76b9719d911017c592 p000102030405060708090a0b0c0d0e0f g00000000a1b2 w0012 s000000000031 r0003",
    b"verefs1  v3f9c0a11\r\n kdata i5d41402abc4b2a76b9719d911017c592 w0012 s000000000031 r0003",
];

const FRAMED: [Kind; 5] = [
    Kind::Volume,
    Kind::Probe,
    Kind::Commit,
    Kind::Pages,
    Kind::Data,
];
const VOLUME: VolumeId = VolumeId(*b"volume volume vo");
const KEY_FILE: SlotSecret<'_> = SlotSecret::KeyFile(b"a key file of no less than 32 octets");

fn keys() -> Keys {
    Keys::derive(&VolumeKey([7; 32]))
}

/// Texts, parts of texts, and mails that are sealed here and then damaged.
pub(crate) fn mail(octets: &[u8]) {
    let Some((mode, rest)) = octets.split_first() else {
        return;
    };
    match mode % 4 {
        0 => text(Encoding::EightBit, rest),
        1 => text(Encoding::Base64, rest),
        2 => sealed(rest),
        _ => part(rest),
    }
}

/// A body that a text gives has a text that gives the body.
fn text(encoding: Encoding, text: &[u8]) {
    let Ok(body) = mails::unwrap(text, encoding) else {
        return;
    };
    assert!(body.len() <= text.len());
    let again = encoding.encode(&body);
    assert_eq!(again.len(), encoding.encoded_len(body.len()));
    assert_eq!(encoding.decode(&again).as_ref(), Ok(&body));
    assert!(open(&body, &keys(), None).is_err(), "a forged mail");
    if let Ok(head) = Head::decode(&body) {
        assert_eq!(head.encode(), body[..HEAD_OCTETS]);
        let frame = &body[HEAD_OCTETS..];
        assert!(open_frame(&body, frame, HEAD_OCTETS as u32, &keys(), head.mail).is_err());
    }
    if let Ok(slot) = Slot::decode(&body) {
        assert_eq!(slot.encode(), body);
    }
}

/// A part gives the wanted octets or none.
fn part(octets: &[u8]) {
    let Some(([which, a, b, c, d], text)) = octets.split_first_chunk() else {
        return;
    };
    let encoding = [Encoding::EightBit, Encoding::Base64][usize::from(which % 2)];
    let (at, len) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
    match encoding.span(at.into(), len.into()) {
        Ok(span) => {
            let found = encoding.decode_part(&span, text);
            assert!(found.is_err() || found.is_ok_and(|found| found.len() == usize::from(len)));
        }
        Err(error) => panic!("a part of the longest mail: {error}"),
    }
}

/// A mail with any octets as last frame opens to these octets; with one octet changed it does not.
fn sealed(octets: &[u8]) {
    let Some(([kind, damage], last)) = octets.split_first_chunk() else {
        return;
    };
    let kind = FRAMED[usize::from(*kind) % FRAMED.len()];
    let mut builder = Builder::new(kind, VOLUME, 1, 2, PackNumber(3));
    let content = Bytes::copy_from_slice(&last[..last.len() / 2]);
    let place = builder.push(Codec::Zstd, content.clone());
    let sealed = builder.finish(Bytes::copy_from_slice(last), &keys());
    let (Ok(place), Ok(sealed)) = (place, sealed) else {
        return;
    };
    match open(&sealed.body, &keys(), Some(sealed.mail_id())) {
        Ok(opened) => {
            assert_eq!(opened.frames[0], (place, content));
            assert_eq!(opened.last(), last);
        }
        Err(error) => panic!("a mail of our own: {error}"),
    }
    let mut changed = sealed.body.clone();
    let at = usize::from(*damage) * 7 % changed.len();
    changed[at] ^= 1 << (damage % 8);
    assert!(open(&changed, &keys(), None).is_err(), "octet {at}");
    content_of(kind, last);
}

/// What a writer with the keys may send: a decoded value encodes to the octets that were read.
fn content_of(kind: Kind, octets: &[u8]) {
    let encoded = match kind {
        Kind::Commit => Record::decode(octets).and_then(|record| record.encode()),
        Kind::Volume => Facts::decode(octets).and_then(|facts| facts.encode()),
        _ => Index::decode(octets).and_then(|index| index.encode()),
    };
    if let Ok(encoded) = encoded {
        assert_eq!(encoded, octets);
    }
}

/// Slots as they come, slots with a right mail id and checksum, and slots that are made here and then damaged.
pub(crate) fn slot(octets: &[u8]) {
    let Some((mode, rest)) = octets.split_first() else {
        return;
    };
    match mode % 3 {
        0 => read_slot(rest),
        1 => {
            let id = blake3::hash(rest);
            let head = Head {
                kind: Kind::Slot,
                volume: VOLUME,
                mail: MailId(id.as_bytes().first_chunk().copied().unwrap_or_default()),
                epoch: 1,
                group: 0,
                frames: 0,
                last_sealed_len: 0,
                pack: PackNumber(3),
            };
            read_slot(&[&head.encode()[..], rest].concat());
        }
        _ => made_slot(rest),
    }
}

fn read_slot(body: &[u8]) {
    let Ok(slot) = Slot::decode(body) else {
        return;
    };
    assert_eq!(slot.encode(), body);
    let secret = match slot.method {
        Method::KeyFile => KEY_FILE,
        Method::Passphrase(cost) => {
            assert!(cost.memory_kib <= 1 << 20 && cost.passes <= 16 && cost.lanes <= 16);
            if cost.memory_kib > 64 || cost.passes > 2 {
                return;
            }
            SlotSecret::Passphrase(b"passphrase")
        }
    };
    assert!(slot.open(secret).is_err(), "a forged slot");
}

fn made_slot(octets: &[u8]) {
    let Some(([count, number, damage], label)) = octets.split_first_chunk() else {
        return;
    };
    let keys = (0..u16::from(*count)).map(|epoch| (epoch * 3, VolumeKey([*number; 32])));
    let content = SlotKeys {
        keys: keys.collect(),
        label: String::from_utf8_lossy(label).into_owned(),
    };
    let new = NewSlot {
        volume: VOLUME,
        pack: PackNumber(3),
        number: *number,
        cost: Cost::DEFAULT,
        salt: [*count; 16],
        nonce: [*number; 24],
    };
    let Ok(slot) = Slot::make(&new, &content, KEY_FILE) else {
        return;
    };
    let body = slot.encode();
    let read = Slot::decode(&body);
    assert_eq!(read.as_ref(), Ok(&slot));
    assert_eq!(slot.open(KEY_FILE), Ok(content));
    let mut changed = body;
    let at = usize::from(*damage) * 7 % changed.len();
    changed[at] ^= 1 << (damage % 8);
    assert!(Slot::decode(&changed).is_err(), "octet {at}");
}

/// A subject that reads is written with the same words; its Message-ID is one word of ASCII.
pub(crate) fn subject(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let Ok(subject) = Subject::parse(&text) else {
        return;
    };
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    assert_eq!(subject.to_string(), words.join(" "));
    assert_eq!(Subject::parse(&subject.to_string()).as_ref(), Ok(&subject));
    let id = subject.message_id();
    assert!(id.bytes().all(|octet| octet.is_ascii_graphic()) && id.len() < 100);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds reach what they are named after.
    #[test]
    fn seeds_get_far() {
        assert!(Encoding::EightBit.decode(&MAIL_SEEDS[0][1..]).is_ok());
        assert!(Encoding::EightBit.decode(&MAIL_SEEDS[1][1..]).is_ok());
        assert!(Encoding::Base64.decode(&MAIL_SEEDS[2][1..]).is_ok());
        assert!(Record::decode(&MAIL_SEEDS[3][3..]).is_ok());
        assert!(Index::decode(&MAIL_SEEDS[4][3..]).is_ok());
        assert!(Facts::decode(&MAIL_SEEDS[5][3..]).is_ok());
        for seed in SUBJECT_SEEDS {
            assert!(Subject::parse(&String::from_utf8_lossy(seed)).is_ok());
        }
    }
}
