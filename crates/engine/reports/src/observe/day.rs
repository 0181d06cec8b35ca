//! The counts of a day, as read from its file, and the reports about them.

use std::collections::{BTreeMap, BTreeSet};

use vere_units::Timestamp;

use super::entry::{Entry, Kind, MILLIS_PER_DAY, Row, TlsSeen};
use super::line;
use crate::aggregate::{Aggregate, Policy, Record};
use crate::bounds::{DAY_ROWS_MAX, FAILURES_MAX, POLICIES_MAX, RECORDS_MAX};
use crate::text::plain;
use crate::tls::{TlsPolicy, TlsPolicyKind, TlsReport};

/// In the place of a domain: nothing more is to be sent about the day. No domain has this name.
pub const WHOLE_DAY: &str = "*";

/// Who reports.
#[derive(Debug, Clone, Copy)]
pub struct Reporter<'a> {
    /// The organization.
    pub organization: &'a str,
    /// The address for questions.
    pub email: &'a str,
    /// Further contact.
    pub contact: Option<&'a str>,
    /// The name behind the sign in the identifiers of reports: the submitting domain, with a label for each of several systems
    /// with separate counts.
    pub submitter: &'a str,
    /// The program with its version.
    pub generator: &'a str,
}

/// The counts of a day.
#[derive(Debug, Clone, Default)]
pub struct Day {
    day: u64,
    policies: BTreeMap<String, Policy>,
    counts: BTreeMap<Row, u64>,
    sent: BTreeSet<(Kind, String)>,
    /// Messages and sessions without a row.
    pub beyond: u64,
    /// Lines that were passed over: the end of a file that a crash has cut.
    pub passed_over: u64,
}

impl Day {
    /// Reads the file of a day. Lines that cannot be read are passed over, and rows beyond the bound are counted.
    #[must_use]
    pub fn read(day: u64, octets: &[u8]) -> Self {
        let mut out = Self {
            day,
            ..Self::default()
        };
        for text in octets.split(|octet| *octet == b'\n') {
            match line::read(text) {
                Some(entry) => out.take(entry),
                None if text.is_empty() => {}
                None => out.passed_over = out.passed_over.saturating_add(1),
            }
        }
        out
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Policy(policy) => {
                if self.policies.len() < DAY_ROWS_MAX || self.policies.contains_key(&policy.domain)
                {
                    self.policies.insert(policy.domain.clone(), policy);
                }
            }
            Entry::Count(more, row) => {
                let room = self.counts.len() < DAY_ROWS_MAX;
                match self.counts.get_mut(&row) {
                    Some(count) => *count = count.saturating_add(more),
                    None if room => {
                        self.counts.insert(row, more);
                    }
                    None => self.beyond = self.beyond.saturating_add(more),
                }
            }
            Entry::Beyond(more) => self.beyond = self.beyond.saturating_add(more),
            Entry::Sent(kind, domain) => {
                self.sent.insert((kind, domain));
            }
        }
    }

    /// The whole file anew, each row once: appended lines repeat their rows.
    #[must_use]
    pub fn lines(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for policy in self.policies.values() {
            line::write(&mut out, &Entry::Policy(policy.clone()));
        }
        for (row, count) in &self.counts {
            line::write(&mut out, &Entry::Count(*count, row.clone()));
        }
        for (kind, domain) in &self.sent {
            line::write(&mut out, &Entry::Sent(*kind, domain.clone()));
        }
        if self.beyond > 0 {
            line::write(&mut out, &Entry::Beyond(self.beyond));
        }
        out
    }

    /// The line that says that a report was handed over to be sent.
    #[must_use]
    pub fn sent_line(kind: Kind, domain: &str) -> Vec<u8> {
        let mut out = Vec::new();
        line::write(&mut out, &Entry::Sent(kind, domain.to_owned()));
        out
    }

    /// Whether a report, or its [part](Self::part) for a destination, was handed over.
    #[must_use]
    pub fn is_sent(&self, kind: Kind, name: &str) -> bool {
        self.sent.contains(&(kind, name.to_owned()))
    }

    /// The name of the part of a report for a destination, to be noted while other destinations fail.
    #[must_use]
    pub fn part(domain: &str, destination: &str) -> String {
        format!("{domain} {destination}")
    }

    /// The number of reports handed over to all their destinations.
    #[must_use]
    pub fn handed_over(&self, kind: Kind) -> usize {
        let is_of = |(of, name): &&(Kind, String)| *of == kind && !name.contains(' ');
        self.sent.iter().filter(is_of).count()
    }

    /// The domains with counts whose reports were not handed over yet; none of a day that is [whole](WHOLE_DAY).
    #[must_use]
    pub fn open(&self, kind: Kind) -> Vec<String> {
        if self.sent.contains(&(kind, WHOLE_DAY.to_owned())) {
            return Vec::new();
        }
        let mut all = BTreeSet::new();
        for row in self.counts.keys() {
            match row {
                Row::Dmarc(domain, _) if kind == Kind::Dmarc => all.insert(domain.clone()),
                Row::Tls(seen) if kind == Kind::Tls => all.insert(seen.domain.clone()),
                Row::Dmarc(..) | Row::Tls(_) => false,
            };
        }
        let is_open = |domain: &String| !self.sent.contains(&(kind, domain.clone()));
        all.into_iter().filter(is_open).collect()
    }

    /// The identifier of a report: the same one whenever the report about the day is made again.
    fn id(&self, kind: Kind, domain: &str, reporter: &Reporter<'_>) -> String {
        let (year, month, day) = self.begin().date();
        // Two reports about a day must not look like one message.
        let kind = match kind {
            Kind::Dmarc => "",
            Kind::Tls => "-tls",
        };
        format!(
            "{year:04}{month:02}{day:02}{kind}.{domain}@{}",
            reporter.submitter
        )
    }

    const fn begin(&self) -> Timestamp {
        Timestamp::from_millis(self.day.saturating_mul(MILLIS_PER_DAY))
    }

    /// The last second of the day.
    const fn end(&self) -> Timestamp {
        let begin = self.begin().as_millis();
        Timestamp::from_millis(begin.saturating_add(MILLIS_PER_DAY).saturating_sub(1_000))
    }

    /// The aggregate report about a domain; `None` where nothing was counted.
    #[must_use]
    pub fn aggregate(&self, domain: &str, reporter: &Reporter<'_>) -> Option<Aggregate> {
        let records = self.counts.iter().filter_map(|(row, count)| match row {
            Row::Dmarc(name, record) if name == domain => Some(Record {
                count: *count,
                ..record.clone()
            }),
            Row::Dmarc(..) | Row::Tls(_) => None,
        });
        let records: Vec<Record> = records.take(RECORDS_MAX).collect();
        let policy = self.policies.get(domain)?.clone();
        let seconds = |at: Timestamp| at.as_millis() / 1_000;
        (!records.is_empty()).then(|| Aggregate {
            organization: plain(reporter.organization),
            email: plain(reporter.email),
            contact: reporter.contact.map(plain),
            id: self.id(Kind::Dmarc, domain, reporter),
            begin: seconds(self.begin()),
            end: seconds(self.end()),
            errors: Vec::new(),
            generator: Some(plain(reporter.generator)),
            policy,
            records,
            oddities: 0,
        })
    }

    /// The TLS report about a domain; `None` where nothing was counted.
    #[must_use]
    pub fn tls(&self, domain: &str, reporter: &Reporter<'_>) -> Option<TlsReport> {
        let mut policies: BTreeMap<(TlsPolicyKind, &[String], &[String]), TlsPolicy> =
            BTreeMap::new();
        for (row, count) in &self.counts {
            let Row::Tls(seen) = row else { continue };
            if seen.domain != domain {
                continue;
            }
            let key = (seen.kind, seen.lines.as_slice(), seen.mx.as_slice());
            if policies.len() < POLICIES_MAX || policies.contains_key(&key) {
                let policy = policies.entry(key).or_insert_with(|| empty(seen));
                add(policy, seen, *count);
            }
        }
        (!policies.is_empty()).then(|| TlsReport {
            organization: plain(reporter.organization),
            contact: plain(reporter.email),
            id: self.id(Kind::Tls, domain, reporter),
            begin: self.begin(),
            end: self.end(),
            policies: policies.into_values().collect(),
        })
    }
}

fn empty(seen: &TlsSeen) -> TlsPolicy {
    TlsPolicy {
        kind: seen.kind,
        lines: seen.lines.clone(),
        domain: seen.domain.clone(),
        mx: seen.mx.clone(),
        ..TlsPolicy::default()
    }
}

fn add(policy: &mut TlsPolicy, seen: &TlsSeen, count: u64) {
    let Some(failure) = &seen.failure else {
        policy.successes = policy.successes.saturating_add(count);
        return;
    };
    policy.failures = policy.failures.saturating_add(count);
    if policy.details.len() < FAILURES_MAX {
        let mut failure = failure.clone();
        failure.sessions = count;
        policy.details.push(failure);
    }
}
