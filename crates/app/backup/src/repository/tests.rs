use std::path::Path;

use vere_units::Secret;

use super::*;
use crate::manifest::{Mark, Plain, Queues, Root, VERSION};

/// A backup of a single file.
pub(crate) fn small(number: u64, object: &str) -> Manifest {
    Manifest {
        version: VERSION,
        number,
        made: 7,
        program: "0".to_owned(),
        host: "mx.example.org".to_owned(),
        data: "/data".to_owned(),
        config: "/vere.toml".to_owned(),
        log: None,
        files: vec![Plain {
            root: Root::Data,
            path: "a".to_owned(),
            mode: 0o600,
            octets: 1,
            mark: Mark::default(),
            pieces: vec![Piece(1, object.to_owned())],
        }],
        queues: Queues {
            included: false,
            messages: None,
        },
    }
}

pub(crate) fn nothing() -> Result<Option<Secret<Vec<u8>>>, Failure> {
    Ok(None)
}

fn passphrase() -> Result<Option<Secret<Vec<u8>>>, Failure> {
    Ok(Some(Secret::new(b"secret".to_vec())))
}

pub(crate) fn open(folder: &Path, usage: Use) -> Result<Repository, Failure> {
    Repository::open(&folder.display().to_string(), usage, &nothing)
}

#[test]
fn a_place_is_made_once_and_keeps_its_encryption() {
    for (first, second) in [
        (&nothing as Ask<'_>, &passphrase as Ask<'_>),
        (&passphrase, &nothing),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().display().to_string();
        assert!(Repository::open(&text, Use::Reading, first).is_err());
        let made = Repository::open(&text, Use::Writing, first).unwrap();
        let name = made.name(b"content");
        made.put(&name, b"content", &Pace::new(None, true)).unwrap();
        made.finish(&small(1, &name)).unwrap();
        drop(made);
        assert!(Repository::open(&text, Use::Writing, second).is_err());
        let again = Repository::open(&text, Use::Reading, first).unwrap();
        assert_eq!(again.chosen(None).unwrap(), small(1, &name));
        assert_eq!(again.objects().unwrap()[&name], 7);
        assert_eq!(again.piece(&Piece(7, name)).unwrap(), b"content");
        assert!(again.chosen(Some(2)).is_err());
    }
}

#[test]
fn damage_of_an_object_shows() {
    for ask in [&nothing as Ask<'_>, &passphrase] {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().display().to_string();
        let repository = Repository::open(&text, Use::Writing, ask).unwrap();
        let name = repository.name(b"content");
        repository
            .put(&name, b"content", &Pace::new(None, true))
            .unwrap();
        let piece = Piece(7, name.clone());
        repository.piece(&piece).unwrap();
        let path = folder.path().join(object_path(&name));
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(repository.piece(&piece).is_err(), "octet {at}");
        }
        std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(repository.piece(&piece).is_err());
        std::fs::write(&path, &whole).unwrap();
        repository.piece(&piece).unwrap();
        // Names from a list lead nowhere else.
        for name in ["../../etc/passwd", "", &"é".repeat(32)] {
            assert!(repository.piece(&Piece(7, name.to_owned())).is_err());
        }
    }
}

#[test]
fn a_place_without_its_description_is_not_taken_for_empty() {
    let folder = tempfile::tempdir().unwrap();
    let repository = open(folder.path(), Use::Writing).unwrap();
    repository.finish(&small(1, &"ab".repeat(32))).unwrap();
    drop(repository);
    for name in description::NAMES {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let error = open(folder.path(), Use::Writing).unwrap_err();
    assert!(
        error.to_string().contains("missing beside backups"),
        "{error}"
    );
}

/// The salt of the passphrase is in the description: 356 octets that all backups hang on.
#[test]
fn a_description_that_is_damaged_or_gone_is_made_whole_by_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().display().to_string();
    let made = Repository::open(&text, Use::Writing, &passphrase).unwrap();
    let name = made.name(b"content");
    made.put(&name, b"content", &Pace::new(None, true)).unwrap();
    drop(made);
    let [first, copy] = description::NAMES.map(|name| folder.path().join(name));
    let whole = std::fs::read(&first).unwrap();
    for broken in [&first, &copy] {
        for cut in [Some(&whole[..whole.len() / 2]), None] {
            match cut {
                Some(octets) => std::fs::write(broken, octets).unwrap(),
                None => std::fs::remove_file(broken).unwrap(),
            }
            let reading = Repository::open(&text, Use::Reading, &passphrase).unwrap();
            reading.piece(&Piece(7, name.clone())).unwrap();
            drop(reading);
            drop(Repository::open(&text, Use::Writing, &passphrase).unwrap());
            assert_eq!(std::fs::read(broken).unwrap(), whole);
        }
    }
    for broken in [&first, &copy] {
        std::fs::write(broken, "{").unwrap();
    }
    let error = Repository::open(&text, Use::Writing, &passphrase).unwrap_err();
    assert!(
        error.to_string().contains("vere-backup.json: damaged"),
        "{error}"
    );
    assert_eq!(std::fs::read(&first).unwrap(), b"{");
}
