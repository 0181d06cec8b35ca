//! `vere restore --to DATA`: a whole system on a fresh machine.
//!
//! A file marks the directory as incomplete until all files are written and the mail store opens; `vere serve` refuses
//! an incomplete directory, and a repeated restore begins anew.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use vere_process::data_lock;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::owner::Owner;
use vere_process::restoring::INCOMPLETE;
use vere_process::wording::{counted, size};
use vere_units::Timestamp;

use crate::args::RestoreArgs;
use crate::fault::at;
use crate::manifest::{Manifest, Root};
use crate::place::Use;
use crate::progress;
use crate::repository::Repository;
use crate::unpack::{Losses, Unpack, sync, sync_all};

/// Restores a backup as a whole.
///
/// # Errors
/// When the directory has foreign content, an object is damaged, or a file cannot be written.
pub(crate) fn run(args: &RestoreArgs, data: &Path) -> Result<Outcome, Failure> {
    let ask = || args.at.secret.get();
    let repository = Repository::open(&args.at.place, Use::Reading, &ask)?;
    let manifest = repository.chosen(args.which.number)?;
    let data = std::path::absolute(data)?;
    inspect(&data)?;
    if args.dry_run {
        return Ok(Outcome::Print(text(&manifest, &data, &[], true)));
    }
    let (owner, _lock) = begin(&data)?;
    let bar = progress::bar(&args.shown, "restore", manifest.octets());
    let unpack = Unpack {
        repository: &repository,
        bar: &bar,
        owner,
        losses: Losses::noted(args.salvage),
    };
    let mut outside = Vec::new();
    for file in &manifest.files {
        let path = unpack.plain(file, &data)?;
        if let Some(path) = path.filter(|_| file.root == Root::Outside) {
            outside.push((file.path.clone(), path));
        }
    }
    let log = manifest.log.as_ref().filter(|log| !log.files.is_empty());
    if let Some(log) = log {
        unpack.log(log, &data)?;
    }
    let losses = unpack.losses.unwrap_or_default().into_inner();
    let mut salvaged = Vec::new();
    if log.is_some() {
        match losses.log_octets {
            0 => owner.act(|| vere_role_store::copies::adopt(&data))?,
            _ => salvaged = owner.act(|| vere_role_store::copies::salvage(&data))?,
        }
    }
    bar.finish_and_clear();
    sync_all(&data)?;
    let incomplete = data.join(INCOMPLETE);
    fs::remove_file(&incomplete).map_err(at(&incomplete))?;
    sync(&data)?;
    let said = match args.shown.json {
        true => as_json(&manifest, &data, &outside, &losses),
        false => text(&manifest, &data, &outside, false) + &losses.text(&salvaged),
    };
    Ok(Outcome::of_findings(said, !losses.is_empty()))
}

/// Whether the directory is absent or empty; false for the directory of an interrupted restore.
///
/// # Errors
/// When the directory has other files.
fn inspect(data: &Path) -> Result<bool, Failure> {
    let names = match fs::read_dir(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        names => names.map_err(at(data))?,
    };
    if data.join(INCOMPLETE).exists() {
        return Ok(false);
    }
    for name in names {
        // A restore that ended right at its beginning leaves the lock alone.
        if name.map_err(at(data))?.file_name() != data_lock::FILE_NAME {
            return Err(Failure::new(format!(
                "{}: expected an absent or empty directory; found files in it, which are not overwritten",
                data.display()
            )));
        }
    }
    Ok(true)
}

/// Removes all files of an interrupted restore, except the file that marks the directory as incomplete.
fn clear(data: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(data).map_err(at(data))? {
        let entry = entry.map_err(at(data))?;
        let path = entry.path();
        let removed = match entry.file_type().map_err(at(&path))? {
            kind if kind.is_dir() => fs::remove_dir_all(&path),
            _ if entry.file_name() == INCOMPLETE => Ok(()),
            _ if entry.file_name() == data_lock::FILE_NAME => Ok(()),
            _ => fs::remove_file(&path),
        };
        removed.map_err(at(&path))?;
    }
    Ok(())
}

/// Takes the directory for this restore alone, and marks the directory as incomplete.
fn begin(data: &Path) -> Result<(Owner, File), Failure> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(data);
    made.map_err(at(data))?;
    let owner = Owner::of(data).map_err(at(data))?;
    let lock = owner.act(|| data_lock::open(data)).map_err(at(data))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Failure::new(format!(
                "{}: another restore into this directory is under way, or a system runs there",
                data.display()
            )));
        }
        Err(TryLockError::Error(error)) => return Err(at(data)(error)),
    }
    // Another restore may have filled the directory since the first inspection.
    if !inspect(data)? {
        clear(data)?;
    }
    let incomplete = data.join(INCOMPLETE);
    let words = "A restore into this directory did not finish: run the same command again.\n";
    let written = owner.act(|| fs::write(&incomplete, words));
    written.map_err(at(&incomplete))?;
    sync(data)?;
    Ok((owner, lock))
}

fn text(manifest: &Manifest, data: &Path, outside: &[(String, PathBuf)], dry_run: bool) -> String {
    let mut text = format!(
        "backup {} of {} ({}, {}) {} {}\n",
        manifest.number,
        Timestamp::from_millis(manifest.made),
        counted(manifest.files.len() as u64, "file", "files"),
        size(manifest.octets()),
        if dry_run {
            "would be restored into"
        } else {
            "restored into"
        },
        data.display(),
    );
    if !outside.is_empty() {
        text += "Copy these files to their places, and adapt `data` in the settings:\n";
    }
    for (path, at) in outside {
        text += &format!("  {} -> {path}\n", at.display());
    }
    if !dry_run {
        text += "Mailboxes have a new UIDVALIDITY: clients read their mail again. Next: vere check-config, vere serve\n";
    }
    text
}

fn as_json(
    manifest: &Manifest,
    data: &Path,
    outside: &[(String, PathBuf)],
    losses: &Losses,
) -> String {
    let outside: Vec<_> = outside
        .iter()
        .map(|(path, at)| json!({ "path": path, "restored_as": at.display().to_string() }))
        .collect();
    let value = json!({
        "number": manifest.number,
        "made": Timestamp::from_millis(manifest.made).to_string(),
        "data": data.display().to_string(),
        "octets": manifest.octets(),
        "files": manifest.files.len(),
        "outside": outside,
        "lost_files": losses.files,
        "lost_octets": losses.log_octets,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two restores into the same directory removed the files of each other.
    #[test]
    fn a_single_restore_uses_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let (_, lock) = begin(&data).unwrap();
        fs::write(data.join("file"), "of the first").unwrap();
        let error = begin(&data).unwrap_err().to_string();
        assert!(error.contains("another restore"), "{error}");
        assert!(data.join("file").exists());
        drop(lock);
        // The first one was killed: its files go.
        let (_, lock) = begin(&data).unwrap();
        assert!(!data.join("file").exists() && data.join(INCOMPLETE).exists());
        drop(lock);
        // A restore that ended before the mark leaves the lock alone.
        fs::remove_file(data.join(INCOMPLETE)).unwrap();
        assert!(inspect(&data).unwrap());
        fs::write(data.join("file"), "").unwrap();
        inspect(&data).unwrap_err();
    }
}
