//! Programs that print a password or a token.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use vere_process::failure::Failure;
use vere_units::Secret;

/// The longest run of a program: a token may have to be fetched over the network.
pub(crate) const RUN_MAX: Duration = Duration::from_secs(30);

/// Octets of a program's output.
const OUTPUT_MAX: usize = 64 << 10;

/// Octets of a program's standard error in an error of ours.
const ERRORS_MAX: usize = 1 << 10;

/// Time between looks at the program.
const LOOK: Duration = Duration::from_millis(10);

/// Time for the output of a program that has ended: a process that the program left behind may hold the pipe.
const LATE_MAX: Duration = Duration::from_millis(500);

/// Runs a program without a shell and returns the first line of the output.
///
/// # Errors
/// When the program cannot be run, fails, prints nothing, or takes longer than 30 seconds.
pub(crate) async fn printed(words: Vec<String>) -> Result<Secret<String>, Failure> {
    let run = tokio::task::spawn_blocking(move || run(&words, RUN_MAX));
    run.await.unwrap_or_else(|_| {
        Err(Failure::new(
            "expected the end of a program; found the end of ours",
        ))
    })
}

fn run(words: &[String], longest: Duration) -> Result<Secret<String>, Failure> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| Failure::new("expected a program; found none"))?;
    let wrong = |error: io::Error| Failure::new(format!("{program}: {error}"));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // All processes of the program end with the program.
        .process_group(0)
        .spawn()
        .map_err(wrong)?;
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let output = reader(child.stdout.take(), OUTPUT_MAX);
    let errors = reader(child.stderr.take(), ERRORS_MAX);
    let status = wait(&mut child, longest);
    let (output, errors) = (output.take(), errors.take());
    if let Ok(group) = group {
        // Without a process left there is nothing to end.
        let _none = killpg(group, Signal::SIGKILL);
    }
    let Some(status) = status.map_err(wrong)? else {
        // The program is dead and waits for nothing but this call.
        let _status = child.wait();
        return Err(Failure::new(format!(
            "{program}: expected an end within {longest:?}; found a running program{}",
            said(&errors)
        )));
    };
    if !status.success() {
        let text = format!("{program}: {}{}", shown(status), said(&errors));
        return Err(Failure::new(text));
    }
    if !output.contains(&b'\n') && output.len() >= OUTPUT_MAX {
        let text = format!("{program}: expected a line of at most {OUTPUT_MAX} octets; found more");
        return Err(Failure::new(text));
    }
    let line = output.split(|octet| *octet == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    match line.trim_end_matches('\r') {
        "" => Err(Failure::new(format!(
            "{program}: expected a line with the secret; found none{}",
            said(&errors)
        ))),
        line => Ok(Secret::new(line.to_owned())),
    }
}

/// Reads on a thread of its own until the end; the most octets are kept.
fn reader(from: Option<impl Read + Send + 'static>, most: usize) -> Kept {
    let kept = Kept::default();
    let (own, mut from) = (kept.clone(), from);
    thread::spawn(move || {
        let mut piece = [0; 4_096];
        // The rest is read as well: the program must not wait for us.
        while let Some(Ok(count)) = from.as_mut().map(|from| from.read(&mut piece))
            && count > 0
        {
            let mut all = own.octets();
            let left = most.saturating_sub(all.len()).min(count);
            all.extend_from_slice(piece.get(..left).unwrap_or_default());
        }
        own.1.store(true, Ordering::Release);
    });
    kept
}

/// Octets read so far, and whether the end was met.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>, Arc<AtomicBool>);

impl Kept {
    fn octets(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The octets of an ended program; waits a little for the last of them.
    fn take(&self) -> Vec<u8> {
        let begin = Instant::now();
        while !self.1.load(Ordering::Acquire) && begin.elapsed() < LATE_MAX {
            thread::sleep(LOOK);
        }
        std::mem::take(&mut *self.octets())
    }
}

/// Waits for the end of the program; `None` when the time is over.
fn wait(child: &mut Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() >= longest {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

fn shown(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "no exit status".to_owned(),
    }
}

/// What the program said to people, on a line.
fn said(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let plain = |one: char| if one.is_control() { ' ' } else { one };
    let text: String = text.trim().chars().map(plain).collect();
    match text.is_empty() {
        true => String::new(),
        false => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&words, Duration::from_millis(700))
            .map(|secret| secret.expose().clone())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn programs_print_secrets() {
        assert_eq!(of(&["printf", "one\\r\\ntwo\\n"]), Ok("one".to_owned()));
        let none = of(&["true"]).expect_err("nothing");
        assert!(none.contains("found none"), "{none}");
        let fails = of(&["sh", "-c", "echo no token >&2; exit 3"]).expect_err("a failure");
        assert_eq!(fails, "sh: exit status 3: no token");
        assert!(of(&["/absent"]).is_err() && of(&[]).is_err());
    }

    #[test]
    fn programs_end_in_time() {
        let begin = Instant::now();
        let late = of(&["sh", "-c", "echo waiting >&2; sleep 60"]).expect_err("too long");
        assert!(
            late.contains("within 700ms") && late.contains(": waiting"),
            "{late}"
        );
        // A process left behind holds the pipe.
        let left = of(&["sh", "-c", "echo token; sleep 60 &"]);
        assert_eq!(left, Ok("token".to_owned()));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn output_has_a_bound() {
        let long = of(&["sh", "-c", "yes secret | tr -d '\\n' | head -c 1000000"]);
        assert!(long.is_err_and(|text| text.contains("at most")));
    }
}
