//! Terms of filters from settings, with the passwords in files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use vere_settings::{FilterKind, FilterSettings};
use vere_units::Secret;

use crate::bounds::Bounds;
use crate::clamd::Clamd;
use crate::rspamd::Rspamd;
use crate::terms::{Kind, Terms};

/// Octets read of a file with a password.
const PASSWORD_FILE_MAX: u64 = 64 * 1024;

/// Why filters cannot be made of settings.
#[derive(Debug, thiserror::Error)]
pub enum FiltersError {
    /// The file with a password cannot be read.
    #[error("filter {filter}: cannot read {}: {source}", path.display())]
    Unreadable {
        /// The filter.
        filter: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has no password.
    #[error("filter {filter}: expected a password in the first line of {}; found none", path.display())]
    NoPassword {
        /// The filter.
        filter: String,
        /// The file.
        path: PathBuf,
    },
}

/// The terms for questions, and those for teaching.
pub(crate) fn terms(settings: &FilterSettings) -> Result<(Terms, Option<Terms>), FiltersError> {
    let kind = match settings.kind {
        FilterKind::Rspamd => {
            let path = settings.password_file.as_deref();
            let password = path.map(|path| read_password(&settings.name, path));
            Kind::Rspamd(Rspamd {
                password: password.transpose()?,
                // Scores of all rules are worth the time: the judge weighs them.
                pass_all: false,
            })
        }
        FilterKind::Clamd => Kind::Clamd(Clamd),
        FilterKind::Milter => Kind::Milter,
    };
    let asked = Terms {
        kind,
        address: (&settings.address).into(),
        timeout: Duration::from_millis(settings.timeout.as_millis()),
        size_max: usize::try_from(settings.size_max.as_u64()).unwrap_or(usize::MAX),
        connections_max: usize::try_from(settings.connections_max).unwrap_or(usize::MAX),
        bounds: Bounds::default(),
    };
    let taught = settings.learn_address.as_ref().map(|address| Terms {
        address: address.into(),
        ..asked.clone()
    });
    Ok((asked, taught))
}

/// The first line of a file.
fn read_password(filter: &str, path: &Path) -> Result<Secret<String>, FiltersError> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(PASSWORD_FILE_MAX).read_to_string(&mut text));
    read.map_err(|source| FiltersError::Unreadable {
        filter: filter.to_owned(),
        path: path.to_owned(),
        source,
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.to_owned())),
        _ => Err(FiltersError::NoPassword {
            filter: filter.to_owned(),
            path: path.to_owned(),
        }),
    }
}
