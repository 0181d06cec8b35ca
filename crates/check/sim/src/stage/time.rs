//! Virtual time, and due events.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use vere_units::Timestamp;

use super::executor::{Executor, Task};
use super::{BASE, Stage, Staged};
use crate::schedule::Micros;

/// Something that is due.
pub(crate) enum Due<E> {
    Wake(Rc<RefCell<Waker>>),
    /// A process that was stopped goes on.
    GoOn,
    /// The spool does the next request of a life.
    Perform(usize),
    /// An event of a world.
    Event(E),
}

impl<W: Staged> Stage<W> {
    pub(crate) fn due(&self, at: Micros, due: Due<W::Event>) {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        self.events.borrow_mut().insert((at, serial), due);
    }

    pub(crate) fn after(&self, delay: Micros, event: W::Event) {
        self.due(self.now.get() + delay, Due::Event(event));
    }

    /// Wakes a task at a time.
    pub(crate) fn wake_at(&self, at: Micros, waker: Rc<RefCell<Waker>>) {
        self.due(at, Due::Wake(waker));
    }

    /// The wall clock.
    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_millis(BASE) + Duration::from_micros(self.now.get())
    }

    pub(crate) fn spawn(&self, life: usize, task: Task) {
        self.spawned.borrow_mut().push((life, task));
    }

    /// Forgets tasks that have not begun: their process has died.
    pub(crate) fn forget_spawned(&self, life: usize) {
        self.spawned.borrow_mut().retain(|(of, _)| *of != life);
    }
}

/// Takes a step of a task, or goes on to the next event. False: neither exists.
pub(crate) fn turn<W: Staged>(world: &Rc<W>, executor: &mut Executor, steps: &mut u64) -> bool {
    for (life, task) in world.spawned.take() {
        executor.add(life, task);
    }
    let now = world.now.get();
    let first = world.events.borrow().keys().next().copied();
    let due = first.is_some_and(|(at, _)| at <= now);
    let mut choice = world.random.borrow_mut().fork();
    if !due || choice.percent(70) {
        let may_run = |life: usize| {
            let lives = world.lives.borrow();
            let life = lives.get(life);
            life.is_some_and(|life| life.alive && life.paused_until <= now)
        };
        if let Some(life) = executor.step(&mut choice, may_run) {
            *steps += 1;
            world.stepped(life, executor, &mut choice);
            return true;
        }
    }
    let Some(((at, _), due)) = world.events.borrow_mut().pop_first() else {
        return false;
    };
    world.now.set(at.max(now));
    match due {
        Due::Wake(waker) => waker.borrow().wake_by_ref(),
        Due::GoOn => {}
        Due::Perform(life) => super::lives::perform(world, life),
        Due::Event(event) => world.happens(event),
    }
    true
}

/// Waits until a time.
pub(crate) struct Sleep<W> {
    world: Rc<W>,
    until: Micros,
    /// The waker of the task, once the sleep has begun.
    waker: Option<Rc<RefCell<Waker>>>,
}

impl<W: Staged> Sleep<W> {
    pub(crate) fn new(world: &Rc<W>, until: Micros) -> Self {
        Self {
            world: Rc::clone(world),
            until,
            waker: None,
        }
    }
}

impl<W: Staged> Future for Sleep<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.world.now.get() >= self.until {
            return Poll::Ready(());
        }
        match &self.waker {
            Some(waker) => waker.borrow_mut().clone_from(context.waker()),
            None => {
                let waker = Rc::new(RefCell::new(context.waker().clone()));
                self.world.wake_at(self.until, Rc::clone(&waker));
                self.waker = Some(waker);
            }
        }
        Poll::Pending
    }
}
