//! Content filters.

use vere_units::Span;

use super::found::Found;
use super::judging::word;
use crate::filters::{FILTERS_MAX, FilterAddress, FilterKind, TIMEOUTS_MS_MAX};
use crate::model::Settings;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let filters = &settings.filters;
    if filters.len() > FILTERS_MAX {
        let text = format!(
            "expected at most {FILTERS_MAX} sections; found {}",
            filters.len()
        );
        found.add(&format!("filter[{}].name", FILTERS_MAX + 1), text);
    }
    let mut together = 0_u64;
    for (n, filter) in filters.iter().enumerate() {
        let key = |name: &str| format!("filter[{}].{name}", n + 1);
        word(&key("name"), &filter.name, found);
        let mut earlier = filters.iter().take(n);
        if earlier.any(|other| other.name == filter.name) {
            found.add(&key("name"), format!("{:?} stands twice", filter.name));
        }
        for (name, address) in [
            ("address", Some(&filter.address)),
            ("learn_address", filter.learn_address.as_ref()),
        ] {
            if let Some(FilterAddress::Unix(path)) = address {
                found.socket(&key(name), path);
            }
        }
        if filter.kind != FilterKind::Rspamd {
            for (name, has) in [
                ("password_file", filter.password_file.is_some()),
                ("learn_address", filter.learn_address.is_some()),
            ] {
                if has {
                    found.add(&key(name), "needs kind = \"rspamd\"");
                }
            }
        }
        let before = together;
        together = together.saturating_add(filter.timeout.as_millis());
        if before <= TIMEOUTS_MS_MAX && together > TIMEOUTS_MS_MAX {
            let text = format!(
                "expected timeouts of at most {} together; found {} up to this filter",
                Span::from_millis(TIMEOUTS_MS_MAX),
                Span::from_millis(together)
            );
            found.add(&key("timeout"), text);
        }
    }
}
