//! The cost of durability: the node with its synced log beside a bare group-commit writer, and the time until a
//! killed node accepts mail again.

use std::time::{Duration, Instant};

use super::drive::{Until, drive};
use super::plan::{Setting, body, kb};
use super::report::Report;
use super::systems::{NodeMode, Server, Target, VERE, VERE_TWO, VERE_TWO_ONE_LOGS, WRITER};
use super::vere_wire::Session;
use super::writer;
use crate::error::BenchError;
use crate::peer::{self, there};
use crate::row::Bar;

/// Octets in flight: the limit of octets in a sync.
const WINDOW: usize = 1 << 20;

/// Octets of bodies.
const SIZES: [usize; 2] = [1_000, 10_000];

/// Memory of the nodes.
const MEMORY_MAX: u64 = 4 << 30;

/// A killed node must accept mail again within this number of seconds.
const RESTART_MAX: f64 = 10.0;

/// Longest time of a node's restart.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures both.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<(), BenchError> {
    let start = || Server::vere(setting.vere, setting.base, NodeMode::Synced, MEMORY_MAX);
    let Some(mut node) = there(start(), &mut report.header)? else {
        return Ok(());
    };
    if let Some(second) = there(start(), &mut report.header)? {
        synced(setting, [&node, &second], report)?;
    }
    let kill = Kill {
        messages: setting.plan.killed,
        size: setting.plan.killed_size,
        what: "",
    };
    restart(&kill, &mut node, report)
}

fn synced(
    setting: &Setting<'_>,
    nodes: [&Server; 2],
    report: &mut Report,
) -> Result<(), BenchError> {
    let failed = BenchError::io;
    let folder = peer::folder(setting.base, "vere-bench-writer-");
    let folder = folder.map_err(failed("make a folder"))?;
    let writer = writer::start(folder.path()).map_err(failed("start the writer"))?;
    let both = nodes.map(|node| node.address);
    let targets = [
        Target::new(WRITER, writer),
        Target::new(VERE, both[0]),
        Target::replicas(VERE_TWO_ONE_LOGS, &both),
        Target::replicas(VERE_TWO, &both),
    ];
    let name = |size: usize| format!("synced, store and delete, {}, 1 MiB in flight", kb(size));
    let until = Until::After {
        warm: setting.plan.warm * 2,
        time: setting.plan.time * 5,
    };
    for _ in 0..setting.plan.rounds {
        for size in SIZES {
            for target in &targets {
                let mut lanes = target.lanes(1, &body(size), WINDOW)?;
                let rate = drive(&mut lanes, WINDOW, until)?.rate();
                report.add(&name(size), "messages/s", target.name, rate);
            }
        }
    }
    for size in SIZES {
        for system in [VERE, VERE_TWO_ONE_LOGS, VERE_TWO] {
            report.beside(&name(size), system, WRITER, Bar::RatioMin(0.7));
        }
    }
    Ok(())
}

/// A queue of a killed node.
pub(super) struct Kill {
    pub(super) messages: u64,
    /// Octets of bodies.
    pub(super) size: usize,
    /// The peculiarity of the queue.
    pub(super) what: &'static str,
}

/// Fills a queue of a synced node, kills the node, and measures until it takes mail again.
///
/// # Errors
///
/// The node does not come back, or no longer holds the queue.
pub(super) fn restart(
    kill: &Kill,
    node: &mut Server,
    report: &mut Report,
) -> Result<(), BenchError> {
    const GROUP: &str = "killed";
    let session = Session::open(node.address, GROUP)?;
    let body = body(kill.size);
    let mut lanes = [session.filling(&body)?];
    drive(&mut lanes, WINDOW, Until::Units(kill.messages))?;
    drop(lanes);
    let begun = Instant::now();
    node.kill_and_start()?;
    let mut session = loop {
        // The node may accept a connection before its queues are restored.
        match Session::open(node.address, GROUP) {
            Ok(session) => break session,
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // The open group has acknowledged a change: the node accepts mail.
    let seconds = begun.elapsed().as_secs_f64();
    let name = format!(
        "kill -9 with {} x {}{} until it takes mail",
        kill.messages,
        kb(kill.size),
        kill.what
    );
    report.add(&name, "s", VERE, seconds);
    report.bar(&name, VERE, Bar::ValueMax(RESTART_MAX));
    session.check(kill.messages, &body)
}
