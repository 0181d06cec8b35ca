//! Copies of the last usable certificates and keys, in `accepted` under the data directory.
//!
//! Roles make the copies (`vere_net::tls`), and use the copies when the files are broken at a role's start. Whole
//! starts do too, as after a reboot at night: mail flows, the log reports the faults loudly, and `check-config` fails.
//! But only where the settings accepted last named the identical files: a copy of a different file is useless.
//! Copies without a setting are removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vere_net::tls::{CertificateFiles as Files, check_files};
use vere_settings::Settings;

use crate::named::Fault;
use vere_process::kept::{FOLDER, Kept};

/// The copy in place of the faulty files, if made from the identical files: `before` are the settings accepted last.
pub(super) fn instead(fault: &Fault, settings: &Settings, before: &Settings) -> Option<PathBuf> {
    let kept = Kept::of_key(&fault.key)?;
    kept.files(settings)
        .filter(|files| kept.files(before).as_ref() == Some(files))?;
    let path = kept.path(settings);
    check_files(&Files::new(&path, &path))
        .is_ok()
        .then_some(path)
}

/// Removes copies of files that the settings no longer name. A copy therefore always belongs to the files in
/// the settings accepted last, even if the role dies before the new copy is made.
pub(super) fn forget_changed(before: &Settings, settings: &Settings) {
    for kept in Kept::all(before) {
        if kept.files(before) != kept.files(settings) {
            remove(&kept.path(settings));
        }
    }
}

/// Removes the copies without a setting: unused keys are not to lie about. `all`: also half-written files left by a
/// crash; only while no role runs and writes copies.
pub(super) fn tidy(settings: &Settings, all: bool) {
    let named: Vec<PathBuf> = Kept::all(settings)
        .map(|kept| kept.path(settings))
        .collect();
    let folder = settings.data.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return untidy(&folder, &error),
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let whole = path.extension().is_some_and(|end| end == "pem");
        if named.contains(&path) || !(all || whole) {
            continue;
        }
        remove(&path);
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => tracing::info!(
            file = %path.display(),
            "copy of a certificate removed that no setting names"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => untidy(path, &error),
    }
}

fn untidy(path: &Path, error: &io::Error) {
    tracing::warn!(%error, file = %path.display(), "cannot remove copies of certificates");
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn copies_of_other_files_than_before_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let settings = |sections: &str| {
            let data = folder.path().display();
            let text = format!(
                "version = 1\nhostname = \"mx.example.org\"\ndata = \"{data}\"\n{sections}"
            );
            Settings::parse(&text, "vere.toml").unwrap()
        };
        let section = |name: &str, file: &str| {
            format!("[[tls.sni]]\nname = \"{name}\"\ncertificate = \"{file}\"\nkey = \"k.pem\"\n")
        };
        let [a, b] = ["a", "b"].map(|name| section(name, "c.pem"));
        let before = settings(&format!("{a}{b}"));
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        let copies = || {
            [0, 1].map(|place| {
                let path = Kept::Sni(place).path(&before);
                let _ = File::create_new(&path);
                path
            })
        };
        for (now, left) in [
            (settings(&format!("{a}{b}")), [true, true]),
            // The second one is the first one now.
            (settings(&b), [false, false]),
            (
                settings(&format!("{a}{}", section("b", "d.pem"))),
                [true, false],
            ),
        ] {
            let copies = copies();
            forget_changed(&before, &now);
            assert_eq!(copies.map(|path| path.exists()), left);
        }
    }
}
