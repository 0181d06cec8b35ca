//! Folders below `data` that several processes and commands know.

use std::path::PathBuf;

use crate::model::Settings;

impl Settings {
    /// The directory with the events of every message.
    #[must_use]
    pub fn trace_directory(&self) -> PathBuf {
        self.data.join("trace")
    }

    /// The directory with the events of a drain while a gateway runs on the same machine.
    #[must_use]
    pub fn drain_trace_directory(&self) -> PathBuf {
        self.data.join("trace-drain")
    }
}
