use vere_disk::log::Directory;
use vere_disk::mail_meta::FjallMeta;
use vere_store::{Prepared, Store, StoreConfig, SystemFlags};
use vere_units::ByteSize;

use super::*;
use std::sync::Arc;

use crate::decoding::decoders;
use crate::filled::{self, inbox, sync};
use crate::index::SharedIndex;
use crate::index::summaries::{self, Columns, Fields};
use vere_imap::message::header_fields;

fn open(folder: &Path) -> Result<FileStore, FilesError> {
    Files::lock(folder)?.open()
}

fn figures_of(store: &mut FileStore, folder: &Path) -> StoreFigures {
    resting::at_rest(store, folder, &decoders(), &|_| {}).unwrap()
}

fn deliver(store: &mut FileStore, number: u8) {
    let text = format!(
        "Subject: {number}\r\n\r\n{}\r\n",
        "x\u{1}".repeat(usize::from(number))
    );
    let noise: Vec<u8> = (0..20_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8 ^ number)
        .collect();
    let body = Prepared::new(&[text.as_bytes(), &noise].concat(), &[], &[]).unwrap();
    filled::deliver(store, &body, SystemFlags::DELETED, number);
}

/// A store with one message and a segment that says of it that it holds a text.
fn indexed_as(text: &str) -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("log")).unwrap();
    std::fs::create_dir_all(folder.path().join("search")).unwrap();
    let mut store = open(folder.path()).unwrap();
    deliver(&mut store, 7);
    let id = inbox(&mut store);
    let snapshot = store.snapshot(id).unwrap();
    let snapshot = snapshot.when(store.synced()).unwrap();
    let message = *snapshot.get(0).unwrap();
    let mut octets = store.body_reader().open(message.blob).unwrap();
    let octets = octets.message().unwrap();
    let parsed = vere_mime::Parsed::of(&octets);
    let searched = vere_mime::Searched {
        own: b"",
        message: &octets,
        parts: &parsed.parts,
    };
    let mut builder = vere_search::Builder::new(store.log_id(), id);
    builder.message(vere_search::Document {
        uid: message.uid.get(),
        body: message.blob.0,
        sent: None,
    });
    let _ = searched.texts(|_| true, &mut |zone, found| {
        let instead = matches!(zone, vere_mime::Zone::Subject) && !text.is_empty();
        builder.text(zone, if instead { text } else { found });
        std::ops::ControlFlow::Continue(())
    });
    let header = &octets[..vere_mime::header_len(&octets)];
    builder.summary(header_fields(header, &vere_search::SUMMARY_FIELDS, true));
    let disk = Directory::open(&folder.path().join("search")).unwrap();
    let mut index = vere_search::Index::open(disk, store.log_id()).unwrap();
    index.put(id, (1, 1), &builder.finish().unwrap()).unwrap();
    (folder, store)
}

#[test]
fn an_index_of_other_texts_is_found() {
    let (folder, mut store) = indexed_as("");
    let report = figures_of(&mut store, folder.path());
    assert!(!report.is_wrong(), "{}", report.findings());
    assert!(!report.as_json().contains("\"search_index_octets\": 0,"));
    let (folder, mut store) = indexed_as("SOMETHING");
    let report = figures_of(&mut store, folder.path());
    assert!(report.is_wrong());
    assert!(
        report
            .findings()
            .contains("the search index is not that of its messages")
    );
}

/// Fields that segments have need no message; what no segment knows is read.
#[test]
fn fields_are_answered_without_the_message() {
    let (folder, mut store) = indexed_as("");
    deliver(&mut store, 8);
    let id = inbox(&mut store);
    let snapshot = store.snapshot(id).unwrap();
    let snapshot = snapshot.when(store.synced()).unwrap();
    let index = SharedIndex::open(folder.path(), store.log_id()).unwrap();
    let (reader, segments) = (store.body_reader(), index.segments(id));
    let names: Arc<[String]> = ["FROM", "subject"].map(str::to_owned).into();
    assert!(summaries::has_all(&names));
    assert!(!summaries::has_all(&["Received".to_owned()]));
    let message = |at: usize| snapshot.get(at).unwrap();
    let expected = |at: usize| format!("Subject: {}\r\n\r\n", 7 + at);
    let columns = Columns::default();
    for round in 0..2 {
        // What was cut once is at hand for all who ask for the same.
        let mut fields = Fields::new(Arc::clone(&names), &columns, &segments);
        let kept = fields.at_hand(message(0));
        assert_eq!(kept, (round > 0).then(|| expected(0).into()));
        assert_eq!(fields.at_hand(message(1)), None);
        let mut fields = Fields::new(Arc::clone(&names), &columns, &segments);
        for (at, read) in [(0, 0), (1, 1)] {
            let given = fields.of(message(at), &reader).unwrap();
            assert_eq!(given, expected(at).as_bytes());
            assert_eq!((fields.unknown, fields.doubt), (read, false));
        }
    }
    let other: Arc<[String]> = ["Date".to_owned()].into();
    let mut fields = Fields::new(other, &columns, &segments);
    assert_eq!(fields.at_hand(message(0)), None);
    assert_eq!(fields.of(message(0), &reader).unwrap(), b"\r\n"[..]);
}

#[test]
fn a_search_is_explained() {
    let (folder, mut store) = indexed_as("");
    let ann = AccountName::parse("ann@demo.test").unwrap();
    let decoders = decoders();
    let mut explain = |search: &str| {
        search::explain_alone(
            &mut store,
            folder.path(),
            &ann,
            ("INBOX", search),
            &decoders,
        )
        .unwrap()
    };
    let certain = explain("SUBJECT 7 DELETED");
    assert!(
        certain.contains("1 message; index: 1 segment,"),
        "{certain}"
    );
    assert!(certain.contains("answered by the index alone"), "{certain}");
    assert!(certain.contains("1 message found"), "{certain}");
    let looked = explain("NOT TEXT \"subject: 8\" 1:*");
    assert!(looked.contains("1 message found"), "{looked}");
    assert!(explain("SUBJECT 8").contains("0 messages found"));
    let wrong = search::explain_alone(
        &mut store,
        folder.path(),
        &ann,
        ("INBOX", "NONSENSE"),
        &decoders,
    );
    assert!(wrong.is_err());
    let wrong = search::explain_alone(
        &mut store,
        folder.path(),
        &ann,
        ("Nowhere", "ALL"),
        &decoders,
    );
    assert!(wrong.is_err());
}

#[test]
fn a_store_on_files_is_checked_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path()).is_err());
    std::fs::create_dir(folder.path().join("log")).unwrap();
    let disk = Directory::open(&folder.path().join("log")).unwrap();
    let meta = FjallMeta::open(&folder.path().join("meta"), ByteSize::mib(1)).unwrap();
    let config = StoreConfig {
        segment_size: ByteSize::kib(64),
        log_id: 9,
        ..StoreConfig::default()
    };
    let mut store = Store::open(disk, meta, config).unwrap().0;
    (1..=20).for_each(|number| deliver(&mut store, number));
    let id = inbox(&mut store);
    let expunged = store.expunge(id, None, vere_process::clock::now()).unwrap();
    sync(&mut store);
    assert_eq!(expunged.when(store.synced()).unwrap().len(), 20);
    deliver(&mut store, 21);
    drop(store);

    let mut store = open(folder.path()).unwrap();
    let before = store.check_all().unwrap();
    assert_eq!(
        (before.messages, before.bodies, before.findings.len()),
        (1, 1, 0)
    );
    let saved = compact(&mut store, folder.path(), 10).unwrap();
    assert!(saved > 0, "{before:?}");
    let after = store.check_all().unwrap();
    assert!(after.log_octets < before.log_octets);
    let report = figures_of(&mut store, folder.path());
    assert!(report.counts().contains("messages"));
    assert!(report.as_json().contains("\"bodies\": 1"));
    assert_eq!(report.findings(), "nothing is wrong\n");
    let room = Room::of(report.reclaimable_octets, folder.path());
    assert!(room.rows().contains("reclaimed last"), "{}", room.rows());
    assert!(room.beside(&report).contains("\"reclaimable_octets\": "));
    drop(store);
    // From the log alone.
    std::fs::remove_dir_all(folder.path().join("meta")).unwrap();
    let mut store = open(folder.path()).unwrap();
    assert_eq!(store.check_all().unwrap().messages, 1);
}

/// Metadata that are gone, and a body that is damaged, on real files; nobody else may be at work.
#[test]
fn a_store_on_files_is_repaired() {
    let (folder, store) = indexed_as("");
    let files = filled::lock(folder.path());
    drop(store);
    assert!(Files::lock(folder.path()).is_err());
    std::fs::remove_dir_all(folder.path().join("meta")).unwrap();
    let report = files.repair(false).unwrap();
    assert_eq!((report.messages, report.has_losses()), (1, false));
    assert!(!folder.path().join("search").exists());
    let mut store = files.open().unwrap();
    deliver(&mut store, 8);
    assert_eq!(store.check_all().unwrap().messages, 2);
    let id = inbox(&mut store);
    let snapshot = store.snapshot(id).unwrap();
    let snapshot = snapshot.when(store.synced()).unwrap();
    let place = snapshot.get(0).unwrap().blob.0;
    drop(store);

    let log = folder.path().join("log/0000000000000040.log");
    let mut octets = std::fs::read(&log).unwrap();
    octets[place as usize + 200] ^= 1;
    std::fs::write(&log, octets).unwrap();
    let dry = files.repair(true).unwrap();
    assert!(!folder.path().join("meta.new").exists());
    let report = files.repair(false).unwrap();
    assert_eq!(report, dry);
    let text = repair::as_text(&report, false);
    assert!(
        text.contains("ann@demo.test, INBOX: message 1 of 20"),
        "{text}"
    );
    assert!(text.contains("what is named above is lost"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&repair::as_json(&report, true)).unwrap();
    assert_eq!(
        (&json["lost_messages"], &json["dry_run"]),
        (&1.into(), &true.into())
    );
    assert!(folder.path().join("log/0000000000000040.damaged").exists());
    for name in ["meta.new", "meta.old", "search"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    let mut store = files.open().unwrap();
    let check = store.check_all().unwrap();
    assert_eq!((check.messages, check.findings.len()), (1, 0));
    drop(store);
    let again = files.repair(false).unwrap();
    assert_eq!((again.mended, again.has_losses()), (0, false));
}

/// Cut off between the names: whatever is there is opened.
#[test]
fn a_repair_that_was_cut_off_between_names_is_no_loss() {
    let (folder, store) = indexed_as("");
    drop(store);
    let path = |name: &str| folder.path().join(name);
    std::fs::rename(path("meta"), path("meta.old")).unwrap();
    std::fs::create_dir(path("meta.new")).unwrap();
    let files = filled::lock(folder.path());
    assert_eq!(files.open().unwrap().check_all().unwrap().messages, 1);
    std::fs::remove_dir_all(path("meta")).unwrap();
    let report = files.repair(false).unwrap();
    assert_eq!((report.messages, report.has_losses()), (1, false));
    assert!(!path("meta.old").exists() && !path("meta.new").exists());
}
