//! A run: MTAs in a row, their spools and connections, until all mail has ended or something is wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Builder;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_mta400::Mta;
use vere_osi::association::Mode;
use vere_queue::{Envelope, Policy, Report};

use super::account::{Account, Handover};
use super::network::{Cut, Network, Plan, SharedNetwork, locked};
use super::process::Process;
use super::rest::Rest;
use super::{BrokenSwitching, Post, Row, Switched, courier, mtas};
use crate::random::Random;
use crate::schedule::{MILLI, Micros, SECOND};
use crate::stage::{Executor, Request, Spool, Stage, Staged, Submitted, turn};

/// A run with more steps is an endless loop.
const STEPS_MAX: u64 = 400_000;
/// Within so long after the last fault everything must have ended.
const END: Micros = 3_600 * SECOND;

/// Something that happens.
pub(super) enum Event {
    /// A user of the first MTA sends a message.
    Mail,
    /// A unit, or the end, of a direction of a connection arrives.
    Arrive(usize, usize),
    /// A spool stands still.
    Stall,
    Calm,
    Look,
}

/// The state of a run.
pub(super) type Shared = Rc<World>;

/// Everything there is.
pub(super) struct World {
    stage: Stage<Self>,
    broken: BrokenSwitching,
    row: Vec<Mta>,
    /// Messages still to be sent.
    posts: RefCell<Vec<Post>>,
    mode: Mode,
    /// A process dies after a step of so many.
    kill_every: Option<u64>,
    pub(super) policy: Policy,
    pub(super) account: RefCell<Account>,
    pub(super) spools: Vec<RefCell<Spool>>,
    pub(super) processes: RefCell<Vec<Rc<Process>>>,
    /// The present life of each MTA.
    pub(super) current: RefCell<Vec<usize>>,
    network: SharedNetwork,
    /// Units that connections carry.
    pub(super) wires: RefCell<BTreeMap<usize, Handover>>,
    /// Handovers that a receiver has forgotten, after the spool has not taken the unit.
    pub(super) forgotten: RefCell<BTreeSet<Handover>>,
    /// Transfers that broke off.
    pub(super) rests: RefCell<BTreeMap<Handover, Rest>>,
    offered_all: Cell<bool>,
}

impl Deref for World {
    type Target = Stage<Self>;

    fn deref(&self) -> &Stage<Self> {
        &self.stage
    }
}

fn policy(wait: u64) -> Policy {
    Policy {
        retry: [1, 5, 20]
            .map(|times| Duration::from_secs(times * wait))
            .to_vec(),
        delay_notice: None,
        connections_per_destination_max: 2,
        ..Policy::default()
    }
}

/// Runs a world to the end.
pub(super) fn run(world: Shared) -> Switched {
    // Associations have clocks of tokio, and the clocks never run here. The runtime outlives the clocks.
    let runtime = Builder::new_current_thread().enable_time().build();
    let _entered = match &runtime {
        Ok(runtime) => runtime.enter(),
        Err(error) => return (Err(error.to_string()), Vec::new()),
    };
    world.begin();
    let mut executor = Executor::default();
    let mut steps = 0;
    while !world.is_wrong() && !world.over.get() {
        if !turn(&world, &mut executor, &mut steps) {
            world.fail("nothing happens any more".to_owned());
        }
        world.schedule();
        if steps > STEPS_MAX {
            world.fail("there is no end to it".to_owned());
        }
    }
    drop(executor);
    let mut figures = world.account.borrow().figures;
    figures.steps = steps;
    let (wrong, lines) = world.end();
    let network = locked(&world.network);
    (figures.pdus, figures.cuts) = (network.pdus(), network.cuts);
    (wrong.map_or(Ok(figures), Err), lines)
}

impl World {
    /// A world with a message, and at most one cut.
    pub(super) fn with_cut(
        row: Row,
        cut: Option<Cut>,
        (seed, broken): (u64, BrokenSwitching),
        traced: bool,
    ) -> Shared {
        let mut random = Random::new(seed);
        let network = Network::new(random.fork(), Plan::Once(cut));
        let mode = courier::mode(seed % 2 == 1);
        let stage = Stage::new(random, traced);
        stage.calm.set(true);
        Self::new(
            (stage, network),
            broken,
            row.mtas,
            vec![row.post],
            mode,
            policy(1),
            None,
        )
    }

    /// A world with mail, cuts and deaths as the seed says.
    pub(super) fn of_seed(seed: u64, broken: BrokenSwitching, traced: bool) -> Shared {
        let mut random = Random::new(seed);
        let plan = Plan::Often(random.span(5..200), random.span(MILLI..20 * SECOND));
        let network = Network::new(random.fork(), plan);
        let mtas = 2 + random.below(2);
        let all = [Post::Short, Post::Long, Post::Several];
        let posts = (0..1 + random.below(6))
            .filter_map(|_| random.pick(&all))
            .collect();
        let mode = courier::mode(seed % 2 == 1);
        let dies = random.percent(60);
        let kill_every = random.span(50..2_000);
        let policy = policy(random.span(1..10));
        let stage = Stage::new(random, traced);
        let kill_every = dies.then_some(kill_every);
        Self::new(
            (stage, network),
            broken,
            mtas,
            posts,
            mode,
            policy,
            kill_every,
        )
    }

    fn new(
        (stage, network): (Stage<Self>, SharedNetwork),
        broken: BrokenSwitching,
        mtas: usize,
        posts: Vec<Post>,
        mode: Mode,
        policy: Policy,
        kill_every: Option<u64>,
    ) -> Shared {
        let spool = Spool {
            queues_max: usize::MAX,
            records_max: usize::MAX,
            ..Spool::default()
        };
        let row = mtas::row(mtas).unwrap_or_else(|error| {
            stage.fail(format!("no row: {error}"));
            Vec::new()
        });
        Rc::new(Self {
            stage,
            broken,
            row,
            posts: RefCell::new(posts),
            mode,
            kill_every,
            policy,
            account: RefCell::default(),
            spools: vec![RefCell::new(spool); mtas],
            processes: RefCell::default(),
            current: RefCell::new(vec![0; mtas]),
            network,
            wires: RefCell::default(),
            forgotten: RefCell::default(),
            rests: RefCell::default(),
            offered_all: Cell::new(false),
        })
    }

    fn begin(self: &Rc<Self>) {
        (0..self.mtas()).for_each(|mta| self.new_life(mta));
        self.after(SECOND, Event::Mail);
        self.after(2 * SECOND, Event::Look);
        if self.calm.get() {
            self.give_up_at.set(END);
            return;
        }
        self.after(self.span(SECOND..30 * SECOND), Event::Stall);
        self.after(self.span(20 * SECOND..120 * SECOND), Event::Calm);
    }

    pub(super) fn mtas(&self) -> usize {
        self.spools.len()
    }

    pub(super) fn mta(&self, place: usize) -> &Mta {
        &self.row[place]
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) const fn broken(&self) -> BrokenSwitching {
        self.broken
    }

    pub(super) fn network(&self) -> SharedNetwork {
        Arc::clone(&self.network)
    }

    pub(super) fn process(&self, life: usize) -> Rc<Process> {
        Rc::clone(&self.processes.borrow()[life])
    }

    /// The unit that a connection carries.
    pub(super) fn sent_over(&self, wire: usize) -> Option<Handover> {
        self.wires.borrow().get(&wire).cloned()
    }

    /// Gives units on the way their times.
    fn schedule(&self) {
        let arrivals = locked(&self.network).arrivals(self.now.get());
        for (at, wire, end) in arrivals {
            self.after(at - self.now.get(), Event::Arrive(wire, end));
        }
    }

    fn mail(self: &Rc<Self>) {
        let ready = self.is_ready(self.life_at(0));
        let post = ready.then(|| self.posts.borrow_mut().pop()).flatten();
        if let Some(post) = post {
            self.submit(post);
        }
        match self.posts.borrow().is_empty() {
            true => self.offered_all.set(true),
            false => self.after(self.span(MILLI..10 * SECOND), Event::Mail),
        }
    }

    fn calm_down(&self) {
        self.note(|| "calm from here on".to_owned());
        self.calm.set(true);
        locked(&self.network).calm();
        self.give_up_at.set(self.now.get() + END);
    }

    /// Whether everything has ended.
    fn look(&self) {
        let left: usize = self.spools.iter().map(|spool| spool.borrow().mail()).sum();
        let lives = self.lives.borrow();
        let current = self.current.borrow();
        let at_rest = current.iter().all(|life| {
            let life = &lives[*life];
            let messages = life.group.queues.look(|queues| queues.messages());
            life.group.is_recovered() && messages == 0 && life.pipe.requests.is_empty()
        });
        let settled = self.calm.get() && self.offered_all.get();
        if settled && at_rest && left == 0 {
            self.over.set(true);
            return self.hold(self.account.borrow().check_end());
        }
        if self.now.get() > self.give_up_at.get() {
            self.fail(format!("{left} records are there at the end"));
        }
        self.after(2 * SECOND, Event::Look);
    }
}

impl Staged for World {
    type Event = Event;

    fn happens(self: &Rc<Self>, event: Event) {
        match event {
            Event::Mail => self.mail(),
            Event::Arrive(wire, end) => locked(&self.network).arrive(wire, end),
            Event::Stall => self.stall(),
            Event::Calm => self.calm_down(),
            Event::Look => self.look(),
        }
    }

    fn stepped(self: &Rc<Self>, life: usize, executor: &mut Executor, choice: &mut Random) {
        let dies = |every: u64| choice.range(0..every) == 0;
        if self.kill_every.is_some_and(dies) && !self.calm.get() {
            self.kill(life, executor);
        }
    }

    fn has_lease(&self, life: usize) -> bool {
        self.current.borrow().contains(&life)
    }

    fn block_octets(&self) -> u32 {
        u32::MAX
    }

    fn does(&self, life: usize, request: &Request) {
        let spool = &self.spools[self.process(life).mta];
        if let Submitted::Batch(batch, _) = &request.what
            && !request.is_given_up()
            && spool.borrow().check(batch).is_ok()
        {
            let stored = self.account.borrow_mut().stores(batch.operations());
            self.hold(stored);
        }
        let mut lives = self.lives.borrow_mut();
        let done = lives[life].pipe.perform(&mut spool.borrow_mut(), request);
        drop(lives);
        self.did(life, request, done);
    }

    async fn write(
        self: &Rc<Self>,
        life: usize,
        _: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        self.pause(0..20 * MILLI).await;
        if self.draw_fault(5) {
            return Err(DirectoryAway);
        }
        self.reports(life, original, report)
    }

    fn hears(&self, _: usize, _: &Happened<'_>) {}
}
