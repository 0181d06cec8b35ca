//! `vere restore --to DATA`: a whole system on a fresh machine.
//!
//! A file marks the directory as incomplete until all files are written and the mail store opens; `vere serve` refuses
//! an incomplete directory, and a repeated restore begins anew.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::restoring::INCOMPLETE;
use vere_process::wording::counted;
use vere_units::{ByteSize, Timestamp};

use crate::args::RestoreArgs;
use crate::fault::at;
use crate::manifest::{Manifest, Root};
use crate::place::Use;
use crate::progress;
use crate::repository::Repository;
use crate::unpack::{Unpack, sync, sync_all};

/// Restores a backup as a whole.
///
/// # Errors
/// When the directory has foreign content, an object is damaged, or a file cannot be written.
pub(crate) fn run(args: &RestoreArgs, data: &Path) -> Result<Outcome, Failure> {
    let ask = || args.at.secret.get();
    let repository = Repository::open(&args.at.place, Use::Reading, &ask)?;
    let manifest = repository.chosen(args.which.number)?;
    let data = std::path::absolute(data)?;
    let is_fresh = inspect(&data)?;
    if args.dry_run {
        return Ok(Outcome::Print(text(&manifest, &data, &[], true)));
    }
    if !is_fresh {
        clear(&data)?;
    }
    begin(&data)?;
    let bar = progress::bar(&args.shown, "restore", manifest.octets());
    let unpack = Unpack {
        repository: &repository,
        bar: &bar,
    };
    let mut outside = Vec::new();
    for file in &manifest.files {
        let path = unpack.plain(file, &data)?;
        if file.root == Root::Outside {
            outside.push((file.path.clone(), path));
        }
    }
    if let Some(log) = manifest.log.as_ref().filter(|log| !log.files.is_empty()) {
        unpack.log(log, &data)?;
        vere_role_store::copies::adopt(&data)?;
    }
    bar.finish_and_clear();
    sync_all(&data)?;
    let incomplete = data.join(INCOMPLETE);
    fs::remove_file(&incomplete).map_err(at(&incomplete))?;
    sync(&data)?;
    let said = match args.shown.json {
        true => as_json(&manifest, &data, &outside),
        false => text(&manifest, &data, &outside, false),
    };
    Ok(Outcome::Print(said))
}

/// Whether the directory is absent or empty; false for the directory of an interrupted restore.
fn inspect(data: &Path) -> Result<bool, Failure> {
    let mut names = match fs::read_dir(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        names => names.map_err(at(data))?,
    };
    if data.join(INCOMPLETE).exists() {
        return Ok(false);
    }
    match names.next() {
        None => Ok(true),
        Some(_) => Err(Failure::new(format!(
            "{}: expected an absent or empty directory; found files in it, which are not overwritten",
            data.display()
        ))),
    }
}

/// Removes all files of an interrupted restore, except the file that marks the directory as incomplete.
fn clear(data: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(data).map_err(at(data))? {
        let entry = entry.map_err(at(data))?;
        let path = entry.path();
        let removed = match entry.file_type().map_err(at(&path))? {
            kind if kind.is_dir() => fs::remove_dir_all(&path),
            _ if entry.file_name() == INCOMPLETE => Ok(()),
            _ => fs::remove_file(&path),
        };
        removed.map_err(at(&path))?;
    }
    Ok(())
}

fn begin(data: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(data);
    made.map_err(at(data))?;
    let incomplete = data.join(INCOMPLETE);
    let words = "A restore into this directory did not finish: run the same command again.\n";
    fs::write(&incomplete, words).map_err(at(&incomplete))?;
    sync(data)
}

fn text(manifest: &Manifest, data: &Path, outside: &[(String, PathBuf)], dry_run: bool) -> String {
    let mut text = format!(
        "backup {} of {} ({}, {}) {} {}\n",
        manifest.number,
        Timestamp::from_millis(manifest.made),
        counted(manifest.files.len() as u64, "file", "files"),
        ByteSize::new(manifest.octets()),
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

fn as_json(manifest: &Manifest, data: &Path, outside: &[(String, PathBuf)]) -> String {
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
    });
    format!("{value:#}\n")
}
