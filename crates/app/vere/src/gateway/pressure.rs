//! Decides whether new mail is accepted, and which limit stands against acceptance.
//!
//! Near a limit of queued mail, here or in the nodes, the gateway refuses all new mail, so that mail in flight finds
//! space: new connections by 421, new messages of open connections by 452. Throttling starts at
//! `limits.throttle_from` and ends below `limits.throttle_until`, so that the state does not flutter.
//!
//! Memory of messages that are being received is different, because unauthenticated clients use it. Stalled messages
//! are refused first. If memory remains short, new messages of unauthenticated clients get 452. No connection is
//! refused for lack of memory.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use vere_smtp::refusal::Refusal;
use vere_spoolwire::NodeStat;

use super::state::Gateway;

/// How often nodes are asked how full they are, while mail comes.
const LOOK: Duration = Duration::from_millis(500);
/// How long they may take to answer.
const NODE_PATIENCE: Duration = Duration::from_secs(2);

/// A limit that can be exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Messages in all queues of a group.
    Messages,
    /// Memory of messages that are being received.
    Bodies,
    /// Fill of the fullest node, by all gateways.
    Nodes,
    /// Fill of the nodes by this gateway's group.
    Group,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Messages => "limits.queued_messages_max",
            Self::Bodies => "limits.body_memory_max",
            Self::Nodes => "room of a spool node (spool.memory_max and spool.spill_max)",
            Self::Group => "spool.group_max",
        })
    }
}

/// Which bound throttles the intake.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    bound: Cell<Option<Bound>>,
    /// Whether memory for messages of clients that have not authenticated is short.
    short: Cell<bool>,
    /// What the nodes said last.
    held: Cell<Held>,
}

/// Fill of the nodes, in percent of their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    /// Highest fill of a node, by all gateways.
    pub(super) node: u64,
    /// Highest fill by this gateway's group.
    pub(super) group: u64,
}

impl Held {
    /// Returns the highest fills among the nodes; `None` without nodes.
    pub(super) fn of(stats: &[NodeStat]) -> Option<Self> {
        let node = stats.iter().map(|stat| stat.fill / 10).max()?;
        let group = stats.iter().map(|stat| share(stat.bytes, stat.bytes_max));
        let group = group.max()?;
        Some(Self { node, group })
    }
}

fn share(used: u64, max: u64) -> u64 {
    used.saturating_mul(100) / max.max(1)
}

/// Shares in percent where throttling begins and ends.
#[derive(Debug, Clone, Copy)]
struct Marks {
    from: u64,
    until: u64,
}

impl Pressure {
    /// Looks at how much of each bound is used, in percent; gives what throttles now.
    fn look(&self, shares: &[(Bound, u64)], marks: Marks) -> Option<Bound> {
        let mark = match self.bound.get() {
            Some(_) => marks.until,
            None => marks.from,
        };
        let largest = shares.iter().max_by_key(|(_, share)| *share);
        let over = largest.filter(|(_, share)| *share >= mark);
        self.bound.set(over.map(|(bound, _)| *bound));
        self.bound.get()
    }
}

/// Why no message is begun now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// What the spool holds is not read back yet.
    Recovering,
    /// The spool acknowledges nothing.
    Spool,
    /// So much of a bound is used.
    Pressure(Bound),
    /// The limit of waiting event lines is reached.
    Lines,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recovering => f.write_str("queues are read back"),
            Self::Spool => f.write_str("spool acknowledges nothing"),
            Self::Pressure(bound) => write!(f, "{bound} nearly used up"),
            Self::Lines => f.write_str("records.waiting_max reached"),
        }
    }
}

impl Closed {
    /// What clients are told.
    pub(super) const fn refusal(self) -> Refusal {
        match self {
            Self::Recovering | Self::Spool => Refusal::Busy,
            Self::Pressure(_) | Self::Lines => Refusal::StorageFull,
        }
    }
}

/// Asks the nodes how full they are for as long as the gateway lives, whenever mail has come or is throttled.
pub(super) async fn watch_nodes(gateway: Rc<Gateway>) {
    let mut seen = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let came = gateway.queues.borrow().totals().came;
        let throttled = gateway.pressure.bound.get().is_some();
        if came == seen && !throttled || !gateway.is_recovered() {
            continue;
        }
        seen = came;
        if let Some(held) = Held::of(&gateway.link.stats(NODE_PATIENCE).await) {
            gateway.pressure.held.set(held);
            // Logged at the change, not with the next client.
            gateway.throttled();
        }
    }
}

impl Gateway {
    /// Why no message is begun now, by a client that has authenticated or not; `None`: they are.
    pub(super) fn closed(&self, authenticated: bool) -> Option<Closed> {
        if !self.is_recovered() {
            return Some(Closed::Recovering);
        }
        if !self.link.state().borrow().is_up() {
            return Some(Closed::Spool);
        }
        if let Some(bound) = self.throttled() {
            return Some(Closed::Pressure(bound));
        }
        if !authenticated && self.is_short() {
            return Some(Closed::Pressure(Bound::Bodies));
        }
        self.too_many_lines().then_some(Closed::Lines)
    }

    /// Returns the limit whose use currently stops new mail.
    pub(super) fn throttled(&self) -> Option<Bound> {
        let settings = self.settings();
        let limits = &settings.limits;
        let queued = self.queues.borrow().messages() as u64;
        let held = self.pressure.held.get();
        let shares = [
            (Bound::Nodes, held.node),
            (Bound::Group, held.group),
            (Bound::Messages, share(queued, limits.queued_messages_max)),
        ];
        let marks = Marks {
            from: limits.throttle_from.into(),
            until: limits.throttle_until.into(),
        };
        let before = self.pressure.bound.get();
        let now = self.pressure.look(&shares, marks);
        match (before, now) {
            (None, Some(bound)) => {
                let share = shares.iter().find(|(one, _)| *one == bound);
                let percent = share.map_or(0, |(_, percent)| *percent);
                tracing::warn!(%bound, percent, "intake throttled: new connections get 421, new messages 452");
            }
            (Some(_), None) => tracing::info!("intake as before"),
            _ => {}
        }
        self.show_throttled();
        now
    }

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
            (true, false) => tracing::info!("intake as before"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_begins_at_one_mark_and_ends_below_the_other() {
        let pressure = Pressure::default();
        let marks = Marks {
            from: 95,
            until: 90,
        };
        let look = |messages, group| {
            let shares = [(Bound::Messages, messages), (Bound::Group, group)];
            pressure.look(&shares, marks)
        };
        assert_eq!(look(94, 0), None);
        assert_eq!(look(95, 0), Some(Bound::Messages));
        assert_eq!(look(90, 0), Some(Bound::Messages));
        assert_eq!(look(90, 97), Some(Bound::Group));
        assert_eq!(look(89, 89), None);
        assert_eq!(look(94, 94), None);
        assert_eq!(look(0, 100), Some(Bound::Group));
    }
}
