//! Account and certificate on disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use instant_acme::AccountCredentials;

use super::AcmeError;
use crate::aside::write_private_at;
use crate::tls::{CertificateFiles, Leaf, check_files};

/// Octets of a directory's address that go into a file name.
const NAME_OCTETS_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    account: PathBuf,
    certificate: PathBuf,
}

impl Store {
    pub(super) fn open(dir: &Path, directory: &str) -> Result<Self, AcmeError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|source| storage(dir, source))?;
        Ok(Self {
            account: dir.join(format!("account-{}.json", file_name(directory))),
            certificate: dir.join("certificate.pem"),
            dir: dir.to_owned(),
        })
    }

    /// The same account with another certificate.
    pub(super) fn beside(&self, certificate: &Path) -> Result<Self, AcmeError> {
        let dir = certificate.parent().unwrap_or(&self.dir);
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|source| storage(dir, source))?;
        Ok(Self {
            dir: dir.to_owned(),
            account: self.account.clone(),
            certificate: certificate.to_owned(),
        })
    }

    pub(super) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// The stored account, if any.
    pub(super) fn account(&self) -> Result<Option<AccountCredentials>, AcmeError> {
        let text = match fs::read(&self.account) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(storage(&self.account, source)),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| AcmeError::Account {
                path: self.account.clone(),
                problem: error.to_string(),
            })
    }

    pub(super) fn save_account(&self, credentials: &AccountCredentials) -> Result<(), AcmeError> {
        let text = serde_json::to_vec(credentials)
            .map_err(|error| storage(&self.account, io::Error::other(error)))?;
        let path = &self.account;
        self.stage(&text)
            .and_then(|staged| self.publish(&staged, path))
            .map_err(|source| storage(path, source))
    }

    /// Stores chain and key in one file, after checking that the key fits the chain.
    pub(super) fn save_certificate(&self, chain: &str, key: &str) -> Result<(), AcmeError> {
        let path = &self.certificate;
        let text = format!("{}\n{key}", chain.trim_end());
        let staged = self
            .stage(text.as_bytes())
            .map_err(|source| storage(path, source))?;
        check_files(&CertificateFiles::new(&staged, &staged)).map_err(AcmeError::Certificate)?;
        self.publish(&staged, path)
            .map_err(|source| storage(path, source))
    }

    /// How long the stored certificate serves: until two thirds of its lifetime are over.
    pub(super) fn due_in(&self, domains: &[String], now: SystemTime) -> Duration {
        let Ok(leaf) = Leaf::of_file(&self.certificate) else {
            return Duration::ZERO;
        };
        if !domains.iter().all(|domain| leaf.names.contains(domain)) {
            return Duration::ZERO;
        }
        let begin = Duration::from_millis(leaf.validity.not_before.as_millis());
        let due = begin + leaf.validity.lifetime() / 3 * 2;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        due.saturating_sub(now)
    }

    /// Whether the stored certificate lacks a name.
    pub(super) fn lacks(&self, domains: &[String]) -> bool {
        let leaf = Leaf::of_file(&self.certificate);
        !leaf.is_ok_and(|leaf| domains.iter().all(|domain| leaf.names.contains(domain)))
    }

    /// Whether the stored certificate has one of the wanted names beside `domains`, and serves for more than a sixth of its lifetime.
    pub(super) fn has_more(&self, domains: &[String], wanted: &[String], now: SystemTime) -> bool {
        let Ok(leaf) = Leaf::of_file(&self.certificate) else {
            return false;
        };
        let beside = |name: &&String| !domains.contains(name) && leaf.names.contains(name);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = Duration::from_millis(leaf.validity.not_after.as_millis());
        let is_long = end.saturating_sub(now) > leaf.validity.lifetime() / 6;
        is_long && wanted.iter().any(|name| beside(&name))
    }

    /// Writes and syncs a file readable by the owner only.
    fn stage(&self, octets: &[u8]) -> io::Result<PathBuf> {
        let path = self.dir.join(".new");
        write_private_at(&path, octets)?;
        Ok(path)
    }

    fn publish(&self, staged: &Path, path: &Path) -> io::Result<()> {
        fs::rename(staged, path)?;
        File::open(&self.dir)?.sync_all()
    }
}

fn storage(path: &Path, source: io::Error) -> AcmeError {
    AcmeError::Storage {
        path: path.to_owned(),
        source,
    }
}

/// Each CA has a separate account: the CA's URL as a part of a file name.
fn file_name(directory: &str) -> String {
    let address = directory.strip_prefix("https://").unwrap_or(directory);
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    address.chars().take(NAME_OCTETS_MAX).map(keep).collect()
}
