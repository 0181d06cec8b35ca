//! The description of a place: its format, and how its backups are encrypted. There are two equal files, since without
//! one of them neither key file nor passphrase opens anything.

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};
use vere_process::failure::Failure;

use crate::place::{Place, wrong};
use crate::seal::{Keys, Sealing};
use crate::secret::Ask;

/// The file that marks a place for backups, and the copy.
pub(crate) const NAMES: [&str; 2] = ["vere-backup.json", "vere-backup.copy.json"];
const OCTETS_MAX: u64 = 64 * 1024;
const FORMAT: &str = "vere-backup";
const VERSION: u32 = 1;

/// The kind of a place.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Description {
    format: String,
    version: u32,
    encryption: Option<Sealing>,
}

impl Description {
    /// The description in the first file that is whole; `None` where there is neither.
    ///
    /// # Errors
    /// When no file is whole, the place is of another version, or its server does not answer.
    pub(crate) fn read(place: &dyn Place) -> Result<Option<Self>, Failure> {
        let mut trouble = None;
        for name in NAMES {
            let read = match place.read(name, OCTETS_MAX) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) if error.kind() == ErrorKind::NotConnected => {
                    return Err(wrong(place, name)(error));
                }
                read => read.map_err(wrong(place, name)),
            };
            match read.and_then(|octets| Self::parse(place, name, &octets)) {
                Ok(description) => {
                    if let Some(error) = trouble {
                        tracing::warn!(%error, "{name} is used instead");
                    }
                    return Ok(Some(description));
                }
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    fn parse(place: &dyn Place, name: &str, octets: &[u8]) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::new(format!("{}/{name}: {text}", place.name()));
        let read: Self =
            serde_json::from_slice(octets).map_err(|error| wrong(format!("damaged: {error}")))?;
        match (read.format.as_str(), read.version) {
            (FORMAT, VERSION) => Ok(read),
            (format, version) => Err(wrong(format!(
                "expected {FORMAT} of version {VERSION}; found {format} of version {version}"
            ))),
        }
    }

    /// Makes an empty place a place for backups.
    ///
    /// # Errors
    /// When the secret is not to be had, or the place cannot be written.
    pub(crate) fn make(place: &dyn Place, ask: Ask<'_>) -> Result<Option<Keys>, Failure> {
        let (encryption, keys) = match ask()? {
            None => (None, None),
            Some(secret) => {
                let (sealing, keys) = Sealing::make(&secret)?;
                (Some(sealing), Some(keys))
            }
        };
        let description = Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            encryption,
        };
        let [name, _] = NAMES;
        let written = place.create(name, description.text()?.as_bytes());
        written.map_err(wrong(place, name))?;
        description.keep(place)?;
        Ok(keys)
    }

    /// Writes each file that is absent or damaged again.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn keep(&self, place: &dyn Place) -> Result<(), Failure> {
        for name in NAMES {
            let read = place.read(name, OCTETS_MAX);
            if read.is_ok_and(|octets| Self::parse(place, name, &octets).is_ok()) {
                continue;
            }
            let written = place.write(name, self.text()?.as_bytes());
            written.map_err(wrong(place, name))?;
        }
        place.settle().map_err(wrong(place, ""))
    }

    fn text(&self) -> Result<String, Failure> {
        Ok(format!("{:#}\n", serde_json::to_value(self)?))
    }

    /// The keys of an encrypted place; `None` without encryption.
    ///
    /// # Errors
    /// When the secret is wrong or missing, or the place is not encrypted.
    pub(crate) fn open(&self, text: &str, ask: Ask<'_>) -> Result<Option<Keys>, Failure> {
        match (&self.encryption, ask()?) {
            (Some(sealing), Some(secret)) => sealing.open(&secret).map(Some),
            (Some(_), None) => Err(Failure::new(format!(
                "{text}: the backups are encrypted; add --key-file or --passphrase"
            ))),
            (None, Some(_)) => Err(Failure::new(format!(
                "{text}: the backups are not encrypted; choose another place, or leave out --key-file and --passphrase"
            ))),
            (None, None) => Ok(None),
        }
    }
}
