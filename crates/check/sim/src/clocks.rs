//! A gateway's queues (`vere_queue::Queues`) in a separate world. The seed steps the wall clock ahead and back, while
//! the gateway lives and notices, and while the gateway is down. Next hops defer messages or are unreachable, so that every
//! message ends by its age alone. Promises are checked against true time, in milliseconds.

mod ends;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::envelope::{Notify, Recipient};
use vere_queue::{
    Attempt, Destination, Disposition, Envelope, Job, Mail, Next, Policy, Queues, RecipientResult,
    ScheduleHead, Settlement, Step, Wanted,
};
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use crate::envelope::blank;
use crate::random::Random;

/// The wall clock's reading when the world begins. All steps together stay below this value.
const BASE: u64 = 20_000 * DAY;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The largest difference between the clock and true time.
const OFF_MAX: i64 = 4_000 * DAY as i64;
/// The longest step.
const STEP_MAX: u64 = 400 * DAY;
/// Clock movements below the threshold of a step. The checks allow for their whole sum.
const NUDGE_MAX: u64 = 20 * SECOND;
/// Largest delay between a due time and the host's next poll.
const LATE_MAX: u64 = 5 * SECOND;

/// Queue whose next hop defers every message.
const BUSY: QueueId = QueueId(1);
/// Queue without a reachable next hop: its messages wait behind one another.
const DEAD: QueueId = QueueId(2);

/// A promise to the queues that the host breaks, to test that the checks notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenClock {
    /// No promise is broken.
    Nothing,
    /// The host does not report steps.
    Unnoticed,
    /// After a start, messages expire at once.
    Hasty,
    /// The host does not record the first sight of messages from the future.
    Unseen,
    /// A message's record lacks its acceptance time by the present clock.
    Stale,
}

/// Counts of events in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockFigures {
    /// Attempts at messages.
    pub attempts: u64,
    /// Messages that ended by their age.
    pub expired: u64,
    /// Steps of the clock while the gateway lived.
    pub steps: u64,
    /// Steps while the gateway was down.
    pub unseen: u64,
    /// Starts of the gateway.
    pub starts: u64,
}

/// Runs a seed. Equal seeds give equal runs.
///
/// # Errors
/// The broken promise.
pub fn run_with_clocks(seed: u64, broken: BrokenClock) -> Result<ClockFigures, String> {
    let mut world = World::new(seed, broken);
    world.run().map(|()| world.figures)
}

/// A record, and the true data of its message.
#[derive(Debug)]
struct Kept {
    meta: Vec<u8>,
    accepted: u64,
    /// The age at which the message ends.
    lifetime: u64,
    /// The clock's offset at each time in the record.
    off: i64,
    /// Extra age that the message may seem to have: the clock's lead when the message was found.
    ahead: u64,
    /// Earliest time of the next attempt, if this life of the gateway knows.
    from: Option<u64>,
    /// Latest time of the next attempt.
    until: u64,
}

#[derive(Debug)]
struct World {
    random: Random,
    broken: BrokenClock,
    policy: Policy,
    truth: u64,
    /// The wall clock's lead over true time.
    off: i64,
    /// Sum of all clock movements that were no steps.
    nudged: u64,
    queues: Queues,
    /// Clock and true time when the host last read the clock.
    looked: (Timestamp, u64),
    records: BTreeMap<(QueueId, RecordId), Kept>,
    /// Start of this life of the gateway.
    began: u64,
    /// Whether steps have ended.
    calm: bool,
    next: RecordId,
    figures: ClockFigures,
}

fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn draw_policy(random: &mut Random) -> Policy {
    let waits = 1 + random.below(4);
    let mut retry: Vec<_> = (0..waits)
        .map(|_| span(random.span(MINUTE..4 * HOUR)))
        .collect();
    retry.sort_unstable();
    Policy {
        retry,
        expire: span(random.span(HOUR..5 * DAY)),
        delay_notice: None,
        ..Policy::default()
    }
}

impl World {
    fn new(seed: u64, broken: BrokenClock) -> Self {
        let mut random = Random::new(seed);
        let policy = draw_policy(&mut random);
        let queues = Queues::new(policy.clone());
        let mut world = Self {
            random,
            broken,
            policy,
            truth: 0,
            off: 0,
            nudged: 0,
            queues,
            looked: (Timestamp::from_millis(BASE), 0),
            records: BTreeMap::new(),
            began: 0,
            calm: false,
            next: RecordId(0),
            figures: ClockFigures::default(),
        };
        world.start();
        world
    }

    fn run(&mut self) -> Result<(), String> {
        let (expire, longest) = (millis(self.policy.expire), self.longest());
        let calm_from = self.random.span(expire / 2 + 1..2 * expire + 2);
        while self.truth < calm_from {
            let until = self.truth + self.random.span(SECOND..expire / 2 + 2 * SECOND);
            self.live(until.min(calm_from))?;
            self.fault();
        }
        // From here on the clock follows true time, and starts are as far apart as a message may be spared.
        self.calm = true;
        let pause = 2 * self.hold() + longest + HOUR;
        // A message from the future counts its age from its first sight, and from its acceptance
        // time once the clock has reached that time. The message therefore lasts twice as long at
        // most, and longer behind similar messages.
        let end = self.truth + 8 * expire + 2 * pause + longest;
        while self.truth < end && !self.records.is_empty() {
            let until = self.truth + pause + self.random.range(0..pause);
            self.live(until.min(end))?;
            self.restart(0);
        }
        match self.records.keys().next() {
            Some(left) => Err(format!("{left:?} is there at the end, {} ms", self.truth)),
            None => Ok(()),
        }
    }

    fn longest(&self) -> u64 {
        millis(self.policy.longest_retry())
    }

    /// Time after a start in which no message expires.
    fn hold(&self) -> u64 {
        self.longest().min(millis(self.policy.expire))
    }

    fn slack(&self) -> u64 {
        LATE_MAX + SECOND + self.nudged
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis((BASE + self.truth).saturating_add_signed(self.off))
    }

    /// Applies a random fault to the gateway and its clock.
    fn fault(&mut self) {
        match self.random.range(0..10) {
            0..=2 => {
                let step = self.draw_step();
                self.off = (self.off + step).clamp(-OFF_MAX, OFF_MAX);
                self.figures.steps += 1;
                self.look();
            }
            3 => {
                let nudge = self.random.range(0..NUDGE_MAX);
                self.nudged += nudge;
                self.off += if self.random.percent(50) {
                    nudge as i64
                } else {
                    -(nudge as i64)
                };
            }
            4..=5 => {
                let step = self.draw_step();
                self.figures.unseen += 1;
                self.restart(step);
            }
            6 => self.restart(0),
            _ => self.submit(),
        }
    }

    fn draw_step(&mut self) -> i64 {
        let step = self.random.span(31 * SECOND..STEP_MAX) as i64;
        if self.random.percent(50) { step } else { -step }
    }

    fn submit(&mut self) {
        for _ in 0..self.random.range(1..4) {
            let queue = *[BUSY, DEAD].get(self.random.below(2)).unwrap_or(&BUSY);
            let record = self.next;
            self.next = record.next();
            let (mut envelope, now) = (fresh(record, self.now()), self.now());
            let mut lifetime = millis(self.policy.expire);
            if self.random.percent(30) {
                lifetime = self.random.span(MINUTE..2 * lifetime);
                envelope.head.expires = Some(now + span(lifetime));
            }
            let kept = Kept {
                meta: envelope.encode(),
                accepted: self.truth,
                lifetime,
                off: self.off,
                ahead: 0,
                from: Some(self.truth),
                until: self.truth,
            };
            self.records.insert((queue, record), kept);
            self.queues
                .admit(queue, record, envelope, Some(Bytes::new()), now);
        }
    }

    /// Kills the gateway, steps the clock, lets time pass, and starts a gateway from the records.
    fn restart(&mut self, step: i64) {
        self.off = (self.off + step).clamp(-OFF_MAX, OFF_MAX);
        self.truth += self.random.span(SECOND..HOUR);
        self.start();
    }

    fn start(&mut self) {
        self.figures.starts += 1;
        let now = self.now();
        self.looked = (now, self.truth);
        self.began = self.truth;
        self.queues = Queues::new(self.policy.clone());
        if self.broken != BrokenClock::Hasty {
            self.queues.spare_until(now);
        }
        for (number, name) in [(BUSY, "busy.example"), (DEAD, "dead.example")] {
            let destination = Destination::domain(name.to_owned());
            self.queues.register(number, destination, now);
        }
        let longest = self.longest();
        for ((queue, record), kept) in &mut self.records {
            let Ok(mut envelope) = Envelope::decode(&kept.meta) else {
                continue;
            };
            kept.ahead += u64::try_from(self.off - kept.off).unwrap_or(0);
            kept.from = None;
            kept.until = self.truth + longest;
            if envelope.head.see(now) && self.broken != BrokenClock::Unseen {
                kept.meta = envelope.encode();
                kept.off = kept.off.min(self.off);
            }
            self.queues.admit(*queue, *record, envelope, None, now);
        }
    }

    /// Reads the clock, as the host does before every call to the queues.
    fn look(&mut self) {
        let now = self.now();
        let (before, then) = std::mem::replace(&mut self.looked, (now, self.truth));
        let step = Step::between(before, now, span(self.truth - then));
        if let Some(step) = step.filter(|_| self.broken != BrokenClock::Unnoticed) {
            self.queues.clock_stepped(step, now);
        }
    }

    /// Runs until a time, from each wake time of the queues to the next.
    fn live(&mut self, until: u64) -> Result<(), String> {
        loop {
            self.look();
            self.serve()?;
            self.end_overdue()?;
            self.check()?;
            if self.truth >= until {
                return Ok(());
            }
            let wake = self.queues.wake_at();
            let wait = wake.map_or(HOUR, |wake| millis(wake.saturating_since(self.now())));
            let wait = wait.saturating_add(self.random.range(1..LATE_MAX));
            self.truth = until.min(self.truth.saturating_add(wait));
        }
    }

    fn serve(&mut self) -> Result<(), String> {
        while let Some(next) = self.queues.poll(self.now()) {
            match next {
                Next::Fetch(wanted) => self.supply(&wanted),
                Next::Open(BUSY) => self.work()?,
                Next::Open(_) => {
                    let now = self.now();
                    self.queues.destination_failed(DEAD, "no route", now);
                    self.queues.worker_ended(DEAD, true);
                    self.end_behind()?;
                }
                Next::Wake(_) | Next::Release(_) => return Err("no worker idles".to_owned()),
            }
        }
        Ok(())
    }

    fn supply(&mut self, wanted: &Wanted) {
        let first = (wanted.queue, wanted.from);
        let records = self
            .records
            .range(first..(wanted.queue.next(), RecordId(0)));
        let block: Vec<_> = records
            .take(wanted.records as usize)
            .filter_map(|((_, record), kept)| {
                let envelope = Envelope::decode(&kept.meta).ok()?;
                Some((*record, envelope, Bytes::new()))
            })
            .collect();
        self.queues.supply(wanted, block);
    }

    /// Works on the queue whose next hop answers.
    fn work(&mut self) -> Result<(), String> {
        let mut fresh = true;
        while let Some(job) = self
            .queues
            .take(BUSY, std::mem::take(&mut fresh), self.now())
        {
            self.figures.attempts += 1;
            let kept = self.records.get(&(BUSY, job.record));
            let from = kept.and_then(|kept| kept.from).unwrap_or(0);
            if self.truth + self.slack() < from {
                return Err(format!(
                    "{} is tried {} ms early",
                    job.record,
                    from - self.truth
                ));
            }
            let result = RecipientResult {
                disposition: Disposition::Deferred,
                status: "4.2.1".to_owned(),
                reply: "450 later".to_owned(),
                from_remote: true,
            };
            let attempt = Attempt {
                remote: "mx.busy.example".to_owned(),
                reports_taken_over: false,
                results: vec![result],
            };
            self.settle(BUSY, &job, &attempt)?;
        }
        self.queues.worker_ended(BUSY, fresh);
        Ok(())
    }

    fn settle(
        &mut self,
        queue: QueueId,
        job: &Job,
        attempt: &Attempt,
    ) -> Result<Settlement, String> {
        let now = self.now();
        let settled = self.queues.settle(queue, job, attempt, now);
        let settled = settled.ok_or("it is not in flight")?;
        let Some(rest) = &settled.remaining else {
            self.check_end(queue, job.record)?;
            self.records.remove(&(queue, job.record));
            return Ok(settled);
        };
        self.queues.written(queue, job, rest, now);
        let wait = millis(self.policy.retry_after(job.envelope.head.attempts));
        let (truth, off) = (self.truth, self.off);
        if let Some(kept) = self.records.get_mut(&(queue, job.record)) {
            let stale = Envelope {
                head: ScheduleHead {
                    accepted: job.envelope.head.accepted,
                    expires: job.envelope.head.expires,
                    ..rest.head.clone()
                },
                ..rest.clone()
            };
            let is_stale = self.broken == BrokenClock::Stale;
            kept.meta = if is_stale {
                stale.encode()
            } else {
                rest.encode()
            };
            // A record with two acceptance times has times of two clocks.
            kept.off = if rest.head.seen.is_some() {
                kept.off.min(off)
            } else {
                off
            };
            (kept.from, kept.until) = (Some(truth + wait), truth + wait);
        }
        Ok(settled)
    }

    /// Checks that a message does not end by age before its time.
    fn check_end(&mut self, queue: QueueId, record: RecordId) -> Result<(), String> {
        self.figures.expired += 1;
        let Some(kept) = self.records.get(&(queue, record)) else {
            return Err(format!("{record} ends twice"));
        };
        let over = kept.accepted + kept.lifetime;
        let found = kept.accepted < self.began;
        let spared = if found {
            over.min(self.began + self.hold())
        } else {
            over
        };
        let least = over.saturating_sub(kept.ahead).max(spared);
        if self.truth + self.slack() < least {
            let early = least - self.truth;
            return Err(format!(
                "{record} of queue {queue} expires {early} ms early"
            ));
        }
        Ok(())
    }

    /// Checks that deferred messages are tried again in time, whatever the clock did.
    fn check(&self) -> Result<(), String> {
        let busy = self
            .records
            .range((BUSY, RecordId(0))..(BUSY.next(), RecordId(0)));
        for ((_, record), kept) in busy {
            if kept.until + self.slack() < self.truth {
                let late = self.truth - kept.until;
                return Err(format!("{record} is {late} ms late"));
            }
        }
        Ok(())
    }
}

fn fresh(record: RecordId, accepted: Timestamp) -> Envelope {
    let recipient = Recipient {
        address: "a@example.net".to_owned(),
        notify: Notify::default(),
        orcpt: None,
    };
    Envelope {
        mail: Mail {
            recipients: vec![recipient],
            ..blank(TraceId::new(1 + record.0), accepted, 1).mail
        },
        ..blank(TraceId::new(1 + record.0), accepted, 1)
    }
}
