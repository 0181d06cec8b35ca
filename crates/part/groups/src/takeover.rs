//! Delivers the group of another gateway, until the group is empty or another gateway takes the group.
//!
//! Such a group gets no new mail except reports about its own mail. Its queues are delivered like this gateway's own
//! queues, side by side.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use vere_units::Timestamp;

use super::following::{follow_lease, follow_link};
use super::group::{Group, STOP_PATIENCE};
use super::trade::Trade;
use vere_link::link::LinkState;

/// Interval between two inspections of the group.
const LOOK: Duration = Duration::from_millis(200);

/// How the delivery of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The group is empty, except for records that this version cannot read, and the quarantine if it may stay.
    Empty {
        /// Number of unreadable records, which remain in the spool.
        unreadable: u64,
        /// Number of messages in the quarantine, which remain in the spool.
        quarantined: usize,
    },
    /// Another gateway took the group: usually the gateway that the group is named for.
    Taken,
    /// The gateway is stopping.
    Stopped,
}

/// Whether messages in the quarantine keep a group under delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quarantine {
    /// They do: people look at them here as long as their gateway is away.
    Counts,
    /// They do not: nobody waits a month for their end.
    Stays,
}

/// The progress of the delivery of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// Whether the queues are known yet.
    pub(super) recovered: bool,
    /// Whether deliveries may begin.
    pub(super) held: bool,
    pub(super) messages: usize,
    pub(super) deferred: usize,
    pub(super) in_flight: usize,
    /// Messages held individually by an operator.
    pub(super) standing: usize,
    /// Messages in the quarantine.
    pub(super) quarantined: usize,
    /// Time of the next attempt.
    pub(super) next: Option<Timestamp>,
}

/// Delivers by `delivering` until the end. Then attempts under way finish, and the lease is given back. A gateway that stops keeps the
/// lease, so that another gateway finds the group unfinished.
pub(super) async fn deliver<T: Trade>(
    group: &Rc<Group<T>>,
    delivering: impl Future<Output = ()> + 'static,
    stop: &mut watch::Receiver<bool>,
    quarantine: Quarantine,
    mut told: impl FnMut(Progress),
) -> End {
    let mut tasks = JoinSet::new();
    tasks.spawn_local(delivering);
    tasks.spawn_local(follow_link(Rc::clone(group)));
    tasks.spawn_local(follow_lease(Rc::clone(group)));
    let end = loop {
        let state = *group.host.link.state().borrow();
        if state == LinkState::Fenced {
            break End::Taken;
        }
        if *stop.borrow() {
            break End::Stopped;
        }
        let progress = progress(group);
        told(progress);
        let quarantined = match quarantine {
            Quarantine::Stays => progress.quarantined,
            Quarantine::Counts => 0,
        };
        let is_empty = progress.recovered && progress.messages == quarantined;
        let done = is_empty && group.host.link.is_settled();
        if done && let Some(unreadable) = left(group, quarantined).await {
            break End::Empty {
                unreadable,
                quarantined,
            };
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    };
    group.stop_delivering();
    let quiet = async {
        while group.in_flight() > 0 || end != End::Taken && !group.host.link.is_settled() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(STOP_PATIENCE, quiet).await;
    if end != End::Stopped {
        group.host.link.give_back().await;
    }
    group.host.link.close();
    end
}

fn progress<T: Trade>(group: &Group<T>) -> Progress {
    let (recovered, held) = (group.is_recovered(), group.host.link.may_deliver());
    group.queues.look(|queues| {
        let totals = queues.totals();
        Progress {
            recovered,
            held,
            messages: totals.messages,
            deferred: totals.deferred,
            in_flight: totals.in_flight,
            standing: totals.held,
            quarantined: totals.quarantined,
            next: queues.wake_at(),
        }
    })
}

/// Asks the spool for remaining records. Returns `None` if records remain, such as an original whose report is being
/// stored; otherwise the number of unreadable records.
async fn left<T: Trade>(group: &Group<T>, quarantined: usize) -> Option<u64> {
    let queues = group.host.link.queues().await.ok()?;
    // Queue commands for destinations remain for the gateway that the group is named for. Event lines of exports that
    // this gateway does not have remain as well.
    let others = |name: &str| group.event_lines.is_other(name);
    let leaving = queues.iter().filter(|queue| !others(&queue.name));
    let records: u64 = leaving.map(|queue| queue.length).sum();
    let records = records.saturating_sub(quarantined as u64);
    let unreadable = group.unreadable();
    let is_left = group.queues.look(|queues| queues.messages()) == quarantined;
    (records <= unreadable && is_left).then_some(records)
}
