//! Reads the XML of an aggregate report.
//!
//! ```text
//! feedback
//!   report_metadata   org_name, email, extra_contact_info, report_id, date_range (begin, end), error, generator
//!   policy_published  domain, discovery_method, p, sp, np, fo, adkim, aspf, testing
//!   record            row            source_ip, count, policy_evaluated (disposition, dkim, spf, reason (type, comment))
//!                     identifiers    header_from, envelope_from, envelope_to
//!                     auth_results   dkim (domain, selector, result, human_result), spf (domain, scope, result, human_result)
//! ```

use std::net::{IpAddr, Ipv4Addr};

use super::values::{Aggregate, Dkim, Policy, Reason, Record, Spf};
use super::words::{Alignment, AuthWord, Discovery, Disposition, Override};
use super::xml::{Xml, decoded};
use crate::bounds::{REASONS_MAX, RECORDS_MAX, RESULTS_ALL_MAX, RESULTS_MAX};
use crate::error::ReportError;
use crate::text::domain;

type Read<T> = Result<T, ReportError>;

pub(super) fn report(octets: &[u8]) -> Read<Aggregate> {
    let text = decoded(octets)?;
    let mut reading = Reading {
        xml: Xml::new(&text),
        oddities: 0,
        results: 0,
    };
    let root = reading.xml.root()?;
    if root != "feedback" {
        return Err(ReportError::value(
            "XML",
            "the root element feedback",
            &root,
        ));
    }
    reading.feedback()
}

struct Reading<'a> {
    xml: Xml<'a>,
    oddities: u32,
    /// Results and reasons so far.
    results: usize,
}

impl Reading<'_> {
    fn feedback(&mut self) -> Read<Aggregate> {
        let mut report = Aggregate::default();
        let (mut has_metadata, mut has_policy) = (false, false);
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "report_metadata" => {
                    self.metadata(&mut report)?;
                    has_metadata = true;
                }
                "policy_published" => {
                    report.policy = self.policy()?;
                    has_policy = true;
                }
                "record" => {
                    let record = self.record()?;
                    push(&mut report.records, record, RECORDS_MAX, "records")?;
                }
                _ => self.xml.skip()?,
            }
        }
        present(has_metadata, "report_metadata", "feedback")?;
        present(has_policy, "policy_published", "feedback")?;
        for record in &mut report.records {
            if record.header_from.is_empty() {
                record.header_from.clone_from(&report.policy.domain);
            }
        }
        report.oddities = self.oddities;
        Ok(report)
    }

    fn metadata(&mut self, report: &mut Aggregate) -> Read<()> {
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "org_name" => report.organization = self.xml.text()?,
                "email" => report.email = self.xml.text()?,
                "extra_contact_info" => report.contact = self.maybe()?,
                "report_id" => report.id = self.xml.text()?,
                "generator" => report.generator = self.maybe()?,
                "error" => {
                    if let Some(error) = self.maybe()? {
                        push(&mut report.errors, error, REASONS_MAX, "errors of a report")?;
                    }
                }
                "date_range" => {
                    while let Some(name) = self.xml.child()? {
                        match name.as_str() {
                            "begin" => report.begin = self.number("begin")?,
                            "end" => report.end = self.number("end")?,
                            _ => self.xml.skip()?,
                        }
                    }
                }
                _ => self.xml.skip()?,
            }
        }
        Ok(())
    }

    fn policy(&mut self) -> Read<Policy> {
        let mut policy = Policy::default();
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "domain" => policy.domain = self.domain()?,
                "discovery_method" => policy.discovery = self.word(Discovery::of)?,
                "p" => policy.domain_policy = self.disposition()?,
                "sp" => policy.subdomain_policy = self.word(Disposition::of)?,
                "np" => policy.nonexistent_policy = self.word(Disposition::of)?,
                "fo" => policy.failure_options = self.maybe()?,
                "adkim" => policy.dkim_alignment = self.word(Alignment::of)?,
                "aspf" => policy.spf_alignment = self.word(Alignment::of)?,
                "testing" => policy.testing = self.word(yes_or_no)?,
                _ => self.xml.skip()?,
            }
        }
        present(!policy.domain.is_empty(), "domain", "policy_published")?;
        Ok(policy)
    }

    fn record(&mut self) -> Read<Record> {
        let mut record = Record {
            source: Ipv4Addr::UNSPECIFIED.into(),
            count: 0,
            disposition: Disposition::None,
            dkim_aligned: false,
            spf_aligned: false,
            reasons: Vec::new(),
            header_from: String::new(),
            envelope_from: None,
            envelope_to: None,
            dkim: Vec::new(),
            spf: Vec::new(),
        };
        let mut has_row = false;
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "row" => {
                    self.row(&mut record)?;
                    has_row = true;
                }
                // Plural in the schema, singular in some reports.
                "identifiers" | "identities" => self.identifiers(&mut record)?,
                "auth_results" => self.results(&mut record)?,
                _ => self.xml.skip()?,
            }
        }
        present(has_row, "row", "record")?;
        for length in [record.dkim.len(), record.spf.len(), record.reasons.len()] {
            self.results = self.results.saturating_add(length);
        }
        if self.results > RESULTS_ALL_MAX {
            return Err(ReportError::many(
                "results and reasons of a report",
                RESULTS_ALL_MAX,
            ));
        }
        record.dkim.shrink_to_fit();
        record.spf.shrink_to_fit();
        record.reasons.shrink_to_fit();
        Ok(record)
    }

    fn row(&mut self, record: &mut Record) -> Read<()> {
        let (mut has_source, mut has_count) = (false, false);
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "source_ip" => {
                    record.source = self.address()?;
                    has_source = true;
                }
                "count" => {
                    record.count = self.number("count")?;
                    has_count = true;
                }
                "policy_evaluated" => self.evaluated(record)?,
                _ => self.xml.skip()?,
            }
        }
        present(has_source, "source_ip", "row")?;
        present(has_count, "count", "row")
    }

    fn evaluated(&mut self, record: &mut Record) -> Read<()> {
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "disposition" => {
                    record.disposition = self.disposition()?;
                }
                "dkim" => record.dkim_aligned = self.word(pass_or_fail)?.unwrap_or_default(),
                "spf" => record.spf_aligned = self.word(pass_or_fail)?.unwrap_or_default(),
                "reason" => {
                    let reason = self.reason()?;
                    push(
                        &mut record.reasons,
                        reason,
                        REASONS_MAX,
                        "reasons of a record",
                    )?;
                }
                _ => self.xml.skip()?,
            }
        }
        Ok(())
    }

    fn reason(&mut self) -> Read<Reason> {
        let mut reason = Reason {
            kind: Override::Other,
            comment: None,
        };
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "type" => reason.kind = self.word(Override::of)?.unwrap_or(Override::Other),
                "comment" => reason.comment = self.maybe()?,
                _ => self.xml.skip()?,
            }
        }
        Ok(reason)
    }

    fn identifiers(&mut self, record: &mut Record) -> Read<()> {
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "header_from" => record.header_from = self.domain()?,
                "envelope_from" => record.envelope_from = Some(self.domain()?),
                "envelope_to" => record.envelope_to = Some(self.domain()?),
                _ => self.xml.skip()?,
            }
        }
        Ok(())
    }

    fn results(&mut self, record: &mut Record) -> Read<()> {
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "dkim" => {
                    let dkim = self.dkim()?;
                    push(
                        &mut record.dkim,
                        dkim,
                        RESULTS_MAX,
                        "DKIM results of a record",
                    )?;
                }
                "spf" => {
                    let spf = self.spf()?;
                    push(&mut record.spf, spf, RESULTS_MAX, "SPF results of a record")?;
                }
                _ => self.xml.skip()?,
            }
        }
        Ok(())
    }

    fn dkim(&mut self) -> Read<Dkim> {
        let mut dkim = Dkim {
            domain: String::new(),
            selector: None,
            result: AuthWord::None,
            text: None,
        };
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "domain" => dkim.domain = self.domain()?,
                "selector" => dkim.selector = self.maybe()?,
                "result" => dkim.result = self.word(AuthWord::of)?.unwrap_or(AuthWord::None),
                "human_result" => dkim.text = self.maybe()?,
                _ => self.xml.skip()?,
            }
        }
        Ok(dkim)
    }

    fn spf(&mut self) -> Read<Spf> {
        let mut spf = Spf {
            domain: String::new(),
            is_helo: false,
            result: AuthWord::None,
            text: None,
        };
        while let Some(name) = self.xml.child()? {
            match name.as_str() {
                "domain" => spf.domain = self.domain()?,
                "scope" => spf.is_helo = self.word(helo_or_mfrom)?.unwrap_or_default(),
                "result" => spf.result = self.word(AuthWord::of)?.unwrap_or(AuthWord::None),
                "human_result" => spf.text = self.maybe()?,
                _ => self.xml.skip()?,
            }
        }
        Ok(spf)
    }

    fn maybe(&mut self) -> Read<Option<String>> {
        let text = self.xml.text()?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn disposition(&mut self) -> Read<Disposition> {
        Ok(self.word(Disposition::of)?.unwrap_or_default())
    }

    fn domain(&mut self) -> Read<String> {
        Ok(domain(&self.xml.text()?))
    }

    /// A word of a table; an unknown one is counted, and an empty element is as if it were not there.
    fn word<T>(&mut self, of: impl Fn(&str) -> Option<T>) -> Read<Option<T>> {
        let text = self.xml.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        let value = of(&text);
        if value.is_none() {
            self.oddities = self.oddities.saturating_add(1);
        }
        Ok(value)
    }

    fn number(&mut self, place: &'static str) -> Read<u64> {
        let text = self.xml.text()?;
        text.parse()
            .map_err(|_| ReportError::value(place, "a number", &text))
    }

    fn address(&mut self) -> Read<IpAddr> {
        let text = self.xml.text()?;
        let address: Result<IpAddr, _> = text.parse();
        address
            .map(|address| address.to_canonical())
            .map_err(|_| ReportError::value("source_ip", "an IP address", &text))
    }
}

fn present(is: bool, element: &'static str, within: &'static str) -> Read<()> {
    if is {
        return Ok(());
    }
    Err(ReportError::Missing { element, within })
}

fn push<T>(list: &mut Vec<T>, value: T, max: usize, what: &'static str) -> Read<()> {
    if list.len() >= max {
        return Err(ReportError::many(what, max));
    }
    list.push(value);
    Ok(())
}

fn yes_or_no(word: &str) -> Option<bool> {
    two(word, "y", "n")
}

fn pass_or_fail(word: &str) -> Option<bool> {
    two(word, "pass", "fail")
}

fn helo_or_mfrom(word: &str) -> Option<bool> {
    two(word, "helo", "mfrom")
}

fn two(word: &str, yes: &str, no: &str) -> Option<bool> {
    let is_yes = word.eq_ignore_ascii_case(yes);
    (is_yes || word.eq_ignore_ascii_case(no)).then_some(is_yes)
}
