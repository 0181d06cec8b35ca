//! What connections take of our memory.

use std::time::{Duration, Instant};

use super::imap::{Imap, ImapError};
use super::report::Figure;
use super::systems::System;
use super::tasks::{figure, millis, restart};
use super::usage;

/// Memory that does not change for so long is all that the system takes by itself: it looks every five
/// seconds what there is to do.
const REST: Duration = Duration::from_secs(6);
/// How long that is waited for.
const REST_PATIENCE: Duration = Duration::from_secs(60);

/// Memory once it stands still: what the system does by itself after a start is no connection's.
fn at_rest(resident: impl Fn() -> f64) -> f64 {
    let deadline = Instant::now() + REST_PATIENCE;
    let mut before = resident();
    loop {
        std::thread::sleep(REST);
        let now = resident();
        if (now - before).abs() < 1.0 || Instant::now() > deadline {
            return now;
        }
        before = now;
    }
}

/// Memory that the system takes for a connection that has not logged in, and for one that idles. It is
/// started anew: what it let go of before would be used first, and not be seen.
pub(crate) fn memory(system: &mut System, count: usize) -> Result<Vec<Figure>, ImapError> {
    restart(system)?;
    let system = &*system;
    let resident = || usage::resident(&system.processes()) as f64;
    let mut figures = Vec::new();
    // What the first connections make it allocate once is not theirs.
    let warm: Vec<Imap> = (0..10).map(|_| system.login()).collect::<Result<_, _>>()?;
    let before = at_rest(resident);
    let fresh: Vec<Imap> = (0..count)
        .map(|_| Imap::connect_lean(system.imap))
        .collect::<Result<_, _>>()?;
    let each = (resident() - before) / count as f64;
    figures.push(figure(system, "memory before login", each.max(0.0)));
    drop((fresh, warm));
    let before = at_rest(resident);
    let mut idlers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut imap = system.login_lean()?;
        imap.ok("SELECT INBOX")?;
        imap.idle()?;
        idlers.push(imap);
    }
    let each = (resident() - before) / count as f64;
    figures.push(figure(system, "memory of IDLE", each.max(0.0)));
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
