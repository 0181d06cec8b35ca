//! Starts whole systems, sinks and peers, and speaks SMTP to the servers.

mod certificates;
mod delay;
mod disk;
mod kills;
mod load;
mod mx;
mod named;
mod network;
mod options;
mod process;
mod roles;
mod session;
mod sink;
mod system;
mod webhook;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) use certificates::{Authority, Files};
pub(crate) use delay::Delay;
pub(crate) use disk::FailingSync;
pub(crate) use kills::acked_under_kills;
pub(crate) use load::{Counted, probe, wait_greeting};
pub(crate) use mx::{Manners, Mx};
pub(crate) use named::{Named, Signing};
pub(crate) use network::Network;
pub(crate) use options::{Options, quoted};
pub(crate) use process::{
    Child, children, cpu_time, cpu_wait, descriptors, private_memory, quiet,
    raise_descriptor_limit, signal, stands_still,
};
pub(crate) use session::{Session, queue_id};
pub(crate) use sink::Sink;
pub(crate) use system::System;
pub(crate) use webhook::{Hook, answer, read_post};

/// Longest wait of a test before the test fails: far more than any wait on the slowest machine, and than any time-out
/// of the daemon that a test waits for, so that nothing but a hang ever reaches the limit.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Longest time of a greeting during an attack. A cost in proportion to the input is far below the limit; a cost of
/// the square of the input is far beyond.
pub(crate) const GREETING_MAX: Duration = Duration::from_secs(5);
/// CPU time of an attack, for the same reason.
pub(crate) const ATTACK_CPU_MAX: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) fn vere() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vere"))
}

/// Fails a test that executes `vere-bench` through [`vere`] while `vere-bench` has not been built. Cargo builds the
/// program in runs of the whole workspace, and not for the package `vere` alone.
pub(crate) fn require_bench() {
    let program = Path::new(env!("CARGO_BIN_EXE_vere")).with_file_name("vere-bench");
    assert!(
        program.is_file(),
        "expected the program {}; found none: run `cargo build --package vere-bench` first",
        program.display()
    );
}

/// Whether the long versions of tests are wanted.
pub(crate) fn is_full() -> bool {
    std::env::var_os("VERE_FULL").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Waits until `ready` gives something.
pub(crate) fn wait_for<T>(what: &str, ready: impl FnMut() -> Option<T>) -> T {
    wait_within(PATIENCE, what, ready)
}

/// Waits until `is_so` holds.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until `ready` gives something, but not longer than `patience`.
pub(crate) fn wait_within<T>(
    patience: Duration,
    what: &str,
    mut ready: impl FnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(
            start.elapsed() < patience,
            "{what} did not happen in {patience:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) use vere_faults::free_address;

/// Runs a command that must succeed and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    run_with_input(command, "")
}

/// Runs a command that must succeed with an input and returns its output.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> String {
    let output = output_of(command, input);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} failed with {}: {text}{errors}",
        output.status
    );
    text
}

/// Runs a command with an input to its end, successful or not.
pub(crate) fn output_of(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    // A program that does not read its input is no failure.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("output")
}

/// Runs a command that must end with an exit code, and returns its errors.
pub(crate) fn fails_with(command: &mut Command, code: i32) -> String {
    let output = output_of(command, "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = output.status.code();
    assert_eq!(found, Some(code), "{command:?}: {said}");
    said
}

/// Says something on the terminal, past the capture of passing tests.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether long tests, or tests that change the machine, are wanted; prints a note when not.
pub(crate) fn in_soak() -> bool {
    if !is_full() {
        skip(&test_name(), "make soak runs it, or VERE_FULL=1");
    }
    is_full()
}

/// Prints that a case was not tried.
pub(crate) fn skip(what: &str, why: &str) {
    say(&format!("skipped: {what}: {why}"));
}

/// The name of the running test.
pub(crate) fn test_name() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("a test").to_owned()
}

/// Finds a program; prints that the test is skipped when the program is missing.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        let why = format!("{name} is not installed (scripts/install-test-tools.sh does it)");
        skip(&test_name(), &why);
    }
    found
}

/// Asserts that a text contains all of `parts`.
#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

/// Asserts that a text begins with `part`.
#[track_caller]
pub(crate) fn assert_starts(text: &str, part: &str) {
    assert!(text.starts_with(part), "{part:?} does not begin {text}");
}

/// Asserts that a text ends with `part`.
#[track_caller]
pub(crate) fn assert_ends(text: &str, part: &str) {
    assert!(text.ends_with(part), "{part:?} does not end {text}");
}

/// How often the tests of a replicated spool repeat their faults.
pub(crate) fn rounds() -> u32 {
    if is_full() { 10 } else { 1 }
}

/// A text with its folded header lines as single lines.
pub(crate) fn unfold(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace("\n\t", " ")
        .replace("\n ", " ")
}

/// All files of a directory but hidden files; absent when the directory is missing.
pub(crate) fn read_all(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter_map(|entry| std::fs::read(entry.path()).ok())
        .map(|octets| String::from_utf8_lossy(&octets).into_owned())
        .collect()
}
