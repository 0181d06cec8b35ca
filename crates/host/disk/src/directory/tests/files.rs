//! What lies on the disk: who may read it, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

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
fn relative_paths_and_missing_folders() {
    assert_eq!(folder(Path::new("directory.toml")), Path::new("."));
    assert_eq!(folder(Path::new("a/directory.toml")), Path::new("a"));
    let temporary = TempDir::new().unwrap();
    let deep = temporary.path().join("a/b/c/directory.toml");
    FileStore::create(&deep).unwrap();
    assert!(deep.is_file());
}
