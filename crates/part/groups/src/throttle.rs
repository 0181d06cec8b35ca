//! Whether the queues have room for new mail, by the limits of [`pressure`](vere_meters::pressure).

use std::rc::Rc;
use std::time::Duration;

use vere_meters::pressure::{Bound, Held, Marks, share};
use vere_settings::Limits;

use super::group::Group;
use super::trade::Trade;

/// Interval between two requests for the fill of the nodes, while mail arrives.
const LOOK: Duration = Duration::from_millis(500);
/// How long the nodes may take to answer.
const NODE_PATIENCE: Duration = Duration::from_secs(2);

/// Asks the nodes for their fill while mail arrives or is throttled, as long as the process lives.
pub async fn watch_nodes<T: Trade>(group: Rc<Group<T>>) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let came = group.queues.look(|queues| queues.totals().came);
        let throttled = group.host.process.pressure().bound.get().is_some();
        if came == seen && !throttled || !group.is_recovered() {
            continue;
        }
        seen = came;
        if let Some(held) = Held::of(&group.host.link.stats(NODE_PATIENCE).await) {
            group.host.process.pressure().held.set(held);
            // Logs a change of the throttling now, not with the next client.
            self::throttled(&group);
        }
    }
}

/// Returns the limit whose use currently stops new mail.
pub fn throttled<T: Trade>(group: &Group<T>) -> Option<Bound> {
    let process = &group.host.process;
    let settings = process.settings();
    let limits = &settings.limits;
    let shares = shares(group, limits, 0);
    let marks = Marks {
        from: limits.throttle_from.into(),
        until: limits.throttle_until.into(),
    };
    let before = process.pressure().bound.get();
    let now = process.pressure().look(&shares, marks);
    match (before, now) {
        (None, Some(bound)) => {
            let share = shares.iter().find(|(one, _)| *one == bound);
            process.tell_throttled(Some((bound, share.map_or(0, |(_, percent)| *percent))));
        }
        (Some(_), None) => process.tell_throttled(None),
        _ => {}
    }
    now
}

/// The used shares of the bounds of queues, in percent, with so many messages more than the queues have.
pub fn shares<T: Trade>(group: &Group<T>, limits: &Limits, coming: u64) -> [(Bound, u64); 3] {
    let queued = group.queues.look(|queues| queues.messages()) as u64;
    let queued = queued.saturating_add(coming);
    let held = group.host.process.pressure().held.get();
    [
        (Bound::Nodes, held.node),
        (Bound::Group, held.group),
        (Bound::Messages, share(queued, limits.queued_messages_max)),
    ]
}
