//! Lists of clients.

use super::found::Found;
use crate::lists::BlockList;
use crate::model::Settings;

/// Lists of all sections, the frame between broker and front has room for.
const LISTS_MAX: usize = 32;
/// Octets of the longest name before the zone: 32 nibbles of an IPv6 address, each with a dot (RFC 5782 section 2.4).
const LABELS_OCTETS: usize = 64;
/// Octets of a name in the DNS as text, without the last dot.
const NAME_OCTETS_MAX: usize = 253;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let Some(front) = &settings.front else {
        return;
    };
    let lists = &front.lists.lists;
    if lists.len() > LISTS_MAX {
        let text = format!(
            "expected at most {LISTS_MAX} sections; found {}",
            lists.len()
        );
        found.add(&format!("front.list[{}].zone", LISTS_MAX + 1), text);
    }
    for (n, list) in lists.iter().enumerate() {
        let octets_max = NAME_OCTETS_MAX - LABELS_OCTETS;
        if list.zone.len() > octets_max {
            let text = format!(
                "expected at most {octets_max} bytes, so that IPv6 addresses fit before the zone"
            );
            found.add(&format!("front.list[{}].zone", n + 1), text);
        }
        let same = |other: &&BlockList| other.name == list.name && other.zone != list.zone;
        if let Some(other) = lists[..n].iter().find(same) {
            let text = format!(
                "expected a name that tells the lists apart in the metrics; found the name of {}",
                other.zone
            );
            found.add(&format!("front.list[{}].name", n + 1), text);
        }
    }
    if front.lists.ttl_min > front.lists.ttl_max {
        let text = "expected at most front.lists.ttl_max";
        found.add("front.lists.ttl_min", text);
    }
    if !lists.is_empty() && front.hands_over_at_once {
        let text = "is not understood by workers: leave out front.hand_over, or this";
        found.add("front.list[1].zone", text);
    }
}
