//! A bell that tasks wait for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Counts rings until tasks hear them.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rings: Cell<usize>,
    /// The tasks that wait, each under a separate number.
    waiting: RefCell<BTreeMap<u64, Waker>>,
    next: Cell<u64>,
}

impl Bell {
    /// Rings once.
    pub(crate) fn ring(&self) {
        self.rings.set(self.rings.get() + 1);
        self.waiting.take().into_values().for_each(Waker::wake);
    }

    /// Returns after a ring that no other task has heard: each ring is for one task.
    pub(crate) async fn heard(&self) {
        Waiting::new(self).await;
        self.rings.set(self.rings.get().saturating_sub(1));
    }

    /// Returns after one ring or more.
    pub(crate) async fn all_heard(&self) {
        Waiting::new(self).await;
        self.rings.set(0);
    }
}

/// Waits until there is a ring. Leaves nothing behind when it is dropped.
struct Waiting<'a> {
    bell: &'a Bell,
    number: u64,
}

impl<'a> Waiting<'a> {
    fn new(bell: &'a Bell) -> Self {
        let number = bell.next.replace(bell.next.get() + 1);
        Self { bell, number }
    }
}

impl Future for Waiting<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.bell.rings.get() > 0 {
            return Poll::Ready(());
        }
        let mut waiting = self.bell.waiting.borrow_mut();
        waiting.insert(self.number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.bell.waiting.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use futures_util::future::join;

    use super::*;

    #[test]
    fn each_ring_is_for_one_task() {
        let bell = Bell::default();
        let (mut one, mut two) = (pin!(bell.heard()), pin!(bell.heard()));
        assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
        bell.ring();
        bell.ring();
        assert!(join(one, two).now_or_never().is_some());
        assert!(bell.heard().now_or_never().is_none());
    }

    #[test]
    fn several_rings_may_count_as_one() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        assert!(bell.all_heard().now_or_never().is_some());
        assert!(bell.all_heard().now_or_never().is_none());
    }

    #[test]
    fn who_waits_no_more_leaves_nothing_behind() {
        let bell = Bell::default();
        for _ in 0..3 {
            assert!(bell.heard().now_or_never().is_none());
        }
        assert!(bell.waiting.borrow().is_empty());
    }
}
