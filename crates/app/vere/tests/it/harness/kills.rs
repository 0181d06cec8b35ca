//! Mail under load of a few senders while processes are killed, with the queue ids of what was acknowledged.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;

use super::{Session, System, say, wait_until};

/// Senders at once.
const SENDERS: u32 = 4;
/// How long a sender waits for a reply.
const REPLY_PATIENCE: Duration = Duration::from_secs(60);
/// Between a failure and the next try: a process may be away for a moment.
const AGAIN: Duration = Duration::from_millis(20);

/// Sends until so many messages are acknowledged, and meanwhile kills so many times the gateway, a node or
/// both. Gives the queue ids of those that were acknowledged.
pub(crate) fn acked_under_kills(
    system: &System,
    (count, kills): (u32, u32),
    from: &str,
    to: &[&str],
) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut random = now.expect("after 1970").as_secs();
    say(&format!("seed {random}"));
    let (done, acked) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < count {
                    match try_submit(system.smtp, from, to) {
                        Some(id) => {
                            acked.lock().expect("no panic").push(id);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        None => std::thread::sleep(AGAIN),
                    }
                }
            });
        }
        for kill in 1..=kills {
            wait_until("further messages", || {
                done.load(Ordering::Relaxed) >= kill * count / (kills + 1)
            });
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let role = ["gateway", "spool a", "spool b", "spool"][(random >> 33) as usize % 4];
            wait_until("a process to kill", || {
                system.signal_role(role, Signal::SIGKILL) > 0
            });
        }
    });
    acked.into_inner().expect("no panic")
}

/// Sends a message; returns the queue id if acknowledged.
fn try_submit(address: SocketAddr, from: &str, to: &[&str]) -> Option<String> {
    let mut session = Session::try_connect(address).ok()?;
    session.set_patience(REPLY_PATIENCE);
    let mut say = |line: &str, code: &str| {
        session.try_send(format!("{line}\r\n").as_bytes()).ok()?;
        let reply = session.try_reply().ok()?;
        reply.starts_with(code).then_some(reply)
    };
    say("EHLO client.example.net", "250")?;
    say(&format!("MAIL FROM:<{from}>"), "250")?;
    for to in to {
        say(&format!("RCPT TO:<{to}>"), "250")?;
    }
    say("DATA", "354")?;
    let reply = say("Subject: load\r\n\r\nbody\r\n.", "250")?;
    reply.split_whitespace().last().map(str::to_owned)
}
