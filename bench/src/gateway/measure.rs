//! The measurement of a load on a system.

use std::net::SocketAddr;
use std::time::Duration;

use super::case::Case;
use crate::arrivals::Arrivals;
use crate::error::BenchError;
use crate::load::{self, Ack, LoadEnd, LoadOptions, LoadProgress};
use crate::output::note;
use crate::peer::{OURS, Peer};
use crate::process::CpuAccount;
use crate::row::{Row, median};
use crate::sink::SinkHandle;

/// Time without an arrival after which missing messages are given up.
const STALL: Duration = Duration::from_secs(10);

/// Time of a system after its last delivery to clean up, on its account.
const SETTLE: Duration = Duration::from_millis(150);

/// Something to send mail to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) account: CpuAccount,
    /// Time of sending in a round.
    pub(crate) send: Duration,
    /// Whether the system is the limit of the machine, no relay to compare with.
    pub(crate) is_limit: bool,
}

impl Target {
    /// A system of the comparison.
    pub(crate) fn of(name: &str, peer: &Peer, send: Duration) -> Self {
        Self {
            name: name.to_owned(),
            address: peer.address(),
            account: peer.account(),
            send,
            is_limit: false,
        }
    }
}

/// Messages over a connection to any system. Our system announces the number as its maximum (MAILMAX of LIMITS, RFC
/// 9422).
const MESSAGES_PER_CONNECTION: u32 = 1000;

/// The figures of a load.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) target: String,
    /// The load, by its label.
    pub(crate) case: String,
    pub(crate) sessions: usize,
    pub(crate) acked: usize,
    pub(crate) delivered_per_second: f64,
    pub(crate) cpu_us_per_message: f64,
    pub(crate) reply_p50_us: f64,
    pub(crate) reply_p99_us: f64,
    /// Time from the acknowledgement to the sink, not exceeded by 99 of 100 messages.
    pub(crate) arrival_p99_ms: f64,
    /// Failed connections, refusals, time-outs.
    pub(crate) failures: u64,
    /// Acknowledged messages without an arrival at the end.
    pub(crate) missing: usize,
    /// Arrived more than once.
    pub(crate) doubled: usize,
}

impl Measurement {
    /// The measurement in a line for a waiting person.
    pub(crate) fn line(&self) -> String {
        let trouble = if self.failures + (self.missing + self.doubled) as u64 > 0 {
            format!(
                ", {} failed, {} missing, {} doubled",
                self.failures, self.missing, self.doubled
            )
        } else {
            String::new()
        };
        format!(
            "{:<26} {:<24} {:>6.0} delivered/s, {:>5.0} us CPU each, reply p50 {:.0} us \
             p99 {:.0} us, arrival p99 {:.0} ms{trouble}",
            self.target,
            self.case,
            self.delivered_per_second,
            self.cpu_us_per_message,
            self.reply_p50_us,
            self.reply_p99_us,
            self.arrival_p99_ms,
        )
    }
}

/// A figure of every system and load.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) of: fn(&Measurement) -> f64,
}

impl Metric {
    const fn new(name: &'static str, unit: &'static str, of: fn(&Measurement) -> f64) -> Self {
        Self { name, unit, of }
    }
}

pub(crate) const METRICS: &[Metric] = &[
    Metric::new("delivered", "messages/s", |run| run.delivered_per_second),
    Metric::new("CPU", "us/message", |run| run.cpu_us_per_message),
    Metric::new("reply p50", "us", |run| run.reply_p50_us),
    Metric::new("reply p99", "us", |run| run.reply_p99_us),
    Metric::new("arrival p99", "ms", |run| run.arrival_p99_ms),
];

/// The metric of a name.
pub(crate) fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// Lost messages: a figure of comparisons of our systems with each other.
pub(super) const MISSING: Metric = Metric::new("missing", "messages", |run| run.missing as f64);

impl Metric {
    /// The row of the medians of one of our systems, beside the medians of another.
    pub(super) fn row(&self, runs: &[Measurement], ours: &str, peer: &str, load: &str) -> Row {
        let of = |name: &str| {
            let runs = runs.iter().filter(|run| run.target == name);
            median(runs.map(self.of)).unwrap_or(0.0)
        };
        let name = format!("{OURS}: {}, {load}", self.name);
        Row::new(name, of(ours), self.unit).beside((peer.to_owned(), of(peer)))
    }
}

/// Loads systems in turns, each for the time `send` in a round.
pub(super) fn take_turns(
    systems: &[(&str, &Peer)],
    case: &Case,
    rounds: usize,
    send: Duration,
    sink: &SinkHandle,
) -> Result<Vec<Measurement>, BenchError> {
    let mut runs = Vec::new();
    for _ in 0..rounds {
        for (name, peer) in systems {
            let run = measure(&Target::of(name, peer, send), sink, case)?;
            note(&run.line());
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Sends the load to `target` and waits until every acknowledged message has arrived.
pub(crate) fn measure(
    target: &Target,
    sink: &SinkHandle,
    case: &Case,
) -> Result<Measurement, BenchError> {
    let cpu = || {
        let failed = BenchError::of(format!("CPU time of {}", target.name));
        target.account.total().map_err(failed)
    };
    sink.take_deliveries();
    let cpu_before = cpu()?;
    let mut options = LoadOptions::new(target.address, LoadEnd::After(target.send));
    options.sessions = case.sessions;
    options.messages = case.messages.clone();
    options.rate = case.rate;
    options.destinations = case.domains.clone();
    options.messages_per_connection = Some(MESSAGES_PER_CONNECTION);
    let report = load::run(&options, &LoadProgress::default())?;
    let arrivals = Arrivals::await_all(sink, options.run, &report.acked, STALL);
    std::thread::sleep(SETTLE);
    let cpu_taken = cpu()?.saturating_sub(cpu_before);
    let seconds = arrivals
        .last
        .map_or(0.0, |last| (last - report.began).as_secs_f64());
    let delivered = arrivals.by_id.len() as f64;
    Ok(Measurement {
        target: target.name.clone(),
        case: case.label.clone(),
        sessions: case.sessions,
        acked: report.acked.len(),
        delivered_per_second: if seconds > 0.0 {
            delivered / seconds
        } else {
            0.0
        },
        cpu_us_per_message: cpu_taken.as_secs_f64() * 1e6 / delivered.max(1.0),
        reply_p50_us: report.reply_us.value_at_quantile(0.50) as f64,
        reply_p99_us: report.reply_us.value_at_quantile(0.99) as f64,
        arrival_p99_ms: arrival_p99_ms(&arrivals, &report.acked),
        failures: report.failures.total(),
        missing: arrivals.missing(&report.acked).len(),
        doubled: arrivals.doubled().len(),
    })
}

/// Milliseconds from the acknowledgement to the sink, not exceeded by 99 of 100 messages.
fn arrival_p99_ms(arrivals: &Arrivals, acked: &[Ack]) -> f64 {
    let mut delays: Vec<Duration> = acked
        .iter()
        .filter_map(|ack| {
            Some(
                arrivals
                    .by_id
                    .get(&ack.id)?
                    .first
                    .saturating_duration_since(ack.at),
            )
        })
        .collect();
    delays.sort_unstable();
    let at = (delays.len() * 99).div_ceil(100).saturating_sub(1);
    delays
        .get(at)
        .map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
}
