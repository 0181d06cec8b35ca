//! The checks carried out by cargo.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// `cargo fmt --check`.
pub(crate) fn fmt(workspace: &Workspace) -> Outcome {
    run(
        workspace,
        &["fmt", "--all", "--check"],
        &[],
        "run `cargo fmt --all`",
    )
}

/// `cargo clippy` with warnings denied, tests and benches included.
pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--offline",
        "--",
        "-D",
        "warnings",
    ];
    run(workspace, &arguments, &[], "clippy found the above")
}

/// `cargo doc` with warnings denied.
pub(crate) fn docs(workspace: &Workspace) -> Outcome {
    let arguments = ["doc", "--workspace", "--no-deps", "--locked", "--offline"];
    run(
        workspace,
        &arguments,
        &[("RUSTDOCFLAGS", "-D warnings")],
        "rustdoc found the above",
    )
}

/// `cargo test` of the whole workspace; ends with a line that sums up every test binary.
pub(crate) fn test(workspace: &Workspace) -> Outcome {
    let arguments = [
        "test",
        "--workspace",
        "--locked",
        "--offline",
        "--no-fail-fast",
    ];
    let child = Command::new("cargo")
        .args(arguments)
        .current_dir(&workspace.root)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return failed(error.to_string()),
    };
    let (mut sum, mut panics) = (Sum::default(), Panics::default());
    let mut out = std::io::stdout();
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|stdout| BufReader::new(stdout).lines())
    {
        let Ok(line) = line else { break };
        sum.add(&line);
        panics.add(&line);
        // A closed output must not end the tests.
        let _ = writeln!(out, "{line}");
    }
    let Ok(status) = child.wait() else {
        return failed("cargo test was lost".to_owned());
    };
    // Thousands of lines may stand between a failure and the end.
    for line in &panics.lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(
        out,
        "{} passed, {} failed, {} skipped",
        sum.passed, sum.failed, sum.ignored
    );
    match (status.success(), sum.passed) {
        (true, 0) => failed("no test ran".to_owned()),
        (true, _) => Outcome::Passed,
        (false, _) => failed("cargo test found the above".to_owned()),
    }
}

fn failed(what: String) -> Outcome {
    Outcome::Failed(vec![Finding::new("Cargo.toml", 0, what)])
}

fn run(
    workspace: &Workspace,
    arguments: &[&str],
    variables: &[(&str, &str)],
    advice: &str,
) -> Outcome {
    let status = Command::new("cargo")
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(&workspace.root)
        .status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => failed(advice.to_owned()),
        Err(error) => failed(error.to_string()),
    }
}

/// Lines that a panic has at most.
const PANIC_LINES: usize = 6;
/// Lines of all panics.
const PANICS_LINES_MAX: usize = 200;

/// Panics of failed tests, to be said once more at the end.
#[derive(Debug, Default)]
struct Panics {
    lines: Vec<String>,
    /// Lines that still belong to the last panic.
    more: usize,
}

impl Panics {
    /// Keeps a line such as `thread 'a::b' (12) panicked at src/c.rs:3:4:`, and what follows.
    fn add(&mut self, line: &str) {
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.more = PANIC_LINES;
        }
        if self.more > 0 && self.lines.len() < PANICS_LINES_MAX {
            self.more -= 1;
            self.lines.push(line.to_owned());
        }
    }
}

/// The sum of the reports of all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Sum {
    /// Parses a line such as `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        let words: Vec<&str> = rest
            .split([' ', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let [number, what] = pair else { continue };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match *what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed() {
        let mut sum = Sum::default();
        sum.add("test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s");
        sum.add("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        sum.add("test a::b ... ok");
        assert_eq!(
            sum,
            Sum {
                passed: 6,
                failed: 3,
                ignored: 1
            }
        );
    }

    #[test]
    fn panics_are_kept_with_the_lines_that_follow() {
        let mut panics = Panics::default();
        panics.add("test a::b ... FAILED");
        panics.add("thread 'a::b' (12) panicked at src/c.rs:3:4:");
        (1..20).for_each(|number| panics.add(&format!("line {number}")));
        panics.add("thread 'main' is idle");
        let last = panics.lines.last().map(String::as_str);
        assert_eq!((panics.lines.len(), last), (PANIC_LINES, Some("line 5")));
    }
}
