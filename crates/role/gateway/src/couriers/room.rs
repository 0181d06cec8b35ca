//! The room of a courier for messages: how many octets the courier holds at once.
//!
//! Short messages have a separate room, so no long message is ahead of a short message. A site has at most half of either room, so the
//! next hops of a site leave room for the mail of further sites.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vere_queue::SiteName;

/// The longest short message.
const SHORT_OCTETS_MAX: usize = 64 * 1024;
/// Octets of short messages that a courier may hold, in KiB.
const SHORT_KIB: u32 = 8 * 1024;
/// Octets of long messages that a courier may hold, in KiB. A longer message waits until the courier holds no long message.
const LONG_KIB: u32 = 64 * 1024;
/// How long a message waits for room. Messages behind a message that waits come up then.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sites that a room may remember before those without messages are looked for.
const SITES_KEPT: usize = 16;

/// The room of a courier for messages.
#[derive(Debug)]
pub(super) struct Room {
    short: Part,
    long: Part,
}

/// The room that a message has until the value is dropped.
#[derive(Debug)]
pub(super) struct Held {
    _all: OwnedSemaphorePermit,
    _site: OwnedSemaphorePermit,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            short: Part::new(SHORT_KIB),
            long: Part::new(LONG_KIB),
        }
    }
}

impl Room {
    /// Waits until the courier may hold a further message of the site. `None`: the room is closed, or there was none for too long.
    pub(super) async fn take(&self, octets: usize, site: &SiteName) -> Option<Held> {
        let part = match octets {
            ..=SHORT_OCTETS_MAX => &self.short,
            _ => &self.long,
        };
        let held = part.take(octets, site);
        tokio::time::timeout(PATIENCE, held).await.ok().flatten()
    }

    /// Gives no more room, to the messages that wait either.
    pub(super) fn close(&self) {
        self.short.close();
        self.long.close();
    }
}

/// The room for messages of a kind.
#[derive(Debug)]
struct Part {
    kib: u32,
    all: Arc<Semaphore>,
    /// Half of the room for each site that has messages here.
    sites: RefCell<HashMap<SiteName, Weak<Semaphore>>>,
    /// The number of sites above which sites without messages are forgotten.
    sites_max: Cell<usize>,
}

impl Part {
    fn new(kib: u32) -> Self {
        Self {
            kib,
            all: semaphore(kib),
            sites: RefCell::default(),
            sites_max: Cell::new(SITES_KEPT),
        }
    }

    async fn take(&self, octets: usize, site: &SiteName) -> Option<Held> {
        let kib = u32::try_from(octets / 1024).unwrap_or(u32::MAX);
        let kib = kib.saturating_add(1).min(self.kib);
        let share = self.share(site);
        let site = share.acquire_many_owned(kib.min(self.kib / 2)).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(kib).await.ok()?;
        Some(Held {
            _all: all,
            _site: site,
        })
    }

    fn close(&self) {
        self.all.close();
        let sites = self.sites.borrow();
        let shares = sites.values().filter_map(Weak::upgrade);
        shares.for_each(|share| share.close());
    }

    /// The half of the room that a site may have.
    fn share(&self, site: &SiteName) -> Arc<Semaphore> {
        let mut sites = self.sites.borrow_mut();
        if let Some(share) = sites.get(site).and_then(Weak::upgrade) {
            return share;
        }
        if sites.len() >= self.sites_max.get() {
            sites.retain(|_, share| share.strong_count() > 0);
            self.sites_max.set(sites.len() * 2 + SITES_KEPT);
        }
        let share = semaphore(self.kib / 2);
        sites.insert(site.clone(), Arc::downgrade(&share));
        share
    }
}

fn semaphore(kib: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(kib).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    const MIB: usize = 1 << 20;

    fn site(name: &str) -> SiteName {
        SiteName::made_elsewhere(name.to_owned())
    }

    async fn waits(future: Pin<&mut impl Future<Output = Option<Held>>>) -> bool {
        let mut future = future;
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_message_passes_long_ones_that_wait() {
        let room = Room::default();
        let (a, b) = (site("a:25"), site("b:25"));
        let held = room.take(50 * MIB, &a).await;
        let mut waiting = std::pin::pin!(room.take(50 * MIB, &b));
        assert!(waits(waiting.as_mut()).await);
        for site in [&a, &b] {
            let mut short = std::pin::pin!(room.take(SHORT_OCTETS_MAX, site));
            assert!(!waits(short.as_mut()).await);
        }
        drop(held);
        assert!(waiting.await.is_some());
        // A message above the limit takes the whole room.
        assert!(room.take(usize::MAX, &a).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_a_limited_time_and_the_next_comes_up() {
        let room = Room::default();
        let _held = room.take(60 * MIB, &site("a:25")).await.unwrap();
        let begun = tokio::time::Instant::now();
        let (b, c) = (site("b:25"), site("c:25"));
        let second = room.take(50 * MIB, &b);
        let third = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            room.take(MIB, &c).await
        };
        let (second, third) = tokio::join!(second, third);
        assert!(second.is_none() && third.is_some());
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_leaves_half_of_the_room_to_the_others() {
        let room = Room::default();
        let (a, b) = (site("a:25"), site("b:25"));
        let mut held = Vec::new();
        for _ in 0..31 {
            held.push(room.take(MIB, &a).await.unwrap());
        }
        assert!(room.take(MIB, &a).await.is_none());
        for _ in 0..31 {
            held.push(room.take(MIB, &b).await.unwrap());
        }
        held.remove(0);
        assert!(room.take(MIB, &a).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_room_lets_nobody_wait() {
        let room = Room::default();
        let begun = tokio::time::Instant::now();
        let (a, b) = (site("a:25"), site("b:25"));
        let _held = room.take(64 * MIB, &a).await.unwrap();
        let close = async { room.close() };
        let (same, other, ()) = tokio::join!(room.take(MIB, &a), room.take(MIB, &b), close);
        assert!(same.is_none() && other.is_none());
        assert!(room.take(1, &b).await.is_none());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[test]
    fn sites_without_messages_are_forgotten() {
        let part = Part::new(LONG_KIB);
        let kept = part.share(&site("kept:25"));
        for number in 0..1_000 {
            part.share(&site(&format!("h{number}:25")));
            assert!(part.sites.borrow().len() <= 2 * SITES_KEPT + 2);
        }
        assert!(Arc::ptr_eq(&kept, &part.share(&site("kept:25"))));
    }
}
