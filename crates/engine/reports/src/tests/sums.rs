//! Sums of reports, and what they say.

use super::made::{JSON, XML};
use crate::bounds::{NAMES_MAX, ROWS_MAX};
use crate::*;

fn aggregate(change: impl FnOnce(&mut Aggregate)) -> Report {
    let mut report = Aggregate::read(XML.as_bytes()).unwrap();
    report.records[0].reasons.clear();
    change(&mut report);
    Report::Aggregate(report.into())
}

fn advice(change: impl FnOnce(&mut Record)) -> Option<String> {
    let mut summary = Summary::default();
    summary.add(&aggregate(|report| change(&mut report.records[0])));
    let domain = summary.dmarc_domains()[0].clone();
    domain.sources()[0].advice(&domain)
}

#[test]
fn a_source_without_alignment() {
    let text = advice(|record| {
        record.dkim.clear();
        record.spf.clear();
    });
    assert_eq!(
        text.as_deref(),
        Some(
            "203.0.113.5 sends as example.org without alignment: 1,204 messages; sign its mail or add it to SPF; if you do not \
             know it, it forges your domain"
        )
    );
    assert_eq!(advice(|record| record.spf_aligned = true), None);
    let other = advice(|_| ()).unwrap();
    assert!(
        other.contains("authenticated as other.example: let it sign as example.org"),
        "{other}"
    );
    let broken = advice(|record| record.dkim[0].result = AuthWord::Fail).unwrap();
    assert!(broken.contains("its signatures are not valid"), "{broken}");
    let list = advice(|record| {
        record.reasons.push(Reason {
            kind: Override::MailingList,
            comment: None,
        });
    });
    assert!(list.unwrap().ends_with("nothing is to be done"));
}

#[test]
fn reports_add_up_once() {
    let mut summary = Summary::default();
    assert!(summary.add(&aggregate(|_| ())));
    assert!(!summary.add(&aggregate(|_| ())));
    // The same identifier with other sums is of somebody else.
    assert!(summary.add(&aggregate(|report| {
        report.policy.domain_policy = Disposition::None;
        report.end += 86_400;
        report.records[0].count = 1;
        let mut aligned = report.records[0].clone();
        aligned.dkim_aligned = true;
        aligned.count = 10;
        report.records.push(aligned);
    })));
    assert_eq!((summary.reports, summary.repeated), (2, 1));
    let row = summary.dmarc_domains()[0];
    assert_eq!(
        (row.messages, row.dkim_aligned, row.spf_aligned, row.failed),
        (1_215, 10, 0, 1_205)
    );
    assert_eq!(row.policy, "none");
    assert_eq!(row.sources()[0].rejected, 1_215);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["dmarc"]["example.org"]["sources"][0]["failed"], 1_205);
}

#[test]
fn tls_failures_by_kind_and_host() {
    let mut summary = Summary::default();
    summary.add(&Report::Tls(
        TlsReport::read(JSON.as_bytes()).unwrap().into(),
    ));
    let row = summary.tls_domains()[0];
    assert_eq!(row.failures(), 303);
    assert_eq!(
        row.policies,
        [PolicyRow {
            policy: "sts",
            successes: 5_326,
            failures: 303
        }]
    );
    let failures = row.failure_rows();
    assert_eq!(
        failures
            .iter()
            .map(|failure| failure.advice(row))
            .collect::<Vec<_>>(),
        [
            "200 sessions: mx2.mail.company-y.example offers no STARTTLS: turn it on, and look for a firewall that removes it",
            "100 sessions: the certificate of mx1.mail.company-y.example has expired: renew it",
            "3 sessions: TLS with mx-backup.mail.company-y.example failed: try vere dial company-y.example, and compare versions \
             and ciphers",
        ]
    );
}

#[test]
fn rows_and_names_are_bounded() {
    let mut summary = Summary::default();
    let sources = ROWS_MAX as u32 + 10;
    summary.add(&aggregate(|report| {
        let one = report.records[0].clone();
        report.records = (0..sources)
            .map(|at| Record {
                source: std::net::Ipv4Addr::from(at).into(),
                count: 1,
                ..one.clone()
            })
            .collect();
    }));
    let row = summary.dmarc_domains()[0];
    assert_eq!(row.messages, u64::from(sources));
    assert_eq!(row.sources().len(), ROWS_MAX - 1);
    assert_eq!((row.beyond, summary.beyond), (11, 11));

    let mut summary = Summary::default();
    for at in 0..10 {
        summary.add(&aggregate(|report| {
            report.organization = format!("{at}{}", "ä".repeat(1_000))
        }));
    }
    let names = &summary.dmarc_domains()[0].reporters;
    assert_eq!((names.names.len(), names.more), (NAMES_MAX, true));
    assert!(names.names.iter().all(|name| name.len() <= 255));
}
