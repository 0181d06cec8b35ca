//! The metadata engine's own files are torn and damaged: everything in them is in the log as well.

use std::os::unix::fs::FileExt as _;

use vere_ports::directory::AccountName;
use vere_store::{
    FlagMode, Flags, InternalDate, MailboxId, OperationId, Prepared, QuotaLimit, RecipientFields,
    SystemFlags, Target, Uid,
};
use vere_units::Timestamp;

use super::*;

/// Messages: UID, flags, text.
type Contents = Vec<(u32, SystemFlags, Vec<u8>)>;

fn sync(store: &mut MailStore) {
    while let Some(job) = store.sync_job().unwrap() {
        store.finish_sync(job.run()).unwrap();
    }
}

fn inbox(store: &mut MailStore) -> MailboxId {
    let ann = AccountName::parse("ann@demo.test").unwrap();
    let opened = store.open_account(&ann, Timestamp::from_millis(1)).unwrap();
    sync(store);
    opened.when(store.synced()).unwrap()
}

/// Messages, of which some are seen and some are gone; the metadata were made last in the middle of it.
fn fill(store: &mut MailStore) -> Contents {
    let mailbox = inbox(store);
    for number in 0..60_u8 {
        let text = format!(
            "Subject: {number}\r\n\r\n{}\r\n",
            "text ".repeat(number.into())
        );
        let body = Prepared::new(text.as_bytes(), b"parsed", &[u64::from(number)]).unwrap();
        let target = Target {
            mailbox,
            flags: Flags::default(),
            internal_date: InternalDate::default(),
            fields: RecipientFields::default(),
            quota: QuotaLimit::default(),
        };
        let done = store.deliver(&body, &[target], OperationId([number; 16]));
        drop(done.unwrap());
        sync(store);
        if number == 20 {
            store.persist().unwrap();
        }
        let flags = match number % 3 {
            0 => SystemFlags::SEEN,
            1 => SystemFlags::DELETED,
            _ => continue,
        };
        let flags = Flags {
            system: flags,
            keywords: Vec::new(),
        };
        let uid = Uid::new(u32::from(number) + 1).unwrap();
        drop(
            store
                .store_flags(mailbox, &[uid], FlagMode::Add, &flags, None)
                .unwrap(),
        );
        if number % 9 == 4 {
            drop(store.expunge(mailbox, None).unwrap());
        }
        sync(store);
    }
    contents(store)
}

fn contents(store: &mut MailStore) -> Contents {
    let mailbox = inbox(store);
    let snapshot = store.snapshot(mailbox).unwrap();
    let snapshot = snapshot.when(store.synced()).unwrap();
    let reader = store.body_reader();
    let all = snapshot.iter_from(0).map(|message| {
        let text = reader.open(message.blob).unwrap().message().unwrap();
        (message.uid.get(), message.flags, text)
    });
    all.collect()
}

/// Copies a folder, as a kill leaves it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
            continue;
        }
        // The zeros at the end of what is allocated ahead are not carried.
        let octets = fs::read(&path).unwrap();
        let used = octets
            .iter()
            .rposition(|octet| *octet != 0)
            .map_or(0, |last| last + 1);
        fs::write(&place, &octets[..used]).unwrap();
        let file = File::options().write(true).open(&place).unwrap();
        file.set_len(octets.len() as u64).unwrap();
    }
}

/// The engine's journals, and how many octets of each are used.
fn journals(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(META)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let octets = fs::read(&path).unwrap();
            let used = octets.iter().rposition(|octet| *octet != 0).unwrap_or(0);
            found.push((path, used as u64));
        }
    }
    found
}

/// Something that is done to a journal.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut(u64),
    Zeros(u64),
    Flip(u64),
}

impl Damage {
    fn to(self, path: &Path) {
        let file = File::options().read(true).write(true).open(path).unwrap();
        match self {
            Self::Cut(at) => file.set_len(at).unwrap(),
            // A block that did not reach the disk while those behind it did.
            Self::Zeros(at) => file.write_all_at(&[0; 512], at).unwrap(),
            Self::Flip(at) => {
                let mut octet = [0];
                file.read_exact_at(&mut octet, at).unwrap();
                file.write_all_at(&[octet[0] ^ 0x20], at).unwrap();
            }
        }
    }
}

/// A kill, and what it left of the journal torn: the store opens, and nothing that was acknowledged is missing.
#[test]
fn a_torn_journal_of_the_metadata_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    fs::create_dir_all(live.join("log")).unwrap();
    let mut store = Files::lock(&live).unwrap().open().unwrap();
    let before = fill(&mut store);
    assert!(before.len() > 30);
    copy(&live, &killed);
    drop(store);
    let journals = journals(&killed);
    assert!(!journals.is_empty());
    let mut rebuilt = 0;
    for (path, used) in &journals {
        let places = (0..8).map(|part| used * part / 8 + part * 7 % 13);
        let damages = places.flat_map(|at| [Damage::Cut(at), Damage::Zeros(at), Damage::Flip(at)]);
        for damage in damages {
            let torn = folder.path().join("torn");
            copy(&killed, &torn);
            damage.to(&torn.join(META).join(path.file_name().unwrap()));
            let files = Files::lock(&torn).unwrap();
            rebuilt += u64::from(files.meta(META).is_err());
            let opened = files.open();
            let mut store = opened.unwrap_or_else(|error| panic!("{damage:?}: {error}"));
            assert!(contents(&mut store) == before, "{damage:?}");
            assert_eq!(store.check_all().unwrap().findings, [], "{damage:?}");
            drop((store, files));
            assert!(!torn.join(META_NEW).exists() && !torn.join(META_OLD).exists());
            fs::remove_dir_all(&torn).unwrap();
        }
    }
    assert!(rebuilt > 0, "no damage kept the engine from opening");
}

/// Metadata that cannot be read stay beside a log that is damaged too: a repair decides.
#[test]
fn metadata_are_not_made_anew_of_a_damaged_log() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("log")).unwrap();
    let mut store = Files::lock(folder.path()).unwrap().open().unwrap();
    fill(&mut store);
    drop(store);
    let log = folder.path().join("log/0000000000000040.log");
    Damage::Flip(300).to(&log);
    for (path, used) in journals(folder.path()) {
        Damage::Flip(used / 2).to(&path);
    }
    let files = Files::lock(folder.path()).unwrap();
    assert!(matches!(files.meta(META), Err(MetaError::Damaged(_))));
    let error = files.open().unwrap_err();
    assert!(
        error.to_string().contains("is damaged at offset"),
        "{error}"
    );
    assert!(matches!(files.meta(META), Err(MetaError::Damaged(_))));
}
