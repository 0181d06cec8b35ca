//! Mail while a node is in trouble: reply times of a whole system with all well, with one of its two
//! nodes stopped for ten seconds, and with one that only gets half of the time, side by side.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::report::{Limit, Plot, Report};
use super::{Plan, Setting, SpoolBenchError, there};
use crate::load::{self, LoadEnd, LoadOptions, LoadProgress};
use crate::peer::Peer;
use crate::process::Process;
use crate::sink::{RunningSink, SinkOptions};

/// Sessions that send mail all the time.
const SESSIONS: usize = 10;
/// Below what the gateway takes over one connection.
const MESSAGES_PER_CONNECTION: u32 = 900;
/// Mail is sent for so long before the trouble, and after it.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(4);
/// A slow node runs for so long and stands still for as long, in turns.
const SLICE: Duration = Duration::from_millis(10);
/// What the slowest hundredth of replies may take, compared with all well.
const P99_RATIO_MAX: f64 = 2.0;
/// How long the replicas may take to be whole again.
const REBUILD_MAX: Duration = Duration::from_secs(60);

const WELL: &str = "all well";
const STOPPED: &str = "one node stopped";
const SLOW: &str = "one node at half speed";

const P99: &str = "mail of 10 sessions: reply p99";
const LONGEST: &str = "mail of 10 sessions: longest reply";
const RATE: &str = "mail of 10 sessions: acknowledged";
const FAILED: &str = "mail of 10 sessions: not acknowledged";

/// Sends mail through a system whose node `b` is disturbed, each way in turns.
///
/// # Errors
///
/// A part of the benchmark fails, or the system does not recover.
pub(super) fn measure(
    plan: &Plan,
    setting: &Setting<'_>,
    report: &mut Report,
) -> Result<(), SpoolBenchError> {
    let Some(vere) = setting.vere else {
        return Ok(());
    };
    let sink = RunningSink::start(SinkOptions::default()).map_err(failed)?;
    let next_hop = sink.handle().address();
    let Some(peer) = there(Peer::vere(vere, next_hop, setting.base), report)? else {
        return Ok(());
    };
    for _ in 0..plan.trouble_rounds {
        for trouble in [WELL, STOPPED, SLOW] {
            await_whole(vere, &peer)?;
            one(plan, &peer, trouble, report)?;
        }
    }
    for trouble in [STOPPED, SLOW] {
        report.bar(P99, trouble, Limit::RatioMax(WELL, P99_RATIO_MAX));
    }
    report.plots.push(Plot {
        title: "Mail while a node is in trouble: reply p99".to_owned(),
        unit: "ms",
        points: vec![("10 sessions".to_owned(), P99.to_owned())],
    });
    Ok(())
}

/// One load, with the trouble in the middle of it.
fn one(
    plan: &Plan,
    peer: &Peer,
    trouble: &'static str,
    report: &mut Report,
) -> Result<(), SpoolBenchError> {
    let end = LoadEnd::After(BEFORE + plan.trouble + AFTER);
    let mut options = LoadOptions::new(peer.address(), end);
    options.sessions = SESSIONS;
    options.messages_per_connection = Some(MESSAGES_PER_CONNECTION);
    let sent = std::thread::scope(|scope| {
        let load = scope.spawn(|| load::run(&options, &LoadProgress::default()));
        std::thread::sleep(BEFORE);
        let disturbed = disturb(peer, trouble, plan.trouble);
        let sent = load.join().map_err(|_| failed("the load's thread died"))?;
        disturbed.and(sent.map_err(failed))
    })?;
    let ms = |us: u64| us as f64 / 1e3;
    report.add(
        P99,
        "ms",
        trouble,
        ms(sent.reply_us.value_at_quantile(0.99)),
    );
    report.add(LONGEST, "ms", trouble, ms(sent.reply_us.max()));
    report.add(RATE, "messages/s", trouble, sent.acked_per_second());
    let refused = sent.failures.total() as f64;
    report.add(FAILED, "messages", trouble, refused);
    Ok(())
}

/// A process that stands still until this is dropped.
struct Still<'a>(&'a Process);

impl<'a> Still<'a> {
    fn new(process: &'a Process) -> Self {
        process.signal(Signal::SIGSTOP);
        Self(process)
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGCONT);
    }
}

/// Does to node `b` what is measured, for so long.
fn disturb(peer: &Peer, trouble: &str, time: Duration) -> Result<(), SpoolBenchError> {
    let processes = peer.processes().map_err(failed)?;
    let named = |what: &[&str]| {
        let has = |process: &&Process| what.iter().all(|word| process.command.contains(word));
        let found = processes.iter().find(has);
        found.ok_or_else(|| failed(format!("there is no process {what:?}")))
    };
    let node = named(&[" role spool ", " --node b "])?;
    match trouble {
        STOPPED => {
            // It would be replaced.
            let _supervisor = Still::new(named(&[" serve "])?);
            let _node = Still::new(node);
            std::thread::sleep(time);
        }
        SLOW => {
            let until = Instant::now() + time;
            while Instant::now() < until {
                let still = Still::new(node);
                std::thread::sleep(SLICE);
                drop(still);
                std::thread::sleep(SLICE);
            }
        }
        _ => std::thread::sleep(time),
    }
    Ok(())
}

/// Waits until both replicas hold everything.
fn await_whole(vere: &Path, peer: &Peer) -> Result<(), SpoolBenchError> {
    let until = Instant::now() + REBUILD_MAX;
    while !is_whole(vere, peer)? {
        if Instant::now() > until {
            return Err(failed("the replicas are not whole again"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn is_whole(vere: &Path, peer: &Peer) -> Result<bool, SpoolBenchError> {
    let stat = Command::new(vere)
        .args(["spool", "stat", "--json", "-c"])
        .arg(peer.folder().join("vere.toml"))
        .output()
        .map_err(SpoolBenchError::io("ask for the replicas"))?;
    let stat: Value = serde_json::from_slice(&stat.stdout).unwrap_or_default();
    let replicas = stat["replicas"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(replicas.len() == 2 && replicas.iter().all(|replica| replica["sync"] == "sync"))
}

fn failed(error: impl std::fmt::Display) -> SpoolBenchError {
    SpoolBenchError::protocol(error.to_string())
}
