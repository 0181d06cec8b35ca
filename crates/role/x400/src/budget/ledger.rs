//! The octets of each unit, and the rule by which a unit may have more.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long the oldest unit may take while others wait.
pub(super) const TURN: Duration = Duration::from_secs(20);

/// The bounds, in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    /// All units together. One peer has half of it.
    pub(crate) all: u64,
    /// One unit; at most half of `all`.
    pub(crate) unit: u64,
}

/// The memory that is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// That of all peers.
    Common,
    /// The half of the unit's own peer.
    Own,
}

/// A unit that is being received, or rests.
#[derive(Debug)]
struct Unit {
    peer: Rc<str>,
    octets: u64,
    /// Nothing more comes for now.
    rests: bool,
    called: Rc<Notify>,
}

/// The units, in the order of their beginnings.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) bounds: Bounds,
    next: u64,
    units: BTreeMap<u64, Unit>,
    /// Units that wait for room.
    waiting: isize,
    /// The oldest unit and since when further units wait: of all peers under an empty name, else of a single peer.
    turns: BTreeMap<Rc<str>, (u64, Instant)>,
}

impl Ledger {
    /// Octets of all units.
    pub(crate) fn held(&self) -> u64 {
        self.units.values().map(|unit| unit.octets).sum()
    }

    /// A unit begins, and gets a number.
    pub(crate) fn begin(&mut self, peer: &str, called: Rc<Notify>) -> u64 {
        let serial = self.next;
        self.next += 1;
        let unit = Unit {
            peer: peer.into(),
            octets: 0,
            rests: false,
            called,
        };
        self.units.insert(serial, unit);
        serial
    }

    /// The octets of a unit are free again.
    pub(crate) fn end(&mut self, serial: u64) {
        self.units.remove(&serial);
    }

    /// Counts a unit anew.
    pub(crate) fn set(&mut self, serial: u64, octets: u64) {
        if let Some(unit) = self.units.get_mut(&serial) {
            unit.octets = octets;
        }
    }

    /// Takes a unit out of the order.
    pub(crate) fn rest(&mut self, serial: u64) {
        if let Some(unit) = self.units.get_mut(&serial) {
            unit.rests = true;
        }
    }

    /// The peer of a unit.
    pub(crate) fn peer(&self, serial: u64) -> Option<&str> {
        self.units.get(&serial).map(|unit| &*unit.peer)
    }

    /// Which memory is short, if a unit is to have so many octets.
    pub(crate) fn shortage(&self, serial: u64, octets: u64) -> Option<Shortage> {
        let unit = self.units.get(&serial)?;
        let own = |other: &Unit| other.peer == unit.peer;
        let all = self.bounds.all;
        if !self.has_room(serial, octets, all, |_| true) {
            return Some(Shortage::Common);
        }
        (!self.has_room(serial, octets, all / 2, own)).then_some(Shortage::Own)
    }

    /// Whether a unit may have so many octets among the units of a kind: a unit alone may, the oldest one within the bound, and another one if the rest of the
    /// oldest still finds room. So only complete units can hold the oldest unit back.
    fn has_room(
        &self,
        serial: u64,
        octets: u64,
        max: u64,
        of_kind: impl Fn(&Unit) -> bool,
    ) -> bool {
        let kind = || self.units.iter().filter(|(_, unit)| of_kind(unit));
        let others: u64 = kind()
            .filter(|(other, _)| **other != serial)
            .map(|(_, unit)| unit.octets)
            .sum();
        let rest = match kind().find(|(_, unit)| !unit.rests) {
            Some((oldest, unit)) if *oldest != serial => {
                self.bounds.unit.saturating_sub(unit.octets)
            }
            _ => 0,
        };
        others == 0 || others.saturating_add(octets).saturating_add(rest) <= max
    }

    /// A unit begins to wait, or ends it.
    pub(crate) fn waiting(&mut self, change: isize) {
        self.waiting += change;
        if self.waiting == 0 {
            self.turns.clear();
        }
    }

    /// For a waiting unit: the oldest unit in the way, if the turn of the oldest unit is over. The oldest unit itself waits for complete units.
    pub(crate) fn late(
        &mut self,
        serial: u64,
        shortage: Shortage,
        now: Instant,
    ) -> Option<Rc<Notify>> {
        let own = Rc::clone(&self.units.get(&serial)?.peer);
        let is_kind = |unit: &Unit| shortage == Shortage::Common || unit.peer == own;
        let mut active = self.units.iter().filter(|(_, unit)| !unit.rests);
        let (oldest, unit) = active.find(|(_, unit)| is_kind(unit))?;
        let name = match shortage {
            Shortage::Common => Rc::from(""),
            Shortage::Own => Rc::clone(&own),
        };
        if *oldest == serial {
            return None;
        }
        let turn = self.turns.entry(name).or_insert((*oldest, now));
        if turn.0 != *oldest {
            *turn = (*oldest, now);
        }
        (now.saturating_duration_since(turn.1) >= TURN).then(|| Rc::clone(&unit.called))
    }
}
