//! A channel as the standard library's, for the model checker, whose own one does not end when its
//! senders are gone.

use std::collections::VecDeque;

use loom::sync::{Arc, Condvar, Mutex};

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    senders: usize,
    received: bool,
}

pub(super) struct Sender<T>(Arc<Shared<T>>);

pub(super) struct Receiver<T>(Arc<Shared<T>>);

/// The other side is gone.
#[derive(Debug)]
pub(super) struct Gone;

pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            waiting: VecDeque::new(),
            senders: 1,
            received: true,
        }),
        changed: Condvar::new(),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    pub(super) fn send(&self, item: T) -> Result<(), Gone> {
        let mut state = self.0.state.lock().unwrap();
        if !state.received {
            return Err(Gone);
        }
        state.waiting.push_back(item);
        self.0.changed.notify_one();
        Ok(())
    }
}

impl<T> Receiver<T> {
    pub(super) fn recv(&self) -> Result<T, Gone> {
        let mut state = self.0.state.lock().unwrap();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                return Ok(item);
            }
            if state.senders == 0 {
                return Err(Gone);
            }
            state = self.0.changed.wait(state).unwrap();
        }
    }
}

impl<T> Receiver<T> {
    pub(super) fn try_recv(&self) -> Result<T, Gone> {
        self.0.state.lock().unwrap().waiting.pop_front().ok_or(Gone)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().unwrap().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.senders -= 1;
            self.0.changed.notify_one();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.received = false;
        }
    }
}

impl<T> std::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sender")
    }
}
