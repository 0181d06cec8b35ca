//! All tests of the workspace, two test binaries at a time.
//!
//! `cargo test` runs one binary after the other. Many of our tests wait: for processes, timeouts, other servers. With two
//! binaries at a time the waiting of one is work of the other. The examples of the documentation, whose binaries cargo
//! builds one after the other, count as one more binary.

mod ends;
mod summary;

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::{failed, messages};
use crate::finding::Outcome;
use crate::workspace::Workspace;

use ends::Ends;
use summary::Summary;

/// Test binaries that run at the same time.
const LANES: usize = 2;

/// The tests of whole systems.
const SYSTEMS: &str = "vere it";

/// Tests of whole systems that run at the same time, for each core: they keep a core busy for a quarter of their time.
const WAITING: usize = 2;

/// Without a line for this time the end of the binary is looked for.
const QUIET: Duration = Duration::from_millis(200);

/// What both calls of cargo build.
const WHOLE: [&str; 3] = ["--workspace", "--locked", "--offline"];

/// Runs the tests; ends with lines that sum up every test binary.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let begun = Instant::now();
    let binaries = match build(workspace) {
        Ok(binaries) => binaries,
        Err(outcome) => return outcome,
    };
    eprintln!("   built in {:.1} s", begun.elapsed().as_secs_f32());
    let binaries = Mutex::new(VecDeque::from(binaries));
    let next = || lock(&binaries).pop_front();
    let total = Mutex::new(Summary::default());
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(binary) = next() {
                    let summary = binary.run();
                    lock(&total).merge(summary);
                }
            });
        }
    });
    let total = lock(&total);
    // Thousands of lines may stand between a failure and the end.
    let _ = writeln!(std::io::stdout(), "{total}");
    total.failure().map_or(Outcome::Passed, failed)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// Package and target, such as `vere it`.
    name: String,
    program: PathBuf,
    arguments: Vec<&'static str>,
    /// Tests that run at the same time.
    threads: usize,
    /// The folder of the package, where tests run.
    folder: PathBuf,
}

/// Builds all test binaries, the longest first.
fn build(workspace: &Workspace) -> Result<Vec<Binary>, Outcome> {
    let messages = messages(workspace, &[&["test", "--no-run"][..], &WHOLE].concat());
    let messages = messages.map_err(failed)?;
    let mut binaries: Vec<Binary> = messages.iter().filter_map(Binary::of).collect();
    if binaries.is_empty() {
        return Err(failed("no test was built".to_owned()));
    }
    // The tests of whole systems take as long as all others together.
    binaries.sort_by_key(|binary| !binary.name.ends_with(" it"));
    binaries.sort_by_key(|binary| binary.name != SYSTEMS);
    // Early, since a single core is enough for them.
    binaries.insert(1, Binary::examples(workspace));
    Ok(binaries)
}

/// The number that whoever runs the tests wants, else one for each core, and more where tests wait.
fn threads(name: &str) -> usize {
    let wanted = std::env::var("RUST_TEST_THREADS").ok();
    let wanted = wanted.and_then(|wanted| wanted.parse().ok());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    wanted.unwrap_or(match name {
        SYSTEMS => cores * WAITING,
        _ => cores,
    })
}

impl Binary {
    /// The test binary that a message of cargo names.
    fn of(message: &serde_json::Value) -> Option<Self> {
        let is_test = message.pointer("/profile/test")?.as_bool()?;
        let program = message.get("executable")?.as_str()?;
        let folder = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
        let target = message.pointer("/target/name")?.as_str()?;
        let package = folder.file_name()?.to_str()?;
        let name = format!("{package} {target}");
        is_test.then(|| Self {
            threads: threads(&name),
            name,
            program: program.into(),
            arguments: Vec::new(),
            folder: folder.to_owned(),
        })
    }

    /// The examples of the documentation.
    fn examples(workspace: &Workspace) -> Self {
        Self {
            name: "examples".to_owned(),
            program: "cargo".into(),
            arguments: [&["test", "--doc"][..], &WHOLE].concat(),
            threads: threads("examples"),
            folder: workspace.root.clone(),
        }
    }

    /// Runs the tests; each line of the output is printed behind the name.
    fn run(&self) -> Summary {
        let begun = Instant::now();
        let (mut summary, mut ends) = (Summary::default(), Ends::new(self.threads, begun));
        if let Err(error) = self.follow(&mut summary, &mut ends) {
            summary.fail(format!("{}: {error}", self.name));
        }
        for (test, time) in ends.took() {
            summary.took(format!("{}: {test}", self.name), time);
        }
        summary.took(format!("{}, all its tests", self.name), begun.elapsed());
        summary
    }

    fn follow(&self, summary: &mut Summary, ends: &mut Ends) -> std::io::Result<()> {
        let (output, input) = std::io::pipe()?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env("RUST_TEST_THREADS", self.threads.to_string())
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input);
        // Test binaries read the variable. Cargo with the variable runs the build script of ring again, and compiles all crates
        // on ring anew.
        if self.program != Path::new("cargo") {
            command.env("CARGO_MANIFEST_DIR", &self.folder);
        }
        let mut child = command.spawn()?;
        // The command holds the writing end of the pipe, which must be closed for the end to be seen.
        drop(command);
        let lines = lines_of(output);
        let status = loop {
            match lines.recv_timeout(QUIET) {
                Ok(line) => self.print(&line, summary, ends),
                Err(RecvTimeoutError::Disconnected) => break child.wait()?,
                // A process that a test left behind may hold the pipe for ever.
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(status) = child.try_wait()? {
                        lines
                            .try_iter()
                            .for_each(|line| self.print(&line, summary, ends));
                        break status;
                    }
                }
            }
        };
        if !status.success() {
            summary.fail(format!("{}: {status}", self.name));
        }
        Ok(())
    }

    fn print(&self, line: &str, summary: &mut Summary, ends: &mut Ends) {
        ends.add(line, Instant::now());
        summary.add(&self.name, line);
        // A closed output must not end the tests.
        let _ = writeln!(std::io::stdout(), "{}: {line}", self.name);
    }
}

/// The lines of an output, read by a thread.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests;
