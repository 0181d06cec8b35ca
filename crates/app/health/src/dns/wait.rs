//! The bounds of the checks in time, and the results of checks without an answer.

use std::cell::Cell;
use std::io::{IsTerminal as _, stderr};
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use vere_net::resolver::{LookupFailure, MxAnswer};

use super::subject::Subject;
use crate::figures::counted;
use crate::row::Row;

/// The longest wait for answers. A look-up without an answer ends after 20 s and a dropped connection after 15 s, so that a
/// minute has room for some of them; later answers are hardly to be expected, and people stop the command.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Wait before a person at a terminal is told.
const NOTICE: Duration = Duration::from_secs(5);
/// The least time of a domain before its name servers can be blamed.
const FAIR: Duration = Duration::from_secs(20);

const CHECK: &str = "dns";
const REMEDY: &str = "see that this machine's name servers work: [resolver] servers, or /etc/resolv.conf; and that the firewall \
                      lets port 53 out, UDP and TCP";

/// The sources of the answers that the checks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    NameServers,
    Hosts,
}

impl Source {
    const fn noun(self) -> &'static str {
        match self {
            Self::NameServers => "name servers",
            Self::Hosts => "hosts",
        }
    }
}

/// The progress of the checks of a domain, outside of the checks: the results so far remain when the time is over.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    pub(super) rows: &'a mut Vec<Row>,
    /// The answer awaited now.
    pub(super) source: &'a Cell<Source>,
}

/// Tells a person at a terminal once what a command waits for.
#[derive(Debug)]
pub(crate) struct Notice(Cell<bool>);

impl Notice {
    /// `quiet`: the output is for programs, or a person asked for findings alone.
    pub(crate) fn new(quiet: bool) -> Self {
        Self(Cell::new(!quiet && stderr().is_terminal()))
    }

    pub(super) fn tell(&self, domain: &str, source: Source) {
        if self.0.replace(false) {
            eprintln!(
                "waiting for the {} of {domain}, at most {} s ...",
                source.noun(),
                PATIENCE.as_secs()
            );
        }
    }
}

/// Runs checks until `until`; `None` when the time is over. `notice` is called when the checks are slow.
pub(super) async fn in_time<T>(
    checks: impl Future<Output = T>,
    until: Instant,
    notice: impl FnOnce(),
) -> Option<T> {
    let mut checks = pin!(checks);
    let early = until.min(Instant::now() + NOTICE);
    if let Ok(done) = timeout_at(early.into(), &mut checks).await {
        return Some(done);
    }
    notice();
    timeout_at(until.into(), checks).await.ok()
}

/// Asks for the exchangers of the domain. Without any answer each further question would wait as long: the row says so.
pub(super) async fn silence(subject: &Subject) -> Option<Row> {
    let MxAnswer::TempFail(failure) = subject.resolver.mx(&subject.domain).await else {
        return None;
    };
    match failure {
        LookupFailure::Timeout | LookupFailure::Server(_) => Some(Row::critical(
            CHECK,
            format!(
                "the name servers do not answer about {}: {failure}",
                subject.domain
            ),
            REMEDY,
        )),
        // An answer, if not a good answer.
        LookupFailure::Code(_) | LookupFailure::Bogus => None,
    }
}

/// The row for a domain whose checks did not end in time; `rest` further domains were not checked.
pub(super) fn late(domain: &str, source: Source, took: Duration, rest: usize) -> Row {
    let rest = match rest {
        0 => String::new(),
        rest => format!("; {} not checked", counted(rest as u64, "further domain")),
    };
    let seconds = PATIENCE.as_secs();
    match source {
        // Earlier domains used the time up.
        _ if took < FAIR => Row::warning(
            CHECK,
            format!("the checks were not finished within {seconds} s{rest}"),
            format!("vere dns check {domain}"),
        ),
        Source::NameServers => Row::critical(
            CHECK,
            format!("the name servers do not answer within {seconds} s{rest}"),
            REMEDY,
        ),
        Source::Hosts => Row::warning(
            CHECK,
            format!("the hosts do not answer within {seconds} s{rest}"),
            format!("see the records alone with: vere dns check {domain} --records-only"),
        ),
    }
}
