//! A cache of recently searched runs: the next search does not read and check the runs again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_mime::Zone;

use crate::kept::Kept;

/// The most octets in the cache.
const OCTETS_MAX: usize = 32 * 1024 * 1024;

/// Runs of segments, the most recently used last; the segments of an index share the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Used>>);

#[derive(Debug, Default)]
struct Used {
    runs: VecDeque<(u64, Zone, Arc<Kept>)>,
    octets: usize,
    /// The number of the last segment.
    last: u64,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a segment.
    pub(crate) fn number(&self) -> u64 {
        let mut used = self.lock();
        used.last += 1;
        used.last
    }

    /// The cached runs of a segment's zone.
    pub(crate) fn get(&self, segment: u64, zone: Zone) -> Option<Arc<Kept>> {
        let mut used = self.lock();
        let is_it = |(own, kind, _): &(u64, Zone, Arc<Kept>)| (*own, *kind) == (segment, zone);
        let at = used.runs.iter().rposition(is_it)?;
        let found = used.runs.remove(at)?;
        let kept = Arc::clone(&found.2);
        used.runs.push_back(found);
        Some(kept)
    }

    /// Caches the runs, and removes the runs unused for the longest time.
    pub(crate) fn put(&self, segment: u64, zone: Zone, kept: &Arc<Kept>) {
        let mut used = self.lock();
        used.octets += kept.memory();
        used.runs.push_back((segment, zone, Arc::clone(kept)));
        while used.octets > OCTETS_MAX
            && let Some((_, _, oldest)) = used.runs.pop_front()
        {
            used.octets -= oldest.memory();
        }
    }

    /// Lets go of a segment.
    pub(crate) fn forget(&self, segment: u64) {
        let mut used = self.lock();
        let mut gone = 0;
        used.runs.retain(|(own, _, kept)| {
            let stays = *own != segment;
            gone += if stays { 0 } else { kept.memory() };
            stays
        });
        used.octets -= gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let memory = Memory::default();
        let kept = Arc::new(Kept::of(vec![0; OCTETS_MAX / 4]));
        let [first, second, third] = [(); 3].map(|()| memory.number());
        memory.put(first, Zone::Body, &kept);
        memory.put(second, Zone::Body, &kept);
        assert!(memory.get(first, Zone::Body).is_some());
        assert!(memory.get(first, Zone::Header).is_none());
        memory.put(third, Zone::Body, &kept);
        memory.put(third, Zone::Header, &kept);
        assert!(memory.get(second, Zone::Body).is_none());
        assert!(memory.get(first, Zone::Body).is_some());
        memory.forget(third);
        assert!(memory.get(third, Zone::Body).is_none());
        assert_eq!(memory.lock().octets, kept.memory());
        memory.put(second, Zone::Body, &Arc::new(Kept::of(vec![0; OCTETS_MAX])));
        assert_eq!(memory.lock().octets, 0);
    }
}
