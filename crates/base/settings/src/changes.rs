//! The differences between two configurations.

use crate::model::Settings;
use crate::table::{Opt, sections};

/// The keys that differ between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The keys that a running system applies.
    pub live: Vec<String>,
    /// The keys that take effect at the next start.
    pub restart: Vec<String>,
}

impl Changes {
    /// Whether the configurations are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.restart.is_empty()
    }
}

impl Settings {
    /// Lists the keys whose values in `new` differ from the values in `self`, in alphabetical
    /// order.
    ///
    /// Repeated sections are compared by index, as `route[2].next_hop`.
    #[must_use]
    pub fn changes(&self, new: &Self) -> Changes {
        let mut changes = Changes::default();
        let mut keys: Vec<&String> = self.values.keys().chain(new.values.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            if self.values.get(key) != new.values.get(key) {
                let live = option(key).is_some_and(|option| option.live);
                let list = if live {
                    &mut changes.live
                } else {
                    &mut changes.restart
                };
                list.push(key.clone());
            }
        }
        changes
    }
}

/// Finds the option of a whole key.
pub(crate) fn option(key: &str) -> Option<&'static Opt> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let section = section.split('[').next().unwrap_or_default();
    let section = sections().find(|known| known.name == section)?;
    section.options.iter().find(|option| option.name == name)
}
