//! One run: gateways, spool and next hops of a seed, until everything has ended or something is wrong.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_queue::{Envelope, Policy, Report};
use vere_spoolwire::Batch;
use vere_units::TraceId;

use super::account::Account;
use super::hops::{DOMAINS, Manner};
use super::operator;
use super::{BrokenDelivery, DeliveryFigures, Shared};
use crate::random::Random;
use crate::schedule::{MILLI, SECOND};
use crate::stage::{Executor, Request, Spool, Stage, Staged, turn};

/// A run with more steps is an endless loop.
const STEPS_MAX: u64 = 400_000;

/// Something that happens.
pub(super) enum Event {
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
    stage: Stage<Self>,
    pub(super) broken: BrokenDelivery,
    pub(super) account: RefCell<Account>,
    /// Whether lines for other systems are kept.
    pub(super) lines: bool,
    /// Octets of a block at most.
    block_octets: u32,
    /// A gateway dies after one step of so many.
    kill_every: u64,
    pub(super) mail_max: u64,
    pub(super) policy: Policy,
    pub(super) spool: RefCell<Spool>,
    pub(super) lease: Cell<Option<usize>>,
    pub(super) manners: RefCell<[Manner; DOMAINS]>,
    pub(super) offered: Cell<u64>,
}

impl Deref for World {
    type Target = Stage<Self>;

    fn deref(&self) -> &Stage<Self> {
        &self.stage
    }
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
    while !world.is_wrong() && !world.over.get() {
        if !turn(&world, &mut executor, &mut steps) {
            world.fail("nothing happens any more".to_owned());
        }
        if steps > STEPS_MAX {
            world.fail("there is no end to it".to_owned());
        }
    }
    drop(executor);
    let mut figures = world.account.borrow().figures;
    figures.steps = steps;
    let (wrong, lines) = world.end();
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
        let world = Self {
            broken,
            account: RefCell::default(),
            lines: random.percent(50),
            block_octets: random.span(100..100_000) as u32,
            kill_every: random.span(100..20_000),
            mail_max: random.span(5..80),
            policy,
            spool: RefCell::new(spool),
            lease: Cell::new(None),
            manners: RefCell::new([Manner::Takes; DOMAINS]),
            offered: Cell::new(0),
            stage: Stage::new(random, traced),
        };
        Rc::new(world)
    }

    fn begin(self: &Rc<Self>) {
        self.new_life();
        self.after(MILLI, Event::Mail);
        self.after(SECOND, Event::Operator);
        self.after(2 * SECOND, Event::Fault);
        let calm = self.span(60 * SECOND..1_200 * SECOND);
        self.after(calm, Event::Calm);
    }
}

impl Staged for World {
    type Event = Event;

    fn happens(self: &Rc<Self>, event: Event) {
        match event {
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

    fn stepped(self: &Rc<Self>, _: usize, executor: &mut Executor, choice: &mut Random) {
        let dies = choice.range(0..self.kill_every) == 0;
        if dies && !self.calm.get() {
            self.kill(executor);
        }
    }

    fn has_lease(&self, life: usize) -> bool {
        self.broken == BrokenDelivery::LyingLease || self.holds_lease(life)
    }

    fn block_octets(&self) -> u32 {
        self.block_octets
    }

    fn alters(&self, batch: Batch) -> Batch {
        match self.broken {
            BrokenDelivery::LostLines => self.without_lines(&batch),
            _ => batch,
        }
    }

    fn acknowledges_early(&self) -> bool {
        self.broken == BrokenDelivery::EarlyAcknowledgement
    }

    fn does(&self, life: usize, request: &Request) {
        self.do_one(life, request);
    }

    fn may_report(&self, report: &Report, about: TraceId) -> bool {
        self.lets_report(report, about)
    }

    async fn write(
        self: &Rc<Self>,
        _: usize,
        about: &Envelope,
        _: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        self.reports(about, report).await
    }

    fn hears(&self, _: usize, happened: &Happened<'_>) {
        if let Happened::Settled {
            job, settlement, ..
        } = happened
        {
            self.settles(job, settlement);
        }
        self.account.borrow_mut().hears(happened);
    }
}
