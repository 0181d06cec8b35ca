//! Mail during a failure of a node: reply times of a whole system in health, with one of its two nodes stopped for
//! ten seconds, and with one node at half of its processor time, side by side; and reply times of a system with a
//! third node, which replaces the slow node.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::plan::{Plan, Setting};
use super::report::Report;
use crate::error::BenchError;
use crate::load::{self, LoadEnd, LoadOptions, LoadProgress};
use crate::peer::{Peer, there};
use crate::process::Process;
use crate::row::Bar;
use crate::sink::{RunningSink, SinkOptions};

/// Sessions that send mail all the time.
const SESSIONS: usize = 10;
/// Messages of a connection, below the limit of the gateway.
const MESSAGES_PER_CONNECTION: u32 = 900;
/// Time of sending before the failure, and after its end.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(4);
/// A slow node runs for so long and stands still for as long, in turns.
const SLICE: Duration = Duration::from_millis(10);
/// Limit of the slowest hundredth of replies, as a multiple of the time in health.
const P99_RATIO_MAX: f64 = 2.0;
/// How long the replicas may take to be whole again, or a slow one to be replaced.
const REBUILD_MAX: Duration = Duration::from_secs(60);

const WELL: &str = "all well";
const STOPPED: &str = "one node stopped";
const SLOW: &str = "one node at half speed";
const SPARE_WELL: &str = "three nodes, all well";
const REPLACED: &str = "three nodes, one at half speed";

const P99: &str = "mail of 10 sessions: reply p99";
const LONGEST: &str = "mail of 10 sessions: longest reply";
const RATE: &str = "mail of 10 sessions: acknowledged";
const FAILED: &str = "mail of 10 sessions: not acknowledged";
const REPLACEMENT: &str = "until a slow node is replaced";

/// Sends mail through a system whose node `b` is disturbed, each disturbance in turns.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<(), BenchError> {
    let (plan, vere) = (setting.plan, setting.vere);
    let sink = RunningSink::start(SinkOptions::default()).map_err(failed)?;
    let next_hop = sink.handle().address();
    let Some(peer) = there(Peer::vere(vere, next_hop, setting.base), &mut report.header)? else {
        return Ok(());
    };
    for _ in 0..plan.trouble_rounds {
        for trouble in [WELL, STOPPED, SLOW] {
            await_whole(vere, &peer)?;
            one(plan, &peer, trouble, report)?;
        }
    }
    drop(peer);
    with_a_spare(setting, next_hop, report)?;
    for (trouble, well) in [(STOPPED, WELL), (SLOW, WELL), (REPLACED, SPARE_WELL)] {
        report.beside(P99, trouble, well, Bar::RatioMax(P99_RATIO_MAX));
    }
    let title = "Mail while a node is in trouble: reply p99";
    report.plot(title, "ms", [("10 sessions".to_owned(), P99.to_owned())]);
    Ok(())
}

/// Measures a system with a third node. The figure with a slow node is the reply time from the moment when the third
/// node has replaced the slow node, while the slow node remains slow.
fn with_a_spare(
    setting: &Setting<'_>,
    next_hop: SocketAddr,
    report: &mut Report,
) -> Result<(), BenchError> {
    let (plan, vere) = (setting.plan, setting.vere);
    let started = Peer::vere_with_spare(vere, next_hop, setting.base);
    let Some(peer) = there(started, &mut report.header)? else {
        return Ok(());
    };
    await_whole(vere, &peer)?;
    let slow = member_to_slow(vere, &peer)?;
    let begun = Instant::now();
    disturbed(&peer, &slow, || await_replaced(vere, &peer, &slow, plan))?;
    report.add(REPLACEMENT, "s", REPLACED, begun.elapsed().as_secs_f64());
    for _ in 0..plan.trouble_rounds {
        one(plan, &peer, SPARE_WELL, report)?;
        disturbed(&peer, &slow, || one(plan, &peer, REPLACED, report))?;
    }
    Ok(())
}

/// Does something while a node gets half of the time.
fn disturbed<T>(
    peer: &Peer,
    node: &str,
    work: impl FnOnce() -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let process = process(peer, &[" role spool ", &format!(" --node {node} ")])?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let still = Still::new(&process);
                std::thread::sleep(SLICE);
                drop(still);
                std::thread::sleep(SLICE);
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// Sends mail until a node has left the group.
fn await_replaced(vere: &Path, peer: &Peer, slow: &str, plan: &Plan) -> Result<(), BenchError> {
    let until = Instant::now() + REBUILD_MAX;
    while states(vere, peer)?.contains(&(slow.to_owned(), "sync".to_owned()))
        || !is_whole(vere, peer)?
    {
        if Instant::now() > until {
            return Err(failed("the slow node is not replaced"));
        }
        load_for(peer, plan.trouble / 10)?;
    }
    Ok(())
}

/// The second of the full nodes: the first full node serves reads.
fn member_to_slow(vere: &Path, peer: &Peer) -> Result<String, BenchError> {
    let mut members = states(vere, peer)?.into_iter();
    let slow = members.rfind(|(_, sync)| sync == "sync");
    slow.map(|(node, _)| node)
        .ok_or_else(|| failed("no node holds anything"))
}

fn load_for(peer: &Peer, time: Duration) -> Result<load::LoadReport, BenchError> {
    let mut options = LoadOptions::new(peer.address(), LoadEnd::After(time));
    options.sessions = SESSIONS;
    options.messages_per_connection = Some(MESSAGES_PER_CONNECTION);
    load::run(&options, &LoadProgress::default()).map_err(failed)
}

/// A load with the failure in the middle.
fn one(
    plan: &Plan,
    peer: &Peer,
    trouble: &'static str,
    report: &mut Report,
) -> Result<(), BenchError> {
    let sent = std::thread::scope(|scope| {
        let load = scope.spawn(|| load_for(peer, BEFORE + plan.trouble + AFTER));
        std::thread::sleep(BEFORE);
        let disturbed = disturb(peer, trouble, plan.trouble);
        let sent = load.join().map_err(|_| failed("the load's thread died"))?;
        disturbed.and(sent)
    })?;
    let (replies, refused) = (&sent.reply_us, sent.failures.total());
    for (what, unit, value) in [
        (P99, "ms", replies.value_at_quantile(0.99) as f64 / 1e3),
        (LONGEST, "ms", replies.max() as f64 / 1e3),
        (RATE, "messages/s", sent.acked_per_second()),
        (FAILED, "messages", refused as f64),
    ] {
        report.add(what, unit, trouble, value);
    }
    Ok(())
}

/// A process that is stopped until the value is dropped.
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

/// Disturbs node `b` for a time.
fn disturb(peer: &Peer, trouble: &str, time: Duration) -> Result<(), BenchError> {
    let wait = || {
        std::thread::sleep(time);
        Ok(())
    };
    match trouble {
        STOPPED => {
            // A running supervisor would replace the stopped node.
            let supervisor = process(peer, &[" serve "])?;
            let _supervisor = Still::new(&supervisor);
            let node = process(peer, &[" role spool ", " --node b "])?;
            let _node = Still::new(&node);
            wait()
        }
        SLOW => disturbed(peer, "b", wait),
        _ => wait(),
    }
}

/// The process of a system with these words in its command line.
fn process(peer: &Peer, words: &[&str]) -> Result<Process, BenchError> {
    let processes = peer.processes().map_err(failed)?;
    let has = |process: &Process| words.iter().all(|word| process.command.contains(word));
    let found = processes.into_iter().find(has);
    found.ok_or_else(|| failed(format!("there is no process {words:?}")))
}

/// Waits until two replicas hold everything.
fn await_whole(vere: &Path, peer: &Peer) -> Result<(), BenchError> {
    let until = Instant::now() + REBUILD_MAX;
    while !is_whole(vere, peer)? {
        if Instant::now() > until {
            return Err(failed("the replicas are not whole again"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Whether two nodes are full, and no further node is about to be.
fn is_whole(vere: &Path, peer: &Peer) -> Result<bool, BenchError> {
    let states = states(vere, peer)?;
    let whole = states.iter().filter(|(_, sync)| sync == "sync").count();
    let rest = states
        .iter()
        .all(|(_, sync)| sync == "sync" || sync.starts_with("out"));
    Ok(whole == 2 && rest)
}

/// The nodes, and the state of each.
fn states(vere: &Path, peer: &Peer) -> Result<Vec<(String, String)>, BenchError> {
    let stat = Command::new(vere)
        .args(["spool", "stat", "--json", "-c"])
        .arg(peer.folder().join("vere.toml"))
        .output()
        .map_err(BenchError::io("ask for the replicas"))?;
    let stat: Value = serde_json::from_slice(&stat.stdout).unwrap_or_default();
    let replicas = stat["replicas"].as_array().map_or(&[][..], Vec::as_slice);
    let word = |replica: &Value, key: &str| replica[key].as_str().unwrap_or_default().to_owned();
    let state = |replica| (word(replica, "node"), word(replica, "sync"));
    Ok(replicas.iter().map(state).collect())
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::protocol(error.to_string())
}
