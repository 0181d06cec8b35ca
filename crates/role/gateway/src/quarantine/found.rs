//! The messages of the quarantine, here and in adopted queues.

use std::time::Duration;

use vere_settings::{QUARANTINE_KEEP, Settings};

use crate::group::{GroupHost, Groups};

/// Messages after which other tasks go on.
const BREATH: usize = 100;

pub(super) type Aside = vere_delivery::Aside<GroupHost>;

/// A message of the quarantine, and the dead gateway in whose queue it is.
pub(super) struct Found {
    pub(super) group: Option<String>,
    pub(super) aside: Aside,
}

/// How long messages stay in the quarantine.
pub(super) fn keep_for(settings: &Settings) -> Duration {
    let judging = settings.judging.as_ref();
    judging.map_or(QUARANTINE_KEEP, |judging| judging.quarantine_keep)
}

/// Returns the messages of the quarantine here and in adopted queues, the oldest first.
pub(super) fn all(groups: &Groups) -> Vec<Found> {
    let mut found = Vec::new();
    for (name, group) in groups.named() {
        let aside = group.quarantined().into_iter();
        found.extend(aside.map(|aside| Found {
            group: name.clone(),
            aside,
        }));
    }
    // Ids grow with time.
    found.sort_by_key(|found| found.aside.message.trace);
    found
}

/// Lets other tasks go on after some messages.
pub(super) async fn breathe(index: usize) {
    if index % BREATH == BREATH - 1 {
        tokio::task::yield_now().await;
    }
}
