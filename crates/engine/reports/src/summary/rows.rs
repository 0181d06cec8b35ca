//! The rows of a summary.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Serialize, Serializer};

use crate::aggregate::{AuthWord, Disposition, Override, Record};
use crate::bounds::NAMES_MAX;
use crate::text::shortened;
use crate::tls::{TlsFailure, TlsFailureKind, TlsPolicyKind};

/// A few names, and how many more there were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Names {
    /// The first names.
    pub names: Vec<String>,
    /// Whether there are more.
    pub more: bool,
}

impl Names {
    pub(super) fn add(&mut self, name: &str) {
        let name = shortened(name);
        if name.is_empty() || self.names.contains(&name) {
            return;
        }
        match self.names.len() < NAMES_MAX {
            true => self.names.push(name),
            false => self.more = true,
        }
    }
}

/// Mail with a domain in From.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainRow {
    /// The domain with the policy.
    pub domain: String,
    /// The policy of the latest report.
    pub policy: &'static str,
    /// The beginning of the first report, in seconds since 1970.
    pub begin: u64,
    /// The end of the last report.
    pub end: u64,
    /// The messages.
    pub messages: u64,
    /// The messages that passed DMARC by DKIM.
    pub dkim_aligned: u64,
    /// The messages that passed DMARC by SPF.
    pub spf_aligned: u64,
    /// The messages that failed DMARC.
    pub failed: u64,
    /// The messages without a row.
    pub beyond: u64,
    /// The organizations that report.
    pub reporters: Names,
    #[serde(skip)]
    pub(super) policy_at: u64,
    #[serde(rename = "sources", serialize_with = "values")]
    pub(super) by_source: BTreeMap<IpAddr, SourceRow>,
}

impl DomainRow {
    pub(super) fn new(domain: String) -> Self {
        Self {
            domain,
            policy: Disposition::None.word(),
            begin: u64::MAX,
            end: 0,
            messages: 0,
            dkim_aligned: 0,
            spf_aligned: 0,
            failed: 0,
            beyond: 0,
            reporters: Names::default(),
            policy_at: 0,
            by_source: BTreeMap::new(),
        }
    }

    pub(super) fn period(&mut self, begin: u64, end: u64) {
        self.begin = self.begin.min(begin);
        self.end = self.end.max(end);
    }

    pub(super) fn count(&mut self, record: &Record) {
        add(&mut self.messages, record.count, true);
        add(&mut self.dkim_aligned, record.count, record.dkim_aligned);
        add(&mut self.spf_aligned, record.count, record.spf_aligned);
        add(&mut self.failed, record.count, !record.is_aligned());
    }

    /// The sources, those with the most messages that failed first, then by messages.
    #[must_use]
    pub fn sources(&self) -> Vec<&SourceRow> {
        let mut rows: Vec<&SourceRow> = self.by_source.values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.failed, row.messages)));
        rows
    }
}

/// Mail with a domain in From, from an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceRow {
    /// The address.
    pub source: IpAddr,
    /// The messages.
    pub messages: u64,
    /// The messages that passed DMARC by DKIM.
    pub dkim_aligned: u64,
    /// The messages that passed DMARC by SPF.
    pub spf_aligned: u64,
    /// The messages that failed DMARC.
    pub failed: u64,
    /// The messages that went into quarantine.
    pub quarantined: u64,
    /// The messages that were refused.
    pub rejected: u64,
    /// The failed messages that a receiver took for mail of a list or a forwarder.
    pub forwarded: u64,
    /// The failed messages with a signature that is not valid.
    pub broken_signatures: u64,
    /// The failed messages with an error in the SPF record.
    pub spf_errors: u64,
    /// The domains in From.
    pub header_from: Names,
    /// The domains that the failed messages are authenticated for: valid signatures, and SPF passes.
    pub authenticated_as: Names,
    /// The organizations that report.
    pub reporters: Names,
}

impl SourceRow {
    pub(super) fn new(source: IpAddr) -> Self {
        Self {
            source,
            messages: 0,
            dkim_aligned: 0,
            spf_aligned: 0,
            failed: 0,
            quarantined: 0,
            rejected: 0,
            forwarded: 0,
            broken_signatures: 0,
            spf_errors: 0,
            header_from: Names::default(),
            authenticated_as: Names::default(),
            reporters: Names::default(),
        }
    }

    pub(super) fn count(&mut self, record: &Record, reporter: &str) {
        let count = record.count;
        let is = |disposition| record.disposition == disposition;
        add(&mut self.messages, count, true);
        add(&mut self.dkim_aligned, count, record.dkim_aligned);
        add(&mut self.spf_aligned, count, record.spf_aligned);
        add(&mut self.quarantined, count, is(Disposition::Quarantine));
        add(&mut self.rejected, count, is(Disposition::Reject));
        self.header_from.add(&record.header_from);
        self.reporters.add(reporter);
        if record.is_aligned() {
            return;
        }
        add(&mut self.failed, count, true);
        let is_relayed = |kind| matches!(kind, Override::MailingList | Override::TrustedForwarder);
        let forwarded = record.reasons.iter().any(|reason| is_relayed(reason.kind));
        add(&mut self.forwarded, count, forwarded);
        let broken = |word| matches!(word, AuthWord::Fail | AuthWord::PermError);
        let broken = record.dkim.iter().any(|dkim| broken(dkim.result));
        add(&mut self.broken_signatures, count, broken);
        let errors = record
            .spf
            .iter()
            .any(|spf| spf.result == AuthWord::PermError);
        add(&mut self.spf_errors, count, errors);
        let dkim = record.dkim.iter().map(|dkim| (dkim.result, &dkim.domain));
        let spf = record.spf.iter().map(|spf| (spf.result, &spf.domain));
        for (result, domain) in dkim.chain(spf) {
            if result == AuthWord::Pass {
                self.authenticated_as.add(domain);
            }
        }
    }
}

/// Connections to the hosts of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TlsDomainRow {
    /// The domain.
    pub domain: String,
    /// The beginning of the first report, in seconds since 1970.
    pub begin: u64,
    /// The end of the last report.
    pub end: u64,
    /// The organizations that report.
    pub reporters: Names,
    /// Sessions by kind of policy.
    pub policies: Vec<PolicyRow>,
    #[serde(rename = "failures", serialize_with = "values")]
    pub(super) by_failure: BTreeMap<(&'static str, String, Option<String>), TlsFailureRow>,
}

impl TlsDomainRow {
    pub(super) fn new(domain: String) -> Self {
        Self {
            domain,
            begin: u64::MAX,
            end: 0,
            reporters: Names::default(),
            policies: Vec::new(),
            by_failure: BTreeMap::new(),
        }
    }

    pub(super) fn period(&mut self, begin: u64, end: u64) {
        self.begin = self.begin.min(begin);
        self.end = self.end.max(end);
    }

    /// The row of a kind of policy.
    pub(super) fn policy(&mut self, kind: TlsPolicyKind) -> &mut PolicyRow {
        let word = kind.word();
        let at = self.policies.iter().position(|row| row.policy == word);
        let at = at.unwrap_or(self.policies.len());
        if at == self.policies.len() {
            self.policies.push(PolicyRow {
                policy: word,
                successes: 0,
                failures: 0,
            });
        }
        #[expect(clippy::indexing_slicing, reason = "the row was found or pushed above")]
        &mut self.policies[at]
    }

    /// All sessions without the wanted security.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let failures = self.policies.iter().map(|row| row.failures);
        failures.fold(0, u64::saturating_add)
    }

    /// The kinds of failures, the most frequent first.
    #[must_use]
    pub fn failure_rows(&self) -> Vec<&TlsFailureRow> {
        let mut rows: Vec<&TlsFailureRow> = self.by_failure.values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.sessions));
        rows
    }
}

/// Sessions under a kind of policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyRow {
    /// The kind: `tlsa`, `sts` or `no-policy-found`.
    pub policy: &'static str,
    /// Sessions with the wanted security.
    pub successes: u64,
    /// Sessions without.
    pub failures: u64,
}

/// Failures of a kind at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TlsFailureRow {
    /// The kind of policy.
    pub policy: &'static str,
    /// The kind of failure, in the words of RFC 8460.
    pub failure: String,
    /// The host.
    pub mx: Option<String>,
    /// The sessions.
    pub sessions: u64,
    /// Codes or texts of the senders.
    pub reasons: Names,
    /// The organizations that report.
    pub reporters: Names,
    #[serde(skip)]
    pub(super) kind: TlsFailureKind,
}

impl TlsFailureRow {
    pub(super) fn new(policy: TlsPolicyKind, failure: &TlsFailure) -> Self {
        let word = shortened(failure.kind.word());
        Self {
            policy: policy.word(),
            mx: failure.mx.as_deref().map(shortened),
            sessions: 0,
            reasons: Names::default(),
            reporters: Names::default(),
            kind: TlsFailureKind::of(&word),
            failure: word,
        }
    }
}

fn add(sum: &mut u64, count: u64, is: bool) {
    if is {
        *sum = sum.saturating_add(count);
    }
}

/// A map as the list of its values.
fn values<K, V: Serialize, S: Serializer>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(map.values())
}
