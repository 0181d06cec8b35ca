//! Sites that refuse, die, slow down and come back, beside others, in invented time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limits::{Limits, Names, Scope};
use crate::site::SiteName;

/// A server: what it takes, and what it has.
#[derive(Debug, Clone)]
struct Server {
    up: bool,
    /// It takes connections and says nothing for so long.
    silent: Option<u64>,
    /// Connections that it takes; it refuses more.
    room: usize,
    /// It answers 421 and closes.
    busy: bool,
    latency: u64,
    open: usize,
    most: usize,
    /// Connections that were tried, and those that it refused.
    tried: usize,
    refused: usize,
    taken: u64,
}

const SERVER: Server = Server {
    up: true,
    silent: None,
    room: usize::MAX,
    busy: false,
    latency: 50,
    open: 0,
    most: 0,
    tried: 0,
    refused: 0,
    taken: 0,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Connect,
    GiveUp,
    Take,
    Sent,
    Idles,
}

struct Worker {
    queue: QueueId,
    fresh: bool,
    open: bool,
    job: Option<(Job, Timestamp)>,
    idle: bool,
    sent: u32,
}

/// Queues, and workers that behave as the gateway's do.
struct World {
    queues: Queues,
    servers: Vec<Server>,
    now: u64,
    events: BinaryHeap<Reverse<(u64, usize, Does)>>,
    workers: HashMap<usize, Worker>,
    next_worker: usize,
    next_record: u64,
    spool: HashMap<(QueueId, RecordId), Envelope>,
    delivered: Vec<u64>,
    /// The records that left, by queue.
    left: Vec<Vec<RecordId>>,
}

impl World {
    /// So many queues, each served by the server of its number modulo theirs.
    fn new(servers: Vec<Server>, queues: u32, policy: Policy) -> Self {
        let mut world = Self {
            queues: Queues::new(policy),
            servers,
            now: 1_000_000,
            events: BinaryHeap::new(),
            workers: HashMap::new(),
            next_worker: 0,
            next_record: 0,
            spool: HashMap::new(),
            delivered: vec![0; queues as usize],
            left: vec![Vec::new(); queues as usize],
        };
        for number in 0..queues {
            let name = Destination::domain(format!("{number}.example"));
            world.queues.register(QueueId(number), name, world.time());
        }
        world
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    fn server_of(&self, queue: QueueId) -> usize {
        queue.0 as usize % self.servers.len()
    }

    fn admit(&mut self, queue: QueueId, count: u64) {
        for _ in 0..count {
            let record = self.next_record;
            self.next_record += 1;
            let envelope = fresh(record, self.time());
            self.spool
                .insert((queue, RecordId(record)), envelope.clone());
            let now = self.time();
            self.queues
                .admit(queue, RecordId(record), envelope, Some(BODY), now);
        }
    }

    fn at(&mut self, after: u64, worker: usize, does: Does) {
        self.events.push(Reverse((self.now + after, worker, does)));
    }

    fn poll(&mut self) {
        while let Some(next) = self.queues.poll(self.time()) {
            match next {
                Next::Open(queue) => {
                    let worker = self.next_worker;
                    self.next_worker += 1;
                    let state = Worker {
                        queue,
                        fresh: true,
                        open: false,
                        job: None,
                        idle: false,
                        sent: 0,
                    };
                    self.workers.insert(worker, state);
                    self.at(2, worker, Does::Connect);
                }
                Next::Wake(queue) => {
                    let mut idle = self.workers.iter_mut();
                    let found = idle.find(|(_, one)| one.queue == queue && one.idle);
                    let (&worker, state) = found.expect("an idle worker");
                    (state.idle, state.fresh) = (false, true);
                    self.at(0, worker, Does::Take);
                }
                Next::Release(queue) => {
                    let mut idle = self.workers.iter_mut();
                    let found = idle.find(|(_, one)| one.queue == queue && one.idle);
                    let (&worker, state) = found.expect("an idle worker");
                    state.idle = false;
                    assert!(self.queues.worker_released(queue));
                    self.end(worker);
                }
                Next::Fetch(wanted) => {
                    let mut block: Vec<_> = self
                        .spool
                        .iter()
                        .filter(|((queue, record), _)| {
                            *queue == wanted.queue && *record >= wanted.from
                        })
                        .map(|((_, record), envelope)| (*record, envelope.clone(), BODY))
                        .collect();
                    block.sort_by_key(|one| one.0);
                    block.truncate(wanted.records as usize);
                    assert_eq!(self.queues.supply(&wanted, block), Supplied::Taken);
                }
            }
        }
    }

    /// Lets time pass until then.
    fn run(&mut self, until: u64) {
        let end = self.now + until;
        loop {
            self.poll();
            let event = self.events.peek().map(|Reverse((time, ..))| *time);
            let wake = self
                .queues
                .wake_at()
                .map(|time| time.as_millis().max(self.now + 1));
            let next = event.into_iter().chain(wake).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            while let Some(Reverse((time, worker, does))) = self.events.peek().copied() {
                if time > self.now {
                    break;
                }
                self.events.pop();
                self.step(worker, does);
            }
        }
        self.now = end;
    }

    fn step(&mut self, worker: usize, does: Does) {
        match does {
            Does::Connect => self.connect(worker),
            Does::GiveUp => self.give_up(worker),
            Does::Take => self.take(worker),
            Does::Sent => self.sent(worker),
            Does::Idles => {
                let Some(state) = self.workers.get(&worker).filter(|one| one.idle) else {
                    return;
                };
                self.queues.worker_resumed(state.queue);
                self.end(worker);
            }
        }
    }

    fn connect(&mut self, worker: usize) {
        let (queue, now) = (self.workers[&worker].queue, self.time());
        let index = self.server_of(queue);
        let site = SiteName::new([(format!("mx{index}.example").as_str(), 25)], None);
        if !self.queues.join_site(queue, &site, now) {
            return self.end(worker);
        }
        let server = &mut self.servers[index];
        server.tried += 1;
        if let Some(time) = server.silent {
            return self.at(time, worker, Does::GiveUp);
        }
        if server.up && server.open < server.room {
            server.open += 1;
            server.most = server.most.max(server.open);
            self.queues.destination_reached(queue);
            let state = self.workers.get_mut(&worker).expect("a worker");
            (state.open, state.sent) = (true, 0);
            return self.at(0, worker, Does::Take);
        }
        server.refused += 1;
        self.give_up(worker);
    }

    fn give_up(&mut self, worker: usize) {
        let (queue, now) = (self.workers[&worker].queue, self.time());
        if !self.queues.refused_beside_others(queue, now) {
            let state = self.workers.get_mut(&worker).expect("a worker");
            let fresh = std::mem::take(&mut state.fresh);
            let head = self.queues.take(queue, fresh, now);
            self.queues.site_failed(queue, "refused", now);
            if let Some(job) = head {
                let attempt = Queues::unreachable_attempt(&job.envelope, "mx", "refused");
                self.settle(queue, &job, &attempt);
            }
        }
        self.end(worker);
    }

    fn settle(&mut self, queue: QueueId, job: &Job, attempt: &Attempt) {
        let now = self.time();
        let settled = self
            .queues
            .settle(queue, job, attempt, now)
            .expect("in flight");
        match settled.remaining {
            Some(rest) => {
                self.queues.written(queue, job, &rest, now);
                self.spool.insert((queue, job.record), rest)
            }
            None => self.spool.remove(&(queue, job.record)),
        };
    }

    fn take(&mut self, worker: usize) {
        let now = self.time();
        let state = self.workers.get_mut(&worker).expect("a worker");
        let queue = state.queue;
        let fresh = std::mem::take(&mut state.fresh);
        match self.queues.take(queue, fresh, now) {
            Some(job) => {
                state.job = Some((job, now));
                let latency = self.servers[self.server_of(queue)].latency;
                self.at(latency, worker, Does::Sent);
            }
            None if self.queues.worker_idle(queue) => {
                state.idle = true;
                self.at(5_000, worker, Does::Idles);
            }
            None => self.end(worker),
        }
    }

    fn sent(&mut self, worker: usize) {
        let now = self.time();
        let state = self.workers.get_mut(&worker).expect("a worker");
        let queue = state.queue;
        let (job, began) = state.job.take().expect("a job");
        state.sent += 1;
        let used_up = state.sent >= 100;
        let index = self.server_of(queue);
        let server = &mut self.servers[index];
        let good = server.up && !server.busy;
        server.taken += u64::from(good);
        let disposition = if good {
            Disposition::Delivered
        } else {
            Disposition::Deferred
        };
        let attempt = attempt(disposition, 2);
        let answered = Answered {
            sign: if good { Sign::Taken } else { Sign::Busy },
            began,
            latency: Duration::from_millis(server.latency),
            closed: !good,
        };
        self.settle(queue, &job, &attempt);
        self.delivered[queue.0 as usize] += u64::from(good);
        if good {
            self.left[queue.0 as usize].push(job.record);
        }
        self.queues.answered(queue, &answered, now);
        if !good || !self.queues.keeps_worker(queue, now) {
            return self.end(worker);
        }
        if used_up {
            self.close(worker);
            if self.queues.may_reopen(queue, now) {
                return self.at(2, worker, Does::Connect);
            }
            return self.end(worker);
        }
        self.at(0, worker, Does::Take);
    }

    fn close(&mut self, worker: usize) {
        let state = self.workers.get_mut(&worker).expect("a worker");
        if std::mem::take(&mut state.open) {
            let index = state.queue.0 as usize % self.servers.len();
            self.servers[index].open -= 1;
            self.queues.connection_closed(state.queue);
        }
    }

    fn end(&mut self, worker: usize) {
        self.close(worker);
        let state = self.workers.remove(&worker).expect("a worker");
        self.queues.worker_ended(state.queue, state.fresh);
    }

    /// What the gates count is what there is.
    fn check(&self) {
        for (index, server) in self.servers.iter().enumerate() {
            let here = |queue: &QueueId| self.server_of(*queue) == index;
            let workers = self.workers.values().filter(|one| here(&one.queue)).count();
            let numbers = self.queues.queues.numbers().filter(here);
            let sites: BTreeSet<_> = numbers
                .filter_map(|number| self.queues.queues.get(number)?.site)
                .collect();
            assert!(sites.len() <= 1, "one site");
            for site in sites {
                let gate = self.queues.gates.get(site).expect("a gate");
                assert!(gate.connections <= workers);
                assert_eq!(gate.established, server.open);
                assert!(gate.allowance(self.queues.policy()) <= 100);
            }
            assert!(
                server.most <= 100,
                "never above the maximum: {}",
                server.most
            );
        }
        assert_eq!(self.queues.totals().connections, self.workers.len());
        let idle = self.workers.values().filter(|worker| worker.idle);
        let idle: BTreeSet<_> = idle.map(|worker| worker.queue).collect();
        let known: BTreeSet<_> = self.queues.idlers.iter().map(|(_, queue)| *queue).collect();
        assert_eq!(known, idle);
        assert_eq!(self.queues.idlers.len(), idle.len());
        assert_eq!(self.queues.gates.totals(), self.queues.gates.counted());
        for number in self.queues.queues.numbers() {
            let queue = self.queues.queues.get(number).expect("a queue");
            assert_eq!(queue.released, 0);
            for gate in self.queues.gates.of(queue) {
                let known = gate.idlers.contains(&(queue.idle_since, number));
                assert_eq!(known, idle.contains(&number));
            }
        }
    }
}

#[test]
fn a_site_gets_more_connections_while_it_takes_them_and_no_more_than_allowed() {
    let mut world = World::new(vec![SERVER; 1], 30, Policy::default());
    for queue in 0..30 {
        world.admit(QueueId(queue), 200);
    }
    world.run(200);
    assert!(
        (10..=40).contains(&world.servers[0].most),
        "{:?}",
        world.servers
    );
    world.run(10_000);
    world.check();
    assert_eq!(world.servers[0].most, 100);
    assert_eq!(world.queues.messages(), 0);
}

#[test]
fn a_site_that_takes_few_connections_is_seldom_asked_for_more() {
    let few = Server { room: 5, ..SERVER };
    let mut world = World::new(vec![few], 10, Policy::default());
    for queue in 0..10 {
        world.admit(QueueId(queue), 1_000);
    }
    world.run(110_000);
    world.check();
    let server = &world.servers[0];
    assert_eq!(server.most, 5);
    assert!(server.taken > 9_900, "{server:?}");
    assert!(server.refused < 20, "{server:?}");
    assert_eq!(world.queues.totals().paused, 0, "it is not dead");
}

#[test]
fn a_dead_site_costs_one_connection_a_pause_and_no_message_a_retry() {
    let dead = Server {
        up: false,
        ..SERVER
    };
    let mut world = World::new(vec![dead], 50, Policy::default());
    for queue in 0..50 {
        world.admit(QueueId(queue), 20);
    }
    // Pauses of 1, 5, 15 and 60 minutes; the first time nobody knows that they are one site.
    world.run(80 * 60_000);
    world.check();
    let tried = world.servers[0].tried;
    assert!(tried <= 50, "{tried}");
    assert_eq!(world.queues.totals().paused, 50);
    let touched = world
        .spool
        .values()
        .filter(|one| one.head.attempts > 0)
        .count();
    assert!(touched <= tried, "only those that showed that it is dead");
    assert!(world.spool.values().all(|one| one.head.attempts <= 4));
    world.servers[0].up = true;
    world.run(4 * 60 * 60_000 + 600_000);
    assert_eq!(world.queues.messages(), 0, "it recovers by itself");
    assert_eq!(world.queues.totals().paused, 0);
    world.check();
}

#[test]
fn a_site_that_breaks_off_is_left_alone_until_it_is_better() {
    let busy = Server {
        busy: true,
        ..SERVER
    };
    let mut world = World::new(vec![busy], 4, Policy::default());
    for queue in 0..4 {
        world.admit(QueueId(queue), 500);
    }
    world.run(60_000);
    let touched = world
        .spool
        .values()
        .filter(|one| one.head.attempts > 0)
        .count();
    assert!(touched < 60, "{touched} of 2000 messages were tried");
    world.servers[0].busy = false;
    world.run(60 * 60_000);
    assert_eq!(world.queues.messages(), 0);
    world.check();
}

#[test]
fn one_dead_site_among_a_thousand_does_not_slow_the_others() {
    let rate = |dead: usize| {
        let mut servers = vec![SERVER; 1_000];
        for server in &mut servers[..dead] {
            server.up = false;
        }
        let policy = Policy {
            connections_max: 2_000,
            ..Policy::default()
        };
        let mut world = World::new(servers, 1_000, policy);
        for queue in 0..1_000 {
            world.admit(QueueId(queue), 40);
        }
        world.run(400);
        world.check();
        world.delivered[900..].iter().sum::<u64>()
    };
    let alone = rate(0);
    assert!(alone > 500, "{alone}");
    assert!(rate(1) >= alone, "one of a thousand");
    assert!(rate(900) >= alone, "nine hundred of a thousand");
}

/// Hosts that hang for minutes and hosts that take seconds for each message hold connections.
#[test]
fn hosts_that_hang_or_are_slow_do_not_use_up_the_connections() {
    let delivered = |hanging: bool| {
        let mut servers = vec![SERVER; 1_000];
        for (number, server) in servers[..900].iter_mut().enumerate() {
            match number % 3 {
                0 => server.up = false,
                1 => server.silent = Some(300_000),
                _ => server.latency = 5_000,
            }
        }
        let policy = Policy {
            connections_max: 2_000,
            ..Policy::default()
        };
        let mut world = World::new(servers, 1_000, policy);
        if hanging {
            for queue in 0..900 {
                world.admit(QueueId(queue), 30);
            }
        }
        world.run(12_000);
        world.check();
        for queue in 900..1_000 {
            world.admit(QueueId(queue), 15);
        }
        world.run(1_000);
        world.check();
        world.delivered[900..].iter().sum::<u64>()
    };
    let (alone, beside) = (delivered(false), delivered(true));
    assert!(10 * beside >= 9 * alone, "{beside} of {alone}");
}

#[test]
fn domains_of_one_site_take_turns() {
    let policy = Policy {
        connections_per_site_max: 2,
        ..Policy::default()
    };
    let mut world = World::new(vec![SERVER; 1], 20, policy);
    for queue in 0..20 {
        world.admit(QueueId(queue), 1_000);
    }
    world.run(200_000);
    assert_eq!(world.servers[0].most, 2);
    let (least, most) = (world.delivered.iter().min(), world.delivered.iter().max());
    assert!(least > Some(&200), "{least:?} to {most:?}");
}

/// What takes a second where each destination that has had its message keeps its connection for five.
#[test]
fn connections_that_idle_give_way_to_destinations_that_wait() {
    let few = Policy {
        connections_max: 40,
        ..Policy::default()
    };
    let mut world = World::new(vec![SERVER; 1_000], 1_000, few);
    let narrow = Policy {
        connections_per_site_max: 5,
        ..Policy::default()
    };
    let mut shared = World::new(vec![SERVER; 1], 100, narrow);
    for (world, within) in [(&mut world, 3_000), (&mut shared, 3_000)] {
        for round in 1..=2 {
            for queue in 0..world.delivered.len() {
                world.admit(QueueId(u32::try_from(queue).expect("few")), 1);
            }
            world.run(within);
            world.check();
            assert_eq!(world.queues.messages(), 0, "round {round}");
        }
    }
    assert_eq!(shared.servers[0].most, 5);
    assert!(world.servers.iter().all(|server| server.taken == 2));
    // Nobody waits any more: what is left is kept as long as ever.
    assert_eq!(world.workers.len(), 40);
    world.run(5_000);
    shared.run(5_000);
    for world in [&world, &shared] {
        world.check();
        assert!(world.workers.is_empty());
        assert!(world.queues.idlers.is_empty());
        assert_eq!(world.queues.leaving, 0);
    }
}

/// A few destinations that always have mail keep their connections.
#[test]
fn no_more_connections_end_than_others_wait_for() {
    let policy = Policy {
        connections_max: 20,
        ..Policy::default()
    };
    let mut world = World::new(vec![SERVER; 21], 21, policy);
    for queue in 0..20 {
        world.admit(QueueId(queue), 1);
    }
    world.run(1_000);
    assert_eq!(world.workers.len(), 20);
    world.admit(QueueId(20), 1);
    world.run(1_000);
    assert_eq!(world.queues.messages(), 0);
    assert_eq!(world.workers.len(), 20, "one for one");
    world.check();
}

#[derive(Debug, Clone)]
enum Change {
    Admit(u32, u64),
    Up(usize, bool),
    Busy(usize, bool),
    Room(usize, usize),
    Latency(usize, u64),
    Wait(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0_u32..12, 1_u64..60).prop_map(|(queue, count)| Change::Admit(queue, count)),
        1 => (0_usize..4, any::<bool>()).prop_map(|(at, up)| Change::Up(at, up)),
        1 => (0_usize..4, any::<bool>()).prop_map(|(at, busy)| Change::Busy(at, busy)),
        1 => (0_usize..4, 1_usize..40).prop_map(|(at, room)| Change::Room(at, room)),
        1 => (0_usize..4, 1_u64..5_000).prop_map(|(at, latency)| Change::Latency(at, latency)),
        3 => (0_u64..300_000).prop_map(Change::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_sites_do_limits_hold_and_all_mail_leaves_once_they_are_well(
        changes in proptest::collection::vec(change(), 1..60),
    ) {
        let mut policy = Policy::default();
        let ordered = Scope::Domains(Names::One("0.example".to_owned()));
        let limits = Limits { in_order: true, ..Limits::default() };
        policy.rules.insert(ordered, limits);
        let mut world = World::new(vec![SERVER; 4], 12, policy);
        for change in changes {
            match change {
                Change::Admit(queue, count) => world.admit(QueueId(queue), count),
                Change::Up(at, up) => world.servers[at].up = up,
                Change::Busy(at, busy) => world.servers[at].busy = busy,
                Change::Room(at, room) => world.servers[at].room = room,
                Change::Latency(at, latency) => world.servers[at].latency = latency,
                Change::Wait(millis) => world.run(millis),
            }
            world.check();
        }
        for server in &mut world.servers {
            *server = Server { up: true, busy: false, room: usize::MAX, latency: 20, ..server.clone() };
        }
        // The longest pause and the longest wait of a message, for each that holds others.
        world.run(48 * 60 * 60_000);
        world.check();
        prop_assert_eq!(world.queues.messages(), 0);
        prop_assert_eq!(world.queues.totals().paused, 0);
        prop_assert!(world.left[0].is_sorted(), "the order is kept");
    }
}
