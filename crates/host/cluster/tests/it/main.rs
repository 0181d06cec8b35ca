//! The registers as their users meet them: several processes, real faults.
//!
//! A test that needs what this machine lacks prints `skipped:` with the reason and passes.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking; helpers are not seen as tests by the lint"
)]

mod contract;
mod counter;
mod etcd;
mod file;

use std::io::Write as _;

/// Says that something was not tried, past the harness, which hides what a passing test prints.
fn skip(what: &str, why: &str) {
    let text = format!("skipped: {what}: {why}\n");
    std::io::stderr()
        .write_all(text.as_bytes())
        .expect("standard error");
}
