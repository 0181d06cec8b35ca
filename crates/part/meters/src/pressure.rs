//! Limits that stand against the acceptance of new mail; the gateway applies them.
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

use vere_smtp::refusal::Refusal;
use vere_spoolwire::NodeStat;

/// A limit that can be exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
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

/// The used share of a bound of queues, in percent, from which the quarantine takes no more: strangers fill it, and messages stay for weeks. The rest is for mail
/// that is delivered.
pub const QUARANTINE_SHARE_MAX: u64 = 50;

/// Which bound throttles the intake.
#[derive(Debug, Default)]
pub struct Pressure {
    /// The bound that throttles now.
    pub bound: Cell<Option<Bound>>,
    /// Whether memory for messages of clients that have not authenticated is short.
    pub short: Cell<bool>,
    /// Whether the quarantine takes no more.
    pub quarantine_is_full: Cell<bool>,
    /// Messages on the way into the quarantine, which the queues do not count yet.
    pub quarantine_coming: Cell<u64>,
    /// The last answers of the nodes.
    pub held: Cell<Held>,
}

/// Fill of the nodes, in percent of their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Highest fill of a node, by all gateways.
    pub node: u64,
    /// Highest fill by this gateway's group.
    pub group: u64,
}

impl Held {
    /// Returns the highest fills among the nodes; `None` without nodes.
    #[must_use]
    pub fn of(stats: &[NodeStat]) -> Option<Self> {
        let node = stats.iter().map(|stat| stat.fill / 10).max()?;
        let group = stats.iter().map(|stat| share(stat.bytes, stat.bytes_max));
        let group = group.max()?;
        Some(Self { node, group })
    }
}

/// Returns the used part of a limit, in percent.
#[must_use]
pub fn share(used: u64, max: u64) -> u64 {
    used.saturating_mul(100) / max.max(1)
}

/// Shares in percent where throttling begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    /// Throttling begins at this share.
    pub from: u64,
    /// Throttling ends below this share.
    pub until: u64,
}

impl Pressure {
    /// Compares the used share of each bound, in percent, with the marks. Returns the bound that throttles now.
    pub fn look(&self, shares: &[(Bound, u64)], marks: Marks) -> Option<Bound> {
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

/// Why no new message is accepted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The queues are not read back from the spool yet.
    Recovering,
    /// The spool acknowledges nothing.
    Spool,
    /// A bound is nearly used up.
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
    /// Returns the reply to clients.
    #[must_use]
    pub const fn refusal(self) -> Refusal {
        match self {
            Self::Recovering | Self::Spool => Refusal::Busy,
            Self::Pressure(_) | Self::Lines => Refusal::StorageFull,
        }
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
