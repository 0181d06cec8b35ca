//! The hold of a backup on the log: while it lasts no segment is reclaimed, so that every file of the log keeps its
//! octets.
//!
//! One backup holds the log at a time. A hold ends with its connection, after `store.backup_hold_max`, or when the disk
//! is nearly full: then space is reclaimed, and the backup fails.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who keeps the segments as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Nobody.
    #[default]
    Free,
    /// A backup.
    Held,
    /// A backup that was told to end: segments are reclaimed again.
    Ended,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Notify,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hold on the log, shared by the connections and the store's thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds(Arc<Shared>);

impl Holds {
    /// Begins a hold; `None` while another one lasts.
    pub(super) fn take(&self) -> Option<Hold> {
        let mut state = self.0.state();
        (*state == State::Free).then(|| {
            *state = State::Held;
            Hold(Arc::clone(&self.0))
        })
    }

    /// Whether segments must stay as they are.
    pub(super) fn is_held(&self) -> bool {
        *self.0.state() == State::Held
    }

    /// Ends the hold, if there is one, because the disk is nearly full.
    pub(super) fn end(&self) {
        let mut state = self.0.state();
        if *state == State::Held {
            *state = State::Ended;
            self.0.ended.notify_one();
        }
    }
}

/// A hold, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold(Arc<Shared>);

impl Hold {
    /// Waits until the store ends the hold.
    pub(super) async fn ended(&self) {
        // A notice that nobody waited for belongs to an earlier hold.
        while *self.0.state() == State::Held {
            self.0.ended.notified().await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        *self.0.state() = State::Free;
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::task::Poll;

    use super::*;

    async fn is_ended(hold: &Hold) -> bool {
        let mut ended = std::pin::pin!(hold.ended());
        std::future::poll_fn(|context| Poll::Ready(ended.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn one_backup_holds_the_log_until_it_goes_or_is_ended() {
        let holds = Holds::default();
        assert!(!holds.is_held());
        let hold = holds.take().expect("free");
        assert!(holds.is_held() && holds.take().is_none());
        assert!(!is_ended(&hold).await);
        holds.end();
        // Segments may go at once, but no second backup begins before the first one is gone.
        assert!(!holds.is_held() && holds.take().is_none());
        assert!(is_ended(&hold).await);
        drop(hold);
        holds.end();
        // A notice that the earlier hold did not hear does not end this one.
        let hold = holds.take().expect("free again");
        holds.0.ended.notify_one();
        assert!(!is_ended(&hold).await);
        drop(hold);
        assert!(!holds.is_held());
    }
}
