//! A gateway's queues (`vere_queue::Queues`) in a world of their own, whose wall clock is put ahead and back as a seed
//! says: while the gateway lives, which it notices, and while it is down, which nobody can. Next hops put off or cannot
//! be reached, so that every message ends by its age alone. Promises are held to true time, in milliseconds.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use vere_queue::envelope::{BodyType, Notify, Recipient, TlsWish};
use vere_queue::{
    Attempt, Destination, Disposition, Envelope, Job, Next, Policy, QueueNumber, Queues,
    RecipientResult, RecordId, Settlement, Step, Wanted,
};
use vere_units::{Timestamp, TraceId};

use crate::random::Random;

/// What the wall clock says when the world begins: all steps together stay within it.
const BASE: u64 = 20_000 * DAY;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The most that the clock differs from the truth.
const OFF_MAX: i64 = 4_000 * DAY as i64;
/// The longest step.
const STEP_MAX: u64 = 400 * DAY;
/// What no engine takes for a step; its whole sum is allowed for.
const NUDGE_MAX: u64 = 20 * SECOND;
/// Between the time at which something is due and that at which the host asks.
const LATE_MAX: u64 = 5 * SECOND;

/// Its next hop puts every message off.
const BUSY: QueueNumber = 1;
/// It has no next hop that can be reached: messages wait behind one another.
const DEAD: QueueNumber = 2;

/// A promise to the queues that the host breaks, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenClock {
    /// None.
    Nothing,
    /// Steps are not noticed.
    Unnoticed,
    /// After a start messages expire at once.
    Hasty,
    /// That messages from the future were seen is not written down.
    Unseen,
    /// The record of a message does not say when it was accepted by the clock as it is.
    Stale,
}

/// How much happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockFigures {
    /// Attempts at messages.
    pub attempts: u64,
    /// Messages that ended by their age.
    pub expired: u64,
    /// Steps of the clock while the gateway lived.
    pub steps: u64,
    /// Steps while it was down.
    pub unseen: u64,
    /// Starts of the gateway.
    pub starts: u64,
}

/// Makes the run of a seed, the same one every time.
///
/// # Errors
/// The promise that was not kept.
pub fn run_with_clocks(seed: u64, broken: BrokenClock) -> Result<ClockFigures, String> {
    let mut world = World::new(seed, broken);
    world.run().map(|()| world.figures)
}

/// A record, and what is true of its message.
#[derive(Debug)]
struct Kept {
    meta: Vec<u8>,
    accepted: u64,
    /// How far the clock was off at each time that the record has.
    off: i64,
    /// How much older than it is it may seem: by how much the clock was ahead when it was found.
    ahead: u64,
    /// Its next attempt is not due before, if this life of the gateway knows.
    from: Option<u64>,
    /// And no later.
    until: u64,
}

#[derive(Debug)]
struct World {
    random: Random,
    broken: BrokenClock,
    policy: Policy,
    truth: u64,
    /// By how much the wall clock is ahead.
    off: i64,
    /// All that it was moved by without a step.
    nudged: u64,
    queues: Queues,
    /// What the clock and the truth were at the last look.
    looked: (Timestamp, u64),
    records: BTreeMap<(QueueNumber, RecordId), Kept>,
    /// When this life began.
    began: u64,
    /// No steps any more.
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
            next: 0,
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
        // From here on the clock goes with the truth, and starts are as far apart as a message may be spared.
        self.calm = true;
        let pause = 2 * self.hold() + longest + HOUR;
        // The age of a message from the future counts from when it was seen first, and once the clock is there from
        // when it says: it lasts twice as long at most, and longer behind others of which the same is true.
        let end = self.truth + 4 * expire + 2 * pause + longest;
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

    /// For so long nothing expires after a start.
    fn hold(&self) -> u64 {
        self.longest().min(millis(self.policy.expire))
    }

    fn slack(&self) -> u64 {
        LATE_MAX + SECOND + self.nudged
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis((BASE + self.truth).saturating_add_signed(self.off))
    }

    /// What happens to the gateway and its clock.
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
            self.next += 1;
            let (envelope, now) = (fresh(record, self.now()), self.now());
            let kept = Kept {
                meta: envelope.encode(),
                accepted: self.truth,
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

    /// The gateway dies, the clock is put ahead or back, time passes, and the next one reads what the records say.
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
            let destination = Destination::Domain(name.to_owned());
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
            if envelope.see(now) && self.broken != BrokenClock::Unseen {
                kept.meta = envelope.encode();
                kept.off = kept.off.min(self.off);
            }
            self.queues.admit(*queue, *record, envelope, None, now);
        }
    }

    /// The host looks at the clock, before it asks the queues for anything.
    fn look(&mut self) {
        let now = self.now();
        let (before, then) = std::mem::replace(&mut self.looked, (now, self.truth));
        let step = Step::between(before, now, span(self.truth - then));
        if let Some(step) = step.filter(|_| self.broken != BrokenClock::Unnoticed) {
            self.queues.clock_stepped(step, now);
        }
    }

    /// Goes on until then, from one time at which the queues want something to the next.
    fn live(&mut self, until: u64) -> Result<(), String> {
        loop {
            self.look();
            self.serve()?;
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
        let records = self.records.range(first..(wanted.queue + 1, 0));
        let block: Vec<_> = records
            .take(wanted.records as usize)
            .filter_map(|((_, record), kept)| {
                let envelope = Envelope::decode(&kept.meta).ok()?;
                Some((*record, envelope, Bytes::new()))
            })
            .collect();
        self.queues.supply(wanted, block);
    }

    /// A worker of the queue whose next hop answers.
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

    /// Ends what is over and waits for a destination that cannot be reached.
    fn end_behind(&mut self) -> Result<(), String> {
        while let Some(record) = self.queues.first_expired(DEAD, self.now()) {
            let kept = self.records.get(&(DEAD, record));
            let envelope = kept.and_then(|kept| Envelope::decode(&kept.meta).ok());
            let envelope = envelope.ok_or("a record is gone")?;
            let job = (self.queues).claim(DEAD, record, envelope, Bytes::new());
            let job = job.ok_or("it is in flight")?;
            let attempt = Queues::unreachable_attempt(&job.envelope, "dead.example", "no route");
            let settled = self.settle(DEAD, &job, &attempt)?;
            if settled.remaining.is_some() {
                return Err(format!("{record} is over, and goes on"));
            }
        }
        Ok(())
    }

    fn settle(
        &mut self,
        queue: QueueNumber,
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
        let wait = millis(self.policy.retry_after(job.envelope.attempts));
        let (truth, off) = (self.truth, self.off);
        if let Some(kept) = self.records.get_mut(&(queue, job.record)) {
            let stale = Envelope {
                accepted: job.envelope.accepted,
                ..rest.clone()
            };
            let is_stale = self.broken == BrokenClock::Stale;
            kept.meta = if is_stale {
                stale.encode()
            } else {
                rest.encode()
            };
            // Where it keeps both times it has those of two clocks.
            kept.off = if rest.seen.is_some() {
                kept.off.min(off)
            } else {
                off
            };
            (kept.from, kept.until) = (Some(truth + wait), truth + wait);
        }
        Ok(settled)
    }

    /// A message ends by its age: not before its time.
    fn check_end(&mut self, queue: QueueNumber, record: RecordId) -> Result<(), String> {
        self.figures.expired += 1;
        let Some(kept) = self.records.get(&(queue, record)) else {
            return Err(format!("{record} ends twice"));
        };
        let over = kept.accepted + millis(self.policy.expire);
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

    /// Whatever the clock did, what was put off is tried again in time.
    fn check(&self) -> Result<(), String> {
        let busy = self.records.range((BUSY, 0)..(BUSY + 1, 0));
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
    Envelope {
        trace: TraceId::new(1 + record),
        accepted,
        seen: None,
        not_before: None,
        held_until: None,
        held_since: None,
        attempts: 0,
        delay_noticed: false,
        reverse_path: None,
        envid: None,
        ret: None,
        smtputf8: false,
        body_type: BodyType::SevenBit,
        tls: TlsWish::None,
        priority: 0,
        size: 1,
        last_reply: None,
        message_id: None,
        recipients: vec![Recipient {
            address: "a@example.net".to_owned(),
            notify: Notify::default(),
            orcpt: None,
        }],
    }
}
