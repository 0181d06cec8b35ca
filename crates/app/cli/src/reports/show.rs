//! Prints the sums.

use std::fmt::Write as _;

use serde_json::{Value, json};
use vere_process::failure::Failure;
use vere_reports::{DomainRow, Names, SourceRow, Summary, TlsDomainRow, grouped};
use vere_units::Timestamp;

use super::read::Reading;

/// The sources of a domain that are shown without `--all`.
const SOURCES_SHOWN: usize = 20;

/// The sums for programs: all rows, each with a advice.
pub(super) fn json(reading: &Reading) -> Result<String, Failure> {
    let summary = &reading.summary;
    let mut value =
        serde_json::to_value(summary).map_err(|error| Failure::new(error.to_string()))?;
    value["without_report"] = json!(reading.others);
    value["unreadable"] = json!({
        "count": reading.unreadable.count,
        "named": reading.unreadable.named.iter().map(|(place, reason)| json!({"place": place, "reason": reason})).collect::<Vec<_>>(),
    });
    value["dmarc"] = summary
        .dmarc_domains()
        .into_iter()
        .map(dmarc_json)
        .collect();
    value["tls"] = summary.tls_domains().into_iter().map(tls_json).collect();
    Ok(format!("{value:#}\n"))
}

fn dmarc_json(domain: &DomainRow) -> Value {
    let mut value = json!(domain);
    value["advice"] = json!(domain.advice());
    let source = |row: &SourceRow| {
        let mut value = json!(row);
        value["advice"] = json!(row.advice(domain));
        value
    };
    value["sources"] = domain.sources().into_iter().map(source).collect();
    value
}

fn tls_json(domain: &TlsDomainRow) -> Value {
    let mut value = json!(domain);
    let failures = domain.failure_rows().into_iter().map(|row| {
        let mut value = json!(row);
        value["advice"] = json!(row.advice(domain));
        value
    });
    value["failures"] = failures.collect();
    value
}

/// The sums for people.
pub(super) fn text(reading: &Reading, all: bool) -> String {
    let summary = &reading.summary;
    let mut out = head(reading);
    for domain in summary.dmarc_domains() {
        dmarc(&mut out, domain, all);
    }
    for domain in summary.tls_domains() {
        tls(&mut out, domain);
    }
    tail(&mut out, summary);
    if reading.unreadable.count > 0 {
        let count = grouped(reading.unreadable.count);
        let _ = writeln!(out, "\nnot readable: {count}");
        for (place, reason) in &reading.unreadable.named {
            let _ = writeln!(out, "  {place}: {reason}");
        }
    }
    out
}

fn head(reading: &Reading) -> String {
    let summary = &reading.summary;
    let mut out = format!("reports: {}", grouped(summary.reports));
    for (count, what) in [
        (summary.repeated, "repeated and left out"),
        (reading.others, "other messages or files"),
    ] {
        if count > 0 {
            let _ = write!(out, "; {what}: {}", grouped(count));
        }
    }
    out.push('\n');
    out
}

fn tail(out: &mut String, summary: &Summary) {
    if summary.beyond > 0 {
        let count = grouped(summary.beyond);
        let _ = writeln!(
            out,
            "\nbeyond the bound of rows, without a row: {count} messages or sessions"
        );
    }
    if summary.oddities > 0 {
        let count = grouped(summary.oddities);
        let _ = writeln!(
            out,
            "\nvalues outside the standard, read as the default: {count}"
        );
    }
}

fn dmarc(out: &mut String, domain: &DomainRow, all: bool) {
    let _ = writeln!(
        out,
        "\nDMARC {}  p={}  {}",
        domain.domain,
        domain.policy,
        period(domain.begin, domain.end)
    );
    let _ = writeln!(
        out,
        "  messages {}; aligned by DKIM {}, by SPF {}; failed {}",
        grouped(domain.messages),
        grouped(domain.dkim_aligned),
        grouped(domain.spf_aligned),
        grouped(domain.failed)
    );
    let _ = writeln!(out, "  reported by {}", listed(&domain.reporters));
    if let Some(advice) = domain.advice() {
        let _ = writeln!(out, "  what to do: {advice}");
    }
    let sources = domain.sources();
    let shown = if all {
        sources.len()
    } else {
        SOURCES_SHOWN.min(sources.len())
    };
    let _ = writeln!(
        out,
        "  {:<39} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10}",
        "source", "messages", "dkim", "spf", "failed", "quarantine", "reject"
    );
    for row in &sources[..shown] {
        let _ = writeln!(
            out,
            "  {:<39} {:>10} {:>10} {:>10} {:>10} {:>11} {:>10}",
            row.source.to_string(),
            grouped(row.messages),
            grouped(row.dkim_aligned),
            grouped(row.spf_aligned),
            grouped(row.failed),
            grouped(row.quarantined),
            grouped(row.rejected)
        );
        if let Some(advice) = row.advice(domain) {
            let _ = writeln!(out, "    what to do: {advice}");
        }
    }
    let rest = &sources[shown..];
    if !rest.is_empty() {
        let messages = rest
            .iter()
            .map(|row| row.messages)
            .fold(0, u64::saturating_add);
        let _ = writeln!(
            out,
            "  further sources: {}, with {} messages (--all shows them)",
            grouped(rest.len() as u64),
            grouped(messages)
        );
    }
}

fn tls(out: &mut String, domain: &TlsDomainRow) {
    let period = period(domain.begin, domain.end);
    let _ = writeln!(out, "\nTLS {}  {period}", domain.domain);
    for row in &domain.policies {
        let _ = writeln!(
            out,
            "  policy {}: sessions secured {}, failed {}",
            row.policy,
            grouped(row.successes),
            grouped(row.failures)
        );
    }
    let _ = writeln!(out, "  reported by {}", listed(&domain.reporters));
    for row in domain.failure_rows() {
        let _ = writeln!(
            out,
            "  {} {}",
            row.failure,
            row.mx.as_deref().unwrap_or("(no host)")
        );
        let _ = writeln!(out, "    what to do: {}", row.advice(domain));
        if !row.reasons.names.is_empty() {
            let _ = writeln!(out, "    reasons: {}", listed(&row.reasons));
        }
    }
}

fn listed(names: &Names) -> String {
    match (names.names.is_empty(), names.more) {
        (true, _) => "nobody with a name".to_owned(),
        (false, true) => format!("{} and others", names.names.join(", ")),
        (false, false) => names.names.join(", "),
    }
}

fn period(begin: u64, end: u64) -> String {
    let day = |seconds: u64| {
        let at = Timestamp::from_millis(seconds.saturating_mul(1_000)).to_string();
        at.split('T').next().unwrap_or_default().to_owned()
    };
    format!("{} to {}", day(begin), day(end))
}
