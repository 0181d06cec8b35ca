//! Runs tasks in an order that the seed chooses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::random::Random;

/// A future of a world.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

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

/// The tasks of all processes that live.
#[derive(Default)]
pub(crate) struct Executor {
    running: Vec<Running>,
}

impl Executor {
    /// Adds a task of a life.
    pub(crate) fn add(&mut self, life: usize, task: Task) {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.running.push(Running { life, flag, task });
    }

    /// Takes a step of a task that was woken and may run, and gives the life of the task, if a task exists.
    pub(crate) fn step(
        &mut self,
        random: &mut Random,
        may_run: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let is_ready = |one: &Running| one.flag.0.load(Ordering::Relaxed) && may_run(one.life);
        let ready: Vec<_> = (0..self.running.len())
            .filter(|index| self.running.get(*index).is_some_and(is_ready))
            .collect();
        let index = random.pick(&ready)?;
        let one = self.running.get_mut(index)?;
        let life = one.life;
        one.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&one.flag));
        let polled = one.task.as_mut().poll(&mut Context::from_waker(&waker));
        if polled == Poll::Ready(()) {
            drop(self.running.swap_remove(index));
        }
        Some(life)
    }

    /// Ends all tasks of a life at any step.
    pub(crate) fn kill(&mut self, life: usize) {
        self.running.retain(|one| one.life != life);
    }
}
