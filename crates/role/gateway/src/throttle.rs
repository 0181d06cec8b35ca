//! Decides whether new mail is accepted, by the limits of [`pressure`](super::pressure).

use std::rc::Rc;
use std::time::Duration;

use super::group::{Group, has_too_many_lines};
use super::pressure::{Bound, Closed, Held, Marks, share};
use super::process::Process;

/// Interval between two requests for the fill of the nodes, while mail arrives.
const LOOK: Duration = Duration::from_millis(500);
/// How long the nodes may take to answer.
const NODE_PATIENCE: Duration = Duration::from_secs(2);

/// Asks the nodes for their fill while mail arrives or is throttled, as long as the gateway lives.
pub(super) async fn watch_nodes(group: Rc<Group>) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let came = group.queues.look(|queues| queues.totals().came);
        let throttled = group.host.process.pressure.bound.get().is_some();
        if came == seen && !throttled || !group.is_recovered() {
            continue;
        }
        seen = came;
        if let Some(held) = Held::of(&group.host.link.stats(NODE_PATIENCE).await) {
            group.host.process.pressure.held.set(held);
            // Logs a change of the throttling now, not with the next client.
            self::throttled(&group);
        }
    }
}

/// Returns why clients, authenticated or not, can begin no message now; `None` if messages are accepted.
pub(super) fn closed(group: &Group, authenticated: bool) -> Option<Closed> {
    if !group.is_recovered() {
        return Some(Closed::Recovering);
    }
    if !group.host.link.state().borrow().is_up() {
        return Some(Closed::Spool);
    }
    if let Some(bound) = throttled(group) {
        return Some(Closed::Pressure(bound));
    }
    if !authenticated && group.host.process.is_short() {
        return Some(Closed::Pressure(Bound::Bodies));
    }
    has_too_many_lines(group).then_some(Closed::Lines)
}

/// Returns the limit whose use currently stops new mail.
pub(super) fn throttled(group: &Group) -> Option<Bound> {
    let settings = group.host.process.settings();
    let limits = &settings.limits;
    let queued = group.queues.look(|queues| queues.messages()) as u64;
    let held = group.host.process.pressure.held.get();
    let shares = [
        (Bound::Nodes, held.node),
        (Bound::Group, held.group),
        (Bound::Messages, share(queued, limits.queued_messages_max)),
    ];
    let marks = Marks {
        from: limits.throttle_from.into(),
        until: limits.throttle_until.into(),
    };
    let before = group.host.process.pressure.bound.get();
    let now = group.host.process.pressure.look(&shares, marks);
    match (before, now) {
        (None, Some(bound)) => {
            let share = shares.iter().find(|(one, _)| *one == bound);
            let percent = share.map_or(0, |(_, percent)| *percent);
            tracing::warn!(%bound, percent, "intake throttled: new connections get 421, new messages 452");
        }
        (Some(_), None) => tracing::info!("intake throttling ended"),
        _ => {}
    }
    group.host.process.show_throttled();
    now
}

impl Process {
    /// Whether memory for messages of unauthenticated clients remains short after stalled messages were refused. Then
    /// these clients begin no message.
    pub(super) fn is_short(&self) -> bool {
        let settings = self.settings();
        let limits = &settings.limits;
        let before = self.pressure.short.get();
        let (from, until) = (limits.throttle_from, limits.throttle_until);
        let now = self.memory.is_short(from, until, before);
        self.pressure.short.set(now);
        match (before, now) {
            (false, true) => {
                let heaviest = self.memory.heaviest();
                let client =
                    heaviest.map_or_else(String::new, |heaviest| heaviest.client.to_string());
                let octets = heaviest.map_or(0, |heaviest| heaviest.octets);
                let bound = Bound::Bodies;
                tracing::warn!(%bound, %client, octets, "intake throttled: new messages of clients that have not authenticated get 452");
            }
            (true, false) => tracing::info!("intake throttling ended"),
            _ => {}
        }
        self.show_throttled();
        now
    }

    /// Whether memory for messages that are being received is short, or was a moment ago.
    pub(super) fn is_memory_short(&self) -> bool {
        self.pressure.short.get() || self.memory.was_short()
    }

    fn show_throttled(&self) {
        let throttled = self.pressure.bound.get().is_some() || self.pressure.short.get();
        self.metrics.throttled(throttled);
    }
}
