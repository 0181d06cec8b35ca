//! A load on the MTA: the queue is kept between two lengths, and counts of both ends are read twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::control::{Counts, PERIOD};
use super::plan::{Case, Plan};
use super::results::Results;
use super::system::{Child, System, check, kind};
use crate::error::BenchError;
use crate::process::Process;

/// Time without an arrival after which the rest of the queue is given up.
const STALL: Duration = Duration::from_secs(30);

/// The figure with bars.
pub(super) const FULL: &str = "full transfers";
/// The throughput of contents.
pub(super) const THROUGHPUT: &str = "throughput";

/// The name of a figure of a load.
pub(super) fn figure(case: &Case, what: &str) -> String {
    format!("{}: {what}", case.name())
}

/// Loads of one MTA, with its sinks.
#[derive(Debug)]
pub(super) struct Loads<'a> {
    pub(super) system: &'a System,
    pub(super) sinks: Vec<Child>,
    /// The column of the results.
    pub(super) column: &'static str,
}

/// Both ends at a moment.
#[derive(Debug)]
struct Moment {
    source: Counts,
    sinks: Vec<Counts>,
    /// Processor time by the kind of process.
    cpu: BTreeMap<String, Duration>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(system: &'a System, column: &'static str) -> Result<Self, BenchError> {
        let sinks = (0..system.sinks.len()).map(|number| system.sink(number));
        Ok(Self {
            system,
            sinks: sinks.collect::<Result<_, _>>()?,
            column,
        })
    }

    /// Loads the MTA, adds the figures, and waits until the queue is empty.
    pub(super) fn measure(
        &self,
        case: &Case,
        plan: &Plan,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        let before = self.taken();
        let mut source = source(self.system, case, None)?;
        let queue = case.queue();
        let run = |source: &mut Child, time: Duration| {
            let until = Instant::now() + time;
            while Instant::now() < until {
                check(self.system)?;
                self.keep(source, before, queue);
                std::thread::sleep(PERIOD);
            }
            Ok::<(), BenchError>(())
        };
        source.remote.set_going(true);
        run(&mut source, plan.warm)?;
        let first = self.moment(&source);
        run(&mut source, plan.time)?;
        let last = self.moment(&source);
        let memory = self.system.memory_mb();
        source.remote.set_going(false);
        self.tell(case, &first, &last, results);
        let name = figure(case, "memory of all processes");
        results.add(self.column, name, memory, "MB");
        self.drain(&source, before, case, results)
    }

    /// Lets the source pause above the most messages of a queue, and go on below the least.
    fn keep(&self, source: &mut Child, before: u64, (least, most): (u64, u64)) {
        let queued = (source.remote.counts().messages + before).saturating_sub(self.taken());
        if queued > most {
            source.remote.set_going(false);
        } else if queued < least {
            source.remote.set_going(true);
        }
    }

    /// Messages that sinks have confirmed.
    pub(super) fn taken(&self) -> u64 {
        let counts = self.sinks.iter().map(|sink| sink.remote.counts());
        counts.map(|counts| counts.messages).sum()
    }

    fn moment(&self, source: &Child) -> Moment {
        let mut cpu = by_kind(&self.system.processes());
        cpu.insert("sources".to_owned(), source.cpu());
        cpu.insert("sinks".to_owned(), self.sinks.iter().map(Child::cpu).sum());
        Moment {
            source: source.remote.counts(),
            sinks: self.sinks.iter().map(|sink| sink.remote.counts()).collect(),
            cpu,
        }
    }

    fn tell(&self, case: &Case, first: &Moment, last: &Moment, results: &mut Results) {
        let pairs = || last.sinks.iter().zip(&first.sinks);
        let out: f64 = pairs().map(|(last, first)| last.rate_since(*first)).sum();
        let speed = pairs().map(|(last, first)| last.megabytes_since(*first));
        let speed: f64 = speed.sum();
        let into = last.source.rate_since(first.source);
        let mut add = |what: &str, value, unit| {
            results.add(self.column, figure(case, what), value, unit);
        };
        // The smaller rate counts: messages in the queue were not transferred in full, and drained messages may have arrived before the measurement.
        add(FULL, out.min(into), "messages/s");
        add("in", into, "messages/s");
        add("out", out, "messages/s");
        add(THROUGHPUT, speed, "MB/s");
        let messages = pairs().map(|(last, first)| last.messages.saturating_sub(first.messages));
        let messages = messages.sum::<u64>().max(1) as f64;
        for (kind, cpu) in &last.cpu {
            let before = first.cpu.get(kind).copied().unwrap_or_default();
            let each = cpu.saturating_sub(before).as_secs_f64() * 1e6 / messages;
            add(&format!("CPU of {kind}"), each, "us/message");
        }
    }

    /// Waits until everything has arrived.
    fn drain(
        &self,
        source: &Child,
        before: u64,
        case: &Case,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        // Transfers on their way are confirmed.
        let (mut seen, mut progress) = ((0, 0), Instant::now());
        loop {
            check(self.system)?;
            let now = (source.remote.counts().messages, self.taken());
            let left = (now.0 + before).saturating_sub(now.1);
            if now != seen {
                (seen, progress) = (now, Instant::now());
            } else if left == 0 && progress.elapsed() > 10 * PERIOD {
                break;
            } else if progress.elapsed() > STALL {
                let name = case.name();
                results.trouble(format!(
                    "{}: {name}: {left} messages are missing",
                    self.column
                ));
                break;
            }
            std::thread::sleep(PERIOD);
        }
        let troubles = source.remote.counts().troubles;
        if troubles > 0 {
            let name = case.name();
            results.trouble(format!(
                "{}: {name}: {troubles} broken transfers",
                self.column
            ));
        }
        Ok(())
    }
}

/// Starts the sources of a load, which pause. `limit`: the first number, and so many messages.
pub(super) fn source(
    system: &System,
    case: &Case,
    limit: Option<(u64, u64)>,
) -> Result<Child, BenchError> {
    let mut arguments = vec![
        format!("--to={}", system.address),
        format!("--sources={}", case.sources),
        format!("--associations={}", case.associations),
        format!("--sinks={}", case.sinks),
        format!("--size={}", case.size),
    ];
    if let Some((first, count)) = limit {
        arguments.extend([format!("--first={first}"), format!("--count={count}")]);
    }
    Child::start("x400-source", &arguments, system.folder())
}

/// Processor time by the kind of process.
fn by_kind(processes: &[Process]) -> BTreeMap<String, Duration> {
    let mut all = BTreeMap::<String, Duration>::new();
    for process in processes {
        // A process may have ended since the listing.
        if let Ok(cpu) = process.cpu() {
            *all.entry(kind(&process.command)).or_default() += cpu;
        }
    }
    all
}
