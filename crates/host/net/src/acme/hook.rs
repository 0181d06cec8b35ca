//! Publishes TXT records by a program of the operator.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Longest time of the program.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks whether the program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Where programs that the hook executes lie.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Executes `PROGRAM VERB NAME VALUE` with an empty environment but for PATH, and waits for the end. Complaints of the
/// program go where the log of this process goes. The error is the reason.
pub(super) async fn run(
    program: &Path,
    verb: &'static str,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let program: PathBuf = program.into();
    let words = [verb.to_owned(), name.to_owned(), value.to_owned()];
    let run = move || execute(&program, &words, PATIENCE);
    let ended = tokio::task::spawn_blocking(run).await;
    ended.unwrap_or_else(|error| Err(error.to_string()))
}

fn execute(program: &Path, words: &[String], patience: Duration) -> Result<(), String> {
    let shown = program.display();
    let failed = |error| format!("{shown}: {error}");
    let mut command = Command::new(program);
    command
        .args(words)
        .env_clear()
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // A group of its own, so that the programs of a script end with it.
        .process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let end = Instant::now() + patience;
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{shown} failed: {status}")),
            None if Instant::now() >= end => {
                kill_all(&mut child);
                return Err(format!("{shown} did not end within {patience:?}"));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Kills the program and the programs that it has started.
fn kill_all(child: &mut Child) {
    // The program may have ended just now; until the wait below nobody else has the number of its group.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The children of a script that hung lived on, and could add a record after the order.
    #[test]
    fn programs_of_a_script_that_hangs_end_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let hold = folder.path().join("fifo");
        nix::unistd::mkfifo(&hold, nix::sys::stat::Mode::S_IRWXU).expect("made");
        // The child holds the writing end of the FIFO open as long as it lives.
        let script = format!("sleep 600 > '{}' & wait", hold.display());
        let end = std::thread::spawn(move || std::fs::read(&hold).map(|octets| octets.len()));
        let words = ["-c", &script].map(str::to_owned);
        let failed = execute(Path::new("/bin/sh"), &words, Duration::from_millis(500));
        assert!(failed.is_err_and(|why| why.contains("did not end")));
        assert_eq!(end.join().expect("no panic").expect("read"), 0);
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_told() {
        let shell = |text: &str, patience| {
            let words = ["-c", text].map(str::to_owned);
            execute(
                Path::new("/bin/sh"),
                &words,
                Duration::from_millis(patience),
            )
        };
        assert_eq!(shell("test -z \"$HOME\"", 10_000), Ok(()));
        let failed = shell("exit 3", 10_000).expect_err("it fails");
        assert!(failed.contains("exit status: 3"), "{failed}");
        let hangs = shell("exec sleep 60", 50).expect_err("it hangs");
        assert!(hangs.contains("did not end within 50ms"), "{hangs}");
        let absent = execute(Path::new("/nowhere"), &[], PATIENCE);
        assert!(absent.is_err_and(|why| why.starts_with("/nowhere: ")));
    }
}
