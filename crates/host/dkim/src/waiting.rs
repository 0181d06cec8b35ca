//! Keys that wait until their record is seen in the DNS: a signature without a record is worse than none.
//!
//! A waiting key has a second file, `FOLDER/DOMAIN/SELECTOR.waiting`, which is written before the key and removed when
//! the key may sign. A key without the file waits for no record, as keys of earlier versions; times are seconds:
//!
//! ```toml
//! version = 1
//! since = 1767225600
//! keep = 604800        # the records of predecessors stay this long after the key signs. Optional.
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use vere_units::Timestamp;

/// The version of files written by this code, and the newest version that can be read.
const FILE_VERSION: u32 = 1;
/// The end of the file's name.
pub(crate) const EXTENSION: &str = "waiting";

/// Why and since when a key waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The time from which the key waits.
    pub since: Timestamp,
    /// Time that the records of predecessors stay after the key signs; `None` for a key without predecessors.
    pub keep: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WaitingFile {
    version: u32,
    since: u64,
    keep: Option<u64>,
}

impl Waiting {
    pub(crate) fn to_text(self) -> String {
        let file = WaitingFile {
            version: FILE_VERSION,
            since: self.since.as_millis() / 1000,
            keep: self.keep.map(|keep| keep.as_secs()),
        };
        // Plain fields always have a form in TOML.
        toml::to_string(&file).unwrap_or_default()
    }

    /// Reads the text of a file. The error is the reason.
    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        let file: WaitingFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if file.version != FILE_VERSION {
            return Err(format!(
                "format version {}, this program reads up to {FILE_VERSION}",
                file.version
            ));
        }
        Ok(Self {
            since: Timestamp::from_millis(file.since.saturating_mul(1000)),
            keep: file.keep.map(Duration::from_secs),
        })
    }
}
