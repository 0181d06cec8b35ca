//! What connections take of our memory, and how soon all of them hear of a message.

use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::imap::{Imap, ImapError};
use super::report::Figure;
use super::systems::System;
use super::tasks::{figure, millis, restart};
use super::usage;
use crate::process::guard;

/// Connections whose memory is nobody's: what the first ones make a system allocate once.
const WARM: usize = 10;

/// Descriptors of this process that are no connections.
const RESERVE: u64 = 200;

/// Memory that does not change for so long is all that the system takes by itself: it looks every five
/// seconds what there is to do.
const REST: Duration = Duration::from_secs(6);
/// How long that is waited for.
const REST_PATIENCE: Duration = Duration::from_secs(60);

/// How many connections there can be of those that are wanted: each takes a descriptor here.
pub(crate) fn possible(wanted: usize) -> usize {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, hard)| {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
        Ok(hard)
    });
    let room = raised.unwrap_or(1_024).saturating_sub(RESERVE);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Memory that the system takes for a connection that has not logged in, and for one that idles.
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
    // All of them are told of a message.
    let mut writer = system.login()?;
    let started = Instant::now();
    writer.append("INBOX", b"Subject: to all\r\n\r\nhello\r\n")?;
    for imap in &mut idlers {
        imap.wait_exists()?;
    }
    figures.push(figure(system, "all IDLE told", millis(started.elapsed())));
    Ok(figures)
}

/// Holds connections to a system, and gives how many KiB it takes for each. It is started anew: what it
/// let go of before would be used first, and not be seen.
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
    let before = at_rest(resident);
    held.reserve_exact(count);
    for number in 0..count {
        held.push(open(number)?);
    }
    let each = (resident() - before) / count.max(1) as f64;
    Ok((each.max(0.0), held))
}

/// Memory once it stands still: what the system does by itself after a start is no connection's.
fn at_rest(resident: impl Fn() -> f64) -> f64 {
    let deadline = Instant::now() + REST_PATIENCE;
    let mut before = resident();
    loop {
        std::thread::sleep(REST);
        let now = resident();
        let given_up = Instant::now() > deadline || guard::is_stopped();
        if (now - before).abs() < 1.0 || given_up {
            return now;
        }
        before = now;
    }
}
