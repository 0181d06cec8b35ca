//! Adds up reports by domain and source.

mod advice;
mod rows;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;

use serde::Serialize;

pub use advice::grouped;
pub use rows::{DomainRow, Names, PolicyRow, SourceRow, TlsDomainRow, TlsFailureRow};

use crate::aggregate::{Aggregate, Record};
use crate::bounds::{REPORTS_MAX, ROWS_MAX};
use crate::message::Report;
use crate::text::shortened;
use crate::tls::{TlsPolicy, TlsReport};

/// Sums of reports, with what to do about each row.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The reports that were added.
    pub reports: u64,
    /// Reports that were there already: a domain may ask for reports at several addresses.
    pub repeated: u64,
    /// Values outside the standards in aggregate reports.
    pub oddities: u64,
    /// Messages and sessions beyond the bound of rows.
    pub beyond: u64,
    #[serde(skip)]
    seen: HashSet<u64>,
    #[serde(skip)]
    rows: usize,
    dmarc: BTreeMap<String, DomainRow>,
    tls: BTreeMap<String, TlsDomainRow>,
}

impl Summary {
    /// Adds a report; returns whether it is new.
    pub fn add(&mut self, report: &Report) -> bool {
        let identity = identity(report);
        if self.seen.contains(&identity) {
            self.repeated = self.repeated.saturating_add(1);
            return false;
        }
        if self.seen.len() < REPORTS_MAX {
            self.seen.insert(identity);
        }
        self.reports = self.reports.saturating_add(1);
        match report {
            Report::Aggregate(report) => self.aggregate(report),
            Report::Tls(report) => self.tls(report),
        }
        true
    }

    /// The domains of aggregate reports, those with the most messages that failed first.
    #[must_use]
    pub fn dmarc_domains(&self) -> Vec<&DomainRow> {
        let mut rows: Vec<&DomainRow> = self.dmarc.values().collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.failed), row.domain.as_str()));
        rows
    }

    /// The domains of TLS reports, those with the most failures first.
    #[must_use]
    pub fn tls_domains(&self) -> Vec<&TlsDomainRow> {
        let mut rows: Vec<&TlsDomainRow> = self.tls.values().collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.failures()), row.domain.as_str()));
        rows
    }

    fn aggregate(&mut self, report: &Aggregate) {
        self.oddities = self.oddities.saturating_add(report.oddities.into());
        let name = shortened(&report.policy.domain);
        let room = &mut self.rows;
        let Some(domain) = row(&mut self.dmarc, name.clone(), room, || DomainRow::new(name)) else {
            self.beyond = self.beyond.saturating_add(report.messages());
            return;
        };
        domain.period(report.begin, report.end);
        domain.reporters.add(&report.organization);
        if report.end >= domain.policy_at {
            domain.policy_at = report.end;
            domain.policy = report.policy.domain_policy.word();
        }
        for record in &report.records {
            if !record_into(domain, record, report, room) {
                domain.beyond = domain.beyond.saturating_add(record.count);
                self.beyond = self.beyond.saturating_add(record.count);
            }
        }
    }

    fn tls(&mut self, report: &TlsReport) {
        for policy in &report.policies {
            let name = shortened(&policy.domain);
            let room = &mut self.rows;
            let Some(domain) = row(&mut self.tls, name.clone(), room, || {
                TlsDomainRow::new(name)
            }) else {
                self.beyond = self.beyond.saturating_add(policy.failures);
                continue;
            };
            let seconds = |at: vere_units::Timestamp| at.as_millis() / 1_000;
            domain.period(seconds(report.begin), seconds(report.end));
            domain.reporters.add(&report.organization);
            let beyond = policy_into(domain, policy, report, room);
            self.beyond = self.beyond.saturating_add(beyond);
        }
    }
}

/// Adds a record; `false` if there is no room for its row.
fn record_into(
    domain: &mut DomainRow,
    record: &Record,
    report: &Aggregate,
    room: &mut usize,
) -> bool {
    domain.count(record);
    let source: IpAddr = record.source;
    let new = || SourceRow::new(source);
    let Some(row) = row(&mut domain.by_source, source, room, new) else {
        return false;
    };
    row.count(record, &report.organization);
    true
}

/// Adds the sessions of a policy; returns the failures for which there was no room.
fn policy_into(
    domain: &mut TlsDomainRow,
    policy: &TlsPolicy,
    report: &TlsReport,
    room: &mut usize,
) -> u64 {
    let counts = domain.policy(policy.kind);
    counts.successes = counts.successes.saturating_add(policy.successes);
    counts.failures = counts.failures.saturating_add(policy.failures);
    let mut beyond = 0_u64;
    for failure in &policy.details {
        let word = shortened(failure.kind.word());
        let mx = failure.mx.as_deref().map(shortened);
        let key = (policy.kind.word(), word, mx);
        let new = || TlsFailureRow::new(policy.kind, failure);
        match row(&mut domain.by_failure, key, room, new) {
            Some(row) => {
                row.sessions = row.sessions.saturating_add(failure.sessions);
                row.reporters.add(&report.organization);
                if let Some(reason) = &failure.reason {
                    row.reasons.add(reason);
                }
            }
            None => beyond = beyond.saturating_add(failure.sessions),
        }
    }
    beyond
}

/// The row of a key; a new one where there is room.
fn row<'a, K: Ord, V>(
    rows: &'a mut BTreeMap<K, V>,
    key: K,
    room: &mut usize,
    new: impl FnOnce() -> V,
) -> Option<&'a mut V> {
    match rows.entry(key) {
        Entry::Occupied(row) => Some(row.into_mut()),
        Entry::Vacant(_) if *room >= ROWS_MAX => None,
        Entry::Vacant(row) => {
            *room = room.saturating_add(1);
            Some(row.insert(new()))
        }
    }
}

/// What two copies of a report have in common. The sums are in it, so that nobody hides a report of others by its identifier alone.
fn identity(report: &Report) -> u64 {
    let mut hasher = DefaultHasher::new();
    match report {
        Report::Aggregate(report) => {
            (
                0_u8,
                &report.organization,
                &report.id,
                &report.policy.domain,
            )
                .hash(&mut hasher);
            (report.begin, report.end, report.messages()).hash(&mut hasher);
        }
        Report::Tls(report) => {
            (1_u8, &report.organization, &report.id).hash(&mut hasher);
            (report.begin, report.end).hash(&mut hasher);
            for policy in &report.policies {
                (&policy.domain, policy.successes, policy.failures).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
