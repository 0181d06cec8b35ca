//! Follows the link of a group: recovers its queues once, and ends deliveries when another process takes them.

use std::rc::Rc;
use std::time::Duration;

use vere_owner::ShutReason;

use vere_delivery::Recovered;
use vere_process::wording::{counted, messages};

use super::group::{Group, STOP_PATIENCE};
use super::trade::Trade;
use vere_link::link::LinkState;
use vere_spoolwire::SpoolError;

/// Pause before the spool is asked again for what it holds.
const RECOVERY_PAUSE: Duration = Duration::from_millis(200);

/// Recovers when the link comes up for the first time.
pub async fn follow_link<T: Trade>(group: Rc<Group<T>>) {
    let mut state = group.host.link.state();
    loop {
        let now = *state.borrow_and_update();
        match now {
            LinkState::Connected if !group.is_recovered() => recover(&group).await,
            LinkState::Connected => tracing::info!("the spool acknowledges again"),
            LinkState::Down(ShutReason::NoFullReplica) => tracing::error!(
                "no spool node holds the queues any more as the register knows them: {} until an operator \
                 decides (vere spool salvage)",
                T::REFUSING
            ),
            LinkState::Down(reason) => {
                tracing::warn!(?reason, "the spool acknowledges nothing, {}", T::REFUSING);
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
pub async fn follow_lease<T: Trade>(group: Rc<Group<T>>) {
    let mut lease = group.host.link.lease();
    while lease.changed().await.is_ok() {
        group.queues.wake();
    }
}

async fn recover<T: Trade>(group: &Rc<Group<T>>) {
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

/// Waits until another process has taken the queues.
pub async fn fenced<T: Trade>(group: &Group<T>) {
    let mut state = group.host.link.state();
    let fenced = |state: &LinkState| *state == LinkState::Fenced;
    // The link is never dropped before the process.
    let _ = state.wait_for(fenced).await;
}

/// Waits until all queues are read back from the spool; mail is accepted only then.
pub async fn wait_recovered<T: Trade>(group: &Group<T>) {
    while !group.is_recovered() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets attempts under way finish, and the rest of the process as long as it is busy, within [`STOP_PATIENCE`]; then
/// gives the lease back, and writes events to disk.
pub async fn wind_down<T: Trade>(group: &Group<T>, is_busy: impl Fn() -> bool) {
    group.stop_delivering();
    let quiet = async {
        while is_busy() || group.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, quiet).await.is_err() {
        tracing::warn!(
            "stopping with sessions or attempts under way; nothing acknowledged is lost"
        );
    }
    // No delivery begins any more, so the next holder of the lease need not wait.
    group.host.link.give_back().await;
    group.host.link.close();
    group.host.process.flush_trace();
}
