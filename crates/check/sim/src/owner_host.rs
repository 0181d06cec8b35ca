//! The owners: the part of a gateway around the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use vere_owner::lease::{LeaseKeeper, LeaseOptions, LeaseState};
use vere_owner::{
    Fault, Link, Membership, Owner, OwnerEvent, RegisterRequest, RegisterSwap, ReplicaChange,
};
use vere_units::Timestamp;

use crate::client::Client;
use crate::net::Chunk;
use crate::register::{Asked, Reply};
use crate::schedule::{Event, MILLI, Micros, SECOND};
use crate::world::{Broken, CLOCK_BASE, World};

/// By so many millionths a clock for leases may be too fast or too slow: with a skew of a quarter of the
/// lease, as in [`crate::scenario`], it may be a ninth.
const CLOCK_OFF: u64 = 100_000;

/// A life of an owner.
#[derive(Debug)]
pub(crate) struct SimOwner {
    pub(crate) machine: Owner,
    pub(crate) life: u64,
    pub(crate) host: usize,
    pub(crate) alive: bool,
    pub(crate) fenced: bool,
    pub(crate) paused_until: Micros,
    pub(crate) skew: u64,
    pub(crate) conns: BTreeMap<Link, u64>,
    pub(crate) retry: BTreeMap<Link, Micros>,
    turn_at: Option<Micros>,
    pub(crate) client: Client,
    /// What may deliver.
    pub(crate) lease: LeaseKeeper,
    /// The rate of the owner's lease clock, in millionths of the true time.
    pub(crate) rate: u64,
}

impl World {
    pub(crate) fn owner_time(&self, owner: usize) -> Timestamp {
        self.clock(self.owners[owner].skew)
    }

    pub(crate) fn alive_owners(&self) -> Vec<usize> {
        let alive = |index: &usize| self.owners[*index].alive && !self.owners[*index].fenced;
        (0..self.owners.len()).filter(alive).collect()
    }

    /// The reading of an owner's lease clock: the clock is never set, and not exact.
    pub(crate) fn lease_time(&self, owner: usize) -> Timestamp {
        self.lease_clock(owner, self.schedule.now())
    }

    fn lease_clock(&self, owner: usize, now: Micros) -> Timestamp {
        let now = u128::from(now) * u128::from(self.owners[owner].rate);
        Timestamp::ZERO + Duration::from_micros((now / 1_000_000) as u64)
    }

    /// A lower bound of the lease clock's reading at the time when the owner's other clock, which is set
    /// now and then, read `sent`.
    fn lease_sent(&self, owner: usize, sent: Timestamp) -> Timestamp {
        let began = Timestamp::from_millis(CLOCK_BASE + self.owners[owner].skew);
        let then = sent.saturating_since(began).as_micros() as u64;
        self.lease_clock(owner, then)
    }

    /// Owners reported as dead by a host's operating system.
    fn known_dead(&self, host: usize) -> Vec<u64> {
        let all = self.broken == Broken::HastySuccessor;
        let dead = |owner: &&SimOwner| all || owner.host == host && !owner.alive;
        self.owners
            .iter()
            .filter(dead)
            .map(|owner| owner.life)
            .collect()
    }

    /// Another life of an owner begins.
    pub(crate) fn new_owner(&mut self, host: usize) {
        if self.calm && !self.alive_owners().is_empty() {
            return;
        }
        let index = self.owners.len();
        let mut config = self.scenario.owner.clone();
        config.life = index as u64 + 1;
        let life = config.life;
        let lease = LeaseKeeper::new(LeaseOptions {
            life,
            terms: self.scenario.lease,
            adopted: false,
            dead: self.known_dead(host),
        });
        let rate = 1_000_000 - CLOCK_OFF + self.random.range(0..2 * CLOCK_OFF);
        self.note(7, || format!("o{index} begins on host {host}"));
        let client = Client::new(self.random.fork());
        self.owners.push(SimOwner {
            machine: Owner::new(config),
            life,
            host,
            alive: true,
            fenced: false,
            paused_until: 0,
            skew: 0,
            conns: BTreeMap::new(),
            retry: BTreeMap::new(),
            turn_at: None,
            client,
            lease,
            rate,
        });
        let now = self.owner_time(index);
        self.owners[index].machine.timed_out(now);
        self.wake_owner(index);
        self.schedule.after(MILLI, Event::Submit { owner: index });
    }

    pub(crate) fn kill_owner(&mut self, owner: usize, power: bool) {
        self.note(8, || format!("o{owner} dies"));
        self.owners[owner].alive = false;
        for conn in std::mem::take(&mut self.owners[owner].conns).into_values() {
            self.owner_closes(conn, !power);
        }
    }

    fn owner_closes(&mut self, conn: u64, told: bool) {
        let Some(link) = self.network.conns.get_mut(&conn) else {
            return;
        };
        link.owned = false;
        if link.made {
            link.down.read_all();
            if told {
                self.send(conn, true, Chunk::End);
            }
            self.network.forget(conn);
        }
    }

    pub(crate) fn pause_owner(&mut self, owner: usize, long: Micros) {
        self.note(9, || format!("o{owner} stops for {} ms", long / MILLI));
        let until = self.schedule.now() + long;
        let state = &mut self.owners[owner];
        state.paused_until = state.paused_until.max(until);
        state.turn_at = None;
        self.wake_owner(owner);
    }

    /// Schedules a turn of an owner.
    pub(crate) fn wake_owner(&mut self, owner: usize) {
        let at = self.schedule.now() + 10 + self.random.range(0..40);
        self.wake_owner_at(owner, at);
    }

    fn wake_owner_at(&mut self, owner: usize, at: Micros) {
        let state = &mut self.owners[owner];
        let at = at.max(state.paused_until);
        if !state.alive || state.turn_at.is_some_and(|before| before <= at) {
            return;
        }
        state.turn_at = Some(at);
        self.schedule.at(at, Event::OwnerTurn { owner });
    }

    pub(crate) fn owner_may_write(&mut self, conn: u64) {
        if let Some(link) = self.network.conns.get(&conn)
            && link.owned
        {
            self.wake_owner(link.owner);
        }
    }

    /// The owner's loop goes round once.
    pub(crate) fn owner_turn(&mut self, owner: usize) {
        let now = self.schedule.now();
        let state = &mut self.owners[owner];
        if !state.alive || state.paused_until > now {
            return;
        }
        if state.turn_at.is_some_and(|at| at <= now) {
            state.turn_at = None;
        }
        let timers_first = self.random.percent(50);
        if timers_first {
            self.owner_timers(owner);
        }
        self.owner_reads(owner);
        if !timers_first {
            self.owner_timers(owner);
        }
        self.owner_drops(owner);
        self.owner_events(owner);
        self.client_turn(owner);
        self.owner_connects(owner);
        self.owner_asks_register(owner);
        self.owner_leases(owner);
        self.owner_writes(owner);
        self.owner_events(owner);
        self.check_owner(owner);
        self.owner_sleeps(owner);
    }

    fn owner_timers(&mut self, owner: usize) {
        let time = self.owner_time(owner);
        if self.owners[owner].machine.deadline() <= time {
            self.owners[owner].machine.timed_out(time);
        }
    }

    fn owner_reads(&mut self, owner: usize) {
        for (link, id) in self.owners[owner].conns.clone() {
            let Some(conn) = self.network.conns.get_mut(&id) else {
                continue;
            };
            if !conn.made || !conn.down.is_readable() {
                continue;
            }
            let (octets, ended) = (conn.down.read_all(), conn.down.ended);
            let node = conn.link.node;
            let time = self.owner_time(owner);
            let state = &mut self.owners[owner];
            let mut failed = None;
            if !octets.is_empty() {
                failed = state.machine.input(link, &octets, time).err();
            }
            if let Some(error) = failed {
                self.note(10, || format!("o{owner} gives up {link:?}: {error}"));
            }
            if failed.is_some() || ended {
                self.owner_leaves(owner, link);
            }
            self.wake_node(node);
        }
    }

    /// A connection is over for an owner.
    fn owner_leaves(&mut self, owner: usize, link: Link) {
        let Some(conn) = self.owners[owner].conns.remove(&link) else {
            return;
        };
        self.owner_closes(conn, true);
        let again = self.schedule.now() + self.random.range(5 * MILLI..100 * MILLI);
        self.owners[owner].retry.insert(link, again);
        let time = self.owner_time(owner);
        self.owners[owner].machine.disconnected(link, time);
    }

    fn owner_drops(&mut self, owner: usize) {
        while let Some((link, error)) = self.owners[owner].machine.poll_drop() {
            self.note(11, || format!("o{owner} drops {link:?}: {error}"));
            self.owner_leaves(owner, link);
        }
    }

    fn owner_connects(&mut self, owner: usize) {
        let now = self.schedule.now();
        for link in self.owners[owner].machine.links().collect::<Vec<_>>() {
            let state = &self.owners[owner];
            let due = state.retry.get(&link).is_none_or(|at| *at <= now);
            if !state.conns.contains_key(&link) && due && state.machine.wants(link) {
                self.try_connect(owner, link);
            }
        }
    }

    fn owner_asks_register(&mut self, owner: usize) {
        while let Some(request) = self.owners[owner].machine.poll_register() {
            if let RegisterRequest::Swap { expected, value } = &request {
                let (expected, record) = (*expected, Membership::decode(value));
                self.note(12, || {
                    format!("o{owner} asks to replace {expected:?} by {record:?}")
                });
            }
            self.ask(owner, Asked::Group(request));
        }
    }

    /// Handles the requests of an owner's lease. An owner that lost the group returns the lease.
    fn owner_leases(&mut self, owner: usize) {
        let now = self.lease_time(owner);
        let mut title = self.owners[owner].machine.title();
        if let Some(title) = &mut title {
            title.confirmed = title.confirmed.map(|sent| self.lease_sent(owner, sent));
        }
        let state = &mut self.owners[owner];
        state.lease.look(title, now);
        if state.fenced && state.lease.state(now) == LeaseState::Waiting {
            state.lease.give_back(now);
        }
        if state.lease.state(now) == LeaseState::Unreadable {
            let time = self.owner_time(owner);
            self.owners[owner].machine.doubt(time);
        }
        while let Some(request) = self.owners[owner].lease.poll(now) {
            self.ask(owner, Asked::Lease(request));
        }
    }

    /// A question goes to the register, and comes there or does not.
    fn ask(&mut self, owner: usize, request: Asked) {
        let host = self.owners[owner].host;
        let asked = self.register.ask(owner, request);
        let cut_off = self
            .register
            .cut_off
            .get(&host)
            .is_some_and(|count| *count > 0);
        let delay = self.random.span(MILLI..30 * MILLI);
        if !cut_off {
            self.schedule
                .after(delay, Event::Register { request: asked });
            self.schedule
                .after(2 * delay, Event::Answer { request: asked });
            return;
        }
        // The request may arrive all the same, now or much later.
        let patience = self.random.range(100 * MILLI..2 * SECOND);
        self.schedule
            .after(patience, Event::Answer { request: asked });
        match self.random.below(3) {
            0 => self
                .schedule
                .after(delay, Event::Register { request: asked }),
            1 => {
                let late = self.random.range(0..15 * SECOND);
                self.schedule
                    .after(late, Event::Register { request: asked });
            }
            _ => {
                if let Some(pending) = self.register.pending.get_mut(&asked) {
                    pending.over = true;
                }
            }
        }
    }

    /// The register carries out a request.
    pub(crate) fn serve_register(&mut self, request: u64) {
        let unfenced = self.broken == Broken::BlindRegister;
        let forgets = self.broken == Broken::ForgetfulRegister && self.random.percent(20);
        if forgets {
            self.register.pretend(request);
            return;
        }
        let reply = self.register.serve(request, unfenced);
        if let Some(Reply::Swapped(RegisterSwap::Done(version))) = reply {
            let (version, record) = (*version, self.register.record());
            self.note(13, || format!("register: {version} is {record:?}"));
        }
        self.register.forget(request);
    }

    /// The register's answer arrives, or finds its requester gone.
    pub(crate) fn answer_register(&mut self, request: u64) {
        let Some(pending) = self.register.pending.get(&request) else {
            return;
        };
        let host = self.owners[pending.owner].host;
        let lost = self
            .register
            .cut_off
            .get(&host)
            .is_some_and(|count| *count > 0);
        let Some((owner, reply)) = self.register.answer(request, lost) else {
            return;
        };
        self.register.forget(request);
        if !self.owners[owner].alive {
            return;
        }
        let time = self.owner_time(owner);
        self.note(14, || {
            format!("register answers o{owner}: {}", brief(&reply))
        });
        let machine = &mut self.owners[owner].machine;
        match reply {
            Reply::Read(result) => machine.register_read(result, time),
            Reply::Swapped(result) => machine.register_swapped(&result, time),
            Reply::Lease(answer) => {
                let time = self.lease_time(owner);
                self.owners[owner].lease.answered(answer, time);
            }
        }
        self.wake_owner(owner);
    }

    fn owner_writes(&mut self, owner: usize) {
        let capacity = self.scenario.capacity;
        for (link, id) in self.owners[owner].conns.clone() {
            let Some(conn) = self.network.conns.get(&id) else {
                continue;
            };
            let room = conn.up.room(capacity);
            if !conn.made || room == 0 {
                continue;
            }
            let machine = &mut self.owners[owner].machine;
            let octets: Vec<u8> = machine.output(link).iter().take(room).copied().collect();
            if !octets.is_empty() {
                machine.sent(link, octets.len());
                self.send(id, true, Chunk::Octets(octets));
            }
        }
    }

    fn owner_events(&mut self, owner: usize) {
        while let Some(event) = self.owners[owner].machine.poll_event() {
            if !matches!(event, OwnerEvent::Block { .. } | OwnerEvent::Queues { .. }) {
                self.note(15, || format!("o{owner}: {event:?}"));
            }
            if let OwnerEvent::Replica { change, .. } = &event {
                self.cramped |= *change == ReplicaChange::Isolated(Fault::NoRoom);
                self.replaced += u64::from(*change == ReplicaChange::Isolated(Fault::Slow));
                self.caught_up += u64::from(*change == ReplicaChange::CaughtUp);
            }
            if event == OwnerEvent::Fenced {
                self.owners[owner].fenced = true;
            }
            if let Err(wrong) = self.client_hears(owner, event) {
                self.fail(format!("o{owner}: {wrong}"));
            }
        }
    }

    fn owner_sleeps(&mut self, owner: usize) {
        let now = self.schedule.now();
        let state = &self.owners[owner];
        let mut at = u64::MAX;
        let deadline = state.machine.deadline();
        let time = self.owner_time(owner);
        if deadline < Timestamp::MAX {
            let wait = deadline.saturating_since(time).as_micros() as u64;
            at = now + wait.max(MILLI);
        }
        if let Some(deadline) = state.lease.deadline() {
            let wait = deadline
                .saturating_since(self.lease_time(owner))
                .as_micros();
            let wait = wait * 1_000_000 / u128::from(state.rate);
            at = at.min(now + (wait as u64).max(MILLI));
        }
        for (link, retry) in &state.retry {
            if !state.conns.contains_key(link) && *retry > now && state.machine.wants(*link) {
                at = at.min(*retry);
            }
        }
        if at < u64::MAX {
            self.wake_owner_at(owner, at);
        }
    }
}

fn brief(reply: &Reply) -> String {
    match reply {
        Reply::Read(Ok(Some((version, _)))) => format!("read version {version}"),
        other => format!("{other:?}"),
    }
}
