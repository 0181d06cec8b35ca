//! Files that people edit while the system runs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use super::*;

/// What others do to the file is found by whoever looks after this: the promise is one of time.
fn until_asked_again() {
    std::thread::sleep(Duration::from_millis(3));
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
        until_asked_again();
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
        until_asked_again();
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
