//! How much room of the log could come back, and when some came back last.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vere_store::StoreError;
use vere_units::{ByteSize, Timestamp};

use crate::mail_store::MailStore;
use crate::upkeep::{LastPass, ReclaimFigures};

/// Room of the log.
pub(super) struct Room {
    /// Octets that nothing needs.
    dead: u64,
    last: Option<LastPass>,
}

impl Room {
    /// Looks at the whole log.
    pub(super) fn of(store: &mut MailStore, folder: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            dead: store.count_dead()?,
            last: ReclaimFigures::read(folder).and_then(|known| known.last),
        })
    }

    pub(super) fn rows(&self) -> String {
        let mut rows = vec![("  reclaimable", ByteSize::new(self.dead).to_string())];
        match self.last {
            None => rows.push(("reclaimed last", "never".to_owned())),
            Some(last) => {
                let ended = Timestamp::from_millis(last.ended).to_string();
                rows.push(("reclaimed last", ended));
                rows.push(("  given back", ByteSize::new(last.saved).to_string()));
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

    pub(super) fn add_to(&self, value: &mut Value) {
        if let Some(object) = value.as_object_mut() {
            object.insert("reclaimable_octets".to_owned(), json!(self.dead));
            object.insert("reclaimed_last".to_owned(), json!(self.last));
        }
    }
}
