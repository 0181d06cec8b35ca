//! Follows the link of a group: recovers its queues once, and ends deliveries when another gateway takes them.

use std::rc::Rc;
use std::time::Duration;

use vere_owner::ShutReason;

use vere_delivery::Recovered;
use vere_process::wording::{counted, messages};

use super::group::Group;
use vere_link::link::LinkState;
use vere_spoolwire::SpoolError;

/// Pause before the spool is asked again for what it holds.
const RECOVERY_PAUSE: Duration = Duration::from_millis(200);

/// Recovers when the link comes up for the first time.
pub(super) async fn follow_link(group: Rc<Group>) {
    let mut state = group.host.link.state();
    loop {
        let now = *state.borrow_and_update();
        match now {
            LinkState::Connected if !group.is_recovered() => recover(&group).await,
            LinkState::Connected => tracing::info!("the spool acknowledges again"),
            LinkState::Down(ShutReason::NoFullReplica) => tracing::error!(
                "no spool node holds the queues any more as the register knows them: mail is answered \
                 4xx until an operator decides (vere spool salvage)"
            ),
            LinkState::Down(reason) => {
                tracing::warn!(
                    ?reason,
                    "the spool acknowledges nothing, mail is answered 4xx"
                );
            }
            // Whoever took over delivers from now on.
            LinkState::Fenced => return group.stop_delivering(),
            LinkState::Connecting => {}
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// Wakes the scheduler when deliveries may begin.
pub(super) async fn follow_lease(group: Rc<Group>) {
    let mut lease = group.host.link.lease();
    while lease.changed().await.is_ok() {
        group.queues.wake();
    }
}

async fn recover(group: &Rc<Group>) {
    loop {
        match group.recover().await {
            Ok(found) => {
                tracing::info!("recovered {}", wording(found));
                return group.recovered();
            }
            Err(SpoolError::Closed) => return,
            Err(error) => tracing::warn!(?error, "cannot recover yet"),
        }
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
}

fn wording(found: Recovered) -> String {
    let queues = counted(found.queues, "queue", "queues");
    let messages = messages(found.messages);
    match found.unreadable {
        0 => format!("{messages} in {queues}"),
        some => {
            let records = counted(some, "record", "records");
            format!("{messages} in {queues}, {records} left alone that cannot be read")
        }
    }
}

/// Waits until another gateway has taken the queues.
pub(super) async fn fenced(group: &Group) {
    let mut state = group.host.link.state();
    let fenced = |state: &LinkState| *state == LinkState::Fenced;
    // The link is never dropped before the gateway.
    let _ = state.wait_for(fenced).await;
}
