//! `vere backup prune`: removes old backups.
//!
//! Lists are removed first, and the removal is synced before any object goes. An object goes only when all remaining
//! lists were read and no list has the object. So a killed prune loses no listed object; the next prune finishes.

use std::collections::HashSet;

use serde_json::json;
use vere_process::clock::now;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::counted;
use vere_units::ByteSize;

use crate::args::PlaceArgs;
use crate::manifest::Manifest;
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
    let repository = Repository::open(&place.place, Use::Writing, &ask)?;
    let numbers = repository.numbers()?.into_iter();
    let all: Vec<Manifest> = numbers
        .map(|number| repository.manifest(number))
        .collect::<Result<_, _>>()?;
    let (kept, gone): (Vec<&Manifest>, Vec<&Manifest>) = {
        let stays = stays(&all, keep, now().as_millis());
        all.iter()
            .partition(|manifest| stays.contains(&manifest.number))
    };
    if !dry_run {
        for manifest in &gone {
            repository.forget(manifest.number)?;
        }
        repository.settle()?;
        repository.clear_leftovers()?;
    }
    let needed: HashSet<&str> = kept
        .iter()
        .flat_map(|manifest| manifest.pieces())
        .map(|piece| piece.1.as_str())
        .collect();
    let (mut objects, mut octets) = (0_u64, 0);
    for (name, length) in repository.objects()? {
        if !needed.contains(name.as_str()) {
            objects += 1;
            octets += length;
            if !dry_run {
                repository.remove(&name)?;
            }
        }
    }
    repository.settle()?;
    let removed: Vec<u64> = gone.iter().map(|manifest| manifest.number).collect();
    let text = match json {
        true => {
            let kept: Vec<u64> = kept.iter().map(|manifest| manifest.number).collect();
            let value = json!({
                "removed": removed, "kept": kept, "objects": objects, "octets": octets,
            });
            format!("{value:#}\n")
        }
        false => format!(
            "{} and {} ({}) {}; {}\n",
            counted(removed.len() as u64, "backup", "backups"),
            counted(objects, "object", "objects"),
            ByteSize::new(octets),
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

/// The numbers of the kept backups: the newest backups, the backups of the last days, and always the newest backup.
fn stays(all: &[Manifest], (keep, days): (Option<u64>, Option<u64>), now: u64) -> HashSet<u64> {
    let newest = usize::try_from(keep.unwrap_or(0).max(1)).unwrap_or(usize::MAX);
    let newest = all.iter().rev().take(newest);
    let since = days.map(|days| now.saturating_sub(days.saturating_mul(DAY_MS)));
    let young = all
        .iter()
        .filter(|manifest| since.is_some_and(|since| manifest.made >= since));
    newest
        .chain(young)
        .map(|manifest| manifest.number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::small;
    use crate::repository::tests::open;
    use crate::secret::SecretArgs;

    fn made(number: u64, day: u64) -> Manifest {
        Manifest {
            made: day * DAY_MS,
            ..small(number, &"ab".repeat(32))
        }
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

    #[test]
    fn objects_go_that_no_list_has() {
        let folder = tempfile::tempdir().unwrap();
        let repository = open(folder.path(), Use::Writing).unwrap();
        let names = [b"a", b"b", b"c"].map(|content| {
            let name = repository.name(content);
            repository.put(&name, content).unwrap();
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
        // Where a list cannot be read it is unknown what it needs.
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
