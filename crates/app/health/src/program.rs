//! Programs of the operating system as sources of facts, bounded in time and output.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Pause between two looks at the program.
const LOOK: Duration = Duration::from_millis(10);

/// The beginning of a program's output, `most` octets at most.
///
/// # Errors
/// A missing program, a bad exit code, or no end within `patience`.
pub(crate) fn output(words: &[&str], patience: Duration, most: u64) -> Result<String, String> {
    let (name, arguments) = words
        .split_first()
        .ok_or("expected a program; found none")?;
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Children of the program end with the program.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let from = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // Further output of the program meets a closed pipe. Octets before an error count.
        let _read = from.map(|from| from.take(most).read_to_end(&mut text));
        text
    });
    let ended = wait(&mut child, patience);
    if let Ok(group) = i32::try_from(child.id()) {
        // The processes of the group may have ended.
        let _none = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    if ended.is_none() {
        let _status = child.wait();
    }
    let text = reader.join().unwrap_or_default();
    let full = u64::try_from(text.len()).is_ok_and(|length| length >= most);
    match ended {
        None => Err(format!("{name}: no end within {patience:?}")),
        Some(code) if code != Some(0) && !full => {
            Err(format!("{name}: exit code {}", code.unwrap_or(-1)))
        }
        Some(_) => Ok(String::from_utf8_lossy(&text).into_owned()),
    }
}

/// Waits for the end; the exit code, if the program has one.
fn wait(child: &mut Child, patience: Duration) -> Option<Option<i32>> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code()),
            Ok(None) if Instant::now() < until => thread::sleep(LOOK),
            Ok(None) => return None,
            Err(_) => return Some(None),
        }
    }
}

/// The value of `KEY=VALUE` in the output of `systemctl show` and `timedatectl show`.
pub(crate) fn property<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn programs_are_bounded_in_time_and_output() {
        let said = |line: &str, patience| output(&["sh", "-c", line], patience, 4);
        assert_eq!(said("echo ab", LONG).unwrap(), "ab\n");
        assert_eq!(said("yes", LONG).unwrap(), "y\ny\n");
        assert!(said("exit 3", LONG).unwrap_err().contains("exit code 3"));
        let slow = said("sleep 60 & sleep 60", Duration::from_millis(50));
        assert!(slow.unwrap_err().contains("no end"));
        assert!(output(&["/nowhere/program"], LONG, 4).is_err());
    }

    #[test]
    fn properties_are_found_by_their_whole_key() {
        let text = "NTPx=1\nNTP=yes\nUser=\n";
        assert_eq!(property(text, "NTP"), Some("yes"));
        assert_eq!(property(text, "User"), Some(""));
        assert_eq!(property(text, "Group"), None);
    }
}
