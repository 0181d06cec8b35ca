//! The zones in force, which the loader replaces and every thread looks up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vere_dnsbl::zone::Zones;

/// Zones that metrics tell apart; further ones count together with names outside all zones.
pub(crate) const SLOTS: usize = 256;

/// Zones, and their places in metrics.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) zones: Zones,
    /// The slot of each zone, by its place among the zones.
    pub(crate) slots: Vec<usize>,
    /// Whether data expire.
    pub(crate) expires: bool,
}

/// What threads share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    generation: AtomicU64,
    loaded: Mutex<Arc<Loaded>>,
    /// The names of zones by slot. A name keeps its slot for the life of the process.
    names: Mutex<BTreeMap<String, usize>>,
}

impl Shared {
    /// Puts zones in force. A thread takes them before its next batch of queries.
    pub(crate) fn replace(&self, zones: Zones) {
        let mut slots = vec![SLOTS; zones.iter().len()];
        let mut expires = false;
        for (place, zone) in zones.iter() {
            slots[place] = self.slot(&zone.apex().to_string());
            expires |= zone.data().head().expires.is_some();
        }
        let loaded = Loaded {
            zones,
            slots,
            expires,
        };
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The slot of a zone, and the last one when all are taken.
    fn slot(&self, name: &str) -> usize {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = names.get(name) {
            return *slot;
        }
        let slot = names.len();
        if slot >= SLOTS {
            return SLOTS;
        }
        names.insert(name.to_owned(), slot);
        slot
    }

    /// The names that have slots.
    pub(crate) fn names(&self) -> Vec<(String, usize)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .iter()
            .map(|(name, slot)| (name.clone(), *slot))
            .collect()
    }
}

/// A thread's hold on the zones in force.
#[derive(Debug)]
pub(crate) struct InForce {
    shared: Arc<Shared>,
    generation: u64,
    loaded: Arc<Loaded>,
}

impl InForce {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let mut in_force = Self {
            shared,
            generation: u64::MAX,
            loaded: Arc::default(),
        };
        in_force.look();
        in_force
    }

    /// Takes zones that were replaced since the last look. Without new zones the cost is the read of a number.
    pub(crate) fn look(&mut self) {
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation != self.generation {
            let loaded = self.shared.loaded.lock();
            self.loaded = Arc::clone(&loaded.unwrap_or_else(PoisonError::into_inner));
            self.generation = generation;
        }
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}
