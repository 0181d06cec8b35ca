//! Sends mail through a system while its processes are killed, and counts the losses and duplicates.
//!
//! The load is tolerant: each message is sent until the system acknowledges the message. Kills come at random shares
//! of the acknowledgements, so that all kills fall into the load however fast the load runs; the seed decides the
//! shares. Afterwards every acknowledged message must be at the sink, and each message with two arrivals must have a
//! cause that the promise of at-least-once delivery allows:
//!
//! - the sender lost a reply, or was refused temporarily after the final dot, and sent the message again;
//! - or a process was killed within [`KillPlan::doubt`] after the first arrival of the message, so that the reply of
//!   the next hop, or its record, was lost; or just before, with the message still in the kernel's buffers.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::arrivals::Arrivals;
use crate::ids::MessageId;
use crate::load::{self, Failures, LoadEnd, LoadError, LoadOptions, LoadProgress, scatter};
use crate::sink::SinkHandle;

/// How often the load's progress is looked at.
const POLL: Duration = Duration::from_millis(1);

/// Longest time that octets written by a killed process remain in the kernel's buffers until a busy sink reads the
/// octets.
const IN_BUFFERS: Duration = Duration::from_millis(500);

/// A load, with kills during the load.
#[derive(Debug, Clone)]
pub struct KillPlan {
    /// The load; its end is replaced by `count`, and the load is made tolerant.
    pub load: LoadOptions,
    /// Messages to get acknowledged.
    pub count: u32,
    /// Kills, spread over the load.
    pub kills: u32,
    /// Seed of the kills' times and of [`KillMoment::random`].
    pub seed: u64,
    /// A kill at most this long after a first arrival explains a second arrival of the message.
    pub doubt: Duration,
    /// Missing messages are given up after this time without an arrival. The time must exceed every pause of the
    /// system after a failure: Postfix took some ten minutes to deliver deferred messages after a kill of its
    /// processes, since two of its intervals of 300 s add up.
    pub stall: Duration,
    /// The run waits for duplicates until no message arrives for this time.
    pub quiet: Duration,
}

impl KillPlan {
    /// The usual plan for `load`: 10,000 messages over 50 sessions and 20 kills.
    pub fn new(load: LoadOptions, seed: u64) -> Self {
        Self {
            load: LoadOptions {
                sessions: 50,
                ..load
            },
            count: 10_000,
            kills: 20,
            seed,
            doubt: Duration::from_secs(2),
            stall: Duration::from_secs(90),
            quiet: Duration::from_secs(2),
        }
    }

    /// At how many acknowledged messages the kills are due, in order: between 2 % and 98 %.
    fn due(&self) -> Vec<u64> {
        let span = u64::from(self.count) * 96 / 100 + 1;
        let start = u64::from(self.count) * 2 / 100;
        let mut due: Vec<u64> = (0..self.kills)
            .map(|kill| start + self.random(kill) % span)
            .collect();
        due.sort_unstable();
        due
    }

    fn random(&self, number: u32) -> u64 {
        scatter(scatter(self.seed) ^ u64::from(number))
    }
}

/// The moment of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KillMoment {
    /// The number of the kill, from 0.
    pub number: u32,
    /// Messages acknowledged so far.
    pub acked: u64,
    /// A random number, by which the caller chooses the victim.
    pub random: u64,
}

/// The effects of the kills.
#[derive(Debug)]
pub struct KillReport {
    /// The seed, to repeat the run.
    pub seed: u64,
    /// Kills carried out.
    pub kills: u32,
    /// Messages acknowledged.
    pub acked: usize,
    /// Different messages at the sink.
    pub arrived: usize,
    /// Acknowledged messages that were not at the sink after [`KillPlan::stall`] without an arrival: must be empty. A
    /// missing message is lost only if the queue of the system is empty and no retry of the system takes longer;
    /// inspect the queue before the verdict.
    pub missing: Vec<MessageId>,
    /// At the sink more than once.
    pub doubled: Vec<MessageId>,
    /// Messages of `doubled` without a cause that the promise allows: must be empty.
    pub doubled_without_cause: Vec<MessageId>,
    /// Permanently refused messages, with the reply code: every message was valid, so must be empty.
    pub refused: Vec<(MessageId, u16)>,
    /// Not acknowledged when the time was over: must be empty.
    pub unresolved: Vec<MessageId>,
    /// The failures seen by the sender.
    pub failures: Failures,
    /// How long the load took.
    pub elapsed: Duration,
}

impl KillReport {
    /// Whether every promise was kept and every kill and message happened.
    pub fn is_clean(&self, plan: &KillPlan) -> bool {
        self.kills == plan.kills
            && self.acked == plan.count as usize
            && self.missing.is_empty()
            && self.doubled_without_cause.is_empty()
            && self.refused.is_empty()
            && self.unresolved.is_empty()
    }

    /// The figures in one line.
    pub fn line(&self) -> String {
        format!(
            "seed {}: {} kills, {} acknowledged in {:.1} s, {} arrived, {} missing, {} doubled ({} \
             without cause), {} refused, {} unresolved, {} failures seen by the sender",
            self.seed,
            self.kills,
            self.acked,
            self.elapsed.as_secs_f64(),
            self.arrived,
            self.missing.len(),
            self.doubled.len(),
            self.doubled_without_cause.len(),
            self.refused.len(),
            self.unresolved.len(),
            self.failures.total(),
        )
    }
}

/// Runs the load of `plan` and calls `kill` when a kill is due. `sink` must remember deliveries
/// and be where the system under test sends everything.
///
/// # Errors
///
/// [`LoadError`] when the load itself cannot run.
pub fn run(
    plan: &KillPlan,
    sink: &SinkHandle,
    mut kill: impl FnMut(KillMoment),
) -> Result<KillReport, LoadError> {
    let mut options = plan.load.clone();
    options.end = LoadEnd::Count(plan.count);
    options.tolerant = true;
    let progress = LoadProgress::default();
    let mut kills: Vec<Instant> = Vec::new();
    let report = std::thread::scope(|scope| {
        let load = scope.spawn(|| load::run(&options, &progress));
        for (number, due) in (0..).zip(plan.due()) {
            while progress.acked() < due && !load.is_finished() {
                std::thread::sleep(POLL);
            }
            if load.is_finished() {
                break;
            }
            kill(KillMoment {
                number,
                acked: progress.acked(),
                random: plan.random(!number),
            });
            kills.push(Instant::now());
        }
        let died = || LoadError::Loop(std::io::Error::other("the load's thread died"));
        load.join().unwrap_or_else(|_| Err(died()))
    })?;
    let mut arrivals = Arrivals::await_all(sink, options.run, &report.acked, plan.stall);
    arrivals.await_quiet(sink, options.run, plan.quiet);
    let doubled = arrivals.doubled();
    let repeated: HashSet<MessageId> = report
        .acked
        .iter()
        .filter(|ack| ack.may_be_doubled)
        .map(|ack| ack.id)
        .collect();
    let has_cause = |id: &MessageId| {
        repeated.contains(id)
            || arrivals.by_id.get(id).is_some_and(|arrival| {
                // A kill takes effect some time before the caller returns, and the octets written by the dead process
                // arrive some time afterwards.
                kills.iter().any(|at| {
                    arrival.first <= *at + IN_BUFFERS
                        && at.saturating_duration_since(arrival.first) <= plan.doubt
                })
            })
    };
    Ok(KillReport {
        seed: plan.seed,
        kills: u32::try_from(kills.len()).unwrap_or(u32::MAX),
        acked: report.acked.len(),
        arrived: arrivals.by_id.len(),
        missing: arrivals.missing(&report.acked),
        doubled_without_cause: doubled
            .iter()
            .copied()
            .filter(|id| !has_cause(id))
            .collect(),
        doubled,
        elapsed: report.elapsed(),
        failures: report.failures,
        refused: report.refused,
        unresolved: report.unresolved,
    })
}

#[cfg(test)]
mod tests {
    use super::{KillPlan, run};
    use crate::load::{LoadEnd, LoadOptions};
    use crate::noop::NoopRelay;
    use crate::sink::RunningSink;
    use std::time::Duration;

    fn plan(target: std::net::SocketAddr) -> KillPlan {
        let load = LoadOptions::new(target, LoadEnd::Count(0));
        KillPlan {
            count: 3000,
            stall: Duration::from_millis(300),
            quiet: Duration::from_millis(100),
            ..KillPlan::new(load, 42)
        }
    }

    #[test]
    fn a_relay_that_answers_late_loses_nothing_when_killed() {
        let sink = RunningSink::faulty(&[]);
        let next_hop = sink.handle().address();
        let mut relay = Some(NoopRelay::start(next_hop).unwrap());
        let address = relay.as_ref().unwrap().address();
        let plan = plan(address);
        let report = run(&plan, sink.handle(), |_| {
            drop(relay.take());
            relay = Some(NoopRelay::start_at(address, next_hop).unwrap());
        })
        .unwrap();
        assert!(report.is_clean(&plan), "{}", report.line());
        assert!(report.failures.total() > 0, "{}", report.line());
    }

    #[test]
    fn what_never_arrives_is_reported_as_missing() {
        let (bottomless, watched) = (RunningSink::faulty(&[]), RunningSink::faulty(&[]));
        let plan = plan(bottomless.handle().address());
        let report = run(&plan, watched.handle(), |_| {}).unwrap();
        assert_eq!((report.acked, report.missing.len()), (3000, 3000));
        assert!(!report.is_clean(&plan));
    }

    #[test]
    fn a_lost_answer_excuses_a_double() {
        let sink = RunningSink::faulty(&["dot=lose*3"]);
        let plan = plan(sink.handle().address());
        let report = run(
            &KillPlan {
                kills: 0,
                ..plan.clone()
            },
            sink.handle(),
            |_| {},
        )
        .unwrap();
        assert_eq!(report.doubled.len(), 3, "{}", report.line());
        assert!(report.doubled_without_cause.is_empty(), "{}", report.line());
    }

    #[test]
    fn kills_depend_on_the_seed_only() {
        let plan = plan(([127, 0, 0, 1], 9).into());
        let due = plan.due();
        assert_eq!(due, plan.due());
        assert_eq!(due.len(), 20);
        assert!(due.iter().all(|at| (60..=2941).contains(at)), "{due:?}");
        assert_ne!(due, KillPlan { seed: 43, ..plan }.due());
    }
}
