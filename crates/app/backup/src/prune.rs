//! `vere backup prune`: removes old backups.
//!
//! Lists are removed first, and the removal is synced before any object goes. An object goes only when all remaining
//! lists were read and no list has the object. So a killed prune loses no listed object; the next prune finishes.

use std::collections::HashSet;

use blake3::Hash;
use serde_json::json;
use vere_process::clock::now;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::{counted, size};

use crate::args::PlaceArgs;
use crate::place::Use;
use crate::repository::Repository;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Removes backups, and the objects that no remaining backup needs.
///
/// # Errors
/// When a list cannot be read: the prune then removes no backup and no object. When the place cannot be written.
pub(crate) fn run(
    place: &PlaceArgs,
    keep: (Option<u64>, Option<u64>),
    dry_run: bool,
    json: bool,
) -> Result<Outcome, Failure> {
    let ask = || place.secret.get();
    let repository = Repository::open(&place.place, Use::Changing, &ask)?;
    // Two lists of large systems may be larger than the memory: each is read alone.
    let mut all = Vec::new();
    for number in repository.numbers()? {
        // The objects of an unreadable list are unknown.
        let manifest = repository.manifest(number).map_err(|error| {
            Failure::new(format!(
                "{error}; nothing is removed. Remove this file, and with it backup {number}, to go on"
            ))
        })?;
        let made = manifest.made;
        all.push(Made { number, made });
    }
    let stays = stays(&all, keep, now().as_millis());
    let (kept, gone): (Vec<u64>, Vec<u64>) = all
        .iter()
        .map(|backup| backup.number)
        .partition(|number| stays.contains(number));
    let needed = needed(&repository, &kept)?;
    if !dry_run {
        for number in &gone {
            repository.forget(*number)?;
        }
        repository.settle()?;
        repository.clear_leftovers()?;
    }
    let noted = repository.damaged()?;
    let (mut objects, mut octets) = (0_u64, 0);
    for (name, length) in repository.objects()? {
        // A name that is no hash belongs to no backup.
        let is_needed = Hash::from_hex(&name).is_ok_and(|hash| needed.contains(hash.as_bytes()));
        if is_needed {
            continue;
        }
        objects += 1;
        octets += length;
        if !dry_run {
            repository.remove(&name)?;
            if noted.contains(&name) {
                repository.note_mended(&name)?;
            }
        }
    }
    repository.settle()?;
    let text = match json {
        true => {
            let value = json!({
                "removed": gone, "kept": kept, "objects": objects, "octets": octets,
            });
            format!("{value:#}\n")
        }
        false => format!(
            "{} and {} ({}) {}; {}\n",
            counted(gone.len() as u64, "backup", "backups"),
            counted(objects, "object", "objects"),
            size(octets),
            if dry_run {
                "would be removed"
            } else {
                "removed"
            },
            counted(kept.len() as u64, "backup remains", "backups remain"),
        ),
    };
    Ok(Outcome::Print(text))
}

/// A backup, without the list of files.
#[derive(Debug, Clone, Copy)]
struct Made {
    number: u64,
    /// In milliseconds since 1970.
    made: u64,
}

/// The names of all objects that some backups need, 32 octets each.
///
/// # Errors
/// When a list cannot be read.
fn needed(repository: &Repository, kept: &[u64]) -> Result<HashSet<[u8; 32]>, Failure> {
    let mut needed = HashSet::new();
    for number in kept {
        for piece in repository.manifest(*number)?.pieces() {
            needed.insert(*Hash::from_hex(&piece.1)?.as_bytes());
        }
    }
    Ok(needed)
}

/// The numbers of the kept backups: the newest backups, the backups of the last days, and always the newest backup.
fn stays(all: &[Made], (keep, days): (Option<u64>, Option<u64>), now: u64) -> HashSet<u64> {
    let newest = usize::try_from(keep.unwrap_or(0).max(1)).unwrap_or(usize::MAX);
    let newest = all.iter().rev().take(newest);
    let since = days.map(|days| now.saturating_sub(days.saturating_mul(DAY_MS)));
    let young = all
        .iter()
        .filter(|backup| since.is_some_and(|since| backup.made >= since));
    newest.chain(young).map(|backup| backup.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;
    use crate::repository::tests::{open, small};
    use crate::secret::SecretArgs;

    fn made(number: u64, day: u64) -> Made {
        let made = day * DAY_MS;
        Made { number, made }
    }

    #[test]
    fn the_newest_backup_stays_whatever_the_clock_says() {
        let all = [made(1, 1), made(2, 8), made(3, 9)];
        let kept = |keep, now: u64| {
            let mut kept: Vec<u64> = stays(&all, keep, now * DAY_MS).into_iter().collect();
            kept.sort_unstable();
            kept
        };
        assert_eq!(kept((Some(2), None), 10), [2, 3]);
        assert_eq!(kept((Some(0), None), 10), [3]);
        assert_eq!(kept((None, Some(2)), 10), [2, 3]);
        assert_eq!(kept((Some(1), Some(9)), 10), [1, 2, 3]);
        // The clock is years ahead, or at its beginning.
        assert_eq!(kept((None, Some(7)), 5_000), [3]);
        assert_eq!(kept((None, Some(7)), 0), [1, 2, 3]);
    }

    /// A mistyped directory got a lock, a description and the success of having removed nothing.
    #[test]
    fn a_prune_of_a_mistyped_directory_says_so_and_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "absent"] {
            let place = PlaceArgs {
                place: folder.path().join(name).display().to_string(),
                secret: SecretArgs::default(),
            };
            let error = run(&place, (Some(1), None), false, false).unwrap_err();
            assert!(error.to_string().contains("expected backups"), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn objects_go_that_no_list_has() {
        let folder = tempfile::tempdir().unwrap();
        let repository = open(folder.path(), Use::Writing).unwrap();
        let names = [b"a", b"b", b"c"].map(|content| {
            let name = repository.name(content);
            repository
                .put(&name, content, &Pace::new(None, true))
                .unwrap();
            name
        });
        repository.finish(&small(1, &names[0])).unwrap();
        repository.finish(&small(2, &names[1])).unwrap();
        drop(repository);
        let place = PlaceArgs {
            place: folder.path().display().to_string(),
            secret: SecretArgs::default(),
        };
        let list = folder.path().join("manifests/00000001");
        let whole = std::fs::read(&list).unwrap();
        // The objects of an unreadable list are unknown.
        std::fs::write(&list, b"damaged").unwrap();
        run(&place, (Some(1), None), false, false).unwrap_err();
        std::fs::write(&list, whole).unwrap();
        run(&place, (Some(1), None), true, false).unwrap();
        assert!(list.exists());
        run(&place, (Some(1), None), false, false).unwrap();
        let repository = open(folder.path(), Use::Reading).unwrap();
        assert_eq!(repository.numbers().unwrap(), [2]);
        let left: Vec<String> = repository.objects().unwrap().into_keys().collect();
        assert_eq!(left, [names[1].clone()]);
    }
}
