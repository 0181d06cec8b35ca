//! Sends mail through a system while its processes are killed, and counts what that cost.
//!
//! The load is tolerant: each message is sent until it is acknowledged. Kills come at random shares
//! of the acknowledgements, so that all of them fall into the load however fast it runs; the seed
//! decides which shares. Afterwards every acknowledged message must be at the sink, and each one
//! that came twice must have a cause that the promise of at-least-once delivery allows:
//!
//! - its sender lost a reply, or was refused temporarily after the final dot, and sent it again;
//! - or a process was killed within [`KillPlan::doubt`] after its first arrival, so that the
//!   next hop's reply or the record of it was lost; or just before, with the message still in the
//!   kernel's buffers.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::arrivals::Arrivals;
use crate::ids::MessageId;
use crate::load::{self, Failures, LoadEnd, LoadError, LoadOptions, LoadProgress, scatter};
use crate::sink::SinkHandle;

/// How often the load's progress is looked at.
const POLL: Duration = Duration::from_millis(1);

/// How long what a process wrote before it was killed may lie in the kernel's buffers until a busy
/// sink reads it.
const IN_BUFFERS: Duration = Duration::from_millis(500);

/// A load and the kills during it.
#[derive(Debug, Clone)]
pub struct KillPlan {
    /// The load; its end is taken from `count`, and it is made tolerant.
    pub load: LoadOptions,
    /// Messages to get acknowledged.
    pub count: u32,
    /// Kills, spread over the load.
    pub kills: u32,
    /// Decides when, and what [`KillMoment::random`] says.
    pub seed: u64,
    /// A double whose first arrival was at most this long before a kill is put down to it.
    pub doubt: Duration,
    /// Missing messages are given up when nothing arrives for so long. It must exceed every pause
    /// of the system after a failure: Postfix took some ten minutes to deliver what it had deferred
    /// when its processes were killed, since two of its intervals of 300 s add up.
    pub stall: Duration,
    /// Doubles are waited for until nothing arrives for so long.
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
    /// Which kill, from 0.
    pub number: u32,
    /// Messages acknowledged so far.
    pub acked: u64,
    /// A number drawn for this kill, to choose the victim by.
    pub random: u64,
}

/// What the kills cost.
#[derive(Debug)]
pub struct KillReport {
    /// The seed, to run the same again.
    pub seed: u64,
    /// Kills carried out.
    pub kills: u32,
    /// Messages acknowledged.
    pub acked: usize,
    /// Different messages at the sink.
    pub arrived: usize,
    /// Acknowledged and not at the sink when nothing had come for [`KillPlan::stall`]: must be
    /// empty. It means lost only where the system has nothing left in its queue and no retry of it
    /// is longer than that; ask its queue before saying so.
    pub missing: Vec<MessageId>,
    /// At the sink more than once.
    pub doubled: Vec<MessageId>,
    /// Those of `doubled` without a cause that the promise allows: must be empty.
    pub doubled_without_cause: Vec<MessageId>,
    /// Refused for good, with the code: nothing was wrong with them, so must be empty.
    pub refused: Vec<(MessageId, u16)>,
    /// Not acknowledged when the time was over: must be empty.
    pub unresolved: Vec<MessageId>,
    /// What the sender saw go wrong.
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
                // A kill takes effect some time before the caller says it is done with it, and what
                // the dead process had written arrives some time after.
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
    use crate::sink::{RunningSink, SinkOptions};
    use std::time::Duration;

    fn sink(faults: &[&str]) -> RunningSink {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        RunningSink::start(SinkOptions {
            faults,
            remember: true,
            ..SinkOptions::default()
        })
        .unwrap()
    }

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
        let sink = sink(&[]);
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
        let (bottomless, watched) = (sink(&[]), sink(&[]));
        let plan = plan(bottomless.handle().address());
        let report = run(&plan, watched.handle(), |_| {}).unwrap();
        assert_eq!((report.acked, report.missing.len()), (3000, 3000));
        assert!(!report.is_clean(&plan));
    }

    #[test]
    fn a_lost_answer_excuses_a_double() {
        let sink = sink(&["dot=lose*3"]);
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
