//! How much room of the log could come back, and when some came back last.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use vere_process::wording::size;
use vere_units::Timestamp;

use crate::checking::StoreFigures;
use crate::upkeep::{LastPass, ReclaimFigures};

/// Room of the log.
pub(super) struct Room {
    /// Octets that nothing needs.
    dead: u64,
    last: Option<LastPass>,
}

impl Room {
    /// The octets that a look at the whole log found needless, and the last pass.
    pub(super) fn of(dead: u64, folder: &Path) -> Self {
        Self {
            dead,
            last: ReclaimFigures::read(folder).and_then(|known| known.last),
        }
    }

    pub(super) fn rows(&self) -> String {
        let mut rows = vec![("  reclaimable", size(self.dead))];
        match self.last {
            None => rows.push(("reclaimed last", "never".to_owned())),
            Some(last) => {
                let ended = Timestamp::from_millis(last.ended).to_string();
                rows.push(("reclaimed last", ended));
                rows.push(("  given back", size(last.saved)));
                rows.push(("  segments looked at", last.segments.to_string()));
                rows.push(("  segments rewritten", last.rewritten.to_string()));
                rows.push(("  snapshots written", last.snapshots.to_string()));
            }
        }
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<24} {value:>14}");
            text
        })
    }

    /// The figures of a check for programs, with these.
    pub(super) fn beside(&self, figures: &StoreFigures) -> String {
        let mut value = json!(figures);
        value["reclaimed_last"] = json!(self.last);
        format!("{value:#}\n")
    }
}
