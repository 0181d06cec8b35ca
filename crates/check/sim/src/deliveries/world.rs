//! One run: gateways, spool and next hops of a seed, until everything has ended or something is wrong.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use vere_queue::Policy;
use vere_units::{Timestamp, TraceId};

use super::account::Account;
use super::executor::{Executor, Task};
use super::gateways::Life;
use super::hops::{DOMAINS, Manner};
use super::host::Sleep;
use super::operator;
use super::spool::Spool;
use super::{BrokenDelivery, DeliveryFigures, Shared};
use crate::random::Random;
use crate::schedule::{MILLI, Micros, SECOND};
use crate::trace::Trace;

/// The wall clock's reading when a run begins, in ms.
pub(super) const BASE: u64 = 1_700_000_000_000;
/// A run with more steps is an endless loop.
const STEPS_MAX: u64 = 400_000;

/// Something that happens.
pub(super) enum Event {
    Wake(Rc<RefCell<Waker>>),
    /// A gateway that was stopped goes on.
    GoOn,
    /// The spool does the next request of a gateway.
    Perform(usize),
    Mail,
    Fault,
    Operator,
    /// The delivery lease passes to the gateway that has the group.
    Lease(usize),
    Calm,
    /// A destination that stayed away since the calm can be reached.
    Back,
    Look,
}

/// Everything there is.
pub(super) struct World {
    pub(super) broken: BrokenDelivery,
    pub(super) now: Cell<Micros>,
    pub(super) random: RefCell<Random>,
    pub(super) account: RefCell<Account>,
    pub(super) calm: Cell<bool>,
    /// Whether lines for other systems are kept.
    pub(super) lines: bool,
    /// Octets of a block at most.
    pub(super) block_octets: u32,
    /// A gateway dies after one step of so many.
    pub(super) kill_every: u64,
    pub(super) mail_max: u64,
    pub(super) policy: Policy,
    pub(super) spool: RefCell<Spool>,
    pub(super) lives: RefCell<Vec<Life>>,
    pub(super) lease: Cell<Option<usize>>,
    pub(super) manners: RefCell<[Manner; DOMAINS]>,
    events: RefCell<BTreeMap<(Micros, u64), Event>>,
    serial: Cell<u64>,
    next_trace: Cell<u64>,
    pub(super) spawned: RefCell<Vec<(usize, Task)>>,
    wrong: RefCell<Option<String>>,
    trace: RefCell<Trace>,
    pub(super) offered: Cell<u64>,
    pub(super) give_up_at: Cell<Micros>,
    pub(super) over: Cell<bool>,
}

fn policy(random: &mut Random) -> Policy {
    Policy {
        retry: vec![
            Duration::from_secs(random.span(1..30)),
            Duration::from_secs(random.span(30..300)),
        ],
        expire: Duration::from_secs(random.span(60..3_600)),
        delay_notice: random
            .percent(60)
            .then(|| Duration::from_secs(random.span(10..600))),
        connections_per_destination_max: 1 + random.below(3),
        connections_per_site_max: 1 + random.below(4),
        connections_max: 1 + random.below(6),
        head_memory_max: random.span(1..4_000) as usize,
        ..Policy::default()
    }
}

/// Runs a seed.
pub(super) fn run(
    seed: u64,
    broken: BrokenDelivery,
    traced: bool,
) -> (Result<DeliveryFigures, String>, Vec<String>) {
    let world = World::new(seed, broken, traced);
    world.begin();
    let mut executor = Executor::default();
    let mut steps = 0;
    while world.wrong.borrow().is_none() && !world.over.get() {
        for (life, task) in world.spawned.take() {
            executor.add(life, task);
        }
        if !world.turn(&mut executor, &mut steps) {
            world.fail("nothing happens any more".to_owned());
        }
        if steps > STEPS_MAX {
            world.fail("there is no end to it".to_owned());
        }
    }
    drop(executor);
    drop(world.spawned.take());
    let lines = world.trace.borrow().lines();
    let mut figures = world.account.borrow().figures;
    figures.steps = steps;
    let wrong = world.wrong.take();
    world.lives.take();
    world.events.take();
    (wrong.map_or(Ok(figures), Err), lines)
}

impl World {
    fn new(seed: u64, broken: BrokenDelivery, traced: bool) -> Shared {
        let mut random = Random::new(seed);
        let policy = policy(&mut random);
        let spool = Spool {
            queues_max: 3 + random.below(8),
            records_max: random.span(20..2_000) as usize,
            ..Spool::default()
        };
        Rc::new(Self {
            broken,
            now: Cell::new(0),
            account: RefCell::default(),
            calm: Cell::new(false),
            lines: random.percent(50),
            block_octets: random.span(100..100_000) as u32,
            kill_every: random.span(100..20_000),
            mail_max: random.span(5..80),
            policy,
            spool: RefCell::new(spool),
            lives: RefCell::default(),
            lease: Cell::new(None),
            manners: RefCell::new([Manner::Takes; DOMAINS]),
            events: RefCell::default(),
            serial: Cell::new(0),
            next_trace: Cell::new(1),
            spawned: RefCell::default(),
            wrong: RefCell::default(),
            trace: RefCell::new(Trace::new(traced)),
            offered: Cell::new(0),
            give_up_at: Cell::new(u64::MAX),
            over: Cell::new(false),
            random: RefCell::new(random),
        })
    }

    fn begin(self: &Rc<Self>) {
        self.new_life();
        self.after(MILLI, Event::Mail);
        self.after(SECOND, Event::Operator);
        self.after(2 * SECOND, Event::Fault);
        let calm = self.span(60 * SECOND..1_200 * SECOND);
        self.after(calm, Event::Calm);
    }

    /// Takes one step of a task, or goes on to the next event. False: there is neither.
    fn turn(self: &Rc<Self>, executor: &mut Executor, steps: &mut u64) -> bool {
        let now = self.now.get();
        let due = self
            .events
            .borrow()
            .keys()
            .next()
            .is_some_and(|key| key.0 <= now);
        let mut choice = self.random.borrow_mut().fork();
        if !due || choice.percent(70) {
            let may_run = |life: usize| {
                let lives = self.lives.borrow();
                let life = lives.get(life);
                life.is_some_and(|life| life.alive && life.paused_until <= now)
            };
            if executor.step(&mut choice, may_run) {
                *steps += 1;
                let dies = choice.range(0..self.kill_every) == 0;
                if dies && !self.calm.get() {
                    self.kill(executor);
                }
                return true;
            }
        }
        let Some(((at, _), event)) = self.events.borrow_mut().pop_first() else {
            return false;
        };
        self.now.set(at.max(now));
        self.happen(event);
        true
    }

    fn happen(self: &Rc<Self>, event: Event) {
        match event {
            Event::Wake(waker) => waker.borrow().wake_by_ref(),
            Event::GoOn => {}
            Event::Perform(life) => self.perform(life),
            Event::Mail => self.mail(),
            Event::Fault => self.fault(),
            Event::Operator => {
                if !self.calm.get() {
                    self.after(self.span(SECOND..60 * SECOND), Event::Operator);
                    operator::orders(self, &self.group());
                }
            }
            Event::Lease(life) => {
                if life + 1 == self.lives.borrow().len() {
                    self.lease.set(Some(life));
                    self.group().queues.wake();
                }
            }
            Event::Calm => self.calm_down(),
            Event::Back => self.come_back(),
            Event::Look => self.look(),
        }
    }

    pub(super) fn push(&self, at: Micros, event: Event) {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        self.events.borrow_mut().insert((at, serial), event);
    }

    pub(super) fn after(&self, delay: Micros, event: Event) {
        self.push(self.now.get() + delay, event);
    }

    /// Wakes a task at a time.
    pub(super) fn wake_at(&self, at: Micros, waker: Rc<RefCell<Waker>>) {
        self.push(at, Event::Wake(waker));
    }

    pub(super) fn span(&self, range: Range<Micros>) -> Micros {
        self.random.borrow_mut().range(range)
    }

    pub(super) fn draw(&self, percent: u64) -> bool {
        self.random.borrow_mut().percent(percent)
    }

    pub(super) fn pick<T: Copy>(&self, of: &[T]) -> T {
        let index = self.random.borrow_mut().below(of.len());
        of[index]
    }

    /// Waits for a time that the seed chooses.
    pub(super) async fn pause(self: &Rc<Self>, range: Range<Micros>) {
        let until = self.now.get() + self.span(range).max(1);
        Sleep::new(self, until).await;
    }

    /// The wall clock.
    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_millis(BASE) + Duration::from_micros(self.now.get())
    }

    pub(super) fn next_id(&self) -> TraceId {
        let next = self.next_trace.get();
        self.next_trace.set(next + 1);
        TraceId::new(next)
    }

    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        self.trace.borrow_mut().note(self.now.get(), 0, what);
    }

    /// Something is wrong. The first thing counts.
    pub(super) fn fail(&self, wrong: String) {
        self.note(|| wrong.clone());
        self.wrong.borrow_mut().get_or_insert(wrong);
    }

    pub(super) fn hold(&self, promise: Result<(), String>) {
        if let Err(wrong) = promise {
            self.fail(wrong);
        }
    }
}
