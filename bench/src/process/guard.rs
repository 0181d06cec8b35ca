//! Clean-up of all processes and files of a benchmark, however the benchmark ends.
//!
//! A shell, the guard, gets the name of every started process and created directory and waits for the end of the
//! benchmark's process: the guard hears of the end by the end of a pipe, which comes after SIGKILL as well. Then the
//! guard kills the remaining processes and removes the remaining directories. The guard has a process group of its
//! own, as every measured program has: Ctrl-C in a terminal reaches only the benchmark's process, which may still
//! report its results ([`stop_on_signals`]).

use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::note;

/// The script of the guard; the guard reads a line for each process or directory, and `ended ID` for each ended
/// process.
const GUARD: &str = r#"
trap '' HUP INT TERM
while IFS= read -r line; do
  case $line in
    "ended "*) for one; do shift; [ "$one" = "process ${line#ended }" ] || set -- "$@" "$one"; done ;;
    *) set -- "$@" "$line" ;;
  esac
done
for one; do case $one in
  "process "*) kill -9 "-${one#process }" || kill -9 "${one#process }" ;;
  "group "*) echo 1 >"${one#group }/cgroup.kill" || kill -9 $(cat "${one#group }/cgroup.procs") ;;
esac; done
for one; do case $one in
  "group "*) tries=0
    # Who was started just before may enter it only now.
    while [ -d "${one#group }" ] && [ $tries -lt 200 ] && ! rmdir "${one#group }"; do
      echo 1 >"${one#group }/cgroup.kill"; tries=$((tries+1)); sleep 0.05
    done ;;
esac; done
for one; do case $one in
  "mount "*) fusermount3 -u -z "${one#mount }" || umount -l "${one#mount }" ;;
esac; done
for one; do case $one in
  "folder "*) tries=0
    while [ -e "${one#folder }" ] && [ $tries -lt 200 ] && ! rm -rf -- "${one#folder }"; do tries=$((tries+1)); sleep 0.05; done ;;
esac; done
"#;

/// A process or directory to clean up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// A process, the first of a process group.
    Process(u32),
    /// A control group.
    Group(PathBuf),
    /// A mount point, unmounted before folders are removed.
    Mount(PathBuf),
    /// A folder.
    Folder(PathBuf),
}

/// All known processes and directories, and the pipe of the guard.
#[derive(Debug, Default)]
struct Known {
    shell: Option<ChildStdin>,
    left: Vec<Left>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    shell: None,
    left: Vec::new(),
});

/// Whether a signal asked for the end of the benchmark.
static STOPPED: AtomicBool = AtomicBool::new(false);

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a process or directory for the clean-up.
pub(crate) fn keep(left: Left) {
    let mut known = known();
    if known.shell.is_none() {
        known.shell = start();
    }
    let (word, name) = match &left {
        Left::Process(id) => ("process", id.to_string().into_bytes()),
        Left::Group(path) => ("group", path.as_os_str().as_bytes().to_vec()),
        Left::Mount(path) => ("mount", path.as_os_str().as_bytes().to_vec()),
        Left::Folder(path) => ("folder", path.as_os_str().as_bytes().to_vec()),
    };
    known.left.push(left);
    // The protocol cannot express a name with line feeds; no real directory for temporary files has such a name.
    if !name.contains(&b'\n') {
        known.tell(word, &name);
    }
    if STOPPED.load(Ordering::SeqCst) {
        known.kill();
    }
}

/// Whether a child has ended. The child is not reaped: before the reaping, the number is not reused.
pub(crate) fn has_ended(child: &Child) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    !matches!(waitid(id(child), flags), Ok(WaitStatus::StillAlive))
}

/// Waits for the end of a child, and removes the child from the register before its number can be reused.
pub(crate) fn reap(child: &mut Child) -> io::Result<ExitStatus> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(id(child), flags) == Err(Errno::EINTR) {}
    ended(child.id());
    child.wait()
}

fn id(child: &Child) -> Id<'static> {
    Id::Pid(Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX)))
}

/// Removes an ended but unreaped process from the register.
fn ended(process: u32) {
    let mut known = known();
    known.left.retain(|one| *one != Left::Process(process));
    known.tell("ended", process.to_string().as_bytes());
}

impl Known {
    fn tell(&mut self, word: &str, name: &[u8]) {
        if let Some(shell) = &mut self.shell {
            let line = [word.as_bytes(), b" ", name, b"\n"].concat();
            // Without the guard only the clean-up after a crash of the benchmark is missing.
            let _ = shell.write_all(&line);
        }
    }

    /// Ends all running processes at once.
    fn kill(&self) {
        for one in &self.left {
            match one {
                Left::Process(id) => {
                    if let Ok(id) = i32::try_from(*id) {
                        let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
                    }
                }
                Left::Group(path) => {
                    let _ = std::fs::write(path.join("cgroup.kill"), "1");
                }
                Left::Mount(_) | Left::Folder(_) => {}
            }
        }
    }
}

/// Starts the guard; without a guard, the clean-up by the benchmark itself must be enough.
fn start() -> Option<ChildStdin> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", GUARD]).stdin(Stdio::piped());
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell.current_dir("/").process_group(0);
    shell.spawn().ok()?.stdin
}

/// From now on the first SIGINT, SIGTERM or SIGHUP ends the measured programs, so that the waiting code goes on and
/// reports the results so far ([`is_stopped`]); the second signal ends the benchmark's process.
pub(crate) fn stop_on_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
            return;
        };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if STOPPED.swap(true, Ordering::SeqCst) {
                    // Cleaning up is left to the shell.
                    std::process::exit(128 + signal);
                }
                note("stopped by a signal: ending what runs; what was found follows");
                known().kill();
            }
        });
    });
}

/// Whether a signal came.
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Runs a command to its end, which comes early when a signal stops the benchmark.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).process_group(0);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    keep(Left::Process(child.id()));
    let (said, complained) = (child.stdout.take(), child.stderr.take());
    let (said, complained) = std::thread::scope(|scope| {
        let complained = scope.spawn(|| whole(complained));
        (whole(said), complained.join())
    });
    let status = reap(&mut child)?;
    Ok(Output {
        status,
        stdout: said?,
        stderr: complained.unwrap_or_else(|_| Ok(Vec::new()))?,
    })
}

/// Runs a command as [`output`] does; returns the output, or on failure the error text.
pub(crate) fn said_by(command: &mut Command) -> io::Result<Vec<u8>> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(said))
}

fn whole(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    match pipe {
        Some(mut pipe) => pipe.read_to_end(&mut octets).map(|_| octets),
        None => Ok(octets),
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    fn is_known(process: u32) -> bool {
        known().left.contains(&Left::Process(process))
    }

    /// An ended process remains registered until its number can be reused: a zombie keeps its number.
    #[test]
    fn a_number_is_forgotten_before_it_can_be_given_again() {
        let mut child = Command::new("true").process_group(0).spawn().unwrap();
        keep(Left::Process(child.id()));
        let until = Instant::now() + Duration::from_secs(60);
        while !has_ended(&child) {
            assert!(Instant::now() < until, "it does not end");
            sleep(Duration::from_millis(5));
        }
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        assert!(is_known(child.id()) && state().unwrap().contains(" Z "));
        let id = child.id();
        assert!(reap(&mut child).unwrap().success());
        assert!(!is_known(id));
    }

    #[test]
    fn what_a_command_says_is_heard_whole() {
        let mut command = Command::new("/bin/sh");
        let both = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3";
        let output = output(command.args(["-c", both])).unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (300_000, 200_000)
        );
        assert_eq!(output.status.code(), Some(3));
    }
}
