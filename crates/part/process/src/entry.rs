//! What a role's process does at its start and says while it runs.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use sd_notify::NotifyState;

/// Environment variable with the process id of the supervisor that started this role.
pub const SUPERVISOR_PID: &str = "VERE_SUPERVISOR_PID";

/// Ties the calling process to the life of its supervisor. Call it first in a role, before threads.
///
/// The kernel kills the role when the supervisor dies, however that happens; a supervisor already
/// dead at the call is noticed too. Without a supervisor (the role was started by hand) nothing
/// happens.
///
/// # Errors
///
/// The exit code to leave with when the supervisor is already gone or the kernel refuses.
pub fn child_setup() -> Result<(), ExitCode> {
    let Ok(supervisor) = std::env::var(SUPERVISOR_PID) else {
        return Ok(());
    };
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|_| ExitCode::FAILURE)?;
    // The supervisor may have died between fork and the call above: then the new parent shows.
    let parent: Option<i32> = supervisor.parse().ok();
    if parent.map(Pid::from_raw) == Some(getppid()) {
        Ok(())
    } else {
        Err(ExitCode::FAILURE)
    }
}

/// The sockets of notices, once [`keep_notices`] has connected them.
static KEPT: OnceLock<Notices> = OnceLock::new();

/// Sockets that reach the supervisor alone: notices that wait for space, and heartbeats, which do not.
#[derive(Debug)]
struct Notices {
    patient: UnixDatagram,
    hasty: UnixDatagram,
}

impl Notices {
    fn to(path: &OsStr) -> io::Result<Self> {
        let connected = || {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            io::Result::Ok(socket)
        };
        let (patient, hasty) = (connected()?, connected()?);
        hasty.set_nonblocking(true)?;
        Ok(Self { patient, hasty })
    }
}

/// Sends all further notices through sockets that are connected now, for a process that gives up the right to connect. Without a
/// supervisor nothing happens.
///
/// # Errors
/// When the supervisor's socket cannot be reached.
pub fn keep_notices() -> io::Result<()> {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET") {
        // A second call changes nothing: the first sockets still lead to the supervisor.
        let _ = KEPT.set(Notices::to(&path)?);
    }
    Ok(())
}

/// Tells the supervisor (or systemd) that this role now does its work. Also ends a reload.
pub fn notify_ready() {
    tell(&[NotifyState::Ready]);
}

/// Ends a reload after a failure to apply the settings. `vere reload` and `vere status` print the reason.
pub fn notify_kept(reason: &str) {
    // A line end would begin another notice.
    let reason = reason.replace(['\n', '\r'], "; ");
    tell(&[NotifyState::Status(&reason), NotifyState::Ready]);
}

/// Tells the supervisor that this role is alive. To be called from the loop that does the work, not
/// from a separate thread: a heartbeat beside a stuck loop would be a lie.
///
/// Never waits: a supervisor that stands still must not stop its roles, and when its socket is full of
/// heartbeats, one more would say nothing new.
pub fn notify_watchdog() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let beaten = match KEPT.get() {
        Some(kept) => kept.hasty.send(&octets(&[NotifyState::Watchdog])).map(drop),
        None => beat(&path),
    };
    match beaten {
        Err(error) if error.kind() != ErrorKind::WouldBlock => {
            tracing::warn!(%error, "cannot notify the service manager");
        }
        _ => {}
    }
}

fn beat(path: &OsStr) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to(&octets(&[NotifyState::Watchdog]), path)?;
    Ok(())
}

/// A datagram of the protocol (sd_notify(3)): a line for each state.
fn octets(states: &[NotifyState<'_>]) -> Vec<u8> {
    let lines = states.iter().map(|state| format!("{state}\n"));
    lines.collect::<String>().into_bytes()
}

/// How often [`notify_watchdog`] is due: half the time after which silence kills; `None` when nobody
/// watches.
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| limit / 2)
}

/// Sends `states` to the socket in `NOTIFY_SOCKET`, if any.
pub fn tell(states: &[NotifyState<'_>]) {
    let told = match KEPT.get() {
        Some(kept) => kept.patient.send(&octets(states)).map(drop),
        None => sd_notify::notify(states),
    };
    if let Err(error) = told {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixDatagram;

    use sd_notify::NotifyState;

    use super::{Notices, beat, octets};

    /// Such sockets are all that a process behind a filter of system calls has.
    #[test]
    fn kept_sockets_carry_notices_without_another_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        assert!(Notices::to(path.as_os_str()).is_err(), "nobody listens");
        let socket = UnixDatagram::bind(&path).unwrap();
        let kept = Notices::to(path.as_os_str()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let states = [NotifyState::Status("kept: no"), NotifyState::Ready];
        kept.patient.send(&octets(&states)).unwrap();
        let mut read = [0; 64];
        let count = socket.recv(&mut read).unwrap();
        assert_eq!(&read[..count], b"STATUS=kept: no\nREADY=1\n");
        let full = (0..100_000).find_map(|_| kept.hasty.send(b"WATCHDOG=1\n").err());
        assert_eq!(full.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
    }

    #[test]
    fn a_supervisor_that_does_not_read_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        // The system has room for a few datagrams, 10 unless set otherwise.
        let full = (0..100_000).find_map(|_| beat(path.as_os_str()).err());
        assert_eq!(full.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
        let mut octets = [0; 64];
        let count = socket.recv(&mut octets).unwrap();
        assert_eq!(&octets[..count], b"WATCHDOG=1\n");
        beat(path.as_os_str()).unwrap();
    }
}
