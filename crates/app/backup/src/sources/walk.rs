//! The files of a backup beside the mail store: all files of the data directory except files rebuilt automatically, and
//! the files elsewhere named in the settings.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use vere_process::failure::Failure;
use vere_settings::Settings;

use crate::manifest::Root;

/// Names in the data directory left out of backups: the mail store, read separately; locks; caches; the trace; copies
/// of accepted settings; the list of domains and the open challenges of the web server (`web`), which the gateway writes;
/// reserved space; files put aside by an earlier restore; the record of the last backup.
const LEFT_OUT: [&str; 15] = [
    "ballast",
    "store",
    "store.mark",
    "lock",
    "restored",
    "last-backup",
    "accepted",
    "accepted.toml",
    "trace",
    "trace-drain",
    "front",
    "couriers",
    "mta-sts-policies",
    "web",
    "dnsbl/accepted.toml",
];
/// Endings of files left by a crash during a write.
const LEFTOVERS: [&str; 3] = [".new", ".tmp", "~"];
/// The depth of folders.
const DEPTH_MAX: usize = 32;

/// The files to be read, each with the root and the path below the root.
pub(crate) type Found = BTreeMap<(Root, String), PathBuf>;

/// Finds all files.
///
/// # Errors
/// When a directory cannot be read.
pub(crate) fn find(settings: &Settings, config: &Path) -> Result<Found, Failure> {
    let left_out = left_out(settings);
    let mut found = Found::new();
    let mut add = |path: &Path, root: Root| {
        let below = match root {
            Root::Data | Root::Aside => path.strip_prefix(&settings.data).ok(),
            Root::Outside => Some(path),
        };
        if let Some(name) = below.and_then(Path::to_str) {
            found.insert((root, name.to_owned()), path.to_owned());
        }
    };
    let is_kept = |path: &Path| !left_out.iter().any(|left| path == left);
    let aside = aside(settings);
    walk(&settings.data, 0, &is_kept, &mut |path| {
        let is_aside = aside.iter().any(|folder| path.starts_with(folder));
        add(path, if is_aside { Root::Aside } else { Root::Data });
    })?;
    let named = settings.named_files.iter().map(|(_, path)| path.clone());
    let config = std::path::absolute(config)?;
    for path in named.chain([config]) {
        // A parent of the data directory does not belong to the system.
        if path.starts_with(&settings.data) || settings.data.starts_with(&path) || !is_kept(&path) {
            continue;
        }
        walk(&path, 0, &is_kept, &mut |path| add(path, Root::Outside))?;
    }
    Ok(found)
}

/// Paths of use on this machine only: the register, and the marks of the gateways.
fn aside(settings: &Settings) -> Vec<PathBuf> {
    let mut named = settings.named_files.iter();
    let register = named.find(|(key, _)| key == "cluster.folder");
    let register = register.map(|(_, path)| path.clone());
    register
        .into_iter()
        .chain([settings.data.join("owner")])
        .collect()
}

/// Paths left out of backups.
fn left_out(settings: &Settings) -> Vec<PathBuf> {
    let nodes = settings.spool.nodes.iter().map(|node| node.data.clone());
    let names = LEFT_OUT.iter().map(|name| settings.data.join(name));
    names.chain(nodes).collect()
}

/// Calls `each` with every file at or below a path. Files removed meanwhile are passed over.
fn walk(
    path: &Path,
    depth: usize,
    is_kept: &dyn Fn(&Path) -> bool,
    each: &mut dyn FnMut(&Path),
) -> Result<(), Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    // The named file itself may be a link; links below a folder are not followed.
    let kind = match depth {
        0 => fs::metadata(path),
        _ => fs::symlink_metadata(path),
    };
    let kind = match kind {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        kind => kind.map_err(wrong)?.file_type(),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_leftover = LEFTOVERS.iter().any(|end| name.ends_with(end));
    if kind.is_file() && !is_leftover {
        each(path);
    }
    if !kind.is_dir() || depth > DEPTH_MAX {
        return Ok(());
    }
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    for entry in entries {
        let path = entry.map_err(wrong)?.path();
        if is_kept(&path) {
            walk(&path, depth + 1, is_kept, each)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &Found) -> Vec<&str> {
        found.keys().map(|(_, name)| name.as_str()).collect()
    }

    /// Lists of domains and answers to challenges of the web server were in each backup, and came back with a restore.
    #[test]
    fn what_is_made_again_is_left_out_and_certificates_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("vere.toml");
        let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";
        fs::write(&config, text).unwrap();
        let settings = Settings::parse(text, &config.to_string_lossy()).unwrap();
        let kept = [
            "acme/account-ca.example.json",
            "acme/certificate.pem",
            "acme/names/example.org.pem",
            "dnsbl/list",
            "spool.key",
        ];
        let made = [
            "accepted.toml",
            "dnsbl/accepted.toml",
            "web/accepted.toml",
            "web/certificates/example.org.pem",
            "web/challenges/token",
            "web/domains",
        ];
        for name in kept.iter().chain(&made) {
            let path = settings.data.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let mut found = find(&settings, &config).unwrap();
        found.retain(|(root, _), _| *root == Root::Data);
        assert_eq!(names(&found), kept);
    }
}
