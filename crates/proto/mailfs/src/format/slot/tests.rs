use proptest::prelude::*;

use super::*;

/// Enough for argon2id, and fast.
const CHEAP: Cost = Cost {
    memory_kib: 16,
    passes: 1,
    lanes: 2,
};
const FILE: &[u8] = b"a key file of no less than 32 octets";
const PASSPHRASE: SlotSecret<'_> = SlotSecret::Passphrase(b"correct horse");
const KEY_FILE: SlotSecret<'_> = SlotSecret::KeyFile(FILE);

fn new(cost: Cost) -> NewSlot {
    NewSlot {
        volume: VolumeId(*b"volume volume vo"),
        pack: PackNumber::new(0x12, 0x31).unwrap(),
        number: 5,
        cost,
        salt: *b"salt salt salt s",
        nonce: *b"nonce nonce nonce nonce ",
    }
}

fn content() -> SlotKeys {
    SlotKeys {
        keys: vec![(1, VolumeKey([7; 32])), (0x0203, VolumeKey([8; 32]))],
        label: "laptop".into(),
    }
}

fn made(secret: SlotSecret<'_>) -> Slot {
    Slot::make(&new(CHEAP), &content(), secret).unwrap()
}

#[test]
fn slots_open_with_their_secret() {
    for secret in [PASSPHRASE, KEY_FILE] {
        let slot = made(secret);
        let read = Slot::decode(&slot.encode()).unwrap();
        assert_eq!(read, slot);
        assert_eq!((read.head.epoch, read.number), (0x0203, 5));
        assert_eq!(read.open(secret), Ok(content()));
    }
}

#[test]
fn fields_lie_where_the_page_says() {
    let octets = made(PASSPHRASE).encode();
    assert_eq!(octets.len(), 126 + 2 + 2 * 34 + 6 + 16);
    assert_eq!(
        octets[68..84],
        *b"\x05\x01\0\0\x10\0\0\0\x01\0\0\0\x02\0\0\0"
    );
    assert_eq!(
        octets[84..126],
        *b"salt salt salt snonce nonce nonce nonce \x5c\0"
    );
    let id = blake3::hash(&octets[68..]);
    assert_eq!(octets[24..40], id.as_bytes()[..16]);
    let file = made(KEY_FILE).encode();
    assert_eq!(file[68..84], *b"\x05\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

/// The seal, computed once more from the words of the page.
#[test]
fn the_seal_is_that_of_the_page() {
    let octets = made(KEY_FILE).encode();
    let mut associated = octets[..126].to_vec();
    associated[24..40].fill(0);
    associated[64..68].fill(0);
    let key = blake3::derive_key("veredarius mailfs v1 key file", FILE);
    let key = blake3::keyed_hash(&key, b"salt salt salt s");
    let mut sealed = octets[126..].to_vec();
    let nonce = b"nonce nonce nonce nonce ";
    let plain = unseal(key.as_bytes(), nonce, &associated, &mut sealed).unwrap();
    let expected = [
        &b"\x02\0\x01\0"[..],
        &[7; 32],
        b"\x03\x02",
        &[8; 32],
        b"laptop",
    ];
    assert_eq!(plain, expected.concat());

    let octets = made(PASSPHRASE).encode();
    let mut key = [0; 32];
    let params = argon2::Params::new(16, 1, 2, Some(32)).unwrap();
    argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
        .hash_password_into(b"correct horse", b"salt salt salt s", &mut key)
        .unwrap();
    let mut associated = octets[..126].to_vec();
    associated[24..40].fill(0);
    associated[64..68].fill(0);
    let mut sealed = octets[126..].to_vec();
    let plain = unseal(&key, nonce, &associated, &mut sealed).unwrap();
    assert_eq!(plain, expected.concat());
}

#[test]
fn every_bit_of_a_slot_counts() {
    for secret in [PASSPHRASE, KEY_FILE] {
        let octets = made(secret).encode();
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut changed = octets.clone();
                changed[at] ^= 1 << bit;
                assert!(Slot::decode(&changed).is_err(), "bit {bit} of octet {at}");
            }
            assert!(Slot::decode(&octets[..at]).is_err(), "{at} octets");
        }
        assert!(Slot::decode(&[&octets[..], b"\0"].concat()).is_err());
    }
}

/// As a forger who repairs the checksum of the head and the mail id.
#[test]
fn every_octet_is_authenticated_by_the_secret() {
    let octets = made(KEY_FILE).encode();
    let mut opened = 0;
    for at in 0..octets.len() {
        let mut changed = octets.clone();
        changed[at] ^= 1;
        let id = blake3::hash(&changed[68..]);
        changed[24..40].copy_from_slice(&id.as_bytes()[..16]);
        let sum = vere_checksum::crc32c(&changed[..64]);
        changed[64..68].copy_from_slice(&sum.to_le_bytes());
        if changed != octets {
            opened += usize::from(
                Slot::decode(&changed)
                    .and_then(|slot| slot.open(KEY_FILE))
                    .is_ok(),
            );
        }
    }
    assert_eq!(opened, 0);
}

#[test]
fn wrong_secrets_are_refused() {
    let (by_passphrase, by_file) = (made(PASSPHRASE), made(KEY_FILE));
    let text = |slot: &Slot, secret| slot.open(secret).unwrap_err().to_string();
    let refused = "key slot at octet 126: expected a seal by the given key; found another seal";
    let typo = SlotSecret::Passphrase(b"correct hose");
    assert_eq!(text(&by_passphrase, typo), refused);
    let other = SlotSecret::KeyFile(b"another file of no less than 32 octets");
    assert_eq!(text(&by_file, other), refused);
    assert_eq!(
        text(&by_file, PASSPHRASE),
        "secret: expected a key file for this slot; found other octets"
    );
    assert_eq!(
        text(&by_passphrase, KEY_FILE),
        "secret: expected a passphrase for this slot; found other octets"
    );
    let short = SlotSecret::KeyFile(&FILE[..31]);
    let made = Slot::make(&new(CHEAP), &content(), short);
    assert_eq!(
        made.unwrap_err().to_string(),
        "octets of a key file: expected at least 32; found 31"
    );
    let shortest = SlotSecret::KeyFile(&FILE[..32]);
    assert!(Slot::make(&new(CHEAP), &content(), shortest).is_ok());
}

#[test]
fn secrets_never_print() {
    let text = format!("{PASSPHRASE:?} {KEY_FILE:?} {:?}", content());
    assert!(
        !text.contains("horse") && !text.contains("octets"),
        "{text}"
    );
    assert!(text.contains("Passphrase([redacted]) KeyFile([redacted])"));
}

/// A slot with these octets at 69, and a right mail id and checksum.
fn with(at: usize, octets: &[u8]) -> Result<Slot, FormatError> {
    let mut body = made(PASSPHRASE).encode();
    body[at..at + octets.len()].copy_from_slice(octets);
    let id = blake3::hash(&body[68..]);
    body[24..40].copy_from_slice(&id.as_bytes()[..16]);
    let sum = vere_checksum::crc32c(&body[..64]);
    body[64..68].copy_from_slice(&sum.to_le_bytes());
    Slot::decode(&body)
}

/// Such a slot would take hours or all memory if the parameters were not looked at first.
#[test]
fn costs_beyond_the_limits_are_refused_before_computing() {
    let refused = |at: usize, number: u32| {
        let found = with(at, &number.to_le_bytes());
        found.unwrap_err().to_string()
    };
    assert_eq!(
        refused(72, (1 << 20) + 1),
        "memory of argon2id in KiB: expected at most 1048576; found 1048577"
    );
    assert_eq!(
        refused(72, 15),
        "memory of argon2id in KiB: expected at least 16; found 15"
    );
    assert_eq!(
        refused(76, 17),
        "passes of argon2id: expected at most 16; found 17"
    );
    assert_eq!(
        refused(76, 0),
        "passes of argon2id: expected at least 1; found 0"
    );
    assert_eq!(
        refused(80, 17),
        "lanes of argon2id: expected at most 16; found 17"
    );
    assert_eq!(
        refused(80, u32::MAX),
        "lanes of argon2id: expected at most 16; found 4294967295"
    );
    assert_eq!(
        refused(80, 0),
        "lanes of argon2id: expected at least 1; found 0"
    );
    let most = [
        (1_u32 << 20).to_le_bytes(),
        16_u32.to_le_bytes(),
        16_u32.to_le_bytes(),
    ];
    let most = with(72, &most.concat()).unwrap();
    let cost = Cost {
        memory_kib: 1 << 20,
        passes: 16,
        lanes: 16,
    };
    assert_eq!(most.method, Method::Passphrase(cost));
    let dear = Cost {
        passes: 17,
        ..CHEAP
    };
    assert!(Slot::make(&new(dear), &content(), PASSPHRASE).is_err());
    assert_eq!(Cost::DEFAULT.memory_kib, 65_536);
    assert_eq!(Cost::DEFAULT.check(), Ok(Cost::DEFAULT));
}

#[test]
fn fields_have_meanings() {
    let refused = |at: usize, octets: &[u8]| with(at, octets).unwrap_err().to_string();
    assert_eq!(
        refused(69, &[3]),
        "method of a key slot: expected 1 (passphrase) or 2 (key file); found 3"
    );
    assert_eq!(
        refused(69, &[2]),
        "key slot of a key file: expected zeros as parameters of argon2id; found other octets"
    );
    assert_eq!(
        refused(70, &[1]),
        "key slot: expected zeros in reserved octets; found other octets"
    );
    assert_eq!(
        refused(124, &35_090_u16.to_le_bytes()),
        "sealed length of a key slot: expected at most 35089; found 35090"
    );
    assert_eq!(
        refused(7, &[3]),
        "kind of mail: expected 2 (key slot); found 3"
    );
    for at in [42, 44, 52] {
        assert_eq!(
            refused(at, &[1]),
            "head of a key slot: expected no group and no frames; found other octets"
        );
    }
}

#[test]
fn keys_have_bounds_and_an_order() {
    let text = |content: &SlotKeys| {
        let made = Slot::make(&new(CHEAP), content, KEY_FILE);
        made.unwrap_err().to_string()
    };
    let epochs = |epochs: std::ops::Range<u16>| SlotKeys {
        keys: epochs.map(|epoch| (epoch, VolumeKey([1; 32]))).collect(),
        label: "l".repeat(255),
    };
    let most = epochs(0..1_024);
    let slot = Slot::make(&new(CHEAP), &most, KEY_FILE).unwrap();
    let read = Slot::decode(&slot.encode()).unwrap();
    assert_eq!(read.open(KEY_FILE), Ok(most.clone()));
    assert_eq!(
        text(&epochs(0..1_025)),
        "keys of a slot: expected at most 1024; found 1025"
    );
    let longer = SlotKeys {
        label: "l".repeat(256),
        ..most
    };
    assert_eq!(
        text(&longer),
        "octets of a slot's label: expected at most 255; found 256"
    );
    let order =
        "keys of a slot: expected one or more keys in order of their epochs; found other octets";
    assert_eq!(text(&epochs(0..0)), order);
    let mut twice = content();
    twice.keys[0].0 = 0x0203;
    assert_eq!(text(&twice), order);
}

#[test]
fn sealed_octets_are_checked_too() {
    let text = |plain: &[u8]| SlotKeys::decode(plain).unwrap_err().to_string();
    assert_eq!(
        text(&1_025_u16.to_le_bytes()),
        "keys of a slot: expected at most 1024; found 1025"
    );
    let one = [&b"\x01\0\0\0"[..], &[0; 32]].concat();
    assert_eq!(
        text(&[&one[..], &[b'l'; 256]].concat()),
        "octets of a slot's label: expected at most 255; found 256"
    );
    assert_eq!(
        text(&[&one[..], b"\xff"].concat()),
        "label of a slot: expected UTF-8; found other octets"
    );
    assert!(SlotKeys::decode(b"\0\0").is_err());
    assert!(SlotKeys::decode(&one[..35]).is_err());
    assert!(SlotKeys::decode(&one).is_ok());
}

proptest! {
    #[test]
    fn any_octets_are_refused_without_a_panic(octets: Vec<u8>) {
        prop_assert!(Slot::decode(&octets).is_err());
    }
}
