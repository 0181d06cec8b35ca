//! Our own observations, counted by day.
//!
//! ```text
//! Observations ──lines──▶ file of the day ──octets──▶ Day ──▶ reports
//! ```
//!
//! The host appends the lines to the file of their day, and may lose the last ones in a crash: counts are statistics, and no mail
//! depends on them. What was reported is a line too, so that a report is sent once more at most after a crash, with the same identifier.

mod day;
mod entry;
mod line;

use std::collections::BTreeMap;

use vere_units::Timestamp;

pub use day::{Day, Reporter, WHOLE_DAY};
pub use entry::{DmarcSeen, Kind, TlsSeen, day_of, file_name};
use entry::{Entry, Row};

use crate::aggregate::{Policy, Record};
use crate::bounds::{DAY_ROWS_MAX, SEEN_RESULTS_MAX};
use crate::text::{domain, shortened};
use crate::tls::{TlsFailure, TlsFailureKind};

/// Counts that are not in a file yet.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    days: BTreeMap<u64, Pending>,
}

#[derive(Debug, Clone, Default)]
struct Pending {
    policies: BTreeMap<String, Policy>,
    counts: BTreeMap<Row, u64>,
    beyond: u64,
}

impl Observations {
    /// Counts a message.
    pub fn dmarc(&mut self, at: Timestamp, seen: &DmarcSeen) {
        let record = bounded_record(&seen.record);
        let mut policy = seen.policy.clone();
        policy.domain = shortened(&domain(&policy.domain));
        policy.failure_options = policy.failure_options.as_deref().map(shortened);
        let name = policy.domain.clone();
        let pending = self.days.entry(day_of(at)).or_default();
        if pending.count(Row::Dmarc(name.clone(), record), 1) {
            pending.policies.insert(name, policy);
        }
    }

    /// Counts sessions of a kind.
    pub fn tls(&mut self, at: Timestamp, seen: &TlsSeen, sessions: u64) {
        let row = Row::Tls(bounded_session(seen));
        self.days
            .entry(day_of(at))
            .or_default()
            .count(row, sessions);
    }

    /// Whether no work waits for a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// The lines to append to the files, by day. What a host cannot write is lost.
    pub fn take_lines(&mut self) -> Vec<(u64, Vec<u8>)> {
        let days = std::mem::take(&mut self.days);
        days.into_iter()
            .map(|(day, pending)| (day, pending.lines()))
            .collect()
    }
}

impl Pending {
    /// Adds to the count of a row; `false` beyond the bound.
    fn count(&mut self, row: Row, more: u64) -> bool {
        let room = self.counts.len() < DAY_ROWS_MAX;
        match self.counts.get_mut(&row) {
            Some(count) => *count = count.saturating_add(more),
            None if room => {
                self.counts.insert(row, more);
            }
            None => {
                self.beyond = self.beyond.saturating_add(more);
                return false;
            }
        }
        true
    }

    fn lines(self) -> Vec<u8> {
        let mut out = Vec::new();
        for policy in self.policies.into_values() {
            line::write(&mut out, &Entry::Policy(policy));
        }
        for (row, count) in self.counts {
            line::write(&mut out, &Entry::Count(count, row));
        }
        if self.beyond > 0 {
            line::write(&mut out, &Entry::Beyond(self.beyond));
        }
        out
    }
}

/// The record with a count of 0, and within the bounds of a line.
fn bounded_record(record: &Record) -> Record {
    let mut record = record.clone();
    record.count = 0;
    record.source = record.source.to_canonical();
    record.header_from = shortened(&domain(&record.header_from));
    record.envelope_from = record.envelope_from.as_deref().map(shortened);
    record.envelope_to = record.envelope_to.as_deref().map(shortened);
    record.dkim.truncate(SEEN_RESULTS_MAX);
    record.spf.truncate(SEEN_RESULTS_MAX);
    record.reasons.truncate(SEEN_RESULTS_MAX);
    for dkim in &mut record.dkim {
        dkim.domain = shortened(&dkim.domain);
        dkim.selector = dkim.selector.as_deref().map(shortened);
        dkim.text = dkim.text.as_deref().map(shortened);
    }
    for spf in &mut record.spf {
        spf.domain = shortened(&spf.domain);
        spf.text = spf.text.as_deref().map(shortened);
    }
    for reason in &mut record.reasons {
        reason.comment = reason.comment.as_deref().map(shortened);
    }
    record
}

/// The session without a number, and within the bounds of a line.
fn bounded_session(seen: &TlsSeen) -> TlsSeen {
    let few = |texts: &[String]| {
        let few = texts.iter().take(SEEN_RESULTS_MAX);
        few.map(|text| shortened(text)).collect()
    };
    let failure = seen.failure.as_ref().map(|failure| TlsFailure {
        kind: TlsFailureKind::of(&shortened(failure.kind.word())),
        sender: failure.sender,
        mx: failure.mx.as_deref().map(shortened),
        helo: failure.helo.as_deref().map(shortened),
        address: failure.address,
        sessions: 0,
        information: failure.information.as_deref().map(shortened),
        reason: failure.reason.as_deref().map(shortened),
    });
    TlsSeen {
        domain: shortened(&domain(&seen.domain)),
        kind: seen.kind,
        lines: few(&seen.lines),
        mx: few(&seen.mx),
        failure,
    }
}
