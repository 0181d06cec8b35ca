//! Removes messages from the quarantine by their age, and has recipients told of new ones.

use std::rc::Rc;
use std::time::Duration;

use super::digest;
use super::found::keep_for;
use crate::group::Groups;

/// Interval between two looks at the ages.
const LOOK: Duration = Duration::from_secs(10);

/// Looks after the quarantine, in adopted queues too, until the gateway ends.
pub(crate) async fn keep(groups: Rc<Groups>) {
    loop {
        tokio::time::sleep(LOOK).await;
        remove_old(&groups).await;
        digest::tell(&groups).await;
    }
}

async fn remove_old(groups: &Groups) {
    let keep = keep_for(&groups.process().settings());
    for group in groups.all() {
        let is_empty = group.queues.look(|queues| queues.totals().quarantined == 0);
        if is_empty || !group.is_recovered() {
            continue;
        }
        match group.age_quarantine(keep).await {
            Ok(0) => {}
            Ok(messages) => tracing::info!(
                messages,
                older_than = keep.as_secs(),
                "messages removed from the quarantine by their age"
            ),
            Err(error) => {
                tracing::warn!(%error, "cannot remove old messages from the quarantine yet");
            }
        }
    }
}
