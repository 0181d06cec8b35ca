//! The description of a volume from checked values.

use std::collections::BTreeSet;
use std::path::Path;

use crate::assemble::Assembly;
use crate::document::{self, Document};
use crate::errors::{ConfigError, ConfigErrors, Problem};
use crate::table::VOLUME;
use crate::value::Value;
use crate::volume::{AccountSecret, Volume, VolumeAccount};

impl Volume {
    /// Parses and checks the text of a volume's file.
    ///
    /// `file` is the path for errors; relative paths in the text are taken from the directory of `file`. No other file is
    /// opened.
    ///
    /// # Errors
    ///
    /// All errors of the text, at once. Contradictions between values are only checked once every value by itself is valid.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigErrors> {
        let read = document::read(text, VOLUME);
        let document = read.map_err(|errors| ConfigErrors::new(file, errors))?;
        let errors = contradictions(&document);
        if !errors.is_empty() {
            return Err(ConfigErrors::new(file, errors));
        }
        let folder = Path::new(file).parent().unwrap_or_else(|| Path::new(""));
        let assembly = Assembly {
            document,
            folder: folder.to_path_buf(),
            data: folder.to_path_buf(),
        };
        Ok(assembly.volume())
    }
}

impl Assembly {
    fn volume(&self) -> Volume {
        let accounts = self.each("account", |at| self.volume_account(at));
        let first = accounts.first().map_or(0, |account| account.number);
        Volume {
            lead: self.maybe("lead").unwrap_or(first),
            metadata_accounts: usize::from(self.need::<u16>("metadata_accounts")),
            lead_patience: self.need("lead_patience"),
            strong: self.choice("mode", |text| Some(text == "strong")),
            flush_interval: self.need("flush_interval"),
            refresh: self.need("refresh"),
            journal_sync: self.need("journal_sync"),
            call_timeout: self.need("call_timeout"),
            sync_copies: usize::from(self.need::<u16>("sync_copies")),
            unsent_max: self.need("unsent_max"),
            cache_memory: self.need("cache_memory"),
            cache_max: self.need("cache_max"),
            ahead_max: usize::from(self.need::<u16>("ahead_max")),
            passphrase_file: self.maybe_path("passphrase_file"),
            key_file: self.maybe_path("key_file"),
            accounts,
        }
    }

    fn volume_account(&self, at: &str) -> VolumeAccount {
        let key = |name: &str| format!("{at}.{name}");
        let number = self.need(&key("number"));
        let file = self.maybe_path(&key("password_file"));
        let secret = file.map(AccountSecret::PasswordFile).or_else(|| {
            let password = self.maybe(&key("password_command"));
            password.map(AccountSecret::PasswordCommand)
        });
        VolumeAccount {
            number,
            url: self.need(&key("url")),
            secret: secret
                .unwrap_or_else(|| AccountSecret::TokenCommand(self.need(&key("token_command")))),
            ca: self.maybe_path(&key("ca")),
            clear: self.choice(&key("tls"), |text| Some(text == "off")),
            connections_max: self.maybe::<u16>(&key("connections_max")).map(usize::from),
            upload_per_day: self.maybe(&key("upload_per_day")),
            download_per_day: self.maybe(&key("download_per_day")),
            base64: self.choice(&key("encoding"), |text| Some(text == "base64")),
            compress: self.choice(&key("compress"), |text| match text {
                "yes" => Some(Some(true)),
                "no" => Some(Some(false)),
                _ => Some(None),
            }),
            group: self.maybe(&key("group")).unwrap_or(number),
        }
    }
}

fn contradictions(document: &Document) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let mut conflict = |key: &str, text: String| {
        errors.push(ConfigError {
            line: document.lines.at(key).unwrap_or(1),
            key: key.to_owned(),
            problem: Problem::Conflict(text),
        });
    };
    let has = |key: &str| document.values.contains_key(key);
    if has("passphrase_file") && has("key_file") {
        let text = "expected passphrase_file or key_file; found both";
        conflict("key_file", text.to_owned());
    }
    let count = document.counts.get("account").copied().unwrap_or(0);
    if count == 0 {
        conflict(
            "account",
            "expected at least one section [[account]]; found none".to_owned(),
        );
    }
    let mut numbers = BTreeSet::new();
    for at in (1..=count).map(|n| format!("account[{n}]")) {
        let secrets = ["password_file", "password_command", "token_command"];
        let found = secrets.map(|name| has(&format!("{at}.{name}")));
        let found = found.iter().filter(|found| **found).count();
        if found != 1 {
            let text = format!(
                "expected one of password_file, password_command and token_command; found {found}"
            );
            conflict(&at, text);
        }
        let key = format!("{at}.number");
        let number = document.values.get(&key).map(|value| format!("{value:?}"));
        if !numbers.insert(number) {
            conflict(
                &key,
                "expected a number of its own; found the number of another account".to_owned(),
            );
        }
        if document
            .values
            .get(&format!("{at}.url"))
            .is_some_and(is_implicit)
            && document.values.get(&format!("{at}.tls")) == Some(&Value::Choice("off"))
        {
            let text = "imaps:// has TLS always: expected tls = \"required\"; found \"off\"";
            conflict(&format!("{at}.tls"), text.to_owned());
        }
    }
    let lead = document
        .values
        .get("lead")
        .map(|value| format!("{value:?}"));
    if lead.is_some() && !numbers.contains(&lead) {
        conflict(
            "lead",
            "expected the number of an account; found another number".to_owned(),
        );
    }
    errors
}

fn is_implicit(url: &Value) -> bool {
    matches!(url, Value::Text(url) if url.starts_with("imaps://"))
}
