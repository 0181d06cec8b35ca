//! The settings in force, kept apart from the file that an operator edits.
//!
//! A role that is restarted must come up with the settings that were last accepted, not with what
//! lies half edited in the file. So the accepted text is kept in `accepted.toml` under the data
//! directory, and roles read that.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vere_settings::{KeyLines, Settings, blanked};

use super::error::SupervisorError;
use super::kept;
use crate::named::{self, Fault};
use vere_process::settings::{SettingsError, parse, read};

/// Name of the file under the data directory.
const FILE_NAME: &str = "accepted.toml";

/// The settings that were accepted last.
fn accepted(settings: &Settings, config_path: &Path) -> Result<Settings, SettingsError> {
    read(&settings.data.join(FILE_NAME)).and_then(|text| parse(&text, config_path))
}

/// Checks what the settings name, whole: a role that came up later could not use it either.
pub(super) fn check_named(
    settings: &Settings,
    config_path: &Path,
    text: &str,
) -> Result<(), SupervisorError> {
    refuse(named::faults(settings), config_path, text)
}

/// As [`check_named`], before roles are started for the first time: for a certificate that cannot be used its copy
/// serves, if there is one.
pub(super) fn check_at_start(
    settings: &Settings,
    config_path: &Path,
    text: &str,
) -> Result<(), SupervisorError> {
    let mut faults = named::faults(settings);
    if let Ok(before) = accepted(settings, config_path) {
        faults.retain(|fault| match kept::instead(fault, settings, &before) {
            None => true,
            Some(copy) => {
                tracing::error!(
                    key = fault.key,
                    error = fault.text,
                    copy = %copy.display(),
                    "a certificate cannot be used, the copy that was used last serves: mend it until check-config \
                     finds nothing"
                );
                false
            }
        });
    }
    refuse(faults, config_path, text)
}

fn refuse(faults: Vec<Fault>, config_path: &Path, text: &str) -> Result<(), SupervisorError> {
    if faults.is_empty() {
        return Ok(());
    }
    let lines = KeyLines::of(text);
    let at_line = |fault: Fault| (lines.at(&fault.key), fault);
    Err(SupervisorError::FilesWrong {
        path: config_path.to_owned(),
        faults: faults.into_iter().map(at_line).collect(),
    })
}

/// The settings in force and where they are kept for roles.
#[derive(Debug)]
pub(super) struct Snapshot {
    settings: Arc<Settings>,
    config_path: PathBuf,
    path: PathBuf,
}

impl Snapshot {
    /// Keeps `text`, from which `settings` were made.
    pub(super) fn new(
        settings: Arc<Settings>,
        config_path: &Path,
        text: &str,
    ) -> Result<Self, SupervisorError> {
        let path = settings.data.join(FILE_NAME);
        if let Ok(before) = accepted(&settings, config_path) {
            kept::forget_changed(&before, &settings);
        }
        write(&path, text)?;
        share(&settings, &path, text)?;
        kept::tidy(&settings, true);
        Ok(Self {
            settings,
            config_path: config_path.to_owned(),
            path,
        })
    }

    /// The file for roles.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the edited file over, whole or not at all. Returns the settings, and the keys of changed values.
    pub(super) fn reload(&mut self) -> Result<(&Settings, Vec<String>), SupervisorError> {
        let text = read(&self.config_path)?;
        let settings = parse(&text, &self.config_path)?;
        let changes = self.settings.changes(&settings);
        if !changes.restart.is_empty() {
            return Err(SupervisorError::NeedsRestart {
                keys: changes.restart,
            });
        }
        check_named(&settings, &self.config_path, &text)?;
        kept::forget_changed(&self.settings, &settings);
        write(&self.path, &text)?;
        share(&settings, &self.path, &text)?;
        kept::tidy(&settings, false);
        self.settings = Arc::new(settings);
        Ok((&self.settings, changes.live))
    }
}

/// The roles whose sandbox has a directory of settings of its own: each reads what strangers send, and knows no secret of other roles.
const CONFINED: [&str; 2] = ["web", "dnsbl"];

/// The name of the accepted settings for a role.
pub(super) fn path_for(role: &str, path: &Path) -> PathBuf {
    match CONFINED.contains(&role) {
        true => path.with_file_name(role).join(FILE_NAME),
        false => path.to_owned(),
    }
}

/// Writes the text without secrets for each confined role, in a directory of its owner alone.
fn share(settings: &Settings, path: &Path, text: &str) -> Result<(), SupervisorError> {
    let present = [settings.web.is_some(), settings.dnsbl.is_some()];
    let roles = CONFINED.into_iter().zip(present);
    for role in roles.filter_map(|(role, is_present)| is_present.then_some(role)) {
        let own = path_for(role, path);
        // Behind a text that became settings this is TOML.
        let text = blanked(text).unwrap_or_default();
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700);
        let made = own.parent().map_or(Ok(()), |parent| folder.create(parent));
        made.map_err(|source| SupervisorError::DataDirectory {
            path: own.clone(),
            source,
        })?;
        write(&own, &text)?;
    }
    Ok(())
}

/// Replaces the file whole: a role that starts meanwhile reads the old or the new text. It may hold
/// passwords of next hops, hence the mode. Not synced: the next start writes it anew.
///
/// A file that says the same already stays: on a full disk there is no block for another one.
fn write(path: &Path, text: &str) -> Result<(), SupervisorError> {
    let private = |file: fs::Metadata| file.is_file() && file.mode() & 0o777 == 0o600;
    if fs::symlink_metadata(path).is_ok_and(private)
        && fs::read(path).is_ok_and(|before| before == text.as_bytes())
    {
        return Ok(());
    }
    let new = path.with_extension("toml.new");
    let attempt = || -> io::Result<()> {
        if let Err(error) = fs::remove_file(&new)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, path)
    };
    attempt().map_err(|source| SupervisorError::DataDirectory {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(folder: &Path) -> (PathBuf, Snapshot) {
        let config = folder.join("vere.toml");
        let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";
        fs::write(&config, text).unwrap();
        let settings = Arc::new(parse(text, &config).unwrap());
        fs::create_dir(&settings.data).unwrap();
        let snapshot = Snapshot::new(settings, &config, text).unwrap();
        (config, snapshot)
    }

    /// The web server had the whole file, and the server of block lists the whole data directory.
    #[test]
    fn a_confined_role_reads_settings_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("vere.toml");
        let text = "version = 1 # s3cret\nhostname = \"mx.example.org\"\ndata = \"data\"\n\
                    [[route]]\ndomain = \"*\"\nnext_hop = \"relay.example.net\"\ntls = \"required\"\n\
                    username = \"ann\"\npassword = \"s3cret\"\n\
                    [dnsbl]\nlisten = [\"127.0.0.1:0\"]\n[[dnsbl.zone]]\nname = \"bl.example\"\n\
                    data = [\"ip4set:list\"]\n[web]\nhttps = []\n";
        fs::write(folder.path().join("list"), "192.0.2.1\n").unwrap();
        fs::write(&config, text).unwrap();
        let settings = Arc::new(parse(text, &config).unwrap());
        fs::create_dir(&settings.data).unwrap();
        let mut snapshot = Snapshot::new(settings, &config, text).unwrap();
        assert_eq!(path_for("gateway", snapshot.path()), snapshot.path());
        for more in ["", "connections_max = 7\n", "connections_max = 7\n"] {
            fs::write(&config, format!("{text}{more}")).unwrap();
            snapshot.reload().unwrap();
            let whole = parse(&fs::read_to_string(snapshot.path()).unwrap(), &config).unwrap();
            for role in ["web", "dnsbl"] {
                let own = path_for(role, snapshot.path());
                assert_eq!(
                    own,
                    folder.path().join(format!("data/{role}/accepted.toml"))
                );
                let told = fs::read_to_string(&own).unwrap();
                assert!(!told.contains("s3cret"), "{told}");
                let told = parse(&told, &config).unwrap();
                assert_eq!((&told.web, &told.dnsbl), (&whole.web, &whole.dnsbl));
                assert_eq!(fs::read_dir(own.parent().unwrap()).unwrap().count(), 1);
            }
        }
    }

    #[test]
    fn a_right_file_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let (config, mut snapshot) = snapshot(folder.path());
        let text = fs::read_to_string(&config).unwrap() + "[limits]\nrecipients_max = 200\n";
        fs::write(&config, &text).unwrap();
        let (_, changed) = snapshot.reload().unwrap();
        assert_eq!(changed, ["limits.recipients_max"]);
        assert_eq!(snapshot.settings.limits.recipients_max, 200);
        assert_eq!(fs::read_to_string(snapshot.path()).unwrap(), text);
    }

    #[test]
    fn a_wrong_file_changes_nothing_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (config, mut snapshot) = snapshot(folder.path());
        let before = fs::read_to_string(snapshot.path()).unwrap();
        fs::write(&config, "version = 1\nhostnam = \"x\"\n").unwrap();
        let error = snapshot.reload().unwrap_err().to_string();
        assert!(error.contains("vere.toml:2: hostnam"), "{error}");
        assert_eq!(fs::read_to_string(snapshot.path()).unwrap(), before);
    }

    #[test]
    fn files_that_cannot_be_used_refuse_the_reload_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (config, mut snapshot) = snapshot(folder.path());
        let text = fs::read_to_string(&config).unwrap();
        fs::write(folder.path().join("bad.pem"), "garbage").unwrap();
        let changed =
            text.clone() + "[limits]\nrecipients_max = 200\n[delivery]\nca = \"bad.pem\"\n";
        fs::write(&config, changed).unwrap();
        let error = snapshot.reload().unwrap_err().to_string();
        assert!(error.contains("vere.toml:7: delivery.ca: "), "{error}");
        assert!(error.contains("bad.pem holds no certificate"), "{error}");
        assert_eq!(snapshot.settings.limits.recipients_max, 1000);
        assert_eq!(fs::read_to_string(snapshot.path()).unwrap(), text);
    }

    #[test]
    fn a_change_that_needs_a_restart_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (config, mut snapshot) = snapshot(folder.path());
        let text = fs::read_to_string(&config).unwrap()
            + "[smtp]\nlisten = [\"127.0.0.1:2525\"]\n[limits]\nrecipients_max = 200\n";
        fs::write(&config, text).unwrap();
        let error = snapshot.reload().unwrap_err();
        assert!(
            matches!(&error, SupervisorError::NeedsRestart { keys } if keys == &["smtp.listen"])
        );
        assert_eq!(snapshot.settings.limits.recipients_max, 1000);
    }
}
