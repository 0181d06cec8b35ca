//! The memory of connections at our store, and the delay until all connections hear of a message.

use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::imap::{Imap, ImapError};
use super::report::Figure;
use super::systems::System;
use super::tasks::{figure, millis, restart};
use super::usage;

/// Connections that are not counted: the first connections make a system allocate memory once.
const WARM: usize = 10;

/// Descriptors of the benchmark's process beside the connections.
const RESERVE: u64 = 200;

/// Memory without change for this long is at rest: the system looks for background work every five seconds.
const REST: Duration = Duration::from_secs(6);
/// Longest wait for memory at rest.
const REST_PATIENCE: Duration = Duration::from_secs(60);

/// The possible number of connections, at most `wanted`: each connection takes a descriptor of the benchmark.
pub(crate) fn possible(wanted: usize) -> usize {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, hard)| {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        Ok(hard)
    });
    let room = raised.unwrap_or(1_024).saturating_sub(RESERVE);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Memory of the system for a connection without login, and for an idle connection.
pub(crate) fn memory(system: &mut System, count: usize) -> Result<Vec<Figure>, ImapError> {
    let connect = |system: &System| Imap::connect_lean(system.imap);
    let (each, fresh) = hold(system, count, connect)?;
    drop(fresh);
    let mut figures = vec![figure(system, "memory before login", each)];
    let idle = |system: &System| {
        let mut imap = system.login_lean()?;
        imap.ok("SELECT INBOX")?;
        imap.idle()?;
        Ok(imap)
    };
    let (each, mut idlers) = hold(system, count, idle)?;
    figures.push(figure(system, "memory of IDLE", each));
    // All connections hear of a message.
    let mut writer = system.login()?;
    let started = Instant::now();
    writer.append("INBOX", b"Subject: to all\r\n\r\nhello\r\n")?;
    for imap in &mut idlers {
        imap.wait_exists()?;
    }
    figures.push(figure(system, "all IDLE told", millis(started.elapsed())));
    Ok(figures)
}

/// Holds connections to a system, and returns the KiB of memory of each. The system starts afresh: memory freed
/// before would be used first, and would hide the cost.
fn hold(
    system: &mut System,
    count: usize,
    open: impl Fn(&System) -> Result<Imap, ImapError>,
) -> Result<(f64, Vec<Imap>), ImapError> {
    restart(system)?;
    let system = &*system;
    let open = |_| open(system);
    let mut held: Vec<Imap> = (0..WARM).map(open).collect::<Result<_, _>>()?;
    let resident = || usage::resident(&system.processes()) as f64;
    // The work of the system after a start belongs to no connection.
    let before = usage::at_rest(REST, REST_PATIENCE, resident, |before, now| {
        (now - before).abs() < 1.0
    });
    held.reserve_exact(count);
    for number in 0..count {
        held.push(open(number)?);
    }
    let each = (resident() - before) / count.max(1) as f64;
    Ok((each.max(0.0), held))
}
