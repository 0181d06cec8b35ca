//! Gates: what queues with a common limit pass before they connect and send.
//!
//! A *place* gate stands for a destination that a rule is about, shared by its queues (those that need
//! encryption have their own); a *site* gate for the hosts that serve one or more destinations. A queue
//! that a gate does not let through waits in one of its lines and is called when there is room; it is not
//! looked at meanwhile. A token of the rate is taken when a worker is opened or woken, and comes back when
//! the worker finds nothing to send.

mod all;
mod bucket;
mod window;

use std::collections::VecDeque;
use std::time::Duration;

use vere_units::Timestamp;

use super::QueueNumber;
use super::idle::Idlers;
use super::step::Step;
use crate::destination::Destination;
use crate::limits::Limits;
use crate::policy::Policy;
use crate::site::SiteName;

use bucket::Bucket;
use window::Window;

pub(super) use all::Gates;
pub use window::Sign;

/// The place of a gate.
pub(super) type GateId = u32;

/// What a gate stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Place(Destination),
    Site(SiteName),
}

/// For what a queue waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// To send a message.
    Token = 0,
    /// To open a connection.
    Connection = 1,
}

/// One gate.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) key: Key,
    /// Queues that pass it.
    pub(super) members: usize,
    limits: Limits,
    bucket: Option<Bucket>,
    /// How many connections the site takes; none for places.
    window: Option<Window>,
    /// Connections open or opening.
    pub(super) connections: usize,
    /// Those that are open.
    pub(super) established: usize,
    /// Queues that keep some of these for their next message.
    pub(super) idlers: Idlers,
    /// Those that end because others wait.
    pub(super) leaving: usize,
    /// No connection is opened before.
    next_open: Timestamp,
    /// Failures in a row to get anything through.
    pub(super) failures: u16,
    /// The next failure is that of an attempt by an operator's order: the wait grows no longer by it.
    pub(super) by_hand: bool,
    pub(super) suspended_until: Option<Timestamp>,
    pub(super) last_reply: Option<Box<str>>,
    lines: [VecDeque<QueueNumber>; 2],
    /// When it is looked at again.
    pub(super) timer: Option<Timestamp>,
}

impl Gate {
    fn new(key: Key, limits: Limits) -> Self {
        let window = match key {
            Key::Place(_) => None,
            Key::Site(_) => Some(Window::new()),
        };
        Self {
            key,
            members: 0,
            bucket: limits.rate.map(Bucket::new),
            limits,
            window,
            connections: 0,
            established: 0,
            idlers: Idlers::new(),
            leaving: 0,
            next_open: Timestamp::from_millis(0),
            failures: 0,
            by_hand: false,
            suspended_until: None,
            last_reply: None,
            lines: [VecDeque::new(), VecDeque::new()],
            timer: None,
        }
    }

    /// Follows a step of the wall clock.
    fn step(&mut self, step: Step) {
        step.apply(&mut self.next_open);
        step.apply_to(&mut self.suspended_until);
        step.apply_to(&mut self.timer);
        if let Some(bucket) = &mut self.bucket {
            bucket.step(step);
        }
        if let Some(window) = &mut self.window {
            window.step(step);
        }
    }

    fn set_limits(&mut self, limits: Limits) {
        if self.bucket.map(|bucket| bucket.rate()) != limits.rate {
            self.bucket = limits.rate.map(Bucket::new);
        }
        self.limits = limits;
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Connections that the settings allow.
    fn connections_max(&self, policy: &Policy) -> usize {
        let default = match self.key {
            Key::Place(_) => usize::MAX,
            Key::Site(_) => policy.connections_per_site_max,
        };
        self.limits.connections_max.unwrap_or(default)
    }

    /// Connections that there may be now.
    pub(super) fn allowance(&self, policy: &Policy) -> usize {
        let max = self.connections_max(policy);
        match &self.window {
            // While nothing proves that the site works again, one connection probes it.
            Some(_) if self.failures > 0 => 1,
            Some(window) => window.limit(max),
            None => max,
        }
    }

    pub(super) const fn site(&self) -> Option<&SiteName> {
        match &self.key {
            Key::Site(site) => Some(site),
            Key::Place(_) => None,
        }
    }

    /// Queues in one of its lines.
    pub(super) fn waiting(&self, line: Line) -> impl Iterator<Item = QueueNumber> {
        self.lines[line as usize].iter().copied()
    }

    /// The average time that a message takes.
    pub(super) fn latency(&self) -> Option<Duration> {
        let latency = self.window.as_ref()?.latency();
        (!latency.is_zero()).then_some(latency)
    }

    /// Whether one that is made anew would be the same.
    pub(super) fn is_as_new(&self, now: Timestamp) -> bool {
        let full = self.bucket.is_none_or(|bucket| bucket.is_full(now));
        full && self.failures == 0 && self.suspended_until.is_none()
    }

    pub(super) fn is_suspended(&self, now: Timestamp) -> bool {
        self.suspended_until.is_some_and(|until| until > now)
    }

    fn lacks_token(&self, now: Timestamp) -> bool {
        self.bucket.is_some_and(|bucket| !bucket.is_ready(now))
    }

    fn lacks_room(&self, policy: &Policy, now: Timestamp) -> bool {
        self.is_suspended(now) || self.next_open > now || self.connections >= self.allowance(policy)
    }

    /// Whether more queues wait for a connection than may be opened or end for that.
    pub(super) fn is_coveted(&self, policy: &Policy) -> bool {
        let [_, line] = &self.lines;
        let free = self.allowance(policy).saturating_sub(self.connections);
        line.len() > free + self.leaving
    }

    /// Whether a queue that was not called must wait, and in which line.
    fn bars(&self, opens: bool, called: bool, policy: &Policy, now: Timestamp) -> Option<Line> {
        let stands = |line: Line| !called && !self.lines[line as usize].is_empty();
        if self.lacks_token(now) || stands(Line::Token) {
            return Some(Line::Token);
        }
        let waits = opens && (self.lacks_room(policy, now) || stands(Line::Connection));
        waits.then_some(Line::Connection)
    }

    /// Takes the queue out of a line that can go on now, if one can.
    fn call(&mut self, line: Line, policy: &Policy, now: Timestamp) -> Option<QueueNumber> {
        let stays =
            self.lacks_token(now) || line == Line::Connection && self.lacks_room(policy, now);
        if stays {
            return None;
        }
        self.lines[line as usize].pop_front()
    }

    /// When time alone changes something for those in its lines.
    pub(super) fn wake_at(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        if let Some(until) = self.suspended_until {
            return Some(until);
        }
        let [tokens, connections] = &self.lines;
        let token_at = self.bucket.map(|bucket| bucket.next_at());
        let for_tokens = token_at.filter(|at| !tokens.is_empty() && *at > now);
        let room = !connections.is_empty() && self.connections < self.allowance(policy);
        let opens_at = token_at.map_or(self.next_open, |at| at.max(self.next_open));
        let for_room = Some(opens_at).filter(|at| room && *at > now);
        for_tokens.into_iter().chain(for_room).min()
    }

    fn reserve(&mut self, opens: bool, now: Timestamp) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now);
        }
        if opens {
            self.connections += 1;
            self.opens(now);
        }
    }

    fn opens(&mut self, now: Timestamp) {
        if let Some(interval) = self.limits.connection_interval {
            self.next_open = now + interval;
        }
    }

    /// Takes what an attempt that began then says of the site. True: it can hardly do less and still
    /// breaks off.
    pub(super) fn answered(&mut self, answer: &Answered, policy: &Policy, now: Timestamp) -> bool {
        if answer.sign != Sign::Busy {
            self.failures = 0;
        }
        let alone = self.allowance(policy) == 1;
        let max = self.connections_max(policy);
        let full = self.connections >= self.allowance(policy);
        let Some(window) = &mut self.window else {
            return false;
        };
        let Answered {
            sign,
            began,
            latency,
            closed,
        } = *answer;
        window.saw(sign, began, latency, full, max, now);
        alone && closed && sign == Sign::Busy
    }

    /// The site refuses a connection beside those that are open.
    pub(super) fn cap(&mut self, now: Timestamp) {
        let established = self.established;
        if let Some(window) = &mut self.window {
            window.cap(established, now);
        }
    }

    /// No connection is made before; then by one.
    fn suspend(&mut self, reply: &str, policy: &Policy, now: Timestamp) {
        let step = Policy::step(self.failures, std::mem::take(&mut self.by_hand));
        let until = now + policy.retry_after(step);
        self.failures = step.saturating_add(1);
        self.suspended_until = Some(until);
        self.last_reply = Some(reply.into());
        if let Some(window) = &mut self.window {
            window.restart();
        }
    }
}

/// What came of one attempt, for the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// What it says of the site's load.
    pub sign: Sign,
    /// When it began.
    pub began: Timestamp,
    /// How long it took.
    pub latency: Duration,
    /// Whether the connection is of no use any more.
    pub closed: bool,
}

/// What limits and sites do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateTotals {
    /// Sites that serve known destinations.
    pub sites: usize,
    /// Sites that are left alone after failures.
    pub sites_suspended: usize,
    /// Destinations that wait because of a rate.
    pub waiting_rate: usize,
    /// Destinations that wait for a connection to their site or place.
    pub waiting_connection: usize,
}
