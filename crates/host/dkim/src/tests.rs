//! Keys on disk, and signatures checked by a verifier that shares nothing with the code here but the
//! library's parsers; the daemon's tests have another one that shares nothing at all.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mail_auth::common::parse::TxtRecordParser as _;
use mail_auth::common::verify::DomainKey;
use mail_auth::{
    AuthenticatedMessage, DkimResult, MessageAuthenticator, Parameters, ResolverCache, Txt,
};
use vere_units::Timestamp;

use super::store::signing;
use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const OCTETS_MAX: usize = 1 << 20;
const MESSAGE: &str = "Received: from somewhere\r\nFrom: Alice <alice@example.org>\r\n\
     To:  bob@example.net,\r\n\tcarol@example.net\r\nSubject:   two  words \r\n\
     Date: Thu, 1 Jan 2026 00:00:00 +0000\r\nList-Id: <l.example.org>\r\n\r\n\
     A  line \t\r\n\r\nand another\r\n\r\n\r\n";

fn days(count: u64) -> Duration {
    Duration::from_secs(86_400 * count)
}

/// One key of each algorithm, made once: making RSA keys takes long without optimization.
fn keys() -> &'static [StoredKey; 2] {
    static MADE: OnceLock<[StoredKey; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        let make = |selector, algorithm| {
            StoredKey::generate("example.org", selector, algorithm, 2048, NOW, NOW).expect("a key")
        };
        [
            make("r1", KeyAlgorithm::RsaSha256),
            make("e1", KeyAlgorithm::Ed25519Sha256),
        ]
    })
}

fn sign(message: &str) -> String {
    let named = keys()
        .iter()
        .map(|key| (key.algorithm, key.selector.as_str()));
    let drafts = drafts(message.as_bytes(), "example.org", named, NOW, OCTETS_MAX);
    let mut signed = String::new();
    for (draft, key) in drafts.expect("signable").into_iter().zip(keys()) {
        assert_eq!(
            (draft.algorithm(), draft.selector()),
            (key.algorithm, key.selector.as_str())
        );
        let value = key
            .private()
            .expect("a key")
            .sign(draft.octets())
            .expect("signed");
        signed += &String::from_utf8(draft.field(value)).expect("text");
    }
    signed + message
}

/// The records of the keys in place of the DNS.
struct Records;

impl ResolverCache<Box<str>, Txt> for Records {
    fn get<Q>(&self, name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let key = keys().iter().find(|key| {
            [key.record_name(), key.record_name() + "."]
                .into_iter()
                .any(|own| Box::<str>::from(own).borrow() == name)
        })?;
        let record = DomainKey::parse(key.record_text().as_bytes()).expect("a record");
        Some(Txt::DomainKey(Arc::new(record)))
    }

    fn remove<Q>(&self, _: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _: Box<str>, _: Txt, _: std::time::Instant) {}
}

async fn results(message: &str) -> Vec<bool> {
    let parsed = AuthenticatedMessage::parse(message.as_bytes()).expect("a message");
    let verifier = MessageAuthenticator::new_google().expect("a verifier");
    let parameters = Parameters::new(&parsed).with_txt_cache(&Records);
    let verified = verifier.verify_dkim(parameters).await;
    let pass = |output: &mail_auth::DkimOutput<'_>| *output.result() == DkimResult::Pass;
    verified.iter().map(pass).collect()
}

#[tokio::test]
async fn both_signatures_verify_and_no_change_goes_unseen() {
    let signed = sign(MESSAGE);
    assert_eq!(results(&signed).await, [true, true], "{signed}");
    // What relays may do to it.
    let unharmed = signed.replace("Subject:   two  words ", "subject: two words");
    assert_eq!(results(&unharmed).await, [true, true]);
    let received = format!("Received: by a relay\r\n{signed}");
    assert_eq!(results(&received).await, [true, true]);
    // What nobody may do.
    for (from, to) in [
        ("and another", "and an other"),
        ("two  words", "three words"),
        ("List-Id: <l.", "List-Id: <m."),
        ("From: Alice", "From: evil@example.com\r\nFrom: Alice"),
        ("Date: Thu", "Subject: shown instead\r\nDate: Thu"),
        ("Date: Thu", "Reply-To: evil@example.com\r\nDate: Thu"),
        ("Date: Thu", "Content-Type: text/html\r\nDate: Thu"),
    ] {
        let changed = signed.replacen(from, to, 1);
        assert_ne!(changed, signed, "{from}");
        assert_eq!(results(&changed).await, [false, false], "{to}");
    }
    // A mailing list may add its own fields.
    let listed = signed.replacen(
        "Date: Thu",
        "List-Post: <mailto:l@x.example>\r\nDate: Thu",
        1,
    );
    assert_eq!(results(&listed).await, [true, true]);
}

#[tokio::test]
async fn bodies_of_every_shape_verify() {
    // Bodies with lines of blanks at the end: tests/sealing.rs. The library's verifier has another form of such bodies.
    for body in ["", "\r\n", "\r\n\r\n", "no end", "ü \0 \t.\r\n"] {
        let message = format!("From: alice@example.org\r\n\r\n{body}");
        assert_eq!(results(&sign(&message)).await, [true, true], "{body:?}");
    }
    let header_only = "From: alice@example.org\r\n";
    assert_eq!(results(&sign(header_only)).await, [true, true]);
    // Three fields of a name that is signed once more than there are.
    let thrice = "To: a\r\nTo: b\r\nFrom: alice@example.org\r\nTo: c\r\n\r\nx\r\n";
    assert_eq!(results(&sign(thrice)).await, [true, true]);
}

/// RFC 6376 section 3.4.2: blanks before the colon are none of what is signed. (The library's verifier does not know
/// such a field.)
#[test]
fn a_blank_before_the_colon_is_none_of_a_name() {
    let key = (KeyAlgorithm::Ed25519Sha256, "e1");
    let signed = |message: &str| {
        let drafts = drafts(message.as_bytes(), "a.b", [key], NOW, OCTETS_MAX);
        drafts.expect("signable").remove(0).octets().to_vec()
    };
    let plain = "From: alice@example.org\r\nSubject: x\r\n\r\nbody\r\n";
    let odd = "FROM : alice@example.org\r\nSubject\t:x\r\n\r\nbody\r\n";
    let lower = |message| String::from_utf8(signed(message).to_ascii_lowercase()).expect("text");
    assert_eq!(lower(odd), lower(plain));
}

/// In a message that came in chunks, lines may end with LF alone.
#[test]
fn an_empty_line_of_lf_alone_ends_the_header_that_is_signed() {
    let key = (KeyAlgorithm::Ed25519Sha256, "e1");
    let draft = |message: &str| drafts(message.as_bytes(), "a.b", [key], NOW, 1000).map(drop);
    assert_eq!(draft("From: a@b\n\nFrom: c@d\r\n\r\n"), Ok(()));
    assert_eq!(draft("Subject: x\n\nFrom: a@b\n"), Err(NotSignable::NoFrom));
}

#[test]
fn what_cannot_be_signed_is_named() {
    let key = (KeyAlgorithm::Ed25519Sha256, "e1");
    let draft = |message: &str, most| drafts(message.as_bytes(), "a.b", [key], NOW, most).map(drop);
    assert_eq!(
        draft("Subject: x\r\n\r\nFrom: y\r\n", 1000),
        Err(NotSignable::NoFrom)
    );
    assert_eq!(draft("", 1000), Err(NotSignable::NoFrom));
    assert_eq!(
        draft("From: a@b\r\nfrom: c@d\r\n\r\n", 1000),
        Err(NotSignable::SeveralFrom)
    );
    let long = format!("From: a@b\r\nSubject: {}\r\n\r\n", "x".repeat(2000));
    assert!(matches!(draft(&long, 1000), Err(NotSignable::TooLarge(octets)) if octets > 2000));
    let field = String::from_utf8(sign("From: a@b\r\n\r\n").into_bytes()).expect("text");
    for line in field.split("\r\n") {
        assert!(line.len() <= 78, "{line}");
    }
}

#[test]
fn keys_are_kept_and_damage_stays_where_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::new(folder.path().join("data/dkim"));
    assert_eq!(store.keys().expect("no folder is no key").0.len(), 0);
    for key in keys() {
        store.add(key).expect("written");
        assert!(matches!(store.add(key), Err(KeyError::Exists(_))));
    }
    let before = store.stamp();
    let mut retired = keys()[0].clone();
    retired.retire_at = Some(NOW + days(7));
    std::thread::sleep(Duration::from_millis(20));
    store.write(&retired).expect("written");
    assert_ne!(store.stamp(), before, "a change must show");
    let damaged = folder.path().join("data/dkim/example.org/bad.toml");
    std::fs::write(&damaged, "version = 1\nprivate = \"topsecret\"\n").expect("written");
    std::fs::write(damaged.with_file_name("new.toml"), "version = 2\n").expect("written");
    let (kept, wrong) = store.keys().expect("read");
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[1].retire_at, Some(NOW + days(7)));
    assert_eq!(kept[1].record_text(), keys()[0].record_text());
    let signature = |key: &StoredKey| key.private().expect("a key").sign(b"x").expect("signed");
    assert_eq!(signature(&kept[1]), signature(&keys()[0]));
    let said: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(!said.concat().contains("topsecret"), "{said:?}");
    store.remove(&retired).expect("removed");
    assert_eq!(store.keys().expect("read").0.len(), 1);
}

#[test]
fn the_youngest_active_key_of_each_algorithm_signs() {
    let at = |selector: &str, from: u64, retire: Option<u64>| {
        let mut key = keys()[1].clone();
        key.selector = selector.to_owned();
        key.active_from = NOW + days(from);
        key.retire_at = retire.map(|retire| NOW + days(retire));
        key
    };
    let all = [at("old", 0, Some(20)), at("next", 10, None)];
    let signs = |day| {
        let keys = signing(&all, "example.org", NOW + days(day));
        keys.iter()
            .map(|key| key.selector.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!((signs(0), signs(9)), (vec!["old"], vec!["old"]));
    assert_eq!((signs(10), signs(30)), (vec!["next"], vec!["next"]));
    assert_eq!(signing(&all, "example.net", NOW).len(), 0);
    // Without a successor an old key ends all the same: its record may be gone.
    assert_eq!(signing(&all[..1], "example.org", NOW + days(20)).len(), 0);
}

#[test]
fn records_are_cut_into_strings_and_names_are_checked() {
    let line = keys()[0].zone_line();
    assert!(
        line.starts_with("r1._domainkey.example.org. IN TXT ( \"v=DKIM1; k=rsa; p=MII"),
        "{line}"
    );
    assert_eq!(line.matches('"').count(), 4, "two strings: {line}");
    let rejoined = line.split('"').skip(1).step_by(2).collect::<String>();
    assert_eq!(rejoined, keys()[0].record_text());
    assert!(keys()[1].zone_line().contains("k=ed25519; p="));
    for name in [
        "../x",
        "A.example",
        "a..b",
        "",
        "a/b",
        "a b",
        &"a".repeat(64),
    ] {
        let made = StoredKey::generate(name, "s", KeyAlgorithm::Ed25519Sha256, 0, NOW, NOW);
        assert!(matches!(made, Err(KeyError::Name(_))), "{name}");
    }
    let small = StoredKey::generate("a.b", "s", KeyAlgorithm::RsaSha256, 1024, NOW, NOW);
    assert!(matches!(small, Err(KeyError::Bits(1024))));
}

/// A key of Ed25519 with this selector that waits for its record.
fn waiting(selector: &str, keep: Option<u64>) -> StoredKey {
    let mut key = keys()[1].clone();
    key.selector = selector.to_owned();
    key.waits = Some(Waiting {
        since: NOW,
        keep: keep.map(days),
    });
    key
}

fn signs(store: &KeyStore, now: Timestamp) -> Vec<String> {
    let (all, _) = store.keys().expect("read");
    let keys = signing(&all, "example.org", now).into_iter();
    keys.map(|key| key.selector.clone()).collect()
}

#[test]
fn a_key_waits_until_its_record_is_seen_and_its_predecessor_signs_until_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::new(folder.path());
    // A key of an earlier version has no file beside it, and signs.
    let mut old = keys()[1].clone();
    old.selector = "old".to_owned();
    store.add(&old).expect("written");
    let mut next = waiting("next", Some(7));
    next.active_from = NOW + days(2);
    store.add(&next).expect("written");
    let (all, wrong) = store.keys().expect("read");
    assert!(wrong.is_empty(), "{wrong:?}");
    let next = all.iter().find(|key| key.selector == "next");
    let next = next.expect("the key");
    assert_eq!(next.waits, waiting("next", Some(7)).waits);
    assert_eq!(signs(&store, NOW + days(90)), ["old"], "without a record");
    // The record is seen before the time of the key.
    store.activate(next, &all, NOW, false).expect("activated");
    assert_eq!(signs(&store, NOW + days(1)), ["old"]);
    assert_eq!(signs(&store, NOW + days(2)), ["next"]);
    let (all, _) = store.keys().expect("read");
    let old = all.iter().find(|key| key.selector == "old").expect("kept");
    assert_eq!(old.retire_at, Some(NOW + days(9)));
    assert_eq!(all.iter().filter(|key| key.waits.is_some()).count(), 0);
    // Once more, as after an answer that was lost.
    store.activate(next, &all, NOW, false).expect("activated");
}

/// The record of an older key came late, and the key ended the younger one that signed already.
#[test]
fn an_older_key_that_is_seen_later_ends_no_younger_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::new(folder.path());
    let (first, mut second) = (waiting("first", Some(7)), waiting("second", Some(7)));
    second.created = first.created + days(1);
    second.active_from = first.active_from + days(1);
    store.add(&first).expect("written");
    store.add(&second).expect("written");
    let activate = |selector: &str| {
        let (all, _) = store.keys().expect("read");
        let key = all.iter().find(|key| key.selector == selector);
        let now = NOW + days(2);
        store
            .activate(key.expect("the key"), &all, now, false)
            .expect("activated");
    };
    activate("second");
    activate("first");
    let (all, _) = store.keys().expect("read");
    let second = all.iter().find(|key| key.selector == "second");
    assert_eq!(second.expect("kept").retire_at, None);
    assert_eq!(signs(&store, NOW + days(90)), ["second"]);
}

#[test]
fn a_key_that_is_activated_at_once_signs_before_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::new(folder.path());
    let mut key = waiting("next", None);
    key.active_from = NOW + days(2);
    store.add(&key).expect("written");
    store.activate(&key, &[], NOW, true).expect("activated");
    assert_eq!(signs(&store, NOW), ["next"]);
}

#[test]
fn a_crash_in_between_leaves_no_key_that_signs_too_early_and_none_that_ends_too_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = KeyStore::new(folder.path());
    // Only the first file was written: no key yet, and the key that is made later waits.
    let path = folder.path().join("example.org/next.waiting");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(&path, "version = 1\nsince = 1\n").expect("written");
    assert_eq!(store.keys().expect("read").0.len(), 0);
    // A damaged file is named, and the key waits.
    let key = waiting("next", Some(7));
    store.add(&key).expect("written");
    for damaged in ["", "since = 1\n", "version = 2\nsince = 1\n", "\0"] {
        std::fs::write(&path, damaged).expect("written");
        let (all, wrong) = store.keys().expect("read");
        assert_eq!((all.len(), wrong.len()), (1, 1), "{damaged:?}");
        assert!(all[0].waits.is_some() && signs(&store, NOW).is_empty());
    }
    store.remove(&key).expect("removed");
    assert!(!path.exists());
}
