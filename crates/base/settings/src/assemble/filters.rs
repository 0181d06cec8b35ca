//! Sections about content filters.

use super::Assembly;
use crate::filters::{FilterKind, FilterSettings, FilteredMail};

impl Assembly {
    pub(super) fn filters(&self) -> Vec<FilterSettings> {
        self.each("filter", |at| self.filter(at))
    }

    fn filter(&self, at: &str) -> FilterSettings {
        let key = |name: &str| format!("{at}.{name}");
        let kind = self.choice(&key("kind"), FilterKind::of_name);
        FilterSettings {
            name: self.need(&key("name")),
            kind,
            mail: self.choice(&key("mail"), FilteredMail::of_name),
            address: self.need(&key("address")),
            timeout: self.maybe(&key("timeout")).unwrap_or(kind.usual_timeout()),
            size_max: self.need(&key("size_max")),
            connections_max: self.need(&key("connections_max")),
            defers_unavailable: self.choice(&key("when_unavailable"), |text| Some(text == "defer")),
            password_file: self.maybe_path(&key("password_file")),
            learn_address: self.maybe(&key("learn_address")),
        }
    }
}
