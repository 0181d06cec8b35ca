//! How many messages wait for filters at once, and how much memory these messages have.
//!
//! A gateway counts the memory of a message from its first octet to the reply, filters included. These bounds are within that one: filters that hang
//! must not take it all.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use vere_settings::Settings;

/// The most messages that are asked about at once, with the messages that wait for memory or a connection. A worker has 256 places at the gateway for messages and parts, so that
/// slow filters leave places free.
pub const ASKED_MAX: usize = 192;
/// The longest wait for memory.
const PATIENCE: Duration = Duration::from_secs(5);
/// The unit of memory.
const UNIT_OCTETS: usize = 1024;

/// The octets of messages that filters are asked about at once: half of `limits.body_memory_max`. Changed copies come on top.
#[must_use]
pub fn octets_max(settings: &Settings) -> usize {
    let half = settings.limits.body_memory_max.as_u64() / 2;
    usize::try_from(half).unwrap_or(usize::MAX)
}

/// The bounds of all messages that filters are asked about.
#[derive(Debug)]
pub(crate) struct Room {
    messages: Semaphore,
    memory: Semaphore,
    octets_max: usize,
}

/// The place of a message.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    _message: SemaphorePermit<'a>,
    _memory: SemaphorePermit<'a>,
}

impl Room {
    pub(crate) fn new(octets_max: usize) -> Self {
        let units = (octets_max / UNIT_OCTETS).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            messages: Semaphore::new(ASKED_MAX),
            memory: Semaphore::new(units),
            octets_max,
        }
    }

    pub(crate) const fn octets_max(&self) -> usize {
        self.octets_max
    }

    /// A place for a message; `None` if there are too many messages, or there is no memory for so long. A message larger than all memory waits until no
    /// other one is there.
    pub(crate) async fn enter(&self, octets: usize) -> Option<Place<'_>> {
        let message = self.messages.try_acquire().ok()?;
        let all = (self.octets_max / UNIT_OCTETS).max(1);
        let units = octets.div_ceil(UNIT_OCTETS).clamp(1, all);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let memory = timeout(PATIENCE, self.memory.acquire_many(units)).await;
        Some(Place {
            _message: message,
            _memory: memory.ok()?.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_have_places_up_to_both_bounds() {
        let room = Room::new(10 * UNIT_OCTETS);
        let places = (room.enter(1).await, room.enter(9 * UNIT_OCTETS).await);
        assert!(places.0.is_some() && places.1.is_some());
        assert!(room.enter(1).await.is_none(), "no memory");
        drop(places);
        assert!(room.enter(100 * UNIT_OCTETS).await.is_some(), "alone");
        let room = Room::new(ASKED_MAX * UNIT_OCTETS * 2);
        let mut places = Vec::new();
        for _ in 0..ASKED_MAX {
            places.push(room.enter(1).await.expect("a place"));
        }
        assert!(room.enter(1).await.is_none(), "no place");
        places.pop();
        assert!(room.enter(1).await.is_some());
    }
}
