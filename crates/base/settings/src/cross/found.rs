//! Where contradictions are gathered.

use std::path::Path;

use crate::document::Document;
use crate::errors::{ConfigError, Problem};

/// Linux's `sun_path` has 108 octets, the last one for the end.
const SOCKET_PATH_MAX: usize = 107;

/// The contradictions found so far, and the file.
pub(super) struct Found<'a> {
    pub(super) document: &'a Document,
    pub(super) errors: Vec<ConfigError>,
}

impl Found<'_> {
    /// Adds a contradiction, at the line of the key.
    pub(super) fn add(&mut self, key: &str, text: impl Into<String>) {
        let line = self.document.lines.at(key).unwrap_or(1);
        let problem = Problem::Conflict(text.into());
        self.errors.push(ConfigError {
            line,
            key: key.to_owned(),
            problem,
        });
    }

    /// Adds a socket whose path is too long for the kernel.
    pub(super) fn socket(&mut self, key: &str, path: &Path) {
        if path.as_os_str().len() > SOCKET_PATH_MAX {
            let text = format!("a socket's path has at most {SOCKET_PATH_MAX} octets");
            self.add(key, text);
        }
    }

    /// Adds an error if both of two keys are set that say the same.
    pub(super) fn alone(&mut self, first: &str, second: &str) {
        let values = &self.document.values;
        if values.contains_key(first) && values.contains_key(second) {
            self.add(second, format!("stands beside {first}"));
        }
    }

    /// Adds an error if exactly one of two dependent keys is set.
    pub(super) fn pair(&mut self, first: &str, second: &str) {
        let values = &self.document.values;
        match (values.contains_key(first), values.contains_key(second)) {
            (true, false) => self.add(first, format!("needs {second} beside it")),
            (false, true) => self.add(second, format!("needs {first} beside it")),
            _ => {}
        }
    }
}
