//! The file of the settings: whether the settings are valid, and whether a system could start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vere_process::failure::Failure;
use vere_settings::{KeyLines, Settings, redacted};
use vere_supervisor::named::{self, Fault};

use crate::row::Row;
use crate::surroundings;

const CHECK: &str = "settings";

/// The file of the settings.
#[derive(Debug)]
pub(crate) struct Config {
    /// The whole path; `None` when no file was found.
    pub(crate) path: Option<PathBuf>,
    /// Valid settings.
    pub(crate) settings: Option<Arc<Settings>>,
    /// The text of a readable file.
    pub(crate) text: Option<String>,
    /// Whether the text has secrets.
    pub(crate) secrets: bool,
    /// Faults of the text, with lines.
    errors: Vec<String>,
}

impl Config {
    /// Reads and checks the file.
    pub(crate) fn load(found: Result<PathBuf, Failure>) -> Self {
        let mut config = Self {
            path: None,
            settings: None,
            text: None,
            secrets: false,
            errors: Vec::new(),
        };
        match found {
            Ok(path) => config.read(&path),
            Err(failure) => config.errors.push(failure.to_string()),
        }
        config
    }

    fn read(&mut self, path: &Path) {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let name = whole.display().to_string();
        self.path = Some(whole);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.errors.push(format!("cannot read {name}: {error}")),
        };
        match Settings::parse(&text, &name) {
            Ok(settings) => self.settings = Some(Arc::new(settings)),
            Err(errors) => self.errors.extend(
                errors
                    .errors()
                    .iter()
                    .map(|error| format!("{name}:{error}")),
            ),
        }
        // In a text without valid TOML any word may be a secret.
        self.secrets = redacted(&text).is_none_or(|redaction| !redaction.secrets.is_empty());
        self.text = Some(text);
    }

    /// The faults of the file and of named files.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.errors.iter().map(|error| wrong(error)).collect();
        let Some(settings) = &self.settings else {
            return rows;
        };
        let text = self.text.as_deref().unwrap_or_default();
        let lines = KeyLines::of(text);
        let faults = named::faults(settings).into_iter();
        let faults = faults.chain(surroundings::faults(settings));
        rows.extend(faults.map(|fault| wrong(&told(&lines, &fault))));
        let warnings = surroundings::warnings(settings);
        rows.extend(warnings.iter().map(|fault| {
            let remedy = format!("correct {} in the settings, then: vere reload", fault.key);
            Row::warning(CHECK, told(&lines, fault), remedy)
        }));
        if rows.is_empty() {
            let path = self.path.as_deref().unwrap_or(Path::new("-"));
            rows.push(Row::ok(CHECK, format!("{} is valid", path.display())));
        }
        rows
    }
}

fn wrong(text: &str) -> Row {
    Row::critical(
        CHECK,
        text,
        "correct the file; see all errors with: vere check-config",
    )
}

/// A fault with the line of the key.
fn told(lines: &KeyLines, fault: &Fault) -> String {
    let line = lines.at(&fault.key);
    let line = line
        .map(|line| format!("line {line}: "))
        .unwrap_or_default();
    format!("{line}{}: {}", fault.key, fault.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn loaded(text: &str) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vere.toml");
        std::fs::write(&path, text).unwrap();
        (folder, Config::load(Ok(path)))
    }

    #[test]
    fn faults_of_the_file_are_critical() {
        let (_folder, config) = loaded("version = 1\nhostnam = \"a.b\"\n");
        let rows = config.rows();
        assert_eq!(rows[0].level, Level::Critical);
        let part = "vere.toml:2: hostnam: unknown key";
        assert!(rows.iter().any(|row| row.text.contains(part)), "{rows:?}");
        let (_folder, config) = loaded("version = 1\nhostname = \"a.b\"\n");
        assert_eq!(config.rows()[0].level, Level::Ok, "{:?}", config.rows());
        assert!(!config.secrets);
        let none = Config::load(Err(Failure::new("no configuration")));
        assert_eq!(none.rows()[0].text, "no configuration");
    }

    #[test]
    fn named_files_and_hardly_intended_settings_are_told_with_lines() {
        let (_folder, config) = loaded(
            "version = 1\nhostname = \"a.b\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n\
             [relay]\nnetworks = [\"0.0.0.0/0\"]\n",
        );
        let rows = config.rows();
        assert!(
            rows[0].text.starts_with("line 4: tls.certificate"),
            "{rows:?}"
        );
        assert!(
            rows.iter().any(|row| row.level == Level::Warning),
            "{rows:?}"
        );
    }
}
