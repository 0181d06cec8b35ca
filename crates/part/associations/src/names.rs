//! Names of session connections.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use vere_osi::rtse::SessionConnectionIdentifier;
use vere_x400::Time;

/// Octets of a name of this side in a reference, which has 62 at most.
const NAME_MAX: usize = 32;

/// Gives every session connection of a process another name, from the name of the MTA, the time, and a counter.
#[derive(Debug)]
pub struct Names {
    name: String,
    /// Tells apart processes that begin in the same second.
    process: u32,
    counter: AtomicU32,
}

impl Names {
    /// Names for the connections of this MTA.
    #[must_use]
    pub fn new(mta: &str) -> Self {
        let printable = mta.chars().filter(char::is_ascii_graphic);
        Self {
            name: printable.take(NAME_MAX).collect(),
            process: std::process::id(),
            counter: AtomicU32::new(1),
        }
    }

    /// The next name.
    pub fn next(&self) -> SessionConnectionIdentifier {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let common = Time::from_unix(since.as_secs()).utc_time();
        SessionConnectionIdentifier {
            calling: Bytes::from(format!("{}-{}-{number}", self.name, self.process)),
            common: Bytes::from(common),
            additional: None,
        }
    }
}
