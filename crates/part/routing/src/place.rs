//! The routes of the settings.

use vere_queue::Place;
use vere_settings::{NextHop, Settings};

/// Returns the place of mail for a remote domain, in any case, with or without the trailing dot.
#[must_use]
pub fn place_of(settings: &Settings, domain: &str) -> Place {
    let bare = domain.trim_end_matches('.');
    match settings.route(bare).map(|route| &route.next_hop) {
        None | Some(NextHop::Mx) => Place::Domain(bare.to_ascii_lowercase()),
        Some(NextHop::Local) => Place::Local,
        Some(NextHop::Host { host, port }) => Place::relay(host, *port),
    }
}
