//! One suite for every store, then what is particular to each.
//!
//! Tests with several processes start this test binary again with one ignored test ([`child`]).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use tempfile::TempDir;
use vere_ports::directory::{
    Account, AccountName, Alias, Change, ChangeError, Credentials, Domain, DomainName, Lookup,
    MemoryStore, Page,
};
use vere_units::Secret;

use super::*;

const ALL: Page = Page {
    domain: None,
    after: None,
    limit: usize::MAX,
};

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn domain(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn add_domain(text: &str) -> Change {
    Change::AddDomain(Domain {
        name: domain(text),
        catch_all: None,
    })
}

fn add_account(text: &str) -> Change {
    Change::AddAccount(Account {
        name: name(text),
        credentials: None,
    })
}

fn set_alias(text: &str, targets: &[&str]) -> Change {
    let targets = targets.iter().map(ToString::to_string).collect();
    Change::SetAlias(Alias {
        name: name(text),
        targets,
    })
}

fn credentials(text: &str) -> Credentials {
    let secret = |kind: &str| Secret::new(format!("{kind} {text} \"'\\\n$x$"));
    Credentials {
        password_hash: secret("hash"),
        scram_sha_256: secret("scram"),
    }
}

/// The stores on disk, each in a folder of its own.
fn places(folder: &TempDir) -> [Place; 2] {
    let path = |name: &str| folder.path().join(name);
    [
        Place::File(path("file/directory.toml")),
        Place::Sqlite(path("sqlite/directory.db")),
    ]
}

fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("directory.toml")
}

/// Runs a test against every store.
fn with_each(test: impl Fn(&dyn DirectoryStore)) {
    test(&MemoryStore::default());
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        test(&*create(&place).unwrap());
    }
}

fn accounts(store: &dyn DirectoryStore, page: &Page) -> Vec<String> {
    store
        .accounts(page)
        .unwrap()
        .into_iter()
        .map(|account| account.name.to_string())
        .collect()
}

#[test]
fn domains_come_and_go() {
    with_each(|store| {
        assert_eq!(store.domain(&domain("a.test")), Ok(None));
        store.apply(&add_domain("b.test")).unwrap();
        store.apply(&add_domain("A.test")).unwrap();
        let twice = store.apply(&add_domain("a.TEST"));
        assert_eq!(twice, Err(ChangeError::DomainExists(domain("a.test"))));
        let target = Some("x@far.test".to_owned());
        store
            .apply(&Change::SetCatchAll(domain("a.test"), target.clone()))
            .unwrap();
        let found = Domain {
            name: domain("a.test"),
            catch_all: target,
        };
        assert_eq!(store.domain(&domain("a.test")), Ok(Some(found.clone())));
        let other = Domain {
            name: domain("b.test"),
            catch_all: None,
        };
        assert_eq!(store.domains(), Ok(vec![found, other]));
        store
            .apply(&Change::SetCatchAll(domain("a.test"), None))
            .unwrap();
        assert_eq!(
            store.domain(&domain("a.test")).unwrap().unwrap().catch_all,
            None
        );
        store
            .apply(&Change::RemoveDomain(domain("a.test")))
            .unwrap();
        assert_eq!(store.domain(&domain("a.test")), Ok(None));
        let unknown = Err(ChangeError::NoSuchDomain(domain("a.test")));
        assert_eq!(
            store.apply(&Change::RemoveDomain(domain("a.test"))),
            unknown
        );
        assert_eq!(
            store.apply(&Change::SetCatchAll(domain("a.test"), None)),
            unknown
        );
        assert_eq!(store.apply(&add_account("x@a.test")), unknown);
        assert_eq!(store.apply(&set_alias("x@a.test", &["x@b.test"])), unknown);
    });
}

#[test]
fn accounts_keep_their_credentials() {
    with_each(|store| {
        store.apply(&add_domain("a.test")).unwrap();
        let alice = Account {
            name: name("alice@a.test"),
            credentials: Some(credentials("1")),
        };
        store.apply(&Change::AddAccount(alice.clone())).unwrap();
        store.apply(&add_account("bob@a.test")).unwrap();
        assert_eq!(store.account(&alice.name), Ok(Some(alice.clone())));
        let twice = store.apply(&add_account("Alice@a.test"));
        assert_eq!(twice, Err(ChangeError::AccountExists(alice.name.clone())));
        assert_eq!(
            store.account(&alice.name),
            Ok(Some(alice.clone())),
            "nothing was changed"
        );

        let set = |who: &AccountName, what| store.apply(&Change::SetCredentials(who.clone(), what));
        set(&alice.name, Some(credentials("2"))).unwrap();
        let found = store.account(&alice.name).unwrap().unwrap();
        assert_eq!(found.credentials, Some(credentials("2")));
        set(&alice.name, None).unwrap();
        assert_eq!(
            store.account(&alice.name).unwrap().unwrap().credentials,
            None
        );
        let nobody = name("nobody@a.test");
        assert_eq!(
            set(&nobody, None),
            Err(ChangeError::NoSuchAccount(nobody.clone()))
        );

        let in_use = Err(ChangeError::DomainInUse(domain("a.test"), 2, 0));
        assert_eq!(store.apply(&Change::RemoveDomain(domain("a.test"))), in_use);
        store
            .apply(&Change::RemoveAccount(alice.name.clone()))
            .unwrap();
        assert_eq!(store.account(&alice.name), Ok(None));
        let gone = Err(ChangeError::NoSuchAccount(alice.name.clone()));
        assert_eq!(
            store.apply(&Change::RemoveAccount(alice.name.clone())),
            gone
        );
        assert_eq!(store.count(&domain("a.test")), Ok((1, 0)));
    });
}

#[test]
fn aliases_keep_the_order_of_their_targets() {
    with_each(|store| {
        store.apply(&add_domain("a.test")).unwrap();
        let all = name("all@a.test");
        store
            .apply(&set_alias(
                "all@a.test",
                &["z@a.test", "a@far.test", "m@a.test"],
            ))
            .unwrap();
        let targets = |store: &dyn DirectoryStore| store.alias(&all).unwrap().unwrap().targets;
        assert_eq!(targets(store), ["z@a.test", "a@far.test", "m@a.test"]);
        store
            .apply(&set_alias("ALL@a.test", &["\"odd 'name'; --\"@far.test"]))
            .unwrap();
        assert_eq!(targets(store), ["\"odd 'name'; --\"@far.test"]);
        assert_eq!(store.count(&domain("a.test")), Ok((0, 1)));
        assert_eq!(store.aliases(&ALL).unwrap().len(), 1);
        for wrong in [&[][..], &["none"], &["@a.test"], &["a@"], &["a\n@b.test"]] {
            assert!(
                store.apply(&set_alias("all@a.test", wrong)).is_err(),
                "{wrong:?}"
            );
        }
        let many: Vec<String> = (0..1_001).map(|n| format!("x{n}@a.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = store.apply(&set_alias("all@a.test", &many));
        assert_eq!(refused, Err(ChangeError::TargetCount(1_001)));
        store.apply(&set_alias("all@a.test", &many[1..])).unwrap();
        assert_eq!(targets(store), many[1..]);
        store.apply(&Change::RemoveAlias(all.clone())).unwrap();
        assert_eq!(store.alias(&all), Ok(None));
        let gone = Err(ChangeError::NoSuchAlias(all.clone()));
        assert_eq!(store.apply(&Change::RemoveAlias(all.clone())), gone);
        // No target of the old one comes back with a new one.
        store
            .apply(&set_alias("all@a.test", &["x@a.test"]))
            .unwrap();
        assert_eq!(targets(store), ["x@a.test"]);
    });
}

#[test]
fn listings_come_in_pages() {
    with_each(|store| {
        for text in ["a.test", "b.test"] {
            store.apply(&add_domain(text)).unwrap();
        }
        for text in [
            "c@a.test",
            "a@b.test",
            "b@a.test",
            "a@a.test",
            "\u{e9}@a.test",
            "a.a@a.test",
        ] {
            store.apply(&add_account(text)).unwrap();
        }
        let sorted = [
            "a.a@a.test",
            "a@a.test",
            "a@b.test",
            "b@a.test",
            "c@a.test",
            "\u{e9}@a.test",
        ];
        assert_eq!(accounts(store, &ALL), sorted);
        let of_a = Page {
            domain: Some(domain("a.test")),
            after: Some(name("a@a.test")),
            limit: 2,
        };
        assert_eq!(accounts(store, &of_a), ["b@a.test", "c@a.test"]);
        let rest = Page {
            after: Some(name("c@a.test")),
            ..of_a.clone()
        };
        assert_eq!(accounts(store, &rest), ["\u{e9}@a.test"]);
        assert!(accounts(store, &Page { limit: 0, ..ALL }).is_empty());
        let nowhere = Page {
            domain: Some(domain("c.test")),
            ..ALL
        };
        assert!(accounts(store, &nowhere).is_empty());

        for text in ["y@a.test", "x@a.test", "x@b.test"] {
            store
                .apply(&set_alias(text, &["a@a.test", "b@a.test"]))
                .unwrap();
        }
        let page = Page {
            domain: Some(domain("a.test")),
            after: Some(name("x@a.test")),
            limit: 5,
        };
        let found = store.aliases(&page).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.clone(), found[0].targets.len()),
            (name("y@a.test"), 2)
        );
    });
}

#[test]
fn content_is_there_after_opening_again() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        assert!(
            matches!(open(&place), Err(StoreError::System(..))),
            "open makes nothing"
        );
        let store = create(&place).unwrap();
        store.apply(&add_domain("b\u{fc}cher.test")).unwrap();
        let account = Account {
            name: name("j\u{f6}rg@b\u{fc}cher.test"),
            credentials: Some(credentials("1")),
        };
        store.apply(&Change::AddAccount(account.clone())).unwrap();
        store
            .apply(&set_alias("postmaster@b\u{fc}cher.test", &["x@far.test"]))
            .unwrap();
        drop(store);
        for store in [open(&place).unwrap(), create(&place).unwrap()] {
            assert_eq!(store.accounts(&ALL), Ok(vec![account.clone()]));
            assert_eq!(store.domains().unwrap().len(), 1);
            assert_eq!(store.aliases(&ALL).unwrap().len(), 1);
        }
    }
}

#[test]
fn changes_of_one_are_seen_by_the_other_at_once() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        let (one, other) = (create(&place).unwrap(), create(&place).unwrap());
        one.apply(&add_domain("a.test")).unwrap();
        for n in 0..50 {
            let (from, to) = if n % 2 == 0 {
                (&one, &other)
            } else {
                (&other, &one)
            };
            let who = format!("u{n}@a.test");
            from.apply(&add_account(&who)).unwrap();
            assert!(to.account(&name(&who)).unwrap().is_some(), "{place:?} {n}");
        }
    }
}

#[test]
fn files_are_for_their_owner_only() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create(&place)
            .unwrap()
            .apply(&add_domain("a.test"))
            .unwrap();
        let (Place::File(path) | Place::Sqlite(path)) = &place;
        for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} {mode:o}", entry.path());
        }
    }
}

#[test]
fn newer_versions_and_foreign_files_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    fs::write(&path, "version = 2\nsomething_new = true\n").unwrap();
    let error = FileStore::open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Version {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
    assert!(FileStore::create(&path).is_err(), "never overwritten");

    let path = folder.path().join("d.db");
    SqliteStore::create(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Version {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
    let foreign = folder.path().join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        .unwrap();
    drop(connection);
    assert!(matches!(
        SqliteStore::create(&foreign),
        Err(StoreError::Damaged(..))
    ));
    fs::write(folder.path().join("text.db"), "x".repeat(5_000)).unwrap();
    let error = SqliteStore::open(&folder.path().join("text.db")).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(..)), "{error}");
}

#[test]
fn damaged_database_is_an_error_and_never_a_no() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("d.db");
    let store = SqliteStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    for n in 0..500 {
        store
            .apply(&add_account(&format!("user{n}@a.test")))
            .unwrap();
    }
    drop(store);
    let mut octets = fs::read(&path).unwrap();
    let length = octets.len();
    for octet in &mut octets[4_096..length] {
        *octet = 0xa5;
    }
    fs::write(&path, octets).unwrap();
    let error = SqliteStore::open(&path).and_then(|store| store.account(&name("user7@a.test")));
    assert!(matches!(error, Err(StoreError::Damaged(..))), "{error:?}");
}

/// Every way in which an edited file can be wrong, with words of its error.
const WRONG_FILES: &[(&str, &str)] = &[
    ("", "line 1: the line `version = 1` is missing"),
    ("version = \"1\"", "line 1"),
    ("version = 1\n[[domain]]\n", "line 2: missing field `name`"),
    (
        "version = 1\n[[domian]]\nname = \"a.test\"\n",
        "unknown field `domian`",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a b\"\n",
        "line 2: \"a b\" is not a domain name",
    ),
    (
        "version = 1\n[[account]]\naddress = \"x@a.test\"\n",
        "line 2: there is no domain a.test",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a.test\"\n[[domain]]\nname = \"A.test\"\n",
        "line 4: domain a.test exists",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a.test\"\n[[account]]\naddress = \"../x@a.test\"\n",
        "is not a user name",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a.test\"\n[[account]]\naddress = \"x@a.test\"\npassword = \"p\"\n",
        "line 4: password and scram_sha_256",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a.test\"\n[[alias]]\naddress = \"x@a.test\"\ntargets = []\n",
        "1 to 1000 targets",
    ),
    (
        "version = 1\n[[domain]]\nname = \"a.test\"\n[[alias]]\naddress = \"x@a.test\"\ntargets = [\"a@b\"]\n[[alias]]\naddress = \"X@a.test\"\ntargets = [\"a@b\"]\n",
        "line 7: the alias stands twice",
    ),
];

#[test]
fn wrong_files_are_refused_with_their_line() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    for (text, words) in WRONG_FILES {
        fs::write(&path, text).unwrap();
        let error = FileStore::open(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} lacks {words:?}");
    }
    fs::write(&path, [b'#', 0xff, b'\n']).unwrap();
    assert!(
        FileStore::open(&path)
            .unwrap_err()
            .to_string()
            .contains("octet 1 is not UTF-8")
    );
    assert!(
        FileStore::open(folder.path()).is_err(),
        "a folder is no file"
    );
}

const WHOLE_FILE: &str = "version = 1\n[[domain]]\nname = \"a.test\"\ncatch_all = \"x@far.test\"\n\
    [[account]]\naddress = \"alice@a.test\"\npassword = \"hunter2\"\nscram_sha_256 = \"hunter2\"\n\
    [[alias]]\naddress = \"all@a.test\"\ntargets = [\"alice@a.test\", \"x@far.test\"]\n";

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = format::parse(&text, Path::new("f"));
        let _ = format::parse(&format!("version = 1\n{text}"), Path::new("f"));
    }

    /// A file with one stretch replaced is read and changed rightly, or refused without secrets; the
    /// stretch is too short to make an address of a secret.
    #[test]
    fn damaged_files_are_answered(at in 0..WHOLE_FILE.len(), cut in 0..12_usize, new in "[\\[\\]=\"{}a-z0-9.\n -]{0,12}") {
        let mut text = WHOLE_FILE.to_owned();
        text.replace_range(at..(at + cut).min(text.len()), &new);
        let path = Path::new("f");
        let mut records = match format::parse(&text, path) {
            Ok(records) => records,
            Err(error) => {
                prop_assert!(!error.to_string().contains("hunter2"), "{error}");
                return Ok(());
            }
        };
        for change in [
            add_domain("b.test"),
            add_account("bob@b.test"),
            set_alias("all@a.test", &["bob@b.test"]),
            Change::SetCredentials(name("alice@a.test"), Some(credentials("1"))),
            Change::RemoveAccount(name("alice@a.test")),
            Change::RemoveAlias(name("all@a.test")),
            Change::RemoveDomain(domain("a.test")),
        ] {
            if records.apply(&change).is_ok() {
                text = format::edit(&text, path, &change).unwrap();
                let read = format::parse(&text, path);
                prop_assert_eq!(read.as_ref(), Ok(&records), "{}", text);
            }
        }
    }
}

#[test]
fn errors_do_not_show_what_the_line_holds() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    fs::write(
        &path,
        "version = 1\n[[account]]\npassword = \"hunter2\" x\n",
    )
    .unwrap();
    let error = FileStore::open(&path).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

#[test]
fn torn_file_keeps_the_old_content_in_force_and_is_not_changed() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let store = FileStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    let alice = Account {
        name: name("alice@a.test"),
        credentials: Some(credentials("1")),
    };
    store.apply(&Change::AddAccount(alice.clone())).unwrap();
    let whole = fs::read(&path).unwrap();
    for end in 0..whole.len() {
        // As a file that lies there whole, not one that is just being written.
        let torn = folder.path().join("torn");
        fs::write(&torn, &whole[..end]).unwrap();
        fs::rename(&torn, &path).unwrap();
        let found = store.account(&alice.name).unwrap();
        let damaged = FileStore::open(&path).is_err();
        if damaged {
            assert_eq!(found, Some(alice.clone()), "torn at {end}");
            assert!(matches!(
                store.apply(&add_account("b@a.test")),
                Err(ChangeError::Store(_))
            ));
            assert_eq!(
                fs::read(&path).unwrap(),
                &whole[..end],
                "left for the operator to repair"
            );
        }
        fs::write(&torn, &whole).unwrap();
        fs::rename(&torn, &path).unwrap();
        assert_eq!(store.account(&alice.name), Ok(Some(alice.clone())));
    }
}

#[test]
fn file_that_vanishes_keeps_its_content_in_force() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let store = FileStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(store.domain(&domain("a.test")).unwrap().is_some());
    assert!(matches!(
        store.apply(&add_account("x@a.test")),
        Err(ChangeError::Store(_))
    ));
    let _other = FileStore::create(&path).unwrap();
    assert_eq!(
        store.domain(&domain("a.test")),
        Ok(None),
        "a new file is believed"
    );
}

#[test]
fn file_of_a_folder_that_took_the_place_of_another_is_read() {
    let folder = TempDir::new().expect("folder");
    let [before, after] = ["before", "after"].map(|name| folder.path().join(name));
    let file = before.join("directory.toml");
    let store = FileStore::create(&file).expect("store");
    for name in ["a.example", "b.example"] {
        store.apply(&add_domain(name)).expect("added");
        assert!(store.domain(&domain(name)).expect("answer").is_some());
    }
    let other = FileStore::create(&after.join("directory.toml")).expect("store");
    other.apply(&add_domain("c.example")).expect("added");
    fs::rename(&before, folder.path().join("away")).expect("renamed");
    fs::rename(&after, &before).expect("renamed");
    let until = Instant::now() + Duration::from_secs(60);
    while store
        .domain(&domain("c.example"))
        .expect("answer")
        .is_none()
    {
        assert!(Instant::now() < until, "still the old one");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        store
            .domain(&domain("a.example"))
            .expect("answer")
            .is_none()
    );
}

/// Tries again until what `part` does took so little time that a file changed in it cannot have been
/// at rest; then its claim must hold.
fn before_it_rests(mut part: impl FnMut() -> (Duration, bool)) {
    for _ in 0..100 {
        let (took, holds) = part();
        if took < Duration::from_millis(800) {
            return assert!(holds);
        }
    }
    panic!("this machine is too busy to tell");
}

#[test]
fn file_edited_in_place_is_believed_when_it_rests() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let store = FileStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    store.apply(&add_account("alice@a.test")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    // An editor that truncates, pauses, and writes: what lies there meanwhile is valid, and wrong. On a
    // machine that was busy with something else for so long that the file was at rest, it tries again.
    before_it_rests(|| {
        fs::write(&path, &text).unwrap();
        while store.account(&name("alice@a.test")).unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let started = Instant::now();
        fs::write(&path, "version = 1\n").unwrap();
        let meanwhile = store.account(&name("alice@a.test")).unwrap();
        (started.elapsed(), meanwhile.is_some())
    });
    fs::write(
        &path,
        format!("{text}\n[[account]]\naddress = \"bob@a.test\"\n"),
    )
    .unwrap();
    let started = Instant::now();
    while store.account(&name("bob@a.test")).unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(store.account(&name("alice@a.test")).unwrap().is_some());
}

#[test]
fn change_waits_for_an_editor_that_is_half_way_through() {
    before_it_rests(|| {
        let folder = TempDir::new().unwrap();
        change_during_an_edit(&folder)
    });
}

/// How long the editor took, and whether the change was made to what it had written in the end.
fn change_during_an_edit(folder: &TempDir) -> (Duration, bool) {
    let path = file_in(folder);
    let store = FileStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    // The file has to be old enough to be told from one that was born complete.
    std::thread::sleep(Duration::from_millis(1_500));
    if fs::metadata(&path).unwrap().created().is_err() {
        println!("skipped: this file system keeps no time of birth");
        return (Duration::ZERO, true);
    }
    let began = Instant::now();
    let mut editor = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    editor.write_all(b"version = 1\n").unwrap();
    let changer = std::thread::spawn(move || store.apply(&add_account("bob@a.test")));
    std::thread::sleep(Duration::from_millis(300));
    let rest = text.strip_prefix("# ").unwrap_or(&text);
    let rest = &rest[rest.find("[[").unwrap()..];
    editor.write_all(rest.as_bytes()).unwrap();
    let took = began.elapsed();
    let changed = changer.join().unwrap();
    let bob = FileStore::open(&path).and_then(|store| store.account(&name("bob@a.test")));
    (took, changed.is_ok() && bob.is_ok_and(|bob| bob.is_some()))
}

#[test]
fn comments_and_order_survive_changes() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let text = "# my own words\nversion = 1\n\n# the family\n[[domain]]\nname = \"A.Test\" # capital\n\n\
                [[account]]\n# she asked for it\naddress = \"Alice@a.test\"\n\n\
                [[alias]]\naddress = \"all@a.test\"\ntargets = [\n  \"alice@a.test\", # first\n]\n";
    fs::write(&path, text).unwrap();
    let store = FileStore::open(&path).unwrap();
    store
        .apply(&Change::SetCredentials(
            name("alice@a.test"),
            Some(credentials("1")),
        ))
        .unwrap();
    store
        .apply(&Change::SetCatchAll(
            domain("a.test"),
            Some("alice@a.test".to_owned()),
        ))
        .unwrap();
    store.apply(&add_account("bob@a.test")).unwrap();
    store
        .apply(&set_alias("new@a.test", &["bob@a.test"]))
        .unwrap();
    let found = fs::read_to_string(&path).unwrap();
    for words in [
        "# my own words",
        "# the family",
        "# capital",
        "# she asked for it",
        "# first",
    ] {
        assert!(found.contains(words), "{words} in {found}");
    }
    store
        .apply(&Change::RemoveAlias(name("new@a.test")))
        .unwrap();
    store
        .apply(&Change::RemoveAccount(name("bob@a.test")))
        .unwrap();
    store
        .apply(&Change::SetCredentials(name("alice@a.test"), None))
        .unwrap();
    store
        .apply(&Change::SetCatchAll(domain("a.test"), None))
        .unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        text,
        "undone to the last octet"
    );
}

#[test]
fn rows_written_inline_can_be_changed_as_well() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let text =
        "version = 1\ndomain = [{ name = \"a.test\" }]\naccount = [{ address = \"x@a.test\" }]\n";
    fs::write(&path, text).unwrap();
    let store = FileStore::open(&path).unwrap();
    store.apply(&add_account("y@a.test")).unwrap();
    assert_eq!(accounts(&store, &ALL), ["x@a.test", "y@a.test"]);
    assert_eq!(
        accounts(&FileStore::open(&path).unwrap(), &ALL),
        ["x@a.test", "y@a.test"]
    );
}

#[test]
fn symbolic_link_stays_one_and_mode_is_kept() {
    let folder = TempDir::new().unwrap();
    let (real, link) = (
        folder.path().join("real.toml"),
        folder.path().join("link.toml"),
    );
    FileStore::create(&real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    FileStore::open(&link)
        .unwrap()
        .apply(&add_domain("a.test"))
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(
        FileStore::open(&real)
            .unwrap()
            .domain(&domain("a.test"))
            .unwrap()
            .is_some()
    );
}

#[test]
fn change_that_cannot_be_written_leaves_the_old_content() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let store = FileStore::create(&path).unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    let before = fs::read(&path).unwrap();
    // A folder in the way of the temporary file, as works against root as well.
    fs::create_dir(folder.path().join("directory.toml.new")).unwrap();
    assert!(matches!(
        store.apply(&add_account("x@a.test")),
        Err(ChangeError::Store(_))
    ));
    assert_eq!(store.account(&name("x@a.test")), Ok(None));
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_dir(folder.path().join("directory.toml.new")).unwrap();
    store.apply(&add_account("x@a.test")).unwrap();
}

#[test]
fn temporary_file_of_a_crash_is_no_obstacle() {
    let folder = TempDir::new().unwrap();
    let path = file_in(&folder);
    let store = FileStore::create(&path).unwrap();
    fs::write(folder.path().join("directory.toml.new"), "half of a fi").unwrap();
    store.apply(&add_domain("a.test")).unwrap();
    assert!(!folder.path().join("directory.toml.new").exists());
}

/// Starts this binary again to add accounts `{prefix}0`, `{prefix}1`, ... and `shared0`, ...
fn start_child(place: &Place, prefix: &str, count: usize) -> Child {
    let (Place::File(path) | Place::Sqlite(path)) = place;
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "directory::tests::child",
            "--ignored",
            "--nocapture",
        ])
        .env("VERE_TEST_STORE", path)
        .env("VERE_TEST_PREFIX", prefix)
        .env("VERE_TEST_COUNT", count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The lines `added NAME` of a child.
fn added(child: &mut Child) -> Vec<AccountName> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map_while(Result::ok);
    let names = lines.filter_map(|line| line.split_once("added ").map(|(_, name)| name.to_owned()));
    // The last line of a killed process may be cut.
    names
        .filter_map(|text| AccountName::parse(&text).ok())
        .collect()
}

#[test]
#[ignore = "runs in the processes that other tests start"]
fn child() {
    let path = PathBuf::from(std::env::var_os("VERE_TEST_STORE").unwrap());
    let prefix = std::env::var("VERE_TEST_PREFIX").unwrap();
    let count: usize = std::env::var("VERE_TEST_COUNT").unwrap().parse().unwrap();
    let toml = path.extension().is_some_and(|end| end == "toml");
    let place = if toml {
        Place::File(path)
    } else {
        Place::Sqlite(path)
    };
    let store = open(&place).unwrap();
    let add = |who: String| match store.apply(&add_account(&who)) {
        Ok(()) => writeln!(std::io::stdout(), "added {who}").unwrap(),
        Err(ChangeError::AccountExists(_)) => {}
        Err(error) => panic!("{error}"),
    };
    for n in 0..count {
        add(format!("{prefix}{n}@a.test"));
        add(format!("shared{n}@a.test"));
    }
}

fn create_with_domain(place: &Place) {
    create(place).unwrap().apply(&add_domain("a.test")).unwrap();
}

#[test]
fn several_processes_change_at_once_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        let mut children: Vec<Child> = ["p", "q", "r"]
            .iter()
            .map(|prefix| start_child(&place, prefix, 20))
            .collect();
        let mut all: Vec<String> = Vec::new();
        for child in &mut children {
            all.extend(added(child).iter().map(ToString::to_string));
            assert!(child.wait().unwrap().success());
        }
        all.sort();
        assert_eq!(
            all.len(),
            4 * 20,
            "each shared name was added by exactly one"
        );
        assert_eq!(accounts(&*open(&place).unwrap(), &ALL), all);
    }
}

#[test]
fn killed_process_loses_nothing_it_reported_and_holds_no_lock() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        for round in 0..5_u64 {
            let mut child = start_child(&place, &format!("k{round}-"), 100_000);
            std::thread::sleep(Duration::from_millis(60 + 17 * round));
            child.kill().unwrap();
            child.wait().unwrap();
            let reported = added(&mut child);
            let store = open(&place).unwrap();
            for who in &reported {
                assert!(store.account(who).unwrap().is_some(), "{who} was reported");
            }
            // A lock that was held would be waited for in vain.
            store
                .apply(&add_account(&format!("after{round}@a.test")))
                .unwrap();
        }
    }
}

#[test]
fn readers_of_a_changing_store_never_miss_what_was_there_before() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        let store = open(&place).unwrap();
        store.apply(&add_account("always@a.test")).unwrap();
        let mut child = start_child(&place, "w", 50);
        while child.try_wait().unwrap().is_none() {
            assert!(store.account(&name("always@a.test")).unwrap().is_some());
            assert!(store.domain(&domain("a.test")).unwrap().is_some());
        }
        assert_eq!(added(&mut child).len(), 100);
        assert_eq!(accounts(&*store, &ALL).len(), 101);
    }
}

#[test]
fn relative_paths_and_missing_folders() {
    assert_eq!(folder(Path::new("directory.toml")), Path::new("."));
    assert_eq!(folder(Path::new("a/directory.toml")), Path::new("a"));
    let temporary = TempDir::new().unwrap();
    let deep = temporary.path().join("a/b/c/directory.toml");
    FileStore::create(&deep).unwrap();
    assert!(deep.is_file());
}
