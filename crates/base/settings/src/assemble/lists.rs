//! Sections about lists of clients.

use super::{Assembly, yes_or_no};
use crate::lists::{BlockList, BlockLists, ListMaps, ListTreatment};

impl Assembly {
    pub(super) fn lists(&self) -> BlockLists {
        BlockLists {
            lists: self.each("front.list", |at| self.list(at)),
            threshold: self.need("front.lists.threshold"),
            allow_threshold: self.maybe("front.lists.allow_threshold"),
            treatment: self.choice("front.lists.treatment", |text| match text {
                "refuse" => Some(ListTreatment::Refuse),
                "defer" => Some(ListTreatment::Defer),
                "note" => Some(ListTreatment::Note),
                _ => None,
            }),
            defers_unavailable: self
                .choice("front.lists.unavailable", |text| Some(text == "defer")),
            timeout: self.need("front.lists.timeout"),
            adds_text: self.choice("front.lists.text", yes_or_no),
            ttl_min: self.need("front.lists.ttl_min"),
            ttl_max: self.need("front.lists.ttl_max"),
            cache: self.need("front.lists.cache"),
            asks_private: self.choice("front.lists.private_clients", yes_or_no),
        }
    }

    fn list(&self, at: &str) -> BlockList {
        let zone: String = self.need(&format!("{at}.zone"));
        BlockList {
            name: self
                .maybe(&format!("{at}.name"))
                .unwrap_or_else(|| zone.clone()),
            zone,
            weight: self.need(&format!("{at}.weight")),
            answers: self.need(&format!("{at}.answers")),
            maps: self.choice(&format!("{at}.maps"), |text| match text {
                "auto" => Some(ListMaps::Auto),
                "yes" => Some(ListMaps::Yes),
                "no" => Some(ListMaps::No),
                _ => None,
            }),
        }
    }
}
