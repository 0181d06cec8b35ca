//! Passphrases, key files and passwords.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use vere_accounts::{AccountSettings, BudgetSettings, Login, Place, Times, password_of};
use vere_mailfs::format::slot::SlotSecret;
use vere_process::failure::Failure;
use vere_settings::{AccountSecret, VolumeAccount};
use vere_units::Secret;

use crate::folders;
use crate::provider;

/// The longest key file.
const KEY_FILE_MAX: u64 = 1 << 20;
/// The folder of all volumes in an account.
const FOLDER: &str = "VereFS";

/// The secret of a volume.
#[derive(Debug, Clone)]
pub(crate) enum Opener {
    Passphrase(Secret<Vec<u8>>),
    KeyFile(Secret<Vec<u8>>),
}

impl Opener {
    pub(crate) fn as_slot(&self) -> SlotSecret<'_> {
        match self {
            Self::Passphrase(octets) => SlotSecret::Passphrase(octets.expose()),
            Self::KeyFile(octets) => SlotSecret::KeyFile(octets.expose()),
        }
    }

    /// From files, or by a prompt. A new passphrase is asked for twice.
    pub(crate) fn get(
        passphrase: Option<&PathBuf>,
        key: Option<&PathBuf>,
        new: bool,
    ) -> Result<Self, Failure> {
        if let Some(file) = key {
            return Ok(Self::KeyFile(Secret::new(read_key(file)?)));
        }
        if let Some(file) = passphrase {
            return password_of(file).map(Self::of_text);
        }
        let ask = |prompt: &str| {
            rpassword::prompt_password(prompt).map_err(|error| {
                Failure::new(format!(
                    "{error}; --passphrase-file names a file with the passphrase"
                ))
            })
        };
        let first = ask("Passphrase of the volume: ")?;
        if first.is_empty() {
            return Err(Failure::new("expected a passphrase; found an empty line"));
        }
        if new && ask("The passphrase again: ")? != first {
            return Err(Failure::new(
                "expected the same passphrase twice; found two different ones",
            ));
        }
        Ok(Self::of_text(Secret::new(first)))
    }

    /// The secret of a new slot, from files, or by a prompt that asks twice.
    pub(crate) fn get_new(
        passphrase: Option<&PathBuf>,
        key: Option<&PathBuf>,
    ) -> Result<Self, Failure> {
        if passphrase.or(key).is_some() {
            return Self::get(passphrase, key, true);
        }
        let ask = |prompt: &str| {
            rpassword::prompt_password(prompt).map_err(|error| {
                Failure::new(format!(
                    "{error}; --new-passphrase-file names a file with the new passphrase"
                ))
            })
        };
        let first = ask("New passphrase of the volume: ")?;
        if first.is_empty() {
            return Err(Failure::new("expected a passphrase; found an empty line"));
        }
        if ask("The new passphrase again: ")? != first {
            return Err(Failure::new(
                "expected the same passphrase twice; found two different ones",
            ));
        }
        Ok(Self::of_text(Secret::new(first)))
    }

    fn of_text(text: Secret<String>) -> Self {
        Self::Passphrase(Secret::new(text.into_inner().into_bytes()))
    }

    /// As octets for another process of ours.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, octets) = match self {
            Self::Passphrase(octets) => (b'p', octets),
            Self::KeyFile(octets) => (b'k', octets),
        };
        let mut all = vec![kind];
        all.extend_from_slice(octets.expose());
        all
    }

    /// From the octets of [`Self::encode`].
    pub(crate) fn decode(from: impl io::Read) -> Result<Self, Failure> {
        let mut octets = Vec::new();
        from.take(KEY_FILE_MAX.saturating_add(1))
            .read_to_end(&mut octets)?;
        match octets.split_first() {
            Some((b'p', rest)) => Ok(Self::Passphrase(Secret::new(rest.to_vec()))),
            Some((b'k', rest)) => Ok(Self::KeyFile(Secret::new(rest.to_vec()))),
            _ => Err(Failure::new(
                "expected a secret on standard input; found none",
            )),
        }
    }
}

fn read_key(file: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", file.display()));
    let mut octets = Vec::new();
    let opened = fs::File::open(file).map_err(wrong)?;
    opened
        .take(KEY_FILE_MAX)
        .read_to_end(&mut octets)
        .map_err(wrong)?;
    Ok(octets)
}

/// Server and login of an account, for a volume with this tag.
pub(crate) fn account(account: &VolumeAccount, tag: &str) -> Result<AccountSettings, Failure> {
    let place = Place::parse(&account.url, account.clear)
        .ok_or_else(|| Failure::new(format!("{}: expected imaps://USER@HOST/", account.url)))??;
    let terms = provider::terms(account, &place.host);
    let username = place.user.clone();
    let mut remote = match &account.secret {
        AccountSecret::PasswordFile(file) => {
            place.with_password(password_of(file)?, account.ca.clone())
        }
        AccountSecret::PasswordCommand(words) => {
            let words = words.clone();
            let login = Login::PasswordProgram { username, words };
            place.with_login(login, account.ca.clone())
        }
        AccountSecret::TokenCommand(words) => {
            let words = words.clone();
            let login = Login::TokenProgram { username, words };
            place.with_login(login, account.ca.clone())
        }
    };
    remote.compress = account
        .compress
        .unwrap_or(account.base64 && !remote.is_here());
    Ok(AccountSettings {
        remote,
        folder: vec![FOLDER.to_owned(), tag.to_owned()],
        connections_max: terms.connections_max,
        budget: BudgetSettings {
            upload: terms.upload_per_day,
            download: terms.download_per_day,
            file: folders::budget(tag, account.number).ok(),
        },
        times: Times::POOL,
    })
}

#[cfg(test)]
mod tests {
    use super::Opener;
    use vere_units::Secret;

    #[test]
    fn openers_go_to_another_process() {
        for opener in [
            Opener::Passphrase(Secret::new(b"line\n2".to_vec())),
            Opener::KeyFile(Secret::new(vec![0; 64])),
        ] {
            let octets = opener.encode();
            let back = Opener::decode(octets.as_slice()).unwrap();
            assert_eq!(back.encode(), octets);
        }
        assert!(Opener::decode(&b""[..]).is_err());
    }
}
