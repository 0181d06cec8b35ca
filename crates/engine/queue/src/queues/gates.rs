//! Gates: shared limits that queues pass before they connect and send.
//!
//! A *place* gate stands for a destination with a rule, and is shared by the destination's queues
//! (mail that needs encryption has a separate queue). A *site* gate stands for the hosts that serve
//! one or more destinations. A queue that a gate bars waits in one of the gate's lines and is
//! called when there is room; until then the scheduler skips the queue. Opening or waking a worker
//! takes a token of the rate. The token comes back when the worker finds no message to send.

mod all;
mod bucket;
mod window;

use std::collections::VecDeque;
use std::time::Duration;

use vere_units::{QueueId, Timestamp};

use super::idle::Idlers;
use super::step::Step;
use crate::destination::Place;
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
    Place(Place),
    Site(SiteName),
}

/// The resource for which a queue waits.
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
    /// Number of queues that pass the gate.
    pub(super) members: usize,
    limits: Limits,
    bucket: Option<Bucket>,
    /// The connection window of a site; `None` for places.
    window: Option<Window>,
    /// Connections open or opening.
    pub(super) connections: usize,
    /// Open connections.
    pub(super) established: usize,
    /// Queues that keep idle connections for their next message.
    pub(super) idlers: Idlers,
    /// Connections that end because other queues wait.
    pub(super) leaving: usize,
    /// Earliest start of the next connection.
    next_open: Timestamp,
    /// Consecutive attempts in which no message got through.
    pub(super) failures: u16,
    /// The next failure follows an operator's attempt and does not lengthen the pause.
    pub(super) by_hand: bool,
    pub(super) suspended_until: Option<Timestamp>,
    pub(super) last_reply: Option<Box<str>>,
    lines: [VecDeque<QueueId>; 2],
    /// The time of the gate's next check.
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

    /// Maximum of connections by the settings.
    fn connections_max(&self, policy: &Policy) -> usize {
        let default = match self.key {
            Key::Place(_) => usize::MAX,
            Key::Site(_) => policy.connections_per_site_max,
        };
        self.limits.connections_max.unwrap_or(default)
    }

    /// Maximum of connections at present.
    pub(super) fn allowance(&self, policy: &Policy) -> usize {
        let max = self.connections_max(policy);
        match &self.window {
            // Until an attempt proves that the site works again, one connection probes the site.
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

    /// Queues in one of the gate's lines.
    pub(super) fn waiting(&self, line: Line) -> impl Iterator<Item = QueueId> {
        self.lines[line as usize].iter().copied()
    }

    /// The average time that a message takes.
    pub(super) fn latency(&self) -> Option<Duration> {
        let latency = self.window.as_ref()?.latency();
        (!latency.is_zero()).then_some(latency)
    }

    /// Whether a new gate would be equal.
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

    /// Whether more queues wait for a connection than there are free or ending connections.
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

    /// Removes the next queue from a line if the queue can proceed now.
    fn call(&mut self, line: Line, policy: &Policy, now: Timestamp) -> Option<QueueId> {
        let stays =
            self.lacks_token(now) || line == Line::Connection && self.lacks_room(policy, now);
        if stays {
            return None;
        }
        self.lines[line as usize].pop_front()
    }

    /// The time at which queues in the lines can proceed without an event.
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

    /// Records what an attempt shows of the site's load. Returns true if a site limited to one
    /// connection is still busy and closes the connection.
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

    /// Limits the window to the open connections: the site refused a further connection.
    pub(super) fn cap(&mut self, now: Timestamp) {
        let established = self.established;
        if let Some(window) = &mut self.window {
            window.cap(established, now);
        }
    }

    /// Bars new connections for a time. A single connection then probes the site.
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

/// The result of one attempt, for the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The sign of the site's load.
    pub sign: Sign,
    /// Start of the attempt.
    pub began: Timestamp,
    /// Duration of the attempt.
    pub latency: Duration,
    /// Whether the connection can no longer be used.
    pub closed: bool,
}

/// Current counts of limits and sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateTotals {
    /// Sites that serve known destinations.
    pub sites: usize,
    /// Sites that are paused after failures.
    pub sites_suspended: usize,
    /// Destinations that wait because of a rate.
    pub waiting_rate: usize,
    /// Destinations that wait for a connection to their site or place.
    pub waiting_connection: usize,
}
