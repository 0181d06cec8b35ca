//! Runs tasks in an order that the seed chooses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::random::Random;

/// A future of this world.
pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Whether a task has something to do.
#[derive(Debug)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Running {
    life: usize,
    flag: Arc<Flag>,
    task: Task,
}

/// The tasks of all gateways that live.
#[derive(Default)]
pub(super) struct Executor {
    running: Vec<Running>,
}

impl Executor {
    /// Adds a task of a gateway.
    pub(super) fn add(&mut self, life: usize, task: Task) {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.running.push(Running { life, flag, task });
    }

    /// Takes one step of a task that was woken and may run. False: there is none.
    pub(super) fn step(&mut self, random: &mut Random, may_run: impl Fn(usize) -> bool) -> bool {
        let is_ready = |one: &Running| one.flag.0.load(Ordering::Relaxed) && may_run(one.life);
        let ready: Vec<_> = (0..self.running.len())
            .filter(|index| self.running.get(*index).is_some_and(is_ready))
            .collect();
        let Some(index) = random.pick(&ready) else {
            return false;
        };
        let Some(one) = self.running.get_mut(index) else {
            return false;
        };
        one.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&one.flag));
        let polled = one.task.as_mut().poll(&mut Context::from_waker(&waker));
        if polled == Poll::Ready(()) {
            drop(self.running.swap_remove(index));
        }
        true
    }

    /// Ends all tasks of a gateway where they are.
    pub(super) fn kill(&mut self, life: usize) {
        self.running.retain(|one| one.life != life);
    }
}
