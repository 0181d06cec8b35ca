//! Writes the XML of an aggregate report, elements in the order of the schema of RFC 9990.

use std::fmt::Write as _;

use super::values::{Aggregate, Policy, Record};
use crate::text::plain;

pub(super) fn xml(report: &Aggregate) -> String {
    let mut out = Writer {
        text: String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"),
        depth: 0,
    };
    out.text
        .push_str("<feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\">\n");
    out.depth = 1;
    out.leaf("version", "1.0");
    out.within("report_metadata", |out| metadata(out, report));
    out.within("policy_published", |out| policy(out, &report.policy));
    for each in &report.records {
        out.within("record", |out| record(out, each));
    }
    out.text.push_str("</feedback>\n");
    out.text
}

struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn within(&mut self, name: &str, inner: impl FnOnce(&mut Self)) {
        self.indent();
        let _ = writeln!(self.text, "<{name}>");
        self.depth = self.depth.saturating_add(1);
        inner(self);
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        let _ = writeln!(self.text, "</{name}>");
    }

    fn leaf(&mut self, name: &str, value: &str) {
        self.indent();
        let _ = write!(self.text, "<{name}>");
        for character in plain(value).chars() {
            match character {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                other => self.text.push(other),
            }
        }
        let _ = writeln!(self.text, "</{name}>");
    }

    fn maybe(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.leaf(name, value);
        }
    }
}

fn metadata(out: &mut Writer, report: &Aggregate) {
    out.leaf("org_name", &report.organization);
    out.leaf("email", &report.email);
    out.maybe("extra_contact_info", report.contact.as_deref());
    out.leaf("report_id", &report.id);
    out.within("date_range", |out| {
        out.leaf("begin", &report.begin.to_string());
        out.leaf("end", &report.end.to_string());
    });
    for error in &report.errors {
        out.leaf("error", error);
    }
    out.maybe("generator", report.generator.as_deref());
}

fn policy(out: &mut Writer, policy: &Policy) {
    out.leaf("domain", &policy.domain);
    out.maybe("discovery_method", policy.discovery.map(|it| it.word()));
    out.leaf("p", policy.domain_policy.word());
    out.maybe("sp", policy.subdomain_policy.map(|it| it.word()));
    out.maybe("np", policy.nonexistent_policy.map(|it| it.word()));
    out.maybe("fo", policy.failure_options.as_deref());
    out.maybe("adkim", policy.dkim_alignment.map(|it| it.word()));
    out.maybe("aspf", policy.spf_alignment.map(|it| it.word()));
    out.maybe(
        "testing",
        policy.testing.map(|is| if is { "y" } else { "n" }),
    );
}

fn record(out: &mut Writer, record: &Record) {
    let passed = |is: bool| if is { "pass" } else { "fail" };
    out.within("row", |out| {
        out.leaf("source_ip", &record.source.to_string());
        out.leaf("count", &record.count.to_string());
        out.within("policy_evaluated", |out| {
            out.leaf("disposition", record.disposition.word());
            out.leaf("dkim", passed(record.dkim_aligned));
            out.leaf("spf", passed(record.spf_aligned));
            for reason in &record.reasons {
                out.within("reason", |out| {
                    out.leaf("type", reason.kind.word());
                    out.maybe("comment", reason.comment.as_deref());
                });
            }
        });
    });
    out.within("identifiers", |out| {
        out.leaf("header_from", &record.header_from);
        out.maybe("envelope_from", record.envelope_from.as_deref());
        out.maybe("envelope_to", record.envelope_to.as_deref());
    });
    out.within("auth_results", |out| {
        for dkim in &record.dkim {
            out.within("dkim", |out| {
                out.leaf("domain", &dkim.domain);
                out.maybe("selector", dkim.selector.as_deref());
                out.leaf("result", dkim.result.word());
                out.maybe("human_result", dkim.text.as_deref());
            });
        }
        for spf in &record.spf {
            out.within("spf", |out| {
                out.leaf("domain", &spf.domain);
                out.leaf("scope", if spf.is_helo { "helo" } else { "mfrom" });
                out.leaf("result", spf.result.word());
                out.maybe("human_result", spf.text.as_deref());
            });
        }
    });
}
